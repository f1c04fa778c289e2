# Needs Python 3.11 or newer and make. `make help` lists the targets.
# PYTHON= chooses the interpreter, VENV= the place of the environment, PORT= and TREEWRIGHT_*= reach the service.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help serve test lint format test-container bench lock clean

# The first Python on the PATH that is new enough.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
# Where the peers of `make bench` live, in environments of their own.
BENCH ?= .bench
bin := $(VENV)/bin
install := $(bin)/python -m pip install -qq --disable-pip-version-check
# What an environment was made with; asked of another version, make starts it anew.
version := $(shell $(PYTHON) -c 'import sys; v = sys.version_info; print("%d.%d.%d" % v[:3] if v >= (3, 11) else "")' 2>/dev/null)
made := $(VENV)/made-with-$(version)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target what; do \
		printf '%-16s%s\n' "$$target" "$$what"; done

serve: $(VENV)/ready-to-serve ## serve at http://127.0.0.1:8000 (PORT=), with a sample model at the first start
	@exec $(bin)/python -m service serve

test: $(VENV)/ready-to-develop ## run all tests but those of the container, two at once (ARGS="-k name -x -n0" goes to pytest)
	$(bin)/python -m pytest -m "not container" --numprocesses 2 --dist worksteal $(ARGS)

lint: $(VENV)/ready-to-develop ## check style, types, layers, the Dockerfile and the shell scripts
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy
	$(bin)/lint-imports
	$(bin)/hadolint Dockerfile
	$(bin)/shellcheck .ci/run tests/container/engine.sh

format: $(VENV)/ready-to-develop ## rewrite the code in the project's style
	$(bin)/ruff check --fix-only .
	$(bin)/ruff format .

test-container: $(VENV)/ready-to-develop ## build the image, run it and talk to it (starts a container engine where there is none)
	tests/container/engine.sh $(bin)/python -m pytest -m container tests/container $(ARGS)

bench: $(BENCH)/peers/ready $(BENCH)/mlserver/ready ## race other tools, write docs/benchmarks.md (ARGS="--quick", "--rows 100000 --only train", "--help")
	@BENCH_MLSERVER=$(abspath $(BENCH))/mlserver/bin/python $(BENCH)/peers/bin/python -m benchmarks $(ARGS)

lock: $(VENV)/ready-to-lock ## choose the newest releases that pyproject.toml allows (also: make lock UPGRADE="-P flask")
	$(lock) pyproject.toml --extra full --output-file requirements.lock
	$(lock) pyproject.toml --extra full --extra dev --constraint requirements.lock --output-file requirements-dev.lock
	$(lock) benchmarks/peers.in --constraint requirements.lock --output-file benchmarks/peers.lock
	$(lock) benchmarks/mlserver.in --output-file benchmarks/mlserver.lock

clean: ## remove the environments and all caches; models stay
	rm -rf $(VENV) $(BENCH) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
	find service tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# One lock for every platform and Python; with hashes, and without the address of any index.
UPGRADE ?= --upgrade
lock = $(bin)/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock" $(UPGRADE)

$(made):
	@test -n "$(version)" || { echo "make: '$(PYTHON)' is no Python 3.11 or newer; name one with PYTHON=" >&2; exit 1; }
	@echo "making $(VENV) with Python $(version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/ready-to-serve: $(made) requirements.lock
	@$(install) --require-hashes --requirement requirements.lock
	@touch $@

$(VENV)/ready-to-develop: $(made) requirements-dev.lock pyproject.toml
	@$(install) --require-hashes --requirement requirements-dev.lock
	@$(install) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/ready-to-serve

# One environment has the service and the peers that run beside it in one process, one has MLServer.
$(BENCH)/peers/ready: requirements.lock benchmarks/peers.lock
	@echo "making $(@D)"
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes $(^:%=--requirement %)
	@touch $@

$(BENCH)/mlserver/ready: benchmarks/mlserver.lock
	@echo "making $(@D)"
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

$(VENV)/ready-to-lock: $(made)
	@$(install) uv
	@touch $@
