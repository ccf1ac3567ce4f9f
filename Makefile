# The two main commands: `make sweep` measures this machine, `make test` tests the farm. Both install what they need.
# `make test-all` adds the tests that take long or need programs such as sshd, which are skipped with a reason without.
PYTHON ?= python3
VENV   := .venv
READY  := $(VENV)/.ready
BIN    := $(VENV)/bin

.PHONY: sweep test test-all test-thorough test-long test-skills lint docs bench clean setup lab-up lab-down

# Images of containers often set PYTHONDONTWRITEBYTECODE: each process would compile all modules again.
COMPILED := env -u PYTHONDONTWRITEBYTECODE

sweep: $(READY)
	$(COMPILED) $(BIN)/etfarm sweep deployments/sweeps/smoke.yaml

PYTEST := $(COMPILED) $(BIN)/pytest -q -n auto --dist loadscope --no-loadscope-reorder

# `make test CHANGED=1` runs what the changes of this branch most likely break; CHANGED=COMMIT, those since a commit.
TESTS = $(if $(CHANGED),$$($(BIN)/python -m tests.changed $(patsubst 1,main,$(CHANGED))))

test: $(READY)
	$(PYTEST) -m "not thorough" $(TESTS)

test-thorough: $(READY)
	$(PYTEST) -m "thorough and not skill and not long"

test-long: $(READY)
	$(PYTEST) -m long

# One at a time: skills measure, and tests beside them would be part of the times.
test-skills: $(READY)
	$(BIN)/pytest -q -m skill

test-all: test test-thorough test-long test-skills

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/sqruff lint sql
	$(BIN)/mypy

# README and docs/, with docs/reference/ made from the code, as a site that opens offline; a broken link is an error.
docs: $(READY)
	$(BIN)/python -m docs.reference_pages
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -c docs -d build/doctrees . build/docs
	cp build/docs/README.html build/docs/index.html

bench: $(READY)
	$(BIN)/python -m tests.benchmarks.run_all

setup: $(READY)

# Every setup uses the committed constraints, so the installed versions do not change over time. uv is several times
# faster than pip. It reads no settings of pip, so it gets pip's indexes from here, the section of `pip install`
# after the global one and the environment last; where it fails, pip installs.
PIP := $(BIN)/pip --quiet --disable-pip-version-check install -c constraints.txt
UV_SETTINGS := sed -n -e 's/^:env:/z/' -e '/^global\./p' -e '/^install\./p' -e '/^z\./p' | sort | \
	sed -n -e 's/\\n/ /g' -e 's/^[^=]*\.index-url=/UV_DEFAULT_INDEX=/p' \
	-e 's/^[^=]*\.extra-index-url=/UV_INDEX=/p' -e 's/^[^=]*\.constraint=/UV_CONSTRAINT=/p' \
	-e 's/^[^=]*\.cert=/SSL_CERT_FILE=/p' -e '/^[^=]*\.find-links=/ { s//UV_FIND_LINKS=/; y/ /,/; p; }'
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) uv
	set -a; eval "$$($(BIN)/pip config list | $(UV_SETTINGS))"; \
	$(BIN)/uv pip install --quiet --python $(VENV) --index-strategy unsafe-best-match -c constraints.txt -e '.[dev]' \
	|| $(PIP) -e '.[dev]'
	touch $@

# Network namespaces and mounts need root.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo --preserve-env=ETFARM_DATA_DIR,ETFARM_LAB_CACHE,http_proxy,https_proxy)

lab-up: $(READY)
	$(SUDO) $(BIN)/python -m tests.lab up

lab-down:
	$(SUDO) python3 -m tests.lab down

# Targets never remove the measurements (./var): they cannot be repeated.
clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
