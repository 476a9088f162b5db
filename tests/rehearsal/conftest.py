"""Keeps the SDK's own environment out of the rehearsal tests, and makes the sample's repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rehearsal.helpers import SAMPLE


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in list(os.environ):
        if name.startswith("ANTHROPIC_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample as the demo sets it up: a copy that is a git repository."""
    root = tmp_path / "tally"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Demo")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "demo@example.invalid")
    for command in ("init -q -b main", "add -A", "commit -q -m First"):
        subprocess.run(["git", *command.split()], cwd=root, check=True)
    return root
