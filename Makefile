# Every target sets itself up: `make demo` and `make test` work in a fresh clone.
# PYTHON chooses the interpreter for .venv; ARGS is passed on, as in: make test ARGS='-m "not spark"'
# Tests run in two processes, those that share a Spark session in one of them; ARGS='-n 0 …' runs them in one.

PYTHON ?= python3
BIN := .venv/bin
COMPILE = CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/python -m piptools compile --quiet --generate-hashes \
	--strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host $(ARGS)

.DEFAULT_GOAL := help
.PHONY: help setup demo test kill check bench experiments docs dist lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## make .venv from the lock files, find or install a Java, a browser and PostgreSQL, compile the kernels
	@$(PYTHON) tools/bootstrap.py

demo: setup ## see Windloom at work on a small stream
	@$(BIN)/windloom demo $(ARGS)

test: check ## lint, types and import rules, then every test
	@$(BIN)/python -m pytest -n 2 --dist loadscope $(ARGS)

kill: setup ## kill streams thirty times on each placement, with kill -9, and compare their rows; an hour
	@WINDLOOM_KILLS=30 $(BIN)/python -m pytest -s tests/spark/test_kill.py $(ARGS)

check: setup ## lint, formatting, types, import rules
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup ## measure speed
	@$(BIN)/python -m bench $(ARGS)

experiments: setup ## repeat the papers' experiments: docs/experiments
	@$(BIN)/python -m experiments $(ARGS)

docs: setup ## the documentation as a site that can be searched, in build/docs
	@$(BIN)/python tools/docs/build.py

dist: setup ## wheel and sdist, in dist
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation $(ARGS)

lock: setup ## pin every dependency again; ARGS=--upgrade moves to the newest versions
	@$(BIN)/python -m pip install --quiet 'pip-tools>=7.5'
	@$(COMPILE) --build-deps-for editable --only-build-deps -o requirements-build.lock pyproject.toml
	@$(COMPILE) --extra dev --extra docs --extra serve --extra delta --extra postgres --extra cluster -o requirements.lock pyproject.toml
	@$(BIN)/python -c "import tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
		print(*extras['java'], sep='\n')" | $(COMPILE) -o requirements-java.lock -

clean: ## remove .venv, caches and build leftovers
	@rm -rf .venv build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
