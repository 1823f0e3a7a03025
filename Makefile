# `make demo` and `make test` need python3 >= 3.11 with pip; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test bench lint site wheels clean release-check \
	check-sanitizers check-notebooks check-slow check-coverage check-oldest check-newest check-adapters check-wheel check-sdist

demo: $(VENV)/.installed
	$(BIN)/svae demo mouse --out runs/demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n auto --dist loadfile

bench: $(VENV)/.installed-peers
	$(BIN)/python benchmarks/messages.py --tasks
	$(BIN)/python benchmarks/steps.py --short

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror svae/messages/*/*.cc svae/messages/*/*.cu svae/messages/*/*.h svae/messages/*/*.cuh
	$(BIN)/oxlint --deny-warnings svae docs/assets
	$(BIN)/basedpyright --level error --pythonpath $(BIN)/python
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

site: $(VENV)/.installed-docs
	$(BIN)/python website.py site

# Linux x86-64 and aarch64, macOS arm64, Windows: kernels inside, no compiler needed where they are installed.
wheels: $(VENV)/.installed-release
	rm -rf dist
	$(BIN)/python wheels.py dist
	$(BIN)/auditwheel show dist/*manylinux*x86_64.whl
	$(BIN)/python -m hatchling build -t sdist -d dist

# What `.ci/run` leaves out, before a release; each part can be run alone, and TESTS names what pytest shall run in it.
release-check: check-sanitizers check-notebooks check-slow check-coverage check-oldest check-newest check-adapters \
	check-wheel check-sdist

check-sanitizers check-oldest check-newest check-adapters: $(VENV)/.installed-test $(VENV)/.installed-release
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python release.py $(@:check-%=%) $(TESTS)

check-wheel check-sdist: $(VENV)/.installed-test wheels
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python release.py $(@:check-%=%) $(TESTS)

check-notebooks: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -m "slow or not slow" tests/test_notebooks.py $(TESTS)

# Programs as users compile them, not as the other tests do.
check-slow: $(VENV)/.installed-test
	SVAE_TESTS_OPTIMISED=1 $(BIN)/python -m pytest -q -n auto -m slow $(or $(TESTS),--ignore=tests/test_notebooks.py)

check-coverage: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n auto --dist loadfile --cov --cov-report= $(TESTS)
	$(BIN)/coverage report --skip-covered --show-missing --sort=cover

clean:
	rm -rf $(VENV) .venv-release runs/demo site dist .coverage

# Some systems ship python3 without ensurepip: then the pip that is there fills the environment.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("svae needs Python 3.11 or newer; try  make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[figures]'
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-peers: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[peers]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-release: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@touch $@ $(VENV)/.installed

# The site is made from the source without importing it: it needs none of the dependencies.
$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python -c "import tomllib; \
		extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; print(*extras['docs'])")
	@touch $@
