# Two commands: `make bench` runs the main job, `make test` the tests. Both are safe to repeat.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1
unexport PYTHONDONTWRITEBYTECODE # without bytecode every process compiles 900 modules again
export NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba

COUNT ?= 3000
SEED ?= 1

.PHONY: bench benchmarks test second-opinion agreement faults mutations code-mutations lint claims claims-in-full notebooks run-notebooks site wheel solvers clean

bench: $(VENV)/.installed
	$(BIN)/hindsched bench small

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q

# docs/performance.md: each row a ratio against a named rival in the same run.
benchmarks: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/performance.py

# The package against a second statement of every family's problem, on COUNT random instances each.
second-opinion: $(VENV)/.installed-dev
	SECOND_OPINION=$(COUNT) SEED=$(SEED) $(BIN)/python -m pytest -n 2 -q tests/second_opinion

# The exact kernel against the fast path, on certificates of COUNT random instances a family.
agreement: $(VENV)/.installed-dev
	AGREEMENT=$(COUNT) SEED=$(SEED) $(BIN)/python -m pytest -n 2 --timeout=0 -q tests/kernel/test_agreement.py

# Files of every family changed at random, COUNT a family: nothing wrong is accepted, nothing hangs.
mutations: $(VENV)/.installed-dev
	MUTATIONS=$(COUNT) SEED=$(SEED) $(BIN)/python -m pytest -n 2 --timeout=0 -q tests/mutations

# The package's own code changed at random, COUNT changes a folder: which does no test notice?
code-mutations: $(VENV)/.installed-dev
	$(BIN)/python -m tests.code_mutations.run --count $(COUNT) --seed $(SEED)

# Sequences of kills, full disks and edits on a folder of results, FAULTS of them.
FAULTS ?= 300
faults: $(VENV)/.installed-dev
	FAULTS=$(FAULTS) $(BIN)/python -m pytest -q tests/analysis/test_faults.py

# The papers' claims measured, and docs/claims.md: goes on where it was stopped. In full: hours, and
# with AT_MOST=SECONDS what takes longer is left, with the time it needs.
claims: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/claims.py

claims-in-full: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/claims.py --full $(AT_MOST:%=--at-most %)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Open the notebooks in a browser.
notebooks: $(VENV)/.installed-dev
	$(BIN)/jupyter notebook notebooks

# Run all of them, small versions of the experiments; the results are in build/notebooks.
run-notebooks: $(VENV)/.installed-dev
	$(BIN)/python notebooks/run.py --quick --output build/notebooks

# The documentation in build/site, with the notebooks as they were run last.
site: $(VENV)/.installed-docs
	[ -d build/notebooks ] || $(MAKE) run-notebooks
	$(BIN)/python docs/site.py

wheel: $(VENV)/.installed-dev
	$(BIN)/python tests/wheel.py

solvers: $(VENV)/.installed-solvers

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[test,lint,notebooks,arrow,plotly]" build
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[docs]"
	touch $@

$(VENV)/.installed-solvers: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[solvers]"
	touch $@
