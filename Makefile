# Needs Python 3.11 to 3.13 and make. Everything else is installed into .venv, and nothing is
# written outside this folder but temporary files.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
EXAMPLE := examples/nyc_flights

# Interpreters for .venv, the first usable one is taken; and those that `make test-matrix` tries.
PYTHON ?= python3 python3.13 python3.12 python3.11 python
PYTHONS ?= python3.11 python3.12 python3.13
# Both ends of the supported range.
POLARS ?= 1.44.* newest
PYTEST_ARGS ?=

# Set UV_CACHE_DIR to share downloads between checkouts.
UV_CACHE_DIR ?= $(CURDIR)/$(VENV)/cache/uv
export UV_CACHE_DIR
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export DAGSTER_DISABLE_TELEMETRY := 1
export DO_NOT_TRACK := 1

UV := $(BIN)/uv --quiet --no-progress
# `dg` starts further processes by name, so they have to be found where it was.
RUN := env PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)"
# With a home folder of their own, tests see no configuration of the user's and leave none behind.
PYTEST := $(RUN) HOME="$(CURDIR)/$(VENV)/home" \
	python -m pytest --numprocesses auto --maxprocesses 4 --dist loadscope

.DEFAULT_GOAL := help
.PHONY: help setup test test-matrix lint style types imports spelling format demo dev report constraints clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- environment ---------------------------------------------------------------------------------

setup: $(INSTALLED) ## Install everything into .venv

$(BIN)/uv:
	@python=$$(sh scripts/find_python.sh $(PYTHON)) \
		&& echo "Creating $(VENV) with $$("$$python" --version)" \
		&& "$$python" -m venv $(VENV) \
		&& $(BIN)/python -m pip install -qq --no-cache-dir --constraint constraints.txt uv

$(INSTALLED): pyproject.toml constraints.txt $(EXAMPLE)/pyproject.toml | $(BIN)/uv
	@echo "Installing the pinned packages into $(VENV)"
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt --build-constraint constraints.txt \
		--group dev --editable . --editable $(EXAMPLE)
	@mkdir -p $(VENV)/home
	@touch $@

constraints: | $(BIN)/uv ## Pin the newest versions in constraints.txt
	@$(UV) pip compile pyproject.toml --group dev --group bench --group e2e --group io --universal --python-version 3.11 --upgrade \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file constraints.txt
	@echo "constraints.txt pins $$(wc -l < constraints.txt) packages"

# --- checks --------------------------------------------------------------------------------------

test: $(INSTALLED) ## Run the tests
	@$(PYTEST) $(PYTEST_ARGS)

test-matrix: $(INSTALLED) ## Run the tests on each Python and on both ends of the Polars range
	@UV="$(UV)" PYTHONS="$(PYTHONS)" POLARS="$(POLARS)" sh scripts/test_matrix.sh $(PYTEST_ARGS)

lint: style types imports spelling ## Check style, types, imports and spelling

style: $(INSTALLED)
	@$(RUN) ruff check --no-cache .
	@$(RUN) ruff format --no-cache --check .

types: $(INSTALLED)
	@$(RUN) mypy

imports: $(INSTALLED)
	@$(RUN) lint-imports --no-cache --no-logo
	@$(RUN) python scripts/check_imports.py

spelling: $(INSTALLED)
	@$(RUN) codespell

format: $(INSTALLED) ## Format the code and apply ruff's fixes
	@$(RUN) ruff check --fix .
	@$(RUN) ruff format .

# --- example -------------------------------------------------------------------------------------

demo dev report: export DAGSTER_HOME := $(CURDIR)/$(EXAMPLE)/dagster_home

demo: $(INSTALLED) ## Run the example over a year of flights and report on it
	@cd $(EXAMPLE) && $(RUN) dg check defs
	@echo "Running every asset; the log is $(EXAMPLE)/dagster_home/launch.log"
	@cd $(EXAMPLE) && $(RUN) dg launch --assets '*' > dagster_home/launch.log 2>&1 \
		|| { tail -n 60 dagster_home/launch.log; exit 1; }
	@$(RUN) python -m nyc_flights.report
	@printf '\n`make dev` opens the run in the Dagster app.\n'

dev: $(INSTALLED) ## Open the example in the Dagster app
	@cd $(EXAMPLE) && $(RUN) dg dev

report: $(INSTALLED) ## Report on the last run of the example again
	@$(RUN) python -m nyc_flights.report

# --- benchmarks ----------------------------------------------------------------------------------

BENCH_ARGS ?=
.PHONY: bench bench-big bench-load

$(VENV)/.installed-bench: $(INSTALLED)
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt --group bench
	@touch $@

bench: $(VENV)/.installed-bench ## Measure validation in memory beside other ways
	@$(RUN) python -m benchmarks.in_memory $(BENCH_ARGS)

bench-big: $(VENV)/.installed-bench ## Measure it for tables larger than memory
	@$(RUN) python -m benchmarks.larger_than_memory $(BENCH_ARGS)

bench-load: $(VENV)/.installed-bench ## Measure how long projects take to load
	@$(RUN) python -m benchmarks.loading $(BENCH_ARGS)

clean: ## Remove the environments and every cache
	@rm -rf $(VENV) .venv-* .hypothesis .mypy_cache .pytest_cache .ruff_cache

# --- IO managers of others -----------------------------------------------------------------------

.PHONY: test-io

test-io: $(INSTALLED) ## Run the storage tests with Delta Lake, DuckDB and dagster-polars too
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt --group io
	@$(PYTEST) tests/step tests/test_parquet_io_manager.py

# --- the app in a browser ------------------------------------------------------------------------

.PHONY: e2e

# Debian's Chromium; elsewhere, a `chromium` on the PATH is used as it is.
e2e: $(INSTALLED) ## Look at the example in Dagster's app with a real browser
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; }
	@$(UV) pip install --python $(BIN)/python --constraint constraints.txt --group e2e
	@$(PYTEST) --numprocesses 0 tests/e2e
	@echo "The pictures are in .e2e/; copy those that the documentation shows to docs/images/"
