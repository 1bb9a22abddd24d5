# `make demo` and `make test` set up all they need by themselves; see scripts/setup.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -p no:cacheprovider

.DEFAULT_GOAL := help
.PHONY: help demo setup setup-dev check test lint types contracts docs bench clean

help: ## show the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## the virtual environment with pyrunner in it
	@scripts/setup run

setup-dev:
	@scripts/setup dev

demo: setup ## run the sample pipeline with `pyrunner exec`
	@scripts/demo

lint: setup-dev ## ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup-dev ## mypy --strict
	@$(BIN)/mypy

contracts: setup-dev ## which room may import which
	@$(BIN)/lint-imports --no-cache

check: lint types contracts ## the quick loop: lint, types, contracts, fast tests
	@$(PYTEST) -q -n 2 -m "not slow" tests/unit tests/contract

test: setup-dev ## all tests, against real parts
	@scripts/test

docs: setup-dev ## write man pages and the command reference anew
	@$(BIN)/python scripts/generate-docs

bench: setup-dev ## the tables of docs/benchmarks.md
	@$(BIN)/python -m benchmarks

clean: ## forget everything that the targets above made
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
