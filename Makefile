# Two commands: `make demo` and `make test`. Each sets up what it needs in .venv, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo docs test test-long lint types clean

demo: $(INSTALLED)
	$(BIN)/earshot compare city --seeds 2 --lake demo-lake

test: $(INSTALLED) lint types
	$(BIN)/pytest -m "not long" -n 2 --dist worksteal

test-long: $(INSTALLED) lint types
	EARSHOT_TEST_SIZE=long $(BIN)/pytest --timeout=3600 -n 2 --dist worksteal

docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict
	@echo "open site/index.html"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Earshot needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(INSTALLED)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site
