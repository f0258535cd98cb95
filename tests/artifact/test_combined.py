"""A file of combined releases holds its parts, comes back as it was, and is refused where anything in it was changed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import dpgram
from dpgram.artifact.combined import rescaling
from dpgram.encoding.encode import encoded_columns
from dpgram.errors import ReleaseFileError

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.NotPrivateWarning")

SCHEMA = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 1), dpgram.Numeric("y", 0, 1)])


def released(mechanism, seed, rows=300, schema=SCHEMA):
    rng = np.random.default_rng(seed)
    table = {name: rng.random(rows) for name in schema.names}
    return dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism=mechanism, insecure_seed=seed)


@pytest.fixture
def combined():
    return dpgram.combine([released("gaussian-noise", 1), released("whitened-noise", 2)], rows="disjoint")


@pytest.fixture
def path(combined, tmp_path):
    combined.save(tmp_path / "both.json")
    return tmp_path / "both.json"


def test_it_comes_back_as_it_was(combined, path):
    read = dpgram.load(path)
    assert read == combined
    assert isinstance(read, dpgram.CombinedRelease)
    assert read.parts == combined.parts
    assert np.array_equal(read.gram, combined.gram)
    assert read.format == 3
    with pytest.raises(dpgram.DpgramError, match="exists"):
        combined.save(path)


def test_kinds_within_each_other_come_back(combined, tmp_path):
    twice = dpgram.combine([released("gaussian-noise", 5), released("gaussian-noise", 6)], rows="same")
    nested = dpgram.combine([twice, combined], rows="disjoint")
    assert len(nested.parts) == 3
    nested.save(tmp_path / "nested.json")
    assert dpgram.load(tmp_path / "nested.json") == nested


def test_many_columns_come_back(tmp_path):
    wide = dpgram.Schema(unit="p", columns=[dpgram.Numeric(f"x{k}", 0, 1) for k in range(70)])
    both = dpgram.combine([released("gaussian-noise", k, schema=wide) for k in (1, 2)], rows="disjoint")
    both.save(tmp_path / "wide.json")
    assert dpgram.load(tmp_path / "wide.json") == both
    assert len((tmp_path / "wide.json").read_text().splitlines()) <= 3


def test_a_part_in_the_file_is_a_release_file(path, combined, tmp_path):
    part = json.loads(path.read_text())["parts"][1]
    (tmp_path / "part.json").write_text(json.dumps(part))
    assert dpgram.load(tmp_path / "part.json") == combined.parts[1]


def changed(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ReleaseFileError) as caught:
        dpgram.load(path)
    return str(caught.value)


def set_to(place, value):
    def change(content):
        for step in place[:-1]:
            content = content[step]
        content[place[-1]] = value

    return change


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("budget", "epsilon"), 1.0, "budget"),
        (("budget", "delta"), 1e-9, "budget"),
        (("private",), True, "private"),
        (("unit",), "visit", "unit"),
        (("neighbours",), "add-remove", "neighbours"),
        (("rows_are",), "similar", "rows_are"),
        (("format",), 4, "formats 1 to 3"),
        (("more",), 1, "more"),
        (("parts",), [], "cannot be combined: no release was given"),
        (("parts", 0, "gram", 0, 1), 5.0, "parts[0].gram"),
        (("parts", 1, "noise", "rounds"), [], "parts[1].noise"),
        (("parts", 1, "budget", "epsilon"), 0.5, "parts[1].budget"),
        (("parts", 1, "budget", "delta"), 0.5, ""),
        (("parts", 0, "format"), 9, "parts[0].format"),
        (("parts", 0), 7, "parts[0]"),
    ],
)
def test_what_was_changed_is_refused(path, place, value, words):
    if place == ("parts", 1, "budget", "delta"):
        with_less = json.loads(path.read_text())
        set_to(place, value)(with_less)
        set_to(("parts", 0, *place[2:]), value)(with_less)
        path.write_text(
            json.dumps(with_less)
        )  # no part promises too much, and the weakest promise is another than the file says
        with pytest.raises(ReleaseFileError, match="budget.*is not what follows from the parts"):
            dpgram.load(path)
        return
    assert words in changed(path, set_to(place, value))


def test_a_part_that_is_there_twice_is_refused(path):
    def twice(content):
        content["parts"][1] = content["parts"][0]

    assert "have the same matrix" in changed(path, twice)


def test_endless_nesting_is_refused(path):
    deep = json.loads(path.read_text())
    inner = deep
    for _ in range(12):
        inner["parts"] = [json.loads(path.read_text())]
        inner = inner["parts"][0]
    path.write_text(json.dumps(deep))
    with pytest.raises(ReleaseFileError, match="too many times"):
        dpgram.load(path)


def test_the_shape_of_combined_noise_is_no_shape_of_a_file(path):
    def claim(content):
        content["parts"][0]["noise"]["shape"] = "combined"

    assert "parts[0].noise" in changed(path, claim)


def test_units_of_one_schema_become_those_of_another():
    """Every encoded row, missing cells and derived columns included, whatever was learnt and in whatever order."""
    columns = [
        dpgram.Numeric("a", 0, 1000, missing="indicator"),
        dpgram.Numeric("b", -50, 50, missing="midpoint"),
        dpgram.Categorical("c", ["u", "v", "w"]),
        dpgram.Date("d", "2000-01-01", "2020-12-31", missing="indicator"),
    ]
    derived = [dpgram.Product("ab", ["a", "b"]), dpgram.Product("ac", ["a", "c"]), dpgram.Power("bb", "b", 2)]
    one = dpgram.Schema(unit="p", columns=columns, derived=derived)
    here = replace(one, learnt={"a": (10.0, 30.0), "b": (-20.0, 40.0), "d": (11000.0, 15000.0)})
    there = replace(one, columns=columns[::-1], derived=derived[::-1], learnt={"a": (5.0, 90.0)})
    rng = np.random.default_rng(0)
    table = {
        "a": np.where(rng.random(50) < 0.2, np.nan, rng.uniform(10, 90, 50)),
        "b": np.where(rng.random(50) < 0.2, np.nan, rng.uniform(-20, 40, 50)),
        "c": rng.choice(["u", "v", "w"], 50),
        "d": [None if rng.random() < 0.2 else f"20{int(rng.integers(10, 20))}-03-01" for _ in range(50)],
    }
    for own, common in ((here, there), (there, here), (one, here), (here, one)):
        rows = encoded_columns(own, table)
        assert rows @ rescaling(own, common).T == pytest.approx(encoded_columns(common, table), abs=1e-12)
