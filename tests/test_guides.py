"""The guides are true: their commands and code run on the demo table, and what they show is what is printed, up to numbers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools import guide_output
from tools.guide_output import BLOCK, Shown

ROOT = Path(__file__).parents[1]
PAGES = [
    "five-minutes",
    "custodian",
    "officer",
    "analyst",
    "researcher",
    "intervals",
    "regression",
    "audits",
    "ledger",
    "report",
    "exact",
    "mechanisms",
    "tables",
    "controls",
]
MAKING_THEIR_OWN = {"five-minutes", "custodian", "analyst"}  # pages that make release.json
# Releases of guides are random. The noise alone makes one in sixty say something of a coefficient that analyst.md shows as unknown, so
# three in a row do with a chance of 5e-6. What is really untrue on a page is so each time.
TRIES = 3
WRITTEN = {
    "five-minutes": ("demo/flights.parquet", "release.json", "report.html", "release-from-python.json"),
    "custodian": (
        "schema.toml",
        "checked.toml",
        "demo/coefficients.png",
        "demo/report.html",
        "report.html",
        "second.html",
        "short.json",
    ),
    "analyst": ("arr_delay.png", "report.html"),
    "report": ("report.html",),
    "mechanisms": ("wishart.json",),
    "tables": ("margins.png",),
    "controls": ("controls.png",),
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    """A folder with the demo's table and schema, and one release of it."""
    folder = tmp_path_factory.mktemp("guides")
    guide_output.prepare(folder)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_the_guide_runs_and_prints_what_it_shows(page, demo, tmp_path):
    for attempt in range(TRIES):
        folder = tmp_path / str(attempt)
        untrue = not_shown(page, demo, folder)
        if untrue is None:
            break
    assert untrue is None, (
        f"`python tools/guide_output.py docs/{page}.md` renews this:\n{untrue.text}\nprinted:\n{untrue.printed[0]}{untrue.printed[1]}"
    )
    for name in WRITTEN.get(page, ()):
        assert (folder / name).stat().st_size > 0


def not_shown(page: str, demo: Path, folder: Path) -> Shown | None:
    """The first output that is not the one on the page, run in a new ``folder``; None where all are."""
    folder.mkdir()
    shutil.copytree(demo / "demo", folder / "demo")
    if page not in MAKING_THEIR_OWN:
        shutil.copy(demo / "release.json", folder)
    shown = guide_output.run_guide((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), folder)
    return next((one for one in shown if not one.is_true), None)


def test_the_guides_show_output():
    """So that the test above has something to compare."""
    blocks = [language for page in PAGES for language, _ in BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text())]
    assert blocks.count("text") >= 8
    assert blocks.count("console") >= 3


def shown(page: str, stdout: str, stderr: str = "") -> Shown:
    (block,) = BLOCK.finditer(page)
    return Shown(block, block[2], (stdout, stderr))


def test_another_output_than_the_one_shown_is_noticed_and_renewed():
    printed = "epsilon   1.5\nrows   300,000 (public)\nmade\n"
    for text in ("epsilon 1\n...\nmade", "wrote a.json", "rows #"):
        assert shown(f"```text\n{text}\n```", printed, "wrote a.json\nrows 3").is_true
    other = shown("```text\nepsilon 1\n...\nwas made\n```", printed)
    assert not other.is_true
    assert other.renewed == "epsilon   1.5\n...\nmade\n"
    assert not shown("```text\nepsilon 1\nmade\n```", printed).is_true
    long = "word " * 30
    assert shown("```text\nwords words words\nwords words\n```", long).renewed.split() == long.split()


def test_excerpts_are_taken_in_the_order_in_which_they_are_printed():
    """Rows of two tables have the same words; so have the standard errors below coefficients."""
    printed = "means\na  6.1\nb  7.2\ncorrelations\na  1.0\nb  0.5\nRows were clipped, so they\n  count for less.\n"
    other = shown("```text\nmean\na  1\nb  2\n...\ncorrelation\na  3\nb  4\nRows were shrunk.\n```", printed)
    assert other.renewed == printed.replace("correlations", "...\ncorrelations")


@pytest.mark.parametrize(
    ("page", "says"),
    [("```bash\nexit 3\n```\n", "exit code 3"), ("```console\n$ echo \\\n  fine\nerror\n```\n", "instead of 2")],
)
def test_a_guide_whose_code_fails_or_does_not_fail_is_noticed(page, says, tmp_path):
    with pytest.raises(RuntimeError, match=says):
        list(guide_output.run_guide(page, tmp_path))


def test_the_readme_is_one_page():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
