# Fabula. Every target does its own set-up, once; it needs Python 3.11 or later and make, and no more.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
ARGS   ?=

export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUTF8 := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check fix soak bench docs lock clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv and install the locked packages and Fabula into it.

# uv is five to twenty times faster, but nothing depends on it: plain pip reads the same lock.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Fabula needs Python 3.11 or later: make PYTHON=python3.11 ..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv || echo "uv cannot be had; going on with pip, which takes a minute or two"
	@if test -x $(BIN)/uv; then \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable . ; \
	else \
	  $(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock && \
	  $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . ; \
	fi
	@touch $@

demo: $(STAMP) ## Write a short mystery on the embedded model, export it, trace its last passage.
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: $(STAMP) ## Run the tests (ARGS="-k name" to choose).
	@$(BIN)/pytest -q -n 2 --dist worksteal $(ARGS)

check: $(STAMP) ## Lint, format, types and import arrows.
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy $(sort $(foreach top,src tests benchmarks examples docs,$(if $(shell find $(top) -name '*.py' | head -1),$(top))))
	@$(BIN)/lint-imports --no-logo

fix: $(STAMP) ## Let ruff repair what it can.
	@$(BIN)/ruff check --fix --quiet || true
	@$(BIN)/ruff format --quiet

soak: $(STAMP) ## Long runs: 200 kills, power cuts, thousands of steps.
	@$(BIN)/pytest -q -m soak $(ARGS)

bench: $(STAMP) ## Measure; each benchmark prints its own table.
	@set -e; for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script $(ARGS); done

docs: $(STAMP) ## Write the generated pages again.
	@$(BIN)/python docs/generate.py

lock: $(STAMP) ## Choose new versions within pyproject's ranges.
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
	  --upgrade pyproject.toml --group dev -o requirements.lock

clean: ## Remove the environment and all caches.
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
