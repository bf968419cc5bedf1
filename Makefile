# Every target below sets up what it needs: Python 3.11 or newer and make are enough.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.PHONY: help demo serve search-demo notebook test test-library test-service test-papers test-wheel reproduce setup kernels lint format bench load torture soak deployed docs lock clean

# Name another interpreter with `make setup PYTHON=/path/to/python`; a second environment beside the first with VENV=:
# `make test PYTHON=python3.13 VENV=.venv-3.13`.
PYTHON ?=
VENV ?= .venv
BIN := $(VENV)/bin
# Two sets of packages in one environment: what the demo and the service need, and what the tests need as well.
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# Modules are compiled to bytecode when they are first imported. Most never are.
INSTALL := $(PIP) install -qq --no-compile
# A worker more than there are cores, since tests of the service wait now and then. Modules in the order of
# tests/conftest.py, the longest first, and not by their number of tests.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
PYTEST_ARGS ?= -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# More words for pytest, beside those: `make test PYTEST_MORE=--durations=60`.
PYTEST_MORE ?=
DEMO_SECONDS ?= 60
# Where `make reproduce` writes, and goes on from where it was interrupted.
PAPERS_OUT ?= results/papers
# Tests start hundreds of processes, each with hundreds of modules: those are kept as bytecode, in an image that says
# otherwise too.
unexport PYTHONDONTWRITEBYTECODE

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-19s %s\n", $$1, $$2 }'

demo: $(RUNS) ## watch a ranker learn in the terminal, write a report, then run a live service for a minute
	@$(BIN)/rankloop demo
	@rm -rf results/live-demo
	@echo
	@echo "And live, for $(DEMO_SECONDS) seconds: a service with simulated users. Open its address in a browser."
	@$(BIN)/rankloop serve --simulated-users --seconds $(DEMO_SECONDS) --data results/live-demo
	@echo "\`make serve\` starts one and keeps it running."

serve: $(RUNS) ## keep a service with simulated users running; it prints the address of its dashboard, Ctrl-C stops it
	@$(BIN)/rankloop serve --simulated-users --data results/live

search-demo: $(RUNS) ## a shop whose search learns, judged live against its engine; open its address in a browser, Ctrl-C stops it
	@$(BIN)/python -m examples.search_demo $(DEMO_ARGS)

notebook: $(RUNS) ## open the notebooks of examples/ in the browser
	@$(BIN)/python -c "import jupyterlab" 2>/dev/null || $(INSTALL) jupyterlab
	@$(BIN)/python -m jupyterlab examples

test: kernels ## run every test, every docstring example and every example in the docs
	@$(BIN)/python -m pytest $(PYTEST_ARGS) $(PYTEST_MORE)

# The three parts of the house; together they are all tests. The command line and what all share go with the library.
SERVICE := src/rankloop/serving tests/serving tests/guards/test_stored_log.py tests/test_deploy.py
PAPERS := src/rankloop/experiments tests/experiments

test-library: kernels ## run the tests of the library and the command line
	@$(BIN)/python -m pytest $(PYTEST_ARGS) $(PYTEST_MORE) src tests $(addprefix --ignore=,$(SERVICE) $(PAPERS))

test-service: kernels ## run the tests of the service
	@$(BIN)/python -m pytest $(PYTEST_ARGS) $(PYTEST_MORE) $(SERVICE)

test-papers: kernels ## run the tests of the reproduced papers
	@$(BIN)/python -m pytest $(PYTEST_ARGS) $(PYTEST_MORE) $(PAPERS)

# What needs no more than NumPy, a wheel and pytest. PMED and Birkhoff's sampler need SciPy.
PLAIN := tests/kernels/test_jit.py tests/kernels/test_loop.py tests/kernels/test_call_checks.py tests/feedback tests/test_base.py \
    tests/environments/test_fixed_items.py tests/rankers/test_grab.py tests/rankers/test_top_rank.py tests/test_every_ranker.py
test-wheel: ## build a wheel, install it beside NumPy alone, and run the tests that need no more
	@$(find_python); $$python -m venv --clear build/plain
	@build/plain/bin/python -m pip --disable-pip-version-check wheel -q --no-deps --wheel-dir build/plain .
	@build/plain/bin/python -m pip --disable-pip-version-check install -q build/plain/rankloop-*.whl pytest hypothesis
	@build/plain/bin/python -m pytest -q $(PLAIN) -k "not PMED" --deselect "tests/test_every_ranker.py::test_ranker[FTRLPBM-5]"

reproduce: kernels ## play all experiments of the papers in full, judge their claims, and draw their runs anew (2.6 CPU-hours)
	@$(BIN)/rankloop reproduce all --out $(PAPERS_OUT) && $(BIN)/python -m tests.redrawn $(PAPERS_OUT)

kernels: $(READY) ## compile all kernels into a library, as a wheel brings it; what has not changed is kept in build/
	@$(BIN)/python -m compile_kernels

setup: $(READY) ## create .venv with the pinned versions, and the command .venv/bin/rankloop
	@echo "Ready: $(BIN)/rankloop"

lint: $(READY) ## ruff, mypy --strict, pyright on the README and the examples, and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m tests.typed_examples
	@$(BIN)/lint-imports --no-logo

format: $(READY) ## format the source with ruff
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: $(READY) ## rounds per second, compared with plain NumPy and with the cost of a sort
	@$(BIN)/python -m benchmarks

load: $(READY) ## load on the service from a second process, without and with feedback: rates, latencies, fsyncs
	@$(BIN)/python -m benchmarks.load $(LOAD_ARGS)

torture: $(READY) ## more than 500 faults of many kinds under load, and what was lost (half an hour)
	@$(BIN)/python -m tests.serving.torture $(TORTURE_ARGS)

soak: $(READY) ## a million events with a fault every few seconds: is memory flat, is anything lost (ten minutes or more)
	@$(BIN)/python -m tests.serving.soak $(SOAK_ARGS)

deployed: $(READY) ## run the image, the chart's container and the unit of deploy/: as root, with podman
	@$(BIN)/python -m tests.deployed $(DEPLOYED_ARGS)

docs: $(READY) ## build the documentation into site/
	@$(BIN)/python docs/_ext/cli_page.py > docs/cli.md
	@$(BIN)/python docs/_ext/claims_page.py > docs/claims.md
	@$(BIN)/sphinx-build --quiet --jobs auto --fail-on-warning --keep-going --doctree-dir build/doctrees docs site
	@echo "Open site/index.html"

lock: ## choose the newest versions that pyproject.toml allows and pin them in both locks
	@$(find_python); $$python -m venv --clear build/lock
	@build/lock/bin/python -m pip --disable-pip-version-check install -qq pip-tools
	@$(pin) --upgrade --generate-hashes --extra dev --output-file build/lock/dev.txt pyproject.toml
	@grep -o '^[^ ]*==[^ ]*' build/lock/dev.txt > build/lock/pins.txt # constraints cannot have digests
	@echo setuptools > build/lock/also.in # builds the editable installation
	@$(pin) --generate-hashes --constraint build/lock/pins.txt --extra all --output-file build/lock/run.txt pyproject.toml build/lock/also.in
	@{ echo "# Pinned for Python 3.11 by \`make lock\`, with the digests of all files: what the package, its tests, linters and documentation need but torch, of which there are several builds."; \
	   grep -v '^\(#.*\)*$$' build/lock/dev.txt | sed '/^torch==/,/[^\]$$/d'; } > requirements-dev.lock
	@{ echo "# Pinned for Python 3.11 by \`make lock\`, with the digests of all files: what the demo and the service need, the extra \`all\`."; \
	   grep -v '^\(#.*\)*$$' build/lock/run.txt; } > requirements.lock
	@grep -c == requirements.lock requirements-dev.lock

pin = build/lock/bin/pip-compile --quiet --strip-extras --allow-unsafe --no-header --no-annotate --no-emit-options \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

clean: ## remove everything that make creates, except results/
	rm -rf $(VENV) build dist site src/rankloop.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The first interpreter that runs and is new enough; a shim that only pretends to be one is passed over.
define find_python
new_enough='import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))'; python=; \
tried="$(or $(PYTHON),python3.11 python3 python3.12 python3.13 python)"; \
for name in $$tried; do \
    if "$$name" -c "$$new_enough" 2>/dev/null; then python=$$name; break; fi; \
done; \
if [ -z "$$python" ]; then \
    echo "rankloop needs Python 3.11 or newer with its venv module; tried: $$tried" >&2; \
    echo "Install one (Debian, Ubuntu: apt install python3 python3-venv) or name it: make setup PYTHON=/path/to/python" >&2; \
    exit 1; \
fi
endef

# A stamp is written last: an interrupted or failed set-up starts again next time.
$(RUNS): requirements.lock pyproject.toml
	@$(create)
	@echo "Installing the pinned packages into $(VENV) (a minute or so the first time)"
	@$(INSTALL) -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): requirements-dev.lock requirements.lock pyproject.toml
	@$(create)
	@echo "Installing the pinned packages for development into $(VENV) (some minutes the first time)"
	@$(INSTALL) -r requirements-dev.lock
	@$(INSTALL) $$(grep -o 'torch==[0-9.]*' pyproject.toml)
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $(RUNS) $@

# pip before 24 compares every file of every version of every package with the machine, which takes longer than all the
# rest; where there is no newer one to be had, the one that came with Python does.
define create
rm -f $@; \
if ! $(PIP) --version >/dev/null 2>&1; then \
    $(find_python); \
    echo "Creating $(VENV) with $$($$python --version)"; \
    $$python -m venv --clear $(VENV) && { $(INSTALL) 'pip>=24' || true; }; \
fi
endef
