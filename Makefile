# Two commands: `make bench` runs the main job, `make test` the tests. Both are safe to repeat.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1
export NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba

COUNT ?= 3000
SEED ?= 1

.PHONY: bench test second-opinion lint notebooks wheel solvers clean

bench: $(VENV)/.installed
	$(BIN)/hindsched bench small

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q

# The package against a second statement of every family's problem, on COUNT random instances each.
second-opinion: $(VENV)/.installed-dev
	SECOND_OPINION=$(COUNT) SEED=$(SEED) $(BIN)/python -m pytest -n 2 -q tests/second_opinion

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

notebooks: $(VENV)/.installed-dev
	$(BIN)/python notebooks/run.py --quick

wheel: $(VENV)/.installed-dev
	$(BIN)/python tests/wheel.py

solvers: $(VENV)/.installed-solvers

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[test,lint,notebooks,arrow,plotly]" build
	touch $@ $(VENV)/.installed

$(VENV)/.installed-solvers: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[solvers]"
	touch $@
