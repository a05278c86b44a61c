# The front door: Python 3.11 or newer, git and make are all it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A second environment has every extra, so that the first shows what works without any.
EXTRAS := .venv-extras
export PIP_ROOT_USER_ACTION := ignore
PIP := bin/python -m pip install \
	--disable-pip-version-check --no-compile --quiet --editable
# Each process takes half of the tests as they stand, so that fixtures of a file and kernels are
# made once, and what the other has left.
TESTS := bin/python -m pytest -n 2 --dist worksteal
PLAIN := interpreted and not compiled and not slow
COMPILED := (compiled or not interpreted) and not slow
# What `make check` runs: a wrong sign in the learning core turns it red (tools/mutants.py tries).
CORE := tests/contracts tests/losses tests/structures tests/tasks/test_small_runs.py \
	$(filter-out %/test_checkpoints.py,$(wildcard tests/training/test_*.py))

# Compiled sources are kept, whatever the environment says: without them each process that tests
# start compiles the package again, and pytest all tests.
unexport PYTHONDONTWRITEBYTECODE
# Two processes have two cores: more threads of linear algebra would only wait for each other.
check test test-extras: export OPENBLAS_NUM_THREADS := 1
check test test-extras: export OMP_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help demo check core-tests test test-extras test-all lint format docs wheel release-check hooks clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name what; \
		do printf '  make %-13s %s\n' "$$name" "$$what"; done

demo: $(VENV)/.ready ## install into .venv and train several learners on built-in data
	$(BIN)/hopefear demo

check: lint ## linters, types, layers and contracts: a minute and a half, before every commit
	NUMBA_DISABLE_JIT=1 $(VENV)/$(TESTS) -m "$(PLAIN)" $(CORE)

core-tests: # names them, for tools/mutants.py
	@echo $(CORE)

test: check ## the same and all other tests, interpreted where nothing need be compiled
	NUMBA_DISABLE_JIT=1 $(VENV)/$(TESTS) $(addprefix --ignore=,$(CORE)) -m "$(PLAIN)"
	$(VENV)/$(TESTS) tests papers/tests --ignore=tests/contracts -m "$(COMPILED)"

test-all: test test-extras ## the same, then what needs an extra, and long runs

# A file of slow tests stays with one process, so that it starts one cluster.
test-extras: $(EXTRAS)/.ready ## what needs an extra, and long runs, in .venv-extras
	NUMBA_DISABLE_JIT=1 $(EXTRAS)/$(TESTS) -m "needs and $(PLAIN)"
	$(EXTRAS)/$(TESTS) tests papers/tests -m "needs and $(COMPILED)"
	$(EXTRAS)/bin/python -m pytest -n 2 --dist loadfile tests papers/tests -m "slow"

lint: $(VENV)/.ready-dev ## linters, types, layers and words only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/words.py

format: $(VENV)/.ready-dev ## put the source in its usual shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.ready-docs ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: $(VENV)/.ready ## build a wheel that brings its compiled kernels, and that of the papers, into dist/
	$(BIN)/python tools/ship_kernels.py build/kernels
	rm -f dist/*.whl
	$(BIN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --wheel-dir dist . ./papers

release-check: wheel $(VENV)/.ready-dev ## build what is published, install each into an empty environment and try it there
	$(BIN)/python tools/release_check.py

hooks: $(VENV)/.ready-dev ## check every commit of this clone before it is made
	git config core.hooksPath hooks

clean: ## remove the environment and everything built
	rm -rf $(VENV) $(EXTRAS) build dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "hopefear needs Python 3.11 or newer; try: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $*

# One stamp for each set of packages, so that a demo does not wait for test tools.
$(VENV)/.ready: pyproject.toml papers/pyproject.toml | $(BIN)/python
	$(VENV)/$(PIP) . --editable papers
	@touch $@

# This release of PyTorch comes without gigabytes for GPUs.
$(EXTRAS)/.ready: pyproject.toml papers/pyproject.toml | $(EXTRAS)/bin/python
	$(EXTRAS)/$(PIP) '.[neural,ray,serve,integrations,zstd,bench,docs,dev]' --editable papers torch==2.13.0
	@touch $@

$(VENV)/.ready-%: pyproject.toml papers/pyproject.toml | $(BIN)/python
	$(VENV)/$(PIP) '.[$*]' --editable papers
	@touch $@
