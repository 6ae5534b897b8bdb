# Everything a person types. `make` alone explains itself.
# ARGS goes on to the program: `make test ARGS='-k cancel'`, `make demo ARGS='--voice bf_emma'`.
# UPSTREAM=sagemaker: demo and up join gateway and container as behind a SageMaker endpoint.
# PYTHON picks the interpreter that .venv is made of: `make install PYTHON=/opt/python3.12/bin/python3`.

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# One stamp per set of extras; tools/install.py writes them, newest last.
RUN_READY := $(VENV)/.installed-all
DEV_READY := $(VENV)/.installed-dev

.DEFAULT_GOAL := help
.PHONY: help install demo up test test-torch test-containers containers sbom chaos drills check format bench bench-pipeline soak clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(DEV_READY) ## make .venv with all that running, testing and changing needs

demo: $(RUN_READY) ## hear it: speech that starts while the text is still being written
	@$(BIN)/firstword demo $(UPSTREAM:%=--upstream %) $(ARGS)

up: $(RUN_READY) ## run a server and the four services here until Ctrl-C
	@$(BIN)/firstword up $(UPSTREAM:%=--upstream %) $(ARGS)

test: $(DEV_READY) ## all tests; what was skipped, and why, stands at the end
	@$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-torch: ## the torch engine's tests in .venv-torch, where a torch build for CPUs is at hand
	@if python="$$(sh tools/find_python.sh 3.11)"; then "$$python" -m tools.torch_tests $(ARGS); \
	else echo "left out: the torch engine's tests, which need Python 3.11"; fi

test-containers: $(DEV_READY) ## what streams promise, on Redis 7 and 8, Valkey 8 and 9, where Docker runs
	@$(BIN)/python -m tests.containers $(ARGS)

containers: $(DEV_READY) ## the images, built and run by Docker: ours, where none is and root may start one
	@FIRSTWORD_CONTAINERS=1 $(BIN)/python -m pytest -q tests/containers/test_images.py $(ARGS)

sbom: $(DEV_READY) ## what each image holds, as CycloneDX documents in build/sbom
	@$(BIN)/python -m tools.sbom

chaos: $(DEV_READY) ## nine minutes of killing every part under a hundred sessions (docs/CHAOS.md)
	@$(BIN)/python -m tests.chaos $(ARGS)

drills: $(DEV_READY) ## three minutes of breaking it and following docs/RUNBOOK.md (needs Prometheus)
	@FIRSTWORD_DRILLS=1 $(BIN)/python -m pytest -q tests/observability/test_drills.py $(ARGS)

check: $(DEV_READY) ## style, types, import contracts, module sizes, full coverage of the cores
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.tree
	$(BIN)/coverage run -m pytest -q -m 'not model' tests/unit tests/contract
	$(BIN)/coverage report --skip-covered --fail-under=100 --include="$$($(BIN)/python -m tools.cores)"

format: $(DEV_READY) ## let ruff format and fix what it can
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(DEV_READY) ## the benchmarks, with what they measure and on which machine
	@$(BIN)/python -m benchmarks $(ARGS)

bench-pipeline: $(DEV_READY) ## what lies between text and audio: time, CPU, memory; 3 minutes
	@$(BIN)/python -m benchmarks.pipeline $(ARGS)

soak: $(DEV_READY) ## 100,000 malformed requests at the agent; is memory flat over 2,000 sentences? an hour and more
	@$(BIN)/python -m tests.fuzz
	@$(BIN)/python -m benchmarks.soak $(ARGS)

clean: ## remove .venv and all that tools left here (not the voices in your cache)
	rm -rf $(VENV) $(VENV)-torch build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache \
	  .hypothesis .import_linter_cache demo*.wav
	find . -name __pycache__ -prune -exec rm -rf {} +

$(RUN_READY): pyproject.toml constraints.txt tools/install.py
	@python="$$(sh tools/find_python.sh $(if $(PYTHON),"$(PYTHON)"))" && "$$python" tools/install.py all

$(DEV_READY): pyproject.toml constraints.txt tools/install.py
	@python="$$(sh tools/find_python.sh $(if $(PYTHON),"$(PYTHON)"))" && "$$python" tools/install.py dev
