# make grade   set up, then grade the class in examples/submitted/, apart from results/ of a class of your own
# make test    set up, then run the linters and the test suite of this repository
# make journeys  set up, then run the tests of whole ways: nbgrader, a cluster, a workflow's runner, a killed run
# make processors  set up, then run the tests that touch recordings as other processors would: without AVX-512, without
#              AVX2, with MKL's compatible code, with two threads
# make verify  set up, then hold the course to its own promises
# make docs    set up, then make a site of docs/ in .cache/docs/site; a link or an anchor that leads nowhere is an error
# make bench   set up, then measure what grading costs, beside the floor, pytest and nbgrader (a quarter of an hour)
# make gpu     set up, then run on a GPU all that needs one: what it offers, its tests, its measurements
#
# TORCH_INDEX  the wheel index to take torch from: PyTorch's CPU one, as its page Start Locally shows for Pip and CPU
# PYTHON       the interpreter to build .venv with (3.11 or newer)
# TORCH        another version of torch than the pinned one

PYTHON ?= $(shell sh tools/find-python)
TORCH_INDEX ?=
VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready

ON_EACH_PROCESSOR := tests/golden tests/diagnosis tests/authoring/test_release_exercises.py

.PHONY: grade test journeys processors verify docs lint soak bench gpu setup clean FORCE

grade: setup
	@$(RUN)/course grade examples/submitted --out results-examples

# Four at a time: tests wait as long as they work, for ends of time, for processes, for a browser.
# With one thread each; "processors" has two.
test: setup lint
	@OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n 4 --dist worksteal

# Each file in one process and in its order: the last test of a cluster kills its scheduler.
journeys: setup
	@OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n 4 --dist loadfile -m "journey and not soak"

# A thread each, as two run at a time. The processor that is least like this one runs all that touches recordings; the
# others record exercises, diagnose, and grade the class of examples.
processors: setup
	@OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=default $(RUN)/python -m pytest -n 2 -q -m "recorded and not journey"
	@for other in ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=COMPATIBLE OMP_NUM_THREADS=2; do \
	    echo "$$other" && env OMP_NUM_THREADS=1 $$other $(RUN)/python -m pytest -n 2 -q \
	        -m "recorded and not journey and not soak" $(ON_EACH_PROCESSOR) || exit 1; \
	done

verify: setup
	@$(RUN)/course verify

docs: setup
	@$(RUN)/python -m docs.site .cache/docs/site

lint: setup
	@$(RUN)/ruff check . && $(RUN)/ruff format --check . && $(RUN)/mypy
	@$(RUN)/zizmor --offline --quiet --persona auditor .github
	@$(RUN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(RUN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff

bench: setup
	@$(RUN)/python -m bench.cost

soak: setup
	@$(RUN)/python -m pytest -m soak

gpu: setup
	@$(RUN)/course doctor
	@$(RUN)/python -m pytest -m gpu -rs
	@$(RUN)/course bench --device cuda
	@$(RUN)/python -m bench.gpu

setup: $(READY)
	@sh tools/need-bwrap

$(READY): pyproject.toml constraints.txt tools/build-venv $(shell sh tools/moved-venv "$(VENV)")
	@sh tools/build-venv "$(PYTHON)" "$(VENV)" "$(TORCH_INDEX)"
	@touch $(READY)

clean:
	rm -rf $(VENV) results-examples
