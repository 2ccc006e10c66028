# `make demo` and `make test`; `make check` while working. Each sets up what it needs in .venv, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# The tests start some hundred Python processes; each would compile anew what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs check test test-all test-long mutants lint types lock clean \
  run-check run-test run-test-all run-test-long

# A file's tests stay in one process, which keeps its fixtures; tests/conftest.py puts the slow files first, and gives
# those that use Spark to the first process, those that wait for timers to the third, and the rest to the others.
PYTEST := $(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

demo: $(INSTALLED)
	$(BIN)/earshot advise market-town --quick --lake demo-lake

# Lint takes a second. The types are checked while the tests run: a failure of either ends in an error.
check test test-all test-long: $(INSTALLED) lint
	@$(MAKE) --no-print-directory --jobs=2 types run-$@ || { echo "make $@: types or tests failed, see above"; exit 1; }

# None of these waits, so two processes are enough.
run-check:
	EARSHOT_TEST_SIZE=quick $(PYTEST) -n 2 -m "not long and not spark" $(filter-out tests/test_docs.py \
	  tests/test_base_install.py, $(wildcard tests/test_*.py)) tests/filters tests/protocols tests/records \
	  tests/simulation tests/traces

run-test:
	$(PYTEST) -m "not long and not slow"

# What CI runs: clusters that lose workers, processes that are killed, and the longest pages of the docs as well.
run-test-all:
	$(PYTEST) -m "not long" --durations=40

run-test-long:
	EARSHOT_TEST_SIZE=long $(PYTEST) --timeout=3600

# Change one thing at a time, and see whether the tests notice: make mutants MODULES=protocols/cbf.py
mutants: $(INSTALLED)
	$(BIN)/python tools/mutants.py $(MODULES) $(MUTANTS)

docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict
	@echo "open site/index.html"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

# Hashes of all packages, from the indexes that pip is configured with; run it after a change of constraints.txt.
lock:
	$(PYTHON) .ci/lock.py > requirements.lock.new
	mv requirements.lock.new requirements.lock

$(INSTALLED): pyproject.toml constraints.txt requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Earshot needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[dev]'
	@touch $(INSTALLED)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site
