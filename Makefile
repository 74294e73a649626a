# Two commands for a newcomer: `make report` and `make test`. Everything lives in .venv and out/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# How many built-in examples `make report` runs: a multiple of 4 keeps the families equal.
N ?= 24
OUT ?= out/builtin-$(N)
STAMP := $(VENV)/.installed

.PHONY: report test lab bench gallery clean install

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "Role Lens needs Python 3.11 to 3.13: call make PYTHON=python3.12, for example."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Role Lens into $(VENV) (a few minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

report: $(STAMP)
	@$(BIN)/lab run --data builtin --n $(N) --adapter both --beside base --out $(OUT)
	@$(BIN)/lab report $(OUT)

test: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest

lab: $(STAMP)
	@$(BIN)/jupyter lab --notebook-dir notebooks

# The notebooks as pages, executed: LAB_NOTEBOOK_N=24 asks more questions than they do by themselves.
gallery: $(STAMP)
	@rm -rf out/gallery
	@$(BIN)/python -m lab.teach.gallery notebooks out/gallery

bench: $(STAMP)
	@$(BIN)/python benchmarks/bench.py

clean:
	rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
