"""The guides are true: their commands and code run on the demo table, and what they show is what is printed, up to numbers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "src" / "dpgram" / "demo"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"\$ ((?:.*\\\n)*.*\n)((?:.*\n)*)")  # a command, on several lines where they end in \, and what it prints
SHELL, PYTHON = ["bash", "-euo", "pipefail", "-c"], [sys.executable, "-W", "error", "-c"]
PAGES = ["custodian", "officer", "ledger", "report", "exact", "mechanisms"]
WRITTEN = {
    "custodian": ("schema.toml", "demo/coefficients.png", "demo/report.html", "report.html", "second.html", "short.json"),
    "report": ("report.html",),
    "mechanisms": ("wishart.json",),
}
BAD_INPUT = 2


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def words(text: str) -> str:
    """``text`` without what differs from one run to the next: numbers, times, seals and the widths of columns.

    >>> words("Seal: 73f9ae902618be0d  at  -1.5e-07,")
    'Seal: # at #'
    """
    masked = re.sub(r"-?\b\d[\d.,:e+T-]*", "#", re.sub(r"\b[0-9a-f]{16}\b", "#", text))
    return " ".join(re.sub("─+", "─", masked).split())


def assert_shown(shown: str, printed: subprocess.CompletedProcess[str]) -> None:
    """Each part of ``shown``, between lines of three dots, was printed."""
    for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE):
        found = words(part) in words(printed.stdout) or words(part) in words(printed.stderr)
        assert found, f"shown:\n{part}\nprinted:\n{printed.stdout}{printed.stderr}"


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    """A folder with the demo's table and schema, and one release of it."""
    folder = tmp_path_factory.mktemp("guides")
    (folder / "demo").mkdir()
    for name in ("flights.parquet", "flights.toml"):
        shutil.copy(DEMO / name, folder / "demo")
    budget = "--epsilon 1 --delta 1e-7 --out release.json"
    made = run([*SHELL, f"dpgram release demo/flights.parquet --schema demo/flights.toml {budget}"], folder)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_the_guide_runs(page, demo, tmp_path):
    """Bash and python blocks in order; a text block is what the block before it printed, a console block a command that fails."""
    shutil.copytree(demo / "demo", tmp_path / "demo")
    if page != "custodian":  # who makes the release on that page
        shutil.copy(demo / "release.json", tmp_path)
    ran, last = 0, None
    for language, code in BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")):
        if language in ("bash", "python"):
            last = run([*(SHELL if language == "bash" else PYTHON), code], tmp_path)
            assert last.returncode == 0, f"{code}\n{last.stderr}"
            ran += 1
        elif language == "text" and last is not None:
            assert_shown(code, last)
        elif language == "console":
            command, shown = CONSOLE.fullmatch(code).groups()
            failed = run([*SHELL, command], tmp_path)
            assert failed.returncode == BAD_INPUT, command
            assert_shown(shown, failed)
    assert ran
    for name in WRITTEN.get(page, ()):
        assert (tmp_path / name).stat().st_size > 0


def test_the_readme_is_one_page():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_another_output_than_the_one_shown_is_noticed():
    printed = subprocess.CompletedProcess([], 0, stdout="epsilon   1.5\nrows   300,000 (public)\nmade", stderr="wrote a.json")
    assert_shown("epsilon 1\n...\nmade", printed)
    assert_shown("wrote a.json", printed)
    with pytest.raises(AssertionError):
        assert_shown("epsilon 1\nmade", printed)
