"""The floor plan holds: no room imports in the wrong direction, and nothing below the wall reaches a row."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import dpgram

SRC = Path(dpgram.__file__).parent
PLAN = tomllib.loads((Path(__file__).parent / "rooms.toml").read_text())
ROOMS, LIBRARIES = PLAN["rooms"], PLAN["libraries"]
FILES = sorted(SRC.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room a file stands in; the top package is "dpgram"."""
    first = path.relative_to(SRC).parts[0]
    return "dpgram" if first == "__init__.py" else first.removesuffix(".py")


def imported_modules(source: str) -> set[str]:
    """Every module named by an import, those inside functions and type-checking blocks included, and lazy import strings."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the room"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("dpgram."):
            found.add(node.value.partition(":")[0])
    return found


def rooms_imported(source: str) -> set[str]:
    return {module.split(".")[1] for module in imported_modules(source) if module.startswith("dpgram.")}


def libraries_imported(source: str) -> set[str]:
    return {module.split(".")[0] for module in imported_modules(source)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_every_import_is_on_the_plan(path):
    room = room_of(path)
    if room == "dpgram":
        return  # the public names come from everywhere, lazily; test_wall covers what that loads
    assert room in ROOMS, f"{room} is not on the plan (rooms.toml)"
    allowed = {room, *ROOMS[room]}
    wrong = rooms_imported(path.read_text()) - allowed
    assert not wrong, f"{room} may not import {', '.join(sorted(wrong))}: see rooms.toml"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_every_library_is_on_the_plan(path):
    allowed = {"dpgram", "numpy", "scipy", *sys.stdlib_module_names, *LIBRARIES.get(room_of(path), [])}
    wrong = libraries_imported(path.read_text()) - allowed
    assert not wrong, f"{room_of(path)} may not use {', '.join(sorted(wrong))}: see rooms.toml"


def unused(allowed: dict[str, list[str]], used: dict[str, set[str]]) -> list[str]:
    """What a room may import and does not, as "room: other"."""
    return [f"{room}: {other}" for room, others in allowed.items() for other in others if other not in used.get(room, set())]


def of_every_room(imports: Callable[[str], set[str]]) -> dict[str, set[str]]:
    """What the files of each room import, by ``imports`` of their source."""
    together: dict[str, set[str]] = {}
    for path in FILES:
        together.setdefault(room_of(path), set()).update(imports(path.read_text()))
    return together


def test_every_room_on_the_plan_is_built():
    missing = set(ROOMS) - {room_of(path) for path in FILES}
    assert not missing, f"rooms.toml names rooms that are not there: {', '.join(sorted(missing))}"


def test_every_allowed_import_is_used():
    idle = unused(ROOMS, of_every_room(rooms_imported))
    assert not idle, f"nobody uses these, so rooms.toml should not allow them: {'; '.join(idle)}"
    idle = unused(LIBRARIES, of_every_room(libraries_imported))
    assert not idle, f"nobody uses these libraries, so rooms.toml should not allow them: {'; '.join(idle)}"


def test_an_import_that_nobody_uses_is_noticed():
    assert unused({"a": ["b", "c"], "b": ["c"]}, {"a": {"b"}, "b": {"c"}}) == ["a: c"]


def reachable(room: str) -> set[str]:
    """Rooms that a room can reach, through others too."""
    seen: set[str] = set()
    todo = [room]
    while todo:
        for other in ROOMS[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def test_the_plan_has_no_cycle():
    for room in ROOMS:
        assert room not in reachable(room), f"{room} reaches itself"


def test_no_room_but_the_doors_reaches_rows():
    sensitive, doors = set(PLAN["sensitive"]), set(PLAN["doors"])
    for room in ROOMS:
        if room in sensitive or room in doors:
            continue
        assert not reachable(room) & sensitive, f"{room} can reach people's rows"


@pytest.mark.parametrize(
    ("source", "rooms"),
    [
        ("from dpgram.rows.gram_sum import integer_gram", {"rows"}),
        ("def f():\n    import dpgram.rows.clip", {"rows"}),
        ("from dpgram import curator", {"curator"}),
        ("x = 'dpgram.cli.release:release'", {"cli"}),
    ],
)
def test_the_reader_of_imports_sees_them(source, rooms):
    assert rooms_imported(source) == rooms
