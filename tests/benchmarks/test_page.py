"""The page of benchmarks: its words are the program's, and a new run leaves alone what people wrote around them."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.__main__ import PAGE, SECTIONS, kept, sections
from experiments.markers import fill

TEXT = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")


def test_the_words_of_the_page_are_the_program_s():
    by_title = {section.title: section for section in SECTIONS}
    found = re.findall(r"^## (.+)\n\n(.+)\n", TEXT, flags=re.MULTILINE)
    assert len(found) >= 6
    for title, words in found:
        for sentence in re.split(r"(?<=\.) (?=[A-Z`])", words):
            assert sentence in by_title[title].words, sentence


def test_sections_that_are_not_run_stay_as_they_are():
    again = {section.title: (section, kept(TEXT, section.title)) for section in SECTIONS}
    tables = re.findall(r"^\|.*|^## .*", TEXT.partition("<!-- benchmarks")[2], flags=re.MULTILINE)
    assert re.findall(r"^\|.*|^## .*", sections(again), flags=re.MULTILINE) == tables


def test_a_new_run_keeps_the_words_around_it():
    before, _, after = TEXT.partition("<!-- benchmarks")
    renewed = fill(TEXT, {"benchmarks": sections({section.title: (section, "| new |") for section in SECTIONS})})
    assert renewed.startswith(before)
    assert renewed.count("| new |") == len(SECTIONS)
    assert "Mrows/s |" in after
    assert "Mrows/s |" not in renewed
