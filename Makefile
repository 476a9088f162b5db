# ForkDeck. `make demo` and `make test` set up by themselves; `make help` lists the rest.
SHELL := /bin/sh
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The first Python on PATH that is new enough. Empty when there is none: `check` then says so.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && { command -v $$p; break; }; done)

.DEFAULT_GOAL := help
.PHONY: help check demo test lint types arrows tests bench soak screenshots readme run clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check:
	@test -n "$(PYTHON)" || { echo "ForkDeck needs Python 3.11 or newer, and none is on PATH." >&2; \
	  echo "Install it: 'apt install python3 python3-venv', 'dnf install python3', or 'brew install python'." >&2; exit 2; }
	@command -v git >/dev/null 2>&1 || { echo "ForkDeck needs git, and it is not on PATH." >&2; \
	  echo "Install it: 'apt install git', 'dnf install git', or 'brew install git'." >&2; exit 2; }
	@test -x $(BIN)/python || "$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "This Python ($(PYTHON)) cannot make virtual environments: its venv module is missing." >&2; \
	  echo "Install it: 'apt install python3-venv' (Debian, Ubuntu)." >&2; exit 2; }

$(BIN)/python: | check
	@echo "setting up $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv $(VENV)

$(VENV)/.ready: pyproject.toml | $(BIN)/python
	@echo "installing ForkDeck and what it needs (once)"
	@$(PIP) install -e '.[sandbox]' || { echo "The packages could not be installed; see the lines above. Is there a network?" >&2; exit 2; }
	@touch $@

$(VENV)/.ready-dev: pyproject.toml | $(BIN)/python
	@echo "installing ForkDeck and its test tools (once)"
	@$(PIP) install -e '.[dev]' || { echo "The packages could not be installed; see the lines above. Is there a network?" >&2; exit 2; }
	@touch $@ $(VENV)/.ready

demo: $(VENV)/.ready ## watch the main job offline, in a deck of its own
	@$(BIN)/forkdeck demo

run: $(VENV)/.ready ## start ForkDeck here
	@$(BIN)/forkdeck

test: lint types arrows tests ## lint, types, arrows and tests

lint: $(VENV)/.ready-dev ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev ## pyright, strict
	$(BIN)/pyright

arrows: $(VENV)/.ready-dev ## import-linter: which package may know which
	$(BIN)/lint-imports

tests: $(VENV)/.ready-dev ## pytest
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist worksteal

bench: $(VENV)/.ready-dev ## measure the figures that are promised
	$(BIN)/python -m tests.bench

soak: $(VENV)/.ready-dev ## the exhaustive tests: every kill boundary, many worktrees, long fuzzing
	FORKDECK_SOAK=1 $(BIN)/python -m pytest -q --timeout 900

screenshots: $(VENV)/.ready-dev ## draw screenshots/ again from saved sessions
	$(BIN)/python -m tests.screenshots

readme: $(VENV)/.ready-dev ## write the generated tables of README.md again
	$(BIN)/python -m tests.readme

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
