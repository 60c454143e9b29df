# Each target works as the first command in a fresh clone: it makes what it needs.

PYTHON ?= python3
Q ?= is_error
export Q
export PIP_DISABLE_PIP_VERSION_CHECK = 1

BIN := .venv/bin
LENGTHY := browser faults fuzz cli/export cli/finder daemon/sources/cursor # not in `make check`
# An editable install copies the service files, so a change of them reinstalls.
PACKAGE := pyproject.toml $(wildcard systemd/*.service systemd/*/*.conf launchd/*.plist)

.DEFAULT_GOAL := help
.PHONY: help run check test browser lint bench bench-growth bench-recall faults soak fuzz mutations new-source clean

help: ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

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

check: lint ## lint, and run the quick tests (under a minute)
	$(BIN)/pytest -n 2 -q -m 'not slow and not soak' $(LENGTHY:%=--ignore=tests/%)

test: .venv/installed-dev browser ## run the tests; browser tests need Chromium
	$(BIN)/pytest -n 2

# Chromium is not a Python package. Without it the browser tests are skipped, with a notice.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing Chromium for the browser tests"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1; \
	fi; \
	command -v chromium >/dev/null || echo "NO CHROMIUM: BROWSER TESTS ARE SKIPPED; install chromium to run them"

lint: .venv/installed-dev ## check style, types and import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed-dev ## measure everything on generated corpora (15 minutes); FULL=1 on 1 GB, COMPARE=1 also other programs
	$(BIN)/python bench/run.py --size $(or $(SIZE),$(if $(FULL),full,usual)) $(if $(FULL),--minutes 60) $(if $(COMPARE),--compare)

bench-growth: .venv/installed-dev ## measure how each cost grows with what is stored, at MB (default "10 100 1000")
	$(BIN)/python bench/growth.py $(if $(MB),--mb $(MB))

bench-recall: .venv/installed-dev ## measure recall; LONGMEMEVAL=longmemeval_s.json LOCOMO=locomo10.json also on those
	$(BIN)/python bench/recalling.py $(if $(LONGMEMEVAL),--longmemeval $(LONGMEMEVAL)) $(if $(LOCOMO),--locomo $(LOCOMO))

faults: .venv/installed-dev ## kills, power cuts, I/O faults, damages and fuzzing at length (up to 30 minutes)
	$(BIN)/python -m tests.faults $(SEED)

soak: ## `make faults` again and again, with another seed each time, until something fails
	@while $(MAKE) faults; do :; done; exit 1

fuzz: .venv/installed-dev ## look for fatal inputs, each target for SECONDS (default 60)
	@$(BIN)/python -m pip install --quiet -e '.[fuzz]' || true
	$(BIN)/python -m tests.fuzz $(SECONDS)

mutations: .venv/installed-dev ## take each protection out, one after the other, and show that a test fails
	$(BIN)/python -m tests.faults.mutations

new-source: ## lay out a new agent: make new-source NAME=teapot
	@$(PYTHON) scripts/new_source.py "$(NAME)"

clean: ## remove everything the other targets made
	rm -rf .venv build dist bench/data fuzz-found .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find schema daemon cli tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "sessiond needs Python 3.11 or later, but $(PYTHON) is $$($(PYTHON) --version 2>&1)"; \
	echo "hint: choose another one, for example: make $(MAKECMDGOALS) PYTHON=python3.13"; exit 1; } >&2
	@$(PYTHON) -m venv .venv

.venv/installed: $(PACKAGE) | .venv/bin/python
	@echo "installing sessiond into .venv"
	@$(BIN)/python -m pip install --quiet -e .
	@touch $@

.venv/installed-dev: $(PACKAGE) | .venv/bin/python
	@echo "installing sessiond and its development tools into .venv"
	@$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@
