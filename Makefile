# The commands of the project. `make demo` and `make test` are the two to know.
SHELL := /bin/bash
PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
UV := $(BIN)/uv
RUN := $(BIN)/python
PYTEST := $(BIN)/pytest
ADAPTERS := $(patsubst sdk/adapters-%.txt,.venv-%/.complete,$(wildcard sdk/adapters-*.txt))
DEMO_AGENT := $(filter .venv-openai-agents/.complete,$(ADAPTERS))
# `make check` looks at the settings a deployment would load, with secrets made for that moment.
DEPLOYED := STEADYHAND_HOSTS=console.example.org DATABASE_URL=postgresql://steadyhand_app@db.example.org/steadyhand
CHECKED := console runs recovery sdk sandbox demo benchmarks tests manage.py

.PHONY: install up demo test test-long check lint types deploy-check migrations-check imports bench evaluate screenshots clean lock browser rabbitmq

install: .venv/.complete

.venv/.uv: requirements-uv.txt
	@echo "Making an environment of its own…"
	@test -x $(RUN) || $(PYTHON) -m venv .venv
	@$(RUN) -m pip install --quiet --require-hashes -r requirements-uv.txt
	@touch $@

.venv/.server: .venv/.uv requirements.txt sdk/pyproject.toml
	@echo "Installing the server's packages…"
	@$(UV) pip sync --quiet --python $(RUN) --require-hashes requirements.txt
	@$(UV) pip install --quiet --python $(RUN) --no-deps --no-build-isolation -e sdk
	@touch $@

.venv/.complete: .venv/.server requirements-test.txt
	@echo "Installing what the checks and tests need…"
	@$(UV) pip sync --quiet --python $(RUN) --require-hashes requirements-test.txt
	@$(UV) pip install --quiet --python $(RUN) --no-deps --no-build-isolation -e sdk
	@touch $@

# One environment per agent framework: together they would drag each other to old releases.
.venv-%/.complete: sdk/adapters-%.txt .venv/.uv sdk/pyproject.toml
	@echo "Installing the packages of $*…"
	@test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	@$(UV) pip sync --quiet --python .venv-$*/bin/python --require-hashes $<
	@$(UV) pip install --quiet --python .venv-$*/bin/python --no-deps --no-build-isolation -e sdk
	@touch $@

lock: .venv/.uv
	@for name in requirements requirements-test; do \
	  $(UV) pip compile --quiet --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url $$( [ $$name = requirements ] || echo requirements.in ) $$name.in -o $$name.txt || exit 1; \
	done
	@for source in sdk/adapters-*.in; do \
	  $(UV) pip compile --quiet --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url $$source -o $${source%.in}.txt || exit 1; \
	done

up: .venv/.server
	@exec $(RUN) manage.py up --port $(PORT)

demo: .venv/.server $(DEMO_AGENT)
	@exec $(RUN) manage.py up --demo --port $(PORT) $(if $(SANDBOX_PORT),--sandbox-port $(SANDBOX_PORT))

check: lint types deploy-check migrations-check imports

lint: install
	@$(BIN)/ruff check $(wildcard $(CHECKED))
	@$(BIN)/ruff format --check $(wildcard $(CHECKED))

types: install
	@$(BIN)/mypy

deploy-check: install
	@home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT \
	  && $(RUN) -m console.embedded.secrets "$$home" >/dev/null \
	  && STEADYHAND_HOME=$$home $(DEPLOYED) $(RUN) manage.py check --deploy --fail-level WARNING

# No database is needed to compare models with migrations; Django warns that it could not ask one.
migrations-check: install
	@$(RUN) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

imports: install
	@$(PYTEST) -q tests/test_imports.py

# Each part is its own pytest process, so one part's damage cannot hide in another.
test: browser check $(ADAPTERS)
	@$(RUN) -m tests.parts

test-long: browser rabbitmq check $(ADAPTERS)
	@$(RUN) -m tests.parts --long

browser: install
	@bash .ci/browser

rabbitmq: install
	@bash .ci/rabbitmq

bench: install
	@$(RUN) -m benchmarks

evaluate: install
	@$(RUN) -m benchmarks.evaluation

# The pictures of docs/pictures, from a demo in a home of its own.
screenshots: browser $(DEMO_AGENT)
	@$(RUN) -m demo.camera

clean:
	@rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis build test-results
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -d var ]; then echo "Left in place: var (your data). Remove it by hand to start empty."; fi
