# Each target makes what it needs: a virtual environment of its own from pinned versions, on Python 3.11+ and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LIGHT := $(VENV)/.light
READY := $(VENV)/.ready

# Where it is set, hundreds of commands that the tests start would each compile all of citerec anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow lint types imports unit slow docs docs-check demo-set bench torture results reproducibility release constraints clean

help:           ## Show the targets
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/	/' | expand -t 16

# What an author needs: no torch, no Java.
$(LIGHT): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("citerec needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(READY): $(LIGHT)
	@# torch by its exact version first: a range would bring gigabytes of CUDA with it.
	$(BIN)/python -m pip install --quiet --no-compile "$$(grep -E '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	@# pip compiles on one processor, and the packages' own tests too. Some hold examples of bad code: no error.
	@$(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib citerec >$(VENV)/compiled.log || true
	touch $@

demo: $(LIGHT)  ## Build the demo index and ask it three sentences: the light package only
	$(BIN)/citerec demo

test: $(READY) lint types imports unit  ## Run the checks, and the tests of what users meet: ten minutes

test-slow: $(READY) docs-check slow  ## Run all other tests: clusters, browser, notebooks, training, torture

lint: $(READY)  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## Types, strictly
	$(BIN)/mypy

imports: $(READY)  ## The order of the rooms
	$(BIN)/lint-imports

# Files of tests go to the processes whole: what a module prepares is prepared once. Files, and the tests in each, come in
# random order; the seed is printed: make unit ORDER=--random-order-seed=NUMBER
ORDER := --random-order
# One thread for each worker's models. One worker more than there are processors: many tests wait for commands.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/pytest -n $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) --maxprocesses 8 --dist loadfile --no-loadscope-reorder $(ORDER)
unit: $(READY)  ## Quick tests
	$(PYTEST) -m "not slow"

slow: $(READY)  ## Slow tests
	$(PYTEST) -m slow

docs: $(READY)  ## Build the site in site/; its reference is made from the code
	$(BIN)/python docs/reference.py docs/reference
	$(BIN)/mkdocs build --strict

# Not --quiet: it hides warnings from --strict too.
docs-check: $(READY)  ## The documentation builds, and every link in it leads somewhere
	$(BIN)/python docs/reference.py docs/reference
	$(BIN)/mkdocs build --strict --site-dir $(VENV)/site

demo-set: $(READY)  ## Label the demo's contexts anew (needs ../shared for the spaCy model)
	$(BIN)/citerec index build diagnostics/demo --out indexes/demo
	$(BIN)/citerec diagnostics label diagnostics/demo/contexts.jsonl --index indexes/demo --out indexes/.labelled/demo \
	  --spacy-model ../shared/models/en_ewt_tagger -c field_shares=published
	@# The demo's own datasheet says more than the one that is made here.
	cd indexes/.labelled/demo && cp manifest.json contexts.jsonl qrels.txt $(CURDIR)/diagnostics/demo/
	rm -rf indexes/.labelled

bench: $(READY)  ## Measure speed and memory (needs ../shared)
	$(BIN)/python benchmarks/evaluate.py
	$(BIN)/python benchmarks/texts.py
	$(BIN)/python benchmarks/rouge.py
	$(BIN)/python benchmarks/encode.py
	$(BIN)/python benchmarks/vectors.py
	$(BIN)/python benchmarks/words.py
	@echo 'With an index of your own: benchmarks/road.py; hours and a quiet machine: benchmarks/growth.py'

SECONDS := 1200
SEED := 0
torture: $(READY)  ## Kill, crash and rebuild for 20 minutes: make torture SECONDS=60 SEED=1
	$(BIN)/python -m tests.torture --seconds $(SECONDS) --seed $(SEED)

results: $(READY)  ## Measure every system on every class: results/results-tables.md (needs ../shared; hours)
	$(BIN)/python benchmarks/results.py

reproducibility: $(READY)  ## Get the published results again that take under five minutes (those but demo need ../shared)
	$(BIN)/python benchmarks/reproducibility.py

# Extras that need no gigabytes; the gate installs all of them.
TRIED := minilm diagnostics texts mcp mongodb
release: $(READY)  ## Build wheel and sdist in dist/, check them, and try the wheel in fresh environments
	rm -rf dist $(VENV)/release
	$(BIN)/python -m pip install --quiet build check-wheel-contents twine
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents --ignore W002 dist/*.whl
	$(PYTHON) -m venv $(VENV)/release
	$(VENV)/release/bin/python -m pip install --quiet dist/*.whl
	$(VENV)/release/bin/python -m pip check
	cd $(VENV)/release && bin/citerec demo && bin/citerec recommend "Attention suffices to translate <REF>." --index indexes/demo -k 3
	for extra in $(TRIED); do $(VENV)/release/bin/python -m pip install --quiet "$$(echo dist/*.whl)[$$extra]" && \
	  $(VENV)/release/bin/python -m pip check || exit 1; done

constraints:    ## Pin the versions of this environment anew
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu//' | LC_ALL=C sort -f > constraints.txt

clean:          ## Remove the environment and built indexes
	rm -rf $(VENV) indexes/demo
