"""A table is renewed between its markers, and nothing else is touched."""

import re
from pathlib import Path

import pytest

from experiments.markers import fill, fill_page

PAGE = """# Words
<!-- worst: made by `make errors` -->
old
<!-- end of worst -->
between
<!-- worst, whitened -->
older
<!-- end of worst, whitened -->
after
"""
BLOCK = re.compile(r"<!-- ([^:>]+)(?::[^>]*)? -->(.*?)<!-- end of \1 -->", re.S)


def test_tables_are_renewed_and_words_stay(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    fill_page(page, {"worst": r"| new \1 |", "worst, whitened": "| newer |\n"})
    assert page.read_text(encoding="utf-8") == PAGE.replace("old\n", "\n| new \\1 |\n\n").replace("older\n", "\n| newer |\n\n")


def test_what_was_renewed_is_renewed_to_the_same():
    once = fill(PAGE, {"worst": "| new |"})
    assert fill(once, {"worst": "| new |"}) == once != PAGE


@pytest.mark.parametrize("page", ["words", PAGE + PAGE, PAGE.replace("<!-- end of worst -->", "<!-- /worst -->")])
def test_a_page_without_one_pair_of_markers_is_refused(page):
    with pytest.raises(ValueError, match="markers for the table 'worst'"):
        fill(page, {"worst": "| new |"})


def test_no_page_has_markers_around_nothing():
    """A study that was written but never run leaves a page that promises a table and has none."""
    pages = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
    blocks = [(page.name, *found) for page in pages for found in BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert len(blocks) > 30
    assert not [(page, name) for page, name, between in blocks if not between.strip()]
