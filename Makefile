# `make help` lists all commands. They need only make and Python 3.11 or newer.

PORT ?= 8000
# One worker more than two cores, because some tests wait. Each worker imports all frameworks: 13 s of CPU.
WORKERS ?= 3
# Arguments for pytest: make test ONLY="tests/runs -x"
ONLY ?=
SYSTEM := $(addprefix tests/system/,commands processes page faults benchmarks)
VENV := .venv
BIN := $(VENV)/bin

# Without bytecode files, each of the hundreds of processes that tests start would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup page run test test-package test-page test-newest test-openwebui test-system test-proxy lint format \
	bench bench-floods soak golden pictures pipe types lock clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup:  ## Install everything into .venv (other targets do this when needed)
	@tools/setup.sh

page: setup  ## Build the page, if its sources have changed
	@tools/build_page.sh

run: setup  ## Serve the built-in agents on http://127.0.0.1:8000 (PORT= changes it)
	@tools/build_page.sh || echo "limelight: continuing with the previous build of the page, or without one" >&2
	@exec $(BIN)/limelight serve --port $(PORT)

test: setup page  ## Check style and types, run the tests of the package and of the page (some minutes)
	@$(MAKE) --no-print-directory --jobs=3 lint test-page test-package

test-package: setup  ## Test the Python package; part of `make test`
	@tools/install_bubblewrap.sh
	@$(BIN)/pytest $(or $(ONLY),--ignore=tests/system -n $(WORKERS) --dist worksteal)

test-system: setup page  ## Test whole processes and the page in Chromium; kill, flood and starve servers (some minutes)
	@tools/install_chromium.sh
	@tools/install_bubblewrap.sh
	@$(BIN)/pytest $(or $(ONLY),$(SYSTEM) -n $(WORKERS) --dist worksteal)

test-page: setup  ## Test the page without a browser; part of `make test`
	@tools/web.sh run test

test-newest: setup  ## Test with the newest versions of the frameworks, in a separate venv (some minutes)
	@tools/test_newest.sh

test-openwebui: setup  ## Test the pipe in a real Open WebUI with a real Chromium (installs both; some minutes)
	@tools/test_openwebui.sh $(ONLY)

test-proxy: setup page  ## Test the server behind a real nginx and a real Caddy, with a real Chromium (a minute)
	@tools/test_proxy.sh $(ONLY)

lint: setup  ## Check types and style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright --warnings
	@tools/web.sh run check

format: setup  ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@tools/web.sh run format

bench: setup  ## Measure against other servers, and frameworks with and without it (some minutes)
	@$(BIN)/python -m benchmarks

soak: setup  ## Hold a thousand streams at the highest rate for ten minutes (SOAK_MINUTES= changes it)
	@$(BIN)/python -m benchmarks.soak

bench-floods: setup page  ## Flood each wire and route, and measure what another user notices (25 minutes; FLOODS= has options)
	@$(BIN)/python -m benchmarks.floods $(or $(FLOODS),--write)

golden: setup  ## Write the golden files again; read the difference before you commit it
	@LIMELIGHT_GOLDEN=write $(BIN)/pytest tests/dialects tests/cli/view tests/sources tests/openwebui \
		tests/server/v2/test_conversations.py

pictures: setup page  ## Take the pictures of the page for the documents again; look at each before you commit it
	@tools/install_chromium.sh
	@$(BIN)/python -m tools.page_pictures

pipe: setup  ## Generate openwebui/deep_agent_pipe.py from its parts
	@$(BIN)/python tools/make_pipe.py

types: setup  ## Generate web/src/wire/events.ts and web/src/log/v2Components.json from the Python side
	@$(BIN)/python tools/make_wire_types.py

lock: setup  ## Complete web/package-lock.json with the packages of other platforms
	@$(BIN)/python -m tools.complete_package_lock

clean:  ## Remove what setup and tests have created
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist web/node_modules src/limelight/page
