"""Rounds at several scales in release files: they come back as they were, files without them load, and what was changed is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpgram
from dpgram.errors import ReleaseFileError


@pytest.fixture(scope="module")
def release():
    table = {name: np.random.default_rng(k).standard_t(3, 3000).clip(-50, 50) for k, name in enumerate("xy")}
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -50, 50) for name in "xy"])
    made = dpgram.release(table, schema, epsilon=1.0, delta=1e-6, mechanism="whitened-noise", insecure_seed=3)
    assert len(made.noise.last.outer) >= 2
    assert made.parameters["scales"] == len(made.noise.last.scales)
    return made


@pytest.fixture
def saved(release, tmp_path):
    path = tmp_path / "scales.json"
    release.save(path)
    return path


def rewritten(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    return path


def changed(path, edit):
    return rewritten(path, lambda content: edit(content["noise"]["rounds"]))


def test_it_reads_back_equal_and_rounds_of_one_scale_say_nothing_of_scales(release, saved):
    assert dpgram.load(saved) == release
    first, *_, last = json.loads(saved.read_text())["noise"]["rounds"]
    assert not {"outer", "scales"} & first.keys()
    assert last["scales"] == [1.0, 4.0, 16.0, 64.0][: len(last["scales"])]


def test_a_file_without_them_loads_and_another_matrix_is_another_release(release, saved):
    def emptied(content):
        last = content["noise"]["rounds"][-1]
        del last["outer"], last["scales"], content["mechanism"]["parameters"]["scales"]

    old = dpgram.load(rewritten(saved, emptied))
    assert (old.noise.last.outer, old.noise.last.scales) == ((), (1.0,))
    assert np.array_equal(old.gram, release.gram)
    assert old != release
    release.save(saved, overwrite=True)
    assert dpgram.load(changed(saved, lambda rounds: rounds[-1]["outer"][0][0].__setitem__(0, 7.5))) != release


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda last: last["outer"].pop(), r"outer': has \d matrices, but \d scales need \d"),
        (lambda last: last.pop("outer"), r"outer': has 0 matrices, but \d scales need \d"),
        (lambda last: last.pop("scales"), r"outer': has \d matrices, but 1 scales need 0"),
        (lambda last: last["scales"].__setitem__(1, 5.0), "scales': must be 1, 4, 16 and so on"),
        (lambda last: last["scales"].clear(), "scales': must be 1, 4, 16 and so on"),
        (lambda last: last["scales"].__setitem__(0, "1"), "scales"),
        (lambda last: last["outer"][0].pop(), r"outer\[0\]': has 2 rows of 3 numbers"),
        (lambda last: last["outer"][1][0].__setitem__(1, 1.5), r"outer\[1\]': is not symmetric at '\(intercept\)', 'x'"),
        (
            lambda last: last["outer"][0][0].__setitem__(0, 1e30),
            r"outer\[0\]': contains a number that is too large for a sum over rows",
        ),
        (
            lambda last: last["outer"][0][0].__setitem__(0, 4000.0),
            r"outer\[0\]': contains a number that is too large for a sum over rows",
        ),
        (lambda last: last["outer"][1][0].__setitem__(0, -2000.0), r"outer\[1\]': contains a negative sum of squares"),
        (lambda last: last["gram"][0].__setitem__(0, -2000.0), "gram': contains a negative sum of squares"),
        (lambda last: last.update(outer=[], scales=[1.0]), r"parameters.scales': is \d, but the file has 1"),
        (lambda last: last.update(outer=3), "outer"),
        (lambda last: last.update(inner=[]), "unknown field `inner`"),
    ],
)
def test_what_was_changed_is_refused_by_field(saved, edit, message):
    with pytest.raises(ReleaseFileError, match=message):
        dpgram.load(changed(saved, lambda rounds: edit(rounds[-1])))


def test_only_the_last_round_has_several_scales(saved):
    def edit(rounds):
        rounds[0].update(scales=[1.0, 4.0], outer=[rounds[0]["gram"]])

    with pytest.raises(
        ReleaseFileError, match=r"rounds\[0\].scales': has several scales, but only the last round can have several"
    ):
        dpgram.load(changed(saved, edit))


def test_rounds_are_as_many_as_the_parameters_say(saved):
    with pytest.raises(ReleaseFileError, match=r"parameters.rounds': is 9, but the file has \d"):
        dpgram.load(rewritten(saved, lambda content: content["mechanism"]["parameters"].update(rounds=9.0)))


@pytest.mark.parametrize(
    ("learnt", "message"),
    [
        ({"z": [0, 1]}, "learnt names 'z', which is not a numeric or date column"),
        ({"x": [1, 0]}, "the learnt interval of column 'x' must lie within the column's bounds"),
        ({"x": [0, 1e9]}, "the learnt interval of column 'x' must lie within the column's bounds"),
        ({"x": [40, 40.00000000000002]}, "the learnt interval of column 'x' must lie within the column's bounds"),
        ({"x": [0, 1, 2]}, "the learnt interval of column 'x' must be two numbers"),
        ({"x": [0, "1"]}, "the learnt interval of column 'x' must be two numbers"),
        ({"x": [0, None]}, "the learnt interval of column 'x' must be two numbers"),
        ([["x", 0, 1]], "learnt must be a table with one entry per column"),
    ],
)
def test_what_was_learnt_agrees_with_the_schema(saved, learnt, message):
    with pytest.raises(ReleaseFileError, match=f"field 'schema': {message}"):
        dpgram.load(rewritten(saved, lambda content: content["schema"].update(learnt=learnt)))
