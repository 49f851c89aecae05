# make reproduce   sets up .venv, reproduces the paper and prints where results and figures are
# make test        sets up .venv with the development tools, then runs linters, the type checker and all tests
# make test-slow   runs the long tests, which make test leaves out: faults over many instants, other compilers, thousands of runs
# make types       runs the type checker
# make docs        builds the documentation site into docs/_build/html; warnings are errors
# make bench       runs the benchmarks, which compare alternative implementations; some of them: make bench BENCHMARKS='training kernels'
# make bench-avx2  the same on a processor with AVX-512, with PyTorch and our kernels limited to AVX2; results are labelled so

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: reproduce test test-slow types docs bench bench-avx2 browser clean

reproduce: $(VENV)/user
	$(BIN)/composcope reproduce

# Tests start hundreds of Python processes: let them keep compiled bytecode even where the environment says not to.
test test-slow: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/developer browser
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --jobs 2 types docs
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

test-slow: $(VENV)/developer browser
	$(BIN)/python -m pytest -m slow

types: $(VENV)/developer
	$(BIN)/mypy

docs: $(VENV)/developer
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "documentation: docs/_build/html/index.html"

BENCHMARKS = training kernels fastconv_rule measures diagnosis verdict scale store

bench: $(VENV)/developer
	@$(BIN)/python benchmarks/bench.py $(BENCHMARKS)

bench-avx2: export ATEN_CPU_CAPABILITY = avx2
bench-avx2: export ONEDNN_MAX_CPU_ISA = AVX2
bench-avx2: bench

$(BIN)/python:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "composcope needs Python 3.11 or newer; python3 is $$(python3 --version)"; exit 1; }
	python3 -m venv $(VENV)

$(VENV)/user: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

$(VENV)/developer: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/user

# The HTML pages are tested in a real browser. It is installed only as root or in CI; without it those tests are skipped.
browser:
	@if command -v chromium >/dev/null 2>&1; then :; \
	elif command -v apt-get >/dev/null 2>&1 && { [ "$$(id -u)" = 0 ] || [ -n "$$CI" ]; }; then \
	  echo "installing chromium for the browser tests"; \
	  sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$sudo apt-get update -qq && $$sudo apt-get install -qq --no-install-recommends chromium >/dev/null || echo "no chromium: browser tests will skip"; \
	else echo "no chromium found: browser tests will skip"; fi

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build docs/_build
