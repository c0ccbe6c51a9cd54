# Nothing is needed before `make test` but Python 3.11 or newer and make.
# Another Python:       make test PYTHON=/path/to/python3
# Some tests only:      make test TESTS="tests/causality -k inbox"
# Of what is compiled:  make test COMPILED=1
# Nothing compiled:     make demo PURE=1
# A shorter hunt:       make hunt RUNS=1000
# Of one order:         make hunt ORDER=causal
# Fewer kills:          make bank KILLS=20
# A shorter fuzz:       make fuzz RUNS=1000000
# Fewer mutants:        make mutants MUTANTS="--count 50 --rooms layers/co wire"

TESTS   ?=
COMPILED ?=
PURE    ?=
RUNS    ?=
ORDER   ?=
SEED    ?= $(shell date +%s)
BENCHES ?= sim throughput latency check co sco remiop object views scale
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1 )))
MUTANTS ?=
TRIALS  ?=
KILLS   ?= 200

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.complete
FAST  := build/compiled

# What is compiled is a copy of the package, made anew when anything in `src` is not what it was made of. Where there is
# none, this path leads nowhere, and what is in `src` runs. Tests run that too, unless COMPILED=1 is said.
ifeq ($(PURE),)
  READY := compiled
  RUN   := PYTHONPATH=$(CURDIR)/$(FAST)
endif

# The first Python that runs, is new enough and can make environments.
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3.13 python3.12 python3.11 python3 python)
IS_USABLE  := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
FOUND = $(shell for each in $(CANDIDATES); do \
  if "$$each" -c '$(IS_USABLE)' >/dev/null 2>&1; then echo "$$each"; break; fi; done)

# What the environment was made with: a Python upgraded or removed beneath it, another PYTHON= or a moved
# folder make it stale, as do newer requirements.
DESCRIBE := import os, sys; print(*sys.version_info[:3], os.path.abspath(sys.argv[1]))
ifneq ($(wildcard $(STAMP)),)
  ifneq ($(shell $(BIN)/python -c '$(DESCRIBE)' $(VENV) 2>&1),$(shell cat $(STAMP)))
    STALE := stale
  else ifneq ($(PYTHON),)
    ifneq ($(shell "$(PYTHON)" -c '$(DESCRIBE)' $(VENV) 2>&1),$(shell cat $(STAMP)))
      STALE := stale
    endif
  endif
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test packages check hunt fuzz trials bank mutants bench format compiled docs dist venv pins clean stale

help: ## List the targets (this)
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(STAMP) $(READY) ## The main job, end to end: members talk, Spark certifies, a report shows it
	@$(RUN) $(BIN)/inga demo

# Tests start several hundred processes. Each would compile all modules that it loads where the environment says that no bytecode
# is to be written.
test: $(STAMP) $(if $(COMPILED),$(READY)) packages ## Run the tests
	PYTHONDONTWRITEBYTECODE= $(if $(COMPILED),$(RUN)) $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(TESTS)

# A missing package costs some tests, which are then skipped and say so; it never fails the run.
packages: ## Get what some tests need: Debian packages, where that is allowed; promtool and axe-core into build/tools
	@requirements/debian.sh

check: $(STAMP) ## Lint, formatting, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

hunt: $(STAMP) $(READY) ## The long searches: the tests marked hunt, mutations, then fresh seeds of the swarm until one fails or RUNS are done
	$(RUN) $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup -m hunt $(TESTS) || [ $$? -eq 5 ] # 5: no test is marked
	$(RUN) $(BIN)/inga fuzz --seed $(SEED)00000000 --runs 1000000
	$(RUN) $(BIN)/inga hunt --seed $(SEED)000 $(if $(RUNS),--runs $(RUNS),--until-failure) $(if $(ORDER),--order $(ORDER))

fuzz: $(STAMP) $(READY) ## Spoil all that inga reads, RUNS times (default: twenty million), and see that only documented errors come of it
	$(RUN) $(BIN)/inga fuzz --seed $(SEED)00000000 --runs $(or $(RUNS),20000000)

trials: $(STAMP) $(READY) ## Kill, stop and cut off live members, as root: what is promised of that, and what was measured (TRIALS=--long)
	@$(RUN) $(BIN)/inga lab members --out inga-lab/members-$(SEED) $(TRIALS)

bank: $(STAMP) $(READY) ## A replicated bank through 200 kills and returns at full load: is its money still there? (minutes; KILLS=20)
	@$(RUN) $(BIN)/python examples/bank.py --kills $(KILLS)

mutants: $(STAMP) ## Plant a few hundred small bugs, one at a time, and list those that no test notices
	@PYTHONHASHSEED=0 nice $(BIN)/python -m tests.mutants $(MUTANTS)

bench: $(STAMP) $(READY) ## Measure: simulator, throughput, latency, certification (minutes)
	@set -e; for name in $(BENCHES); do \
	  echo "inga bench $$name"; \
	  $(RUN) $(BIN)/inga bench $$name --quiet; \
	done

format: $(STAMP) ## Format the code and apply the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

venv: $(STAMP) $(READY) ## Make or refresh the environment .venv, and what is compiled

# Where that fails, it says why, and everything runs interpreted.
compiled: $(STAMP) ## Compile the protocol rooms, where there is a C compiler, into a copy of the package (a minute)
	@$(BIN)/python requirements/compile.py $(FAST) || true

docs: $(STAMP) ## Build the documentation as a site that needs no network: build/site/index.html
	$(BIN)/python requirements/site_of_docs.py build/site

dist: $(STAMP) compiled ## Build the source distribution and two wheels: one for every machine, one compiled for machines like this
	$(BIN)/python -c 'from hatchling.build import build_sdist; print(build_sdist("dist"))'
	$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation --wheel-dir dist .
	INGA_COMPILED=$(FAST) $(BIN)/python -m pip wheel -q --no-deps --no-build-isolation --wheel-dir dist .

pins: ## Choose the newest versions that fit requirements/test.in and write requirements/test.txt
	@test -n "$(FOUND)" || { echo "$(NO_PYTHON)" >&2; exit 2; }
	@set -e; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	"$(FOUND)" -m venv "$$scratch"; \
	"$$scratch/bin/python" -m pip install -q --disable-pip-version-check -r requirements/test.in; \
	{ echo "# Made by 'make pins' from test.in with Python $$("$$scratch/bin/python" -c 'import platform; print(platform.python_version())'). Do not edit."; \
	  "$$scratch/bin/python" -m pip --disable-pip-version-check freeze --all --exclude pip; } > "$$scratch/test.txt"; \
	cp "$$scratch/test.txt" requirements/test.txt

clean: ## Remove the environment and everything that was made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

NO_PYTHON := inga needs Python 3.11 or newer with its venv module; none of these will do: $(CANDIDATES). Name one with PYTHON=.

$(STAMP): pyproject.toml $(wildcard requirements/*.txt) $(STALE)
	@test -n "$(FOUND)" || { echo "$(NO_PYTHON)" >&2; exit 2; }
	@echo "Setting up $(VENV) with $(FOUND); the first time this takes a minute or two."
	@rm -f $@
	@{ { $(if $(STALE),false,$(BIN)/python -c '$(IS_USABLE)') || "$(FOUND)" -m venv --clear $(VENV); } && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/test.txt && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	} > .venv.log 2>&1 || \
	{ tail -n 40 .venv.log >&2; rm -f .venv.log; echo "Setting up $(VENV) failed; the reason is above." >&2; exit 2; }
	@mv .venv.log $(VENV)/install.log
	@$(BIN)/python -c '$(DESCRIBE)' $(VENV) > $@
