# The two commands of the README are `make serve` and `make test`; each installs what it needs, once.
PYTHON ?= python3.11
EXTRA  ?= cpu# or gpu
EXTRA  := $(strip $(EXTRA))
# bf16 on a CPU comes from OpenVINO alone (59 MB), so that is installed where the CPU has it.
ENGINE := $(if $(filter cpu,$(EXTRA)),$(shell grep -qsE 'avx512_bf16|amx_bf16' /proc/cpuinfo && echo ',openvino'))
BIN    := .venv/bin
POSTGRES := tests/model/store tests/model/access tests/model/gallery tests/model/upkeep tests/model/commands \
    tests/api tests/faces \
    tests/test_in_process.py tests/processes/test_workers.py tests/processes/test_keys_of_workers.py
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: serve test processes training postgres packages browser clients newcomers train-demo torture attack bench check lint format openapi clean

serve: .venv/serving-$(EXTRA)
	$(BIN)/sameface pull
	-$(BIN)/sameface demo
	$(BIN)/sameface serve

test: .venv/developing-$(EXTRA)
	$(BIN)/pytest

# Servers as processes: how they start, stop, share a gallery, are killed, and answer hostile requests.
processes: .venv/developing-$(EXTRA)
	$(BIN)/pytest tests/processes tests/attack tests/api/server

# The same tests with their galleries in PostgreSQL, whose server comes as a wheel; skipped with a line where it
# cannot be started.
postgres: .venv/developing-$(EXTRA)
	TEST_DATABASE=postgresql $(BIN)/pytest -m 'not sqlite' $(POSTGRES)

# The losses recomputed, gradients checked, short runs, exports: a minute or two, which who serves can do without.
training: .venv/developing-$(EXTRA)
	$(BIN)/pytest tests/training

# What users install, each kind in a fresh environment without torch: two minutes, so it is no part of `test`.
packages: .venv/developing-$(EXTRA)
	$(BIN)/pytest tests/packages --dist=loadgroup

# /docs in Chromium, which the machine must have; skipped with a line where it has none.
browser: .venv/developing-$(EXTRA)
	$(BIN)/pytest tests/browser -n1

# Our clients, and those that others generate from openapi.json, in Python and TypeScript; what needs Java or node is
# skipped with a line where there is none.
clients: .venv/developing-$(EXTRA)
	$(BIN)/pytest tests/clients tests/python_client tests/faces --dist=loadfile

# The walk-throughs of the docs, typed as they are written: training and evaluation among them, two minutes.
newcomers: .venv/developing-$(EXTRA)
	$(BIN)/pytest tests/newcomers -n2

train-demo: .venv/training-$(EXTRA)
	rm -rf runs/demo
	$(BIN)/sameface pull
	$(BIN)/sameface synthesize runs/demo/people --people 100
	$(BIN)/sameface synthesize runs/demo/strangers --people 50 --images 6 --seed 1
	$(BIN)/sameface train training/recipes/demo.toml --out runs/demo/run
	$(BIN)/sameface bundle export runs/demo/run/last.pt --out runs/demo/bundle \
	    --pairs runs/demo/strangers/pairs.txt --images runs/demo/strangers
	$(BIN)/sameface serve --recognizer runs/demo/bundle --port 8001

# The server is killed 200 times; then two hosts and a database, in network namespaces of their own, are killed, cut
# off and restarted for five minutes: skipped with a line where such a network cannot be made, as without root.
torture: .venv/developing-$(EXTRA)
	SAMEFACE_KILLS=200 SAMEFACE_SECONDS=60 $(BIN)/pytest tests/processes/test_torture.py tests/processes/test_workers.py tests/processes/test_milvus_torture.py
	SAMEFACE_SECONDS=300 $(BIN)/pytest -n0 -s tests/machines

# Every finding, a hundred thousand hostile inputs and sieges, with the published networks: about an hour.
attack: .venv/developing-$(EXTRA)
	$(BIN)/python -m tests.attack --inputs 100000 --out docs/attacks.md

# This checkout against the last tag, or the commit named in benchmarks/baseline, by turns: about ten minutes on cores
# that nothing else uses. Fails if something has become slower by more than a tenth; the table goes to docs/results.
# `make bench LFW=folder` takes photos of LFW instead of the three portraits of `sameface demo`.
bench: .venv/developing-$(EXTRA)
	$(BIN)/sameface pull
	$(if $(LFW),,$(BIN)/sameface demo)
	$(BIN)/python -m benchmarks.bench $(if $(LFW),--lfw $(LFW))

check: lint test processes training

lint: .venv/developing-$(EXTRA)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: .venv/developing-$(EXTRA)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

openapi: .venv/developing-$(EXTRA)
	$(BIN)/python -m tests.api.openapi.write
	WRITE_TABLES=1 $(BIN)/pytest -n0 tests/api/access/test_scopes.py
	@if command -v npm >/dev/null; then \
	    cd clients/typescript && npm install --no-audit --no-fund --loglevel=error && npm run contract; \
	else echo "There is no npm here: clients/typescript/src/contract.ts is left as it is."; fi

$(BIN)/python:
	$(PYTHON) -m venv .venv

# ONNX Runtime and FAISS for CPU and for GPU are packages with the same files: only one may be there.
.venv/serving-$(EXTRA): pyproject.toml | $(BIN)/python
	@echo "Installing sameface into .venv (a minute, once)"
	@rm -f .venv/serving-* .venv/training-* .venv/developing-*
	@$(PIP) uninstall --quiet --yes onnxruntime onnxruntime-gpu faiss-cpu faiss-gpu-cu12
	@$(PIP) install --editable '.[$(EXTRA)$(ENGINE),arrow]'
	@touch $@

# torch is asked for by name and version first: asked for in another way, pip may take a far larger build.
.venv/training-$(EXTRA): .venv/serving-$(EXTRA)
	@echo "Installing torch into .venv (minutes, once)"
	@$(PIP) install torch==2.13.0
	@$(PIP) install --editable '.[$(EXTRA),arrow,train]'
	@touch $@

.venv/developing-$(EXTRA): .venv/training-$(EXTRA)
	@echo "Installing the tools for tests into .venv (once)"
	@$(PIP) install --editable '.[$(EXTRA),arrow,train,dev]'
	@touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
