"""A table is renewed between its markers, and nothing else is touched."""

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
