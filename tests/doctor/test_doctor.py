"""dpgram doctor: what it says, and that each self-test finds what is planted for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.doctor import facts, selftests
from dpgram.native import library
from dpgram.rows.clip import mapped
from dpgram.sampling import bits

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
FOR_DEVELOPERS = {"bench", "study", "fuzz", "mutants", "browser", "test", "docs"}


def told(capsys) -> tuple[int, dict, str]:
    """Exit code, JSON and words of `dpgram doctor --json`."""
    code = run(["doctor", "--json"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out), printed.err


def failed(data: dict) -> list[str]:
    return [result["name"] for result in data["self_tests"] if not result["passed"]]


def test_a_good_installation_is_healthy(capsys):
    code, data, words = told(capsys)
    assert (code, data["healthy"], failed(data), words) == (0, True, [], "")
    assert data["version"] == dpgram.__version__
    assert data["kernel"]["compiled"] == (library.kernel() is not None)
    assert [result["name"] for result in data["self_tests"]] == list(selftests.SELF_TESTS)


def test_one_screen_names_everything(capsys):
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 32
    for word in (dpgram.__version__, "kernel", "threads", "Java", "GPU", *facts.EXTRAS, *selftests.SELF_TESTS):
        assert re.search(rf"(?m)^(dpgram )?{re.escape(word)}\b", out), word
    assert "FAILED" not in out


SUMS = ["Gram sums", "mapped sums"]
PLANTED = [  # the self-test that must fail, and what is broken: an object, its attribute, and what takes its place
    (SUMS, selftests, "integer_gram", lambda points: np.round(points @ points.T, -3).astype(np.int64)),
    (["mapped sums"], selftests, "mapped", lambda cells, *given: mapped(np.trunc(cells * 2**19) / 2**19, *given)),
    (["Gram sums"], selftests, "clip", lambda cells, bound: type("Rows", (), {"points": np.trunc(cells * 2**20)})),
    (["exact arithmetic"], bits.SeededBits, "more", lambda self, places, known, width: b"\x80" * (width * len(places))),
    (["calibration"], selftests, "calibrate_mu", lambda budget: 1 / 4.2),
    (["calibration"], selftests, "gaussian_delta", lambda epsilon, mu: 1e-7),
    (["randomness"], os, "urandom", bytes),
    (["randomness"], os, "urandom", lambda count: np.random.default_rng().binomial(8, 0.48, count).astype(np.uint8).tobytes()),
]


@pytest.mark.parametrize(("names", "place", "attribute", "broken"), PLANTED)
def test_what_is_broken_is_found(names, place, attribute, broken, monkeypatch):
    monkeypatch.setattr(place, attribute, broken)
    assert [result.name for result in selftests.run_self_tests() if not result.passed] == names


def test_a_failure_is_exit_code_1_with_words(capsys, monkeypatch):
    monkeypatch.setattr(selftests, "calibrate_mu", lambda budget: 1 / 4.2)
    code, data, words = told(capsys)
    assert (code, data["healthy"], failed(data)) == (1, False, ["calibration"])
    assert "do not make releases" in words
    assert run(["doctor"]) == 1
    assert "FAILED: epsilon 1 and delta 1e-6 need noise of 4.2247 sensitivities, not 4.2" in capsys.readouterr().out


@pytest.mark.skipif(not library.FILE.is_file(), reason="NO COMPILED KERNEL: dpgram was installed without a C compiler")
@pytest.mark.parametrize("isa", range(3))
@pytest.mark.parametrize(
    ("name", "panels", "scales", "words"),
    [
        ("Gram sums", False, 1, "sums whole numbers inexactly"),
        ("mapped sums", True, 1, "maps rows inexactly"),
        ("mapped sums", True, 3, "clips mapped rows otherwise than NumPy"),
    ],
)
def test_a_kernel_that_errs_in_one_instruction_set_is_found(isa, name, panels, scales, words, monkeypatch):
    if isa > library.Kernel(library.FILE).isa:
        pytest.skip("this machine has no such instructions")
    right = library.Kernel.add

    def add(self, columns, rows, most, scratch, total, through=None):
        right(self, columns, rows, most, scratch, total, through)
        total[-1, 0, -1] += self.isa == isa and (through is not None) == panels and len(total) == scales

    monkeypatch.setattr(library.Kernel, "add", add)
    (wrong,) = [result for result in selftests.run_self_tests() if not result.passed]
    assert (wrong.name, wrong.words) == (name, f"the kernel ({library.INSTRUCTIONS[isa]}) {words}")


def test_made_up_maps_have_short_rows_and_long_ones():
    """Or nothing would be clipped, or all of it."""
    numbers, seen = [], selftests.mapped
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selftests, "mapped", lambda *given: numbers.append(given) or seen(*given))
        assert selftests.mapped_sums()
    lengths = [np.linalg.norm(through.matrix @ cells, axis=0) for cells, _, through, *_ in numbers]
    assert lengths[0].max() < 1
    assert all((each > 1).mean() > 0.99 for each in lengths[1:])


def test_a_kernel_that_cannot_be_loaded_is_found(tmp_path, monkeypatch, capsys):
    broken = tmp_path / "_kernel.so"
    broken.write_bytes(b"no library")
    monkeypatch.setattr(library, "FILE", broken)
    library.kernel.cache_clear()
    try:
        code, data, _ = told(capsys)
    finally:
        library.kernel.cache_clear()
    assert (code, failed(data)) == (1, SUMS)
    assert data["kernel"]["words"].startswith("cannot be loaded")


def test_a_missing_kernel_is_said_and_is_no_failure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(library, "FILE", tmp_path / "_kernel.so")
    library.kernel.cache_clear()
    try:
        code, data, _ = told(capsys)
    finally:
        library.kernel.cache_clear()
    assert (code, data["kernel"]["compiled"]) == (0, False)
    assert data["self_tests"][1]["words"] == "exact in NumPy"


def test_extras_are_those_of_the_package():
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    names = {name: {re.match(r"[\w-]+", line)[0] for line in lines} for name, lines in declared.items()}
    assert {name: set(distributions) for name, (distributions, _) in facts.EXTRAS.items()} == {
        name: distributions for name, distributions in names.items() if name not in FOR_DEVELOPERS
    }


def test_a_missing_extra_comes_with_its_command(monkeypatch, capsys):
    monkeypatch.setattr(facts, "version_of", lambda distribution: None if distribution == "formulaic" else "1.0")
    assert run(["doctor"]) == 0
    assert "not installed (regressions written as formulas): pip install 'dpgram[formulas]'" in capsys.readouterr().out
    monkeypatch.setattr(facts, "version_of", lambda distribution: None if distribution == "polars" else "1.0")
    assert run(["doctor"]) == 0
    assert "pandas 1.0, duckdb 1.0; polars not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ('openjdk version "17.0.9" 2023-10-17', "Java 17"),
        ('java version "1.8.0_402"', "Java 8, too old for Spark, which needs 17"),
        ("something else", "java, of an unknown version"),
    ],
)
def test_java_is_told_by_its_version(printed, words, monkeypatch):
    monkeypatch.setattr(facts.shutil, "which", lambda *_, **__: "java")
    done = subprocess.CompletedProcess([], 0, stdout="", stderr=printed)
    monkeypatch.setattr(facts.subprocess, "run", lambda *_, **__: done)
    assert facts.java() == words


def test_a_machine_without_java_is_told_what_is_needed(monkeypatch):
    monkeypatch.setattr(facts.shutil, "which", lambda *_, **__: None)
    assert "needs Java 17" in facts.java()


def test_the_doctor_imports_no_heavy_library():
    script = """
import sys
from dpgram.cli.app import run
assert run(["doctor", "--json"]) == 0
heavy = {"torch", "pandas", "polars", "duckdb", "sklearn", "matplotlib", "pyspark", "opendp"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
