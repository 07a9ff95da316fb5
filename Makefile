# The two commands of the README are `make serve` and `make test`; each installs what it needs, once.
PYTHON ?= python3.11
EXTRA  ?= cpu# or gpu
PIP    := .venv/bin/python -m pip --disable-pip-version-check --quiet
BIN    := .venv/bin

.PHONY: serve test check lint format openapi clean

serve: .venv/serving
	$(BIN)/sameface pull
	$(BIN)/sameface demo
	$(BIN)/sameface serve

test: .venv/developing
	$(BIN)/pytest

check: lint test

lint: .venv/developing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: .venv/developing
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

openapi: .venv/developing
	$(BIN)/python -m tests.api.openapi

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/serving: pyproject.toml | .venv/bin/python
	@echo "Installing sameface into .venv (a minute, once)"
	$(PIP) install --editable '.[$(strip $(EXTRA))]'
	@touch $@

.venv/developing: .venv/serving
	@echo "Installing the tools for tests into .venv (once)"
	$(PIP) install --editable '.[$(strip $(EXTRA)),dev]'
	@touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
