# One word runs everything: on a machine with Python 3.11 or newer and make, nothing else.
# $PYTHON chooses the interpreter; uv is used where it works, pip otherwise.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

run := .venv/bin/python

# Tests start Python some hundred times, and compiled files let each start in half the time.
export PYTHONDONTWRITEBYTECODE :=

# A package has a folder of tests, a module beside askance/__init__.py has a file.
of_room = $(or $(wildcard tests/$(ROOM) tests/test_$(ROOM)*.py),tests/$(ROOM))

.PHONY: help demo test test-slow soak check format site dist bench bench-quick clean

help: ## what there is to say
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.ready ## the main job on the pictures that come along, offline
	@.venv/bin/askance demo

test: .venv/.ready-dev ## the quick tests, on up to eight cores; ROOM=replay runs one room
	$(run) -m pytest -n auto --maxprocesses 8 --dist loadgroup $(if $(ROOM),$(of_room))

test-slow: .venv/.ready-dev ## real servers, browsers, fresh environments, group by group; GROUP=pages runs one
	$(run) -m tests.slow.groups $(GROUP)

soak: .venv/.ready-dev ## what needs repetition (an hour and more); see docs/testing.md
	$(run) -m pytest --run-slow --run-soak -m soak --durations=0
	$(run) -m pytest -m hypothesis --hypothesis-profile soak -n auto --maxprocesses 8 --dist loadgroup

check: .venv/.ready-dev ## lint, format and types
	$(run) -m ruff check
	$(run) -m ruff format --check
	$(run) -m pyright --pythonpath $(run)

format: .venv/.ready-dev ## mend what ruff can mend
	$(run) -m ruff check --fix
	$(run) -m ruff format

site: .venv/.ready-docs ## the documentation as a site, in build/site
	.venv/bin/zensical build --strict

dist: .venv/.ready-release ## the wheel and the source archive, in dist/
	rm -rf dist
	$(run) -m build
	$(run) -m twine check --strict dist/*

bench: .venv/.ready ## the tables of docs/performance.md (twenty minutes, of a machine with nothing else to do)
	$(run) benchmarks/tables.py

bench-quick: .venv/.ready ## the ratios alone, from smaller runs (three minutes): before and after a change
	$(run) benchmarks/tables.py --quick

clean: ## take away what was made here, records excepted
	rm -rf .venv .cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of extras, so that a second call starts at once.
.venv/.ready: pyproject.toml scripts/setup
	@scripts/setup
	@touch $@

.venv/.ready-%: pyproject.toml scripts/setup
	@scripts/setup $*
	@touch $@
