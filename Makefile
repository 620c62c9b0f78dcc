# Two commands: `make bench` runs the main job, `make test` the tests. Both are safe to repeat.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1
unexport PYTHONDONTWRITEBYTECODE # without bytecode every process compiles 900 modules again

# Numba looks at the time of one file; a kernel also takes in functions of others. So each state of
# the kernels' sources has a cache of its own, outside the clone.
KERNELS := $(shell grep -rl --include=*.py njit hindsched | sort | xargs cat | sha256sum | cut -c1-12)
export NUMBA_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache,/tmp)/hindsched-kernels/$(KERNELS)

# How much `make nightly` draws: examples of each property, instances and mutated files of each family.
SEED ?= 1
ifdef SHORT
COUNT ?= 40
export HYPOTHESIS_PROFILE ?= commit
else
COUNT ?= 3000
NIGHTLY_PROFILE = HYPOTHESIS_PROFILE=nightly
endif

.PHONY: bench benchmarks test kernels nightly lint claims notebooks run-notebooks site wheel solvers evolve clean

bench: $(VENV)/.installed
	$(BIN)/hindsched bench small

# Everything that says whether the code is right.
test: kernels
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not nightly"

kernels: $(VENV)/.installed-dev
	$(BIN)/python tests/fill_kernels.py

# Second opinions, mutated files, killed processes, signals, Dask, browsers, notebooks, site, wheel.
# With SHORT=1 few draws of each; without, hours, and every property by 200 examples.
nightly: kernels
	SECOND_OPINION=$(COUNT) MUTATIONS=$(COUNT) SEED=$(SEED) $(NIGHTLY_PROFILE) \
		$(BIN)/python -m pytest -n 2 --timeout=$(if $(SHORT),600,0) -q $(if $(SHORT),-m nightly)
	$(MAKE) run-notebooks site wheel

# docs/results/performance.md: each row a ratio against a named rival in the same run.
benchmarks: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/performance.py

# The papers' claims measured, and docs/results/claims.md: hours in all; goes on where it was stopped.
claims: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/claims.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Open the notebooks in a browser.
notebooks: $(VENV)/.installed-dev
	$(BIN)/jupyter notebook notebooks

# Run all of them, small versions of the experiments, and hold their key numbers to those they show.
run-notebooks: $(VENV)/.installed-dev
	$(BIN)/python notebooks/run.py --quick --output build/notebooks

# The documentation in build/site.
site: $(VENV)/.installed-docs
	$(BIN)/python docs/site.py

wheel: $(VENV)/.installed-dev
	$(BIN)/python tests/wheel.py

solvers: $(VENV)/.installed-solvers

evolve: $(VENV)/.installed-evolve

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "installing into $(VENV), 600 MB, half a minute or more"
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[plots]"
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "installing into $(VENV), with what the tests need, a minute or more"
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[test,lint,notebooks,arrow,plotly]" build
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[docs]"
	touch $@

$(VENV)/.installed-evolve: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[evolve]"
	touch $@

$(VENV)/.installed-solvers: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[solvers]"
	touch $@
