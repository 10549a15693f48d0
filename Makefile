# The one task runner: README.md and .ci/run call these, and nothing else builds or tests.
#   make demo    set up, build, and answer "which format is fastest?" on real data
#   make bench   measure the speed table anew, against every peer (minutes, and the machine to itself)
#   make suites  run the test-suites of h5py, xarray, zarr-python and VirtualiZarr through hyperslab (half an hour, and a package index)
#   make matrix  smoke-test the wheel with the oldest to the newest Python, NumPy, zarr and h5py (minutes, and a package index)
#   make docs    generate what is generated, and build the site into target/site
#   make wheel   build what users install into dist/: a wheel for all Linux from 2018 on and Python from 3.11 on, and an sdist
#   make wheel-aarch64  build the wheel for aarch64 and try it under qemu, whatever this machine is (half an hour)
#   make audit-deps     licences, sources and known faults of what we link and install
#   make check   after a change: linters, types, a review of the repository, and all tests but the slow ones
#   make test    set up what tests need, system packages included where apt and root allow it, and run all tests

# Python 3.13 where it is found, by pyenv too, because the newest of our peers need 3.12 or newer; otherwise `python3`.
# `make PYTHON=python3 ...` takes 3.11: requirements.lock names for each Python the newest versions that it can have.
PYENV_ROOT ?= $(HOME)/.pyenv
ifndef PYTHON
PYTHON := $(shell for one in python3.13 $(PYENV_ROOT)/versions/3.13.*/bin/python3.13 python3; do \
  "$$one" -c "import ensurepip, sys; sys.exit('t' in sys.abiflags)" 2>/dev/null && echo "$$one" && exit; done; echo python3)
endif
BIN := .venv/bin
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

.PHONY: setup system demo wheel wheel-aarch64 try-wheel sbom release-check audit-deps types review check suites matrix readme test test-rust test-python fuzz lint lint-rust lint-python format bench docs clean

setup: .stamps/built

.stamps/venv: requirements.lock
	@mkdir -p .stamps
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "hyperslab needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv --clear .venv || \
	  { echo "no venv module in $(PYTHON): installing python3-venv"; apt-get install -y python3-venv && $(PYTHON) -m venv --clear .venv; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	@touch $@

# It needs no Python, so with -j2 it is built while packages are installed.
.stamps/preload: $(RUST_SOURCES)
	@mkdir -p .stamps
	@command -v cargo >/dev/null || { echo "cargo is needed to build hyperslab's core: install Rust 1.88 or newer"; exit 1; }
	@sh crates/hyperslab-preload/build.sh
	@touch $@

.stamps/built: .stamps/venv .stamps/preload $(RUST_SOURCES) pyproject.toml
	$(BIN)/maturin develop --release --locked --quiet
	@touch $@

# What tests use from outside: Silo (PDB), a browser, MPI-built HDF5, strace. A test that misses one says so and is skipped.
system: .stamps/system .stamps/versitygw .stamps/actionlint
.stamps/system: tests/system-packages.txt
	@mkdir -p .stamps
	@sh tests/install-system-packages.sh tests/system-packages.txt $@

# An S3 server that is fast, where there is Go to build it with. lab/serving.py names the version.
.stamps/versitygw: python/hyperslab/lab/serving.py
	@mkdir -p .stamps
	@if command -v go >/dev/null; then go install $$(sed -n 's/.*"go install \(.*\)").*/\1/p' $<) 2>.stamps/go.log || \
	  { tail -n 3 .stamps/go.log; echo "versitygw cannot be built: its tests are skipped"; }; \
	else echo "there is no Go to build versitygw with: its tests are skipped"; fi
	@touch $@

demo: setup
	$(BIN)/python examples/demo.py

test: setup system test-rust test-python

# The damage tests need files to damage: small ones are made, and the foreign ones are taken where they are.
test-rust: setup
	$(BIN)/python tests/engine/make_samples.py target/samples ../shared/corpus
	HYPERSLAB_CORPUS="$(CURDIR)/target/samples:$(CURDIR)/../shared/corpus" HYPERSLAB_DAMAGES=20 \
	  cargo test --workspace --locked --quiet

# Two processes more than processors, because tests wait for others; who is done first takes tests from the others.
PYTEST := $(BIN)/python tests/leave_nothing.py $(BIN)/python -m pytest -n $(shell expr $$(nproc 2>/dev/null || echo 2) + 2) --dist worksteal

test-python:
	$(PYTEST)

# README word for word, in an empty environment into which its own line installs this clone. CI runs it.
readme: setup
	$(BIN)/python tests/matrix/follow_readme.py --clone

# The test-suites of libraries whose users we serve, in full; `make test` runs a sample of each.
suites: setup
	HYPERSLAB_SUITES=1 $(BIN)/python -m pytest -n 0 -s tests/suites

wheel: setup
	$(BIN)/python packaging/build.py

# Every command in an environment that has only the wheel, for each Python that is here; then pip, uv, pipx and uvx.
try-wheel: setup
	$(BIN)/python tests/matrix/try_installers.py dist/hyperslab-*_$$(uname -m).whl
	$(BIN)/python tests/matrix/run.py --wheel dist/hyperslab-*_$$(uname -m).whl --only plain

wheel-aarch64: setup
	$(BIN)/python packaging/build.py --machine aarch64
	$(BIN)/python packaging/try_aarch64.py dist/hyperslab-*_aarch64.whl

# The parts of the wheel and of requirements.lock, in CycloneDX's form.
sbom: setup
	$(BIN)/python packaging/sbom.py dist/hyperslab.cdx.json

# Before a tag is pushed: the versions, the changelog and the citation agree, and the tag is new.
release-check: setup
	$(BIN)/python packaging/release.py

# Where the lists of known faults cannot be reached, it says so and fails, with another status than for a fault.
TOOLS := target/tools
audit-deps: setup
	test -x $(TOOLS)/bin/cargo-deny || cargo install --locked --quiet --root $(TOOLS) cargo-deny
	test -x $(TOOLS)/python/bin/pip-audit || { $(PYTHON) -m venv $(TOOLS)/python && $(TOOLS)/python/bin/pip install --quiet pip-audit; }
	$(BIN)/python packaging/audit_deps.py $(TOOLS)/bin/cargo-deny $(TOOLS)/python/bin/pip-audit

# Whether what we export has types that every checker knows, as py.typed promises: at least 98 %.
types: setup
	test -x $(TOOLS)/types/bin/basedpyright || { $(PYTHON) -m venv $(TOOLS)/types && $(TOOLS)/types/bin/pip install --quiet basedpyright; }
	$(BIN)/python packaging/typed.py $(TOOLS)/types/bin/basedpyright

# Environments of other versions, made and thrown away; what was found goes to tests/matrix/results.md.
matrix: setup
	$(BIN)/python tests/matrix/run.py

check: lint review
	$(PYTEST) -q -m "not slow"

# What is asked of a scientific Python repository (pyproject.toml says which rules do not suit us, and why), and workflows.
review: setup .stamps/actionlint
	$(BIN)/sp-repo-review .
	@if [ -x .stamps/actionlint ]; then .stamps/actionlint; fi

.stamps/actionlint:
	@mkdir -p .stamps
	@if command -v go >/dev/null; then GOBIN=$(CURDIR)/.stamps go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7; \
	else echo "there is no Go to build actionlint with: the workflows are not linted"; fi

# Coverage-guided, every parser and codec in turn: `make fuzz SECONDS=3600`. Findings stay in target/fuzz/findings.
SECONDS := 60
fuzz: .stamps/built
	HYPERSLAB_CORPUS="$(CURDIR)/../shared/corpus" $(BIN)/python fuzz/run.py --seconds $(SECONDS)

# `cargo fmt` does not see modules that a macro declares, as that of the table of codecs does.
CODECS = $(wildcard crates/hyperslab-engine/src/codecs/*.rs)

lint: lint-rust lint-python

lint-rust:
	cargo fmt --check
	rustfmt --edition 2024 --check $(CODECS)
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

lint-python: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/python -m mypy.stubtest --concise --allowlist tests/stubtest-allowed.txt hyperslab._core

format:
	cargo fmt
	rustfmt --edition 2024 $(CODECS)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Ratios against the same work done by hand and by the peers, interleaved; results are kept in benchmarks/results/,
# and the tables of docs/reading.md, remote.md and references.md are made from them.
bench: setup
	cargo build --release --locked --quiet --package hyperslab-engine --example inflate_floor
	$(BIN)/python benchmarks/harness_cost.py
	$(BIN)/python benchmarks/read_speed.py
	$(BIN)/python benchmarks/remote_speed.py
	$(BIN)/python benchmarks/references_speed.py --keep
	$(BIN)/python benchmarks/versions_speed.py
	$(BIN)/python docs/generate.py

# What is generated from code and results, then the site: target/site/index.html. Nothing is downloaded.
docs: setup
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/gallery.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "the site is in target/site; to search it, serve it: $(BIN)/python -m http.server -d target/site"

clean:
	rm -rf .stamps .venv target demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
