# Each target works as the only command in a fresh clone: what it needs is made first.

PYTHON ?= python3
Q ?= is_error
export Q
export PIP_DISABLE_PIP_VERSION_CHECK = 1

BIN := .venv/bin
LENGTHY := browser faults cli/export # left out of `make check`
# An editable install holds copies of the service files, so they count as well.
PACKAGE := pyproject.toml $(wildcard systemd/*.service systemd/*/*.conf launchd/*.plist)

.DEFAULT_GOAL := help
.PHONY: help run check test browser lint bench soak clean

help: ## print this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' Makefile

run: .venv/installed ## index the transcripts of this machine, list them, search for Q (default is_error)
	@$(BIN)/sessiond sync || test $$? -eq 5
	@echo; $(BIN)/sess list --no-sync 2>/dev/null && found=0 || found=$$?; \
	case $$found in \
	0) echo; echo "sess search \"$$Q\""; \
	   $(BIN)/sess search --no-sync "$$Q" || { test $$? -eq 1 && echo "nothing found; try: make run Q='other words'"; } ;; \
	1) echo "no transcripts on this machine yet; here is the built-in sample (sess demo)"; \
	   echo; $(BIN)/sess demo ;; \
	*) $(BIN)/sess list --no-sync ;; \
	esac

check: lint ## lint, and the tests that take under a minute together: for every save
	$(BIN)/pytest -n 2 -q -m 'not slow and not soak' $(LENGTHY:%=--ignore=tests/%)

test: .venv/installed-dev browser ## run the tests; those of pages need Chromium
	$(BIN)/pytest -n 2

# Chromium is no Python package. Without it the tests of pages are skipped, and say so.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing Chromium for the tests of pages"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1; \
	fi; \
	command -v chromium >/dev/null || echo "NO CHROMIUM: THE TESTS OF PAGES ARE SKIPPED; install chromium to run them"

lint: .venv/installed-dev ## check style, types and the layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed ## measure load, search and start-up time on a generated corpus
	$(BIN)/python bench/run.py

soak: .venv/installed-dev ## run the tests that take minutes
	$(BIN)/pytest -m soak

clean: ## remove everything that the other targets made
	rm -rf .venv build dist bench/data .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find schema daemon cli tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "sessiond needs Python 3.11 or later, but $(PYTHON) is $$($(PYTHON) --version 2>&1)"; \
	echo "hint: name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.13"; exit 1; } >&2
	@$(PYTHON) -m venv .venv

.venv/installed: $(PACKAGE) | .venv/bin/python
	@echo "installing sessiond into .venv"
	@$(BIN)/python -m pip install --quiet -e .
	@touch $@

.venv/installed-dev: $(PACKAGE) | .venv/bin/python
	@echo "installing sessiond and its development tools into .venv"
	@$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@
