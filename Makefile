# `make demo` and `make test` need Python 3.11 or newer, git and make; nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Interpreters that pyenv keeps where no PATH has them.
PYENV := $(wildcard $(HOME)/.pyenv/versions/3.1[1-9].*/bin)
OTHERS := $(subst $() $(),:,$(PYENV))
# What runs beside the suite, two at a time, and takes what the suite leaves of the machine,
# which waits more than it works. What kills services comes last, when there is more.
comma := ,
BESIDE := simulation,types,py313,py312,py311,package,schemathesis,chaos
# More environments of tox to run there.
ALSO ?=
# The interpreter that runs everything need not run a part of it again.
SAME = $(shell $(BIN)/python -c 'import sys; print("py3%d" % sys.version_info[1])')

.PHONY: demo test suite beside lint docs dist clean

demo: $(STAMP)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/forge-actors run examples/quickstart.toml

test: $(STAMP)
	$(BIN)/tox run -e lint
	$(MAKE) --jobs 2 --keep-going --no-print-directory suite beside

suite: $(STAMP)
	$(BIN)/tox run -e py

beside: $(STAMP)
	PATH="$$PATH:$(OTHERS)" TOX_SKIP_ENV="$(SAME)$$" nice $(BIN)/tox run-parallel \
		--parallel 2 --parallel-no-spinner -e $(BESIDE)$(addprefix $(comma),$(ALSO))

dist: $(STAMP)
	$(BIN)/tox run -e package -- dist

docs: $(STAMP)
	$(BIN)/tox run -e docs -- build/docs

lint: $(STAMP)
	$(BIN)/tox run -e lint,types

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Forge Actors needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable . --group dev
	$(BIN)/python -m compileall -q -j 0 forge_actors
	touch $(STAMP)

clean:
	rm -rf $(VENV) .tox build dist mutants *.egg-info
