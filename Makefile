# One command does everything: `make demo` to look, `make test` to check, `make run` to work.
# Needs Python 3.11+ and make, nothing else; after the first time it needs no network.

VENV ?= .venv
# The first Python that can run the program; else python3, which then says what is wrong with it.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p .ci/python-check.py --quiet 2>/dev/null && echo $$p && exit; done; echo python3)
BIN := $(VENV)/bin
# Locked, with hashes, and never compiled here: a missing wheel is said at once.
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check
LOCKED := $(INSTALL) --require-hashes --only-binary :all: -r
PROJECT := $(INSTALL) --no-deps --no-build-isolation --no-index --editable .
# Further arguments, as in: make test ARGS="tests/test_settle.py -x"
ARGS ?=

# The runtime that `make install` puts in: onnxruntime, or onnxruntime-silicon (Python 3.11, see docs/coreml.md).
RUNTIME ?= onnxruntime
LOCK_onnxruntime := requirements.lock
LOCK_onnxruntime-silicon := requirements-silicon.lock

.PHONY: starter install wheels help demo run test kill bench lint check format setup setup-run lock clean
.DELETE_ON_ERROR:

help:
	@echo "make demo     depth maps of examples/inbox, and a contact sheet to look at"
	@echo "make run      the daemon, in the foreground (ctrl-c ends it)"
	@echo "make test     all tests (ARGS=\"tests/test_x.py -x\" for some)"
	@echo "make kill     the program killed at every point, and at random; crashing and hanging pictures (an hour)"
	@echo "make lint     format, lint, floors, types for Linux and macOS"
	@echo "make check    lint and test: what a change must pass"
	@echo "make install  the program with RUNTIME=onnxruntime (default) or RUNTIME=onnxruntime-silicon"
	@echo "make wheels   is there a wheel of everything for macOS 14 and Linux, Python 3.11 to 3.14?"
	@echo "make format   let the formatter have its way"
	@echo "make bench    measure it against its baselines (15 minutes, a quiet machine), write docs/performance.md"
	@echo "make starter  render, train, export and evaluate the starter network (hours; docs/starter.md)"
	@echo "make lock     choose newer dependencies"
	@echo "make clean    remove what these commands made"

demo: setup-run
	@rm -rf .demo examples/outbox
	@$(BIN)/depth-watcher once --config examples/config.yaml
	@$(BIN)/python examples/contact_sheet.py examples/inbox examples/outbox examples/outbox/contact-sheet.jpg

run: setup-run
	@$(BIN)/depth-watcher run $(ARGS)

test: setup
	$(BIN)/python -m pytest $(ARGS)

kill: setup
	KILL_POINTS=all $(BIN)/python -m pytest -m slow tests/kill tests/test_poison.py -s $(ARGS)

install: $(VENV)/.made
	@test -n "$(LOCK_$(RUNTIME))" || { echo "RUNTIME is onnxruntime or onnxruntime-silicon"; exit 2; }
	@test $(RUNTIME) = onnxruntime || $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	{ echo "onnxruntime-silicon has wheels up to Python 3.11 only: make clean; make install PYTHON=python3.11 RUNTIME=$(RUNTIME)"; exit 2; }
	@$(BIN)/python -m pip uninstall -qq -y onnxruntime onnxruntime-silicon 2>/dev/null
	@rm -f $(VENV)/.run-ready $(VENV)/.dev-ready
	@$(LOCKED) $(LOCK_$(RUNTIME))
	@$(PROJECT)
	@touch $(VENV)/.run-ready
	@echo "depth-watcher with $(RUNTIME) is in $(VENV)"

lint: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy --platform linux
	$(BIN)/mypy --platform darwin

check: lint test

bench: setup
	$(BIN)/python -m bench $(ARGS)

starter: setup
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(INSTALL) torch==2.13.0
	nice -n 19 $(BIN)/python -m training $(ARGS)

format: setup
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

setup-run: $(VENV)/.run-ready
setup: $(VENV)/.dev-ready

# An environment whose Python has gone, or that moved with the checkout, is made anew.
ifneq ($(wildcard $(VENV)/.made),)
$(shell test "`cat $(VENV)/.made`" = "$(CURDIR)" && $(BIN)/python -c '' 2>/dev/null || rm -rf $(VENV))
endif

# A stamp is the last thing written, so that whatever was interrupted is done again.
$(VENV)/.made: .ci/python-check.py
	@$(PYTHON) .ci/python-check.py
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "$(CURDIR)" > $@

$(VENV)/.run-ready: $(VENV)/.made requirements.lock pyproject.toml
	@echo "installing what requirements.lock names (once; a minute or two)"
	@$(LOCKED) requirements.lock
	@$(PROJECT)
	@touch $@

$(VENV)/.dev-ready: $(VENV)/.made requirements-dev.lock pyproject.toml
	@echo "installing what requirements-dev.lock names (once; a minute or two)"
	@$(LOCKED) requirements-dev.lock
	@$(PROJECT)
	@touch $@

COMPILE := $(BIN)/uv pip compile --quiet --upgrade --no-annotate --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command "make lock" pyproject.toml --group build

lock: $(VENV)/.made
	$(INSTALL) uv
	$(COMPILE) -o requirements.lock
	$(COMPILE) --group dev -c requirements.lock -o requirements-dev.lock
	$(COMPILE) --group silicon --override .ci/old-runtime-overrides.txt -o requirements-silicon.lock
	$(COMPILE) --group silicon --group dev --override .ci/old-runtime-overrides.txt -c requirements-silicon.lock \
	-o requirements-silicon-dev.lock
	@$(MAKE) wheels

# Every locked version has a wheel for every Python and machine that is promised; nothing is installed.
wheels: $(VENV)/.made
	@$(INSTALL) uv
	@for python in 3.11 3.12 3.13 3.14; do \
	for machine in aarch64-apple-darwin x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do \
	MACOSX_DEPLOYMENT_TARGET=14.0 $(BIN)/uv pip install --quiet --dry-run --only-binary :all: --require-hashes \
	--python-platform $$machine --python-version $$python --target build/none -r requirements.lock || exit 1; \
	echo "wheels for Python $$python on $$machine"; done; done
	@MACOSX_DEPLOYMENT_TARGET=14.0 $(BIN)/uv pip install --quiet --dry-run --only-binary :all: --require-hashes \
	--python-platform aarch64-apple-darwin --python-version 3.11 --target build/none -r requirements-silicon.lock
	@echo "wheels for Python 3.11 on aarch64-apple-darwin, with onnxruntime-silicon"; rm -rf build/none

clean:
	rm -rf $(VENV) .venv-old .demo examples/outbox build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
