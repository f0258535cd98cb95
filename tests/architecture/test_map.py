"""docs/architecture.md is the map of the house as it stands: every room and every file, in the order in which data flows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.test_rooms import PLAN, ROOMS, SRC

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
ENTRY = re.compile(r"^(?P<mark>[● ]) (?P<room>\w+)(?P<kind>/|\.py) (?P<words>.*(?:\n {4,}.*)*)", flags=re.MULTILINE)


def entries(page: str) -> dict[str, re.Match[str]]:
    """The lines of each room in the map, by its name, from the top of the page; "errors" for errors.py."""
    drawn = page.partition("\nsrc/dpgram/\n")[2].partition("\n```")[0]
    return {entry["room"]: entry for entry in ENTRY.finditer(drawn)}


def files_of(room: Path) -> set[str]:
    """Names of the Python files of a room, those in folders of it included."""
    return {file.name for file in room.rglob("*.py")} - {"__init__.py"}


def differences(page: str, room: str, files: set[str]) -> list[str]:
    """What a reader of the page would not find in the room, and the other way round."""
    drawn = entries(page)
    if room not in drawn:
        return [f"{room} has no line"]
    named = set(re.findall(r"\b\w+\.py\b", drawn[room]["words"]))
    missing = [f"the line of {room} does not name {name}" for name in sorted(files - named)]
    return missing + [f"the line of {room} names {name}, which is not there" for name in sorted(named - files)]


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_the_map_names_every_file(room):
    files = files_of(SRC / room)  # none for a room of one file, whose line need name nothing
    assert not (wrong := differences(PAGE.read_text(encoding="utf-8"), room, files)), (
        f"docs/architecture.md: {'; '.join(wrong)}"
    )


def test_the_map_shows_no_room_that_is_not_there():
    gone = set(entries(PAGE.read_text(encoding="utf-8"))) - set(ROOMS) - {"__init__"}
    assert not gone, f"docs/architecture.md draws rooms that rooms.toml does not know: {', '.join(sorted(gone))}"


def test_the_map_marks_the_rooms_that_can_hold_rows():
    marked = {room for room, entry in entries(PAGE.read_text(encoding="utf-8")).items() if entry["mark"] == "●"}
    assert marked == set(PLAN["sensitive"])


def test_rooms_stand_below_the_rooms_that_they_import():
    order = list(entries(PAGE.read_text(encoding="utf-8")))
    above = [
        f"{other} below {room}, which imports it"
        for room in ROOMS
        for other in ROOMS[room]
        if order.index(other) > order.index(room)
    ]
    assert not above, f"docs/architecture.md draws {'; '.join(above)}"


def test_a_page_that_is_out_of_date_is_noticed():
    page = (
        "x\n```\nsrc/dpgram/\n  rows/   from a.py\n          to b.py (and back)\n● curator.py   computes nothing\n```\nc.py\n"
    )
    assert list(entries(page)) == ["rows", "curator"]
    assert differences(page, "rows", {"a.py", "b.py"}) == []
    wrong = differences(page, "rows", {"a.py", "c.py"})
    assert wrong == ["the line of rows does not name c.py", "the line of rows names b.py, which is not there"]
    assert differences(page, "cols", {"a.py"}) == ["cols has no line"]
