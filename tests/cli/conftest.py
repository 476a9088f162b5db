from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.program import KEY, Program, repository, scripted_model

SCRIPT = Path(__file__).with_name("script.toml")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """``forkdeck rehearsal`` as a separate process; returns what points a client at it."""
    with scripted_model(tmp_path_factory.mktemp("model"), SCRIPT) as found:
        yield found


@pytest.fixture
def program(tmp_path: Path, model: dict[str, str]) -> Program:
    """``forkdeck`` in a small repository, pointed at the scripted model."""
    made = Program(tmp_path, dict(model))
    repository(made.project)
    return made


@pytest.fixture
def keyless(tmp_path: Path) -> Program:
    """``forkdeck`` in a small repository, without credentials."""
    made = Program(tmp_path)
    repository(made.project)
    return made


class _Page(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = b"<!doctype html><html><title>Sign in</title><h1>Hotel Wi-Fi</h1></html>"
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def web_page() -> Iterator[dict[str, str]]:
    """A web server that is no endpoint: every request gets a sign-in page."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "ANTHROPIC_API_KEY": KEY,
    }
    server.shutdown()
    thread.join()
    server.server_close()
