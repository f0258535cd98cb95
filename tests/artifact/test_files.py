"""A release reads back as it was written, and a changed file is refused by the field that changed."""

import json
import math
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dpgram
from dpgram.artifact.release import GramRelease
from dpgram.errors import OutputError, ReleaseFileError
from dpgram.terms.noise import InverseWishartSample, NoisyInverse, SymmetricGaussian, WishartSample
from tests.conftest import small_schema


@pytest.fixture
def saved(small_release, tmp_path):
    path = tmp_path / "release.json"
    small_release.save(path)
    return path


NAMES = st.text(min_size=1, max_size=5)
NUMERIC = st.builds(
    lambda name, lower, width: dpgram.Numeric(name, lower, lower + width), NAMES, st.floats(-1e3, 1e3), st.floats(1, 1e3)
)
WORDS = st.text(min_size=1, max_size=4).filter(lambda t: t not in ("other", "missing"))
LEVELS = st.one_of(
    st.lists(WORDS, min_size=2, max_size=4, unique=True),
    st.lists(st.integers(-9, 9), min_size=2, max_size=4, unique=True),
)
CATEGORICAL = st.builds(dpgram.Categorical, NAMES, LEVELS, st.booleans(), st.sampled_from(["reference", "level"]))
COLUMNS = st.lists(
    st.one_of(NUMERIC, CATEGORICAL, st.builds(dpgram.Boolean, NAMES, st.booleans())), min_size=1, max_size=4,
    unique_by=lambda column: column.name,
)  # fmt: skip


SCALE = st.floats(1e-40, 1e40)
SHIFT = st.floats(0, 1e40)
NOISE = st.one_of(
    st.builds(SymmetricGaussian, SCALE, SCALE, SHIFT),
    st.builds(WishartSample, SCALE, SHIFT, SCALE),
    st.builds(InverseWishartSample, SCALE, SHIFT, SCALE, SCALE),
    st.builds(NoisyInverse, SCALE, SCALE, SCALE, st.just(0.0)),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data(), columns=COLUMNS, neighbours=st.sampled_from(dpgram.Neighbours), intercept=st.booleans())
def test_every_release_reads_back_equal(tmp_path, data, columns, neighbours, intercept):
    try:
        schema = dpgram.Schema(unit="ü", columns=columns, neighbours=neighbours, intercept=intercept)
    except dpgram.DpgramError:
        return  # names that collide
    dim = len(schema.encoded_names)
    draw = data.draw(arrays(float, (dim, dim), elements=st.floats(-1e10, 1e10)))
    release = GramRelease(
        schema=schema,
        gram=np.triu(draw) + np.triu(draw, 1).T,
        rows=data.draw(st.integers(1, 2**53)) if neighbours is dpgram.Neighbours.REPLACE else None,
        row_bound=schema.effective_row_bound,
        budget=dpgram.Budget(data.draw(st.floats(1e-6, 1e3)), data.draw(st.floats(1e-30, 0.999))),
        mechanism="gaussian-noise",
        parameters={"mu": data.draw(st.floats(allow_nan=False, allow_infinity=False))},
        noise=data.draw(NOISE),
        randomness="test",
        private=data.draw(st.booleans()),
        arithmetic=data.draw(st.sampled_from(["float64", "exact"])),
        library_version="0",
    )
    release.save(tmp_path / "r.json")
    assert dpgram.load(tmp_path / "r.json") == release


def change(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def pop_column(content):
    content["columns"].pop()


def bend(content):
    content["gram"][0][1] += 1e-9


def drop_row(content):
    content["gram"].pop()


def inflate(content):
    content["gram"][0][0] = 1e200


def widen(content):
    content["gram"][2].append(0.0)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c.update(format=2), "field 'format': is 2, and this version of dpgram reads 1: update dpgram"),
        (lambda c: c.pop("format"), "missing required field `format`"),
        (pop_column, "field 'columns': has 5 names that are not the 6 encoded columns"),
        (lambda c: c["schema"]["columns"].pop(), "field 'columns': has 6 names that are not the 5"),
        (bend, r"field 'gram': is not symmetric at '\(intercept\)', 'x'"),
        (drop_row, "field 'gram': has 5 rows of 6 numbers, and 6 by 6 are needed"),
        (inflate, "field 'gram': holds a number too large for a sum over rows"),
        (widen, "field 'gram': has 6 rows of 6/7 numbers"),
        (lambda c: c["gram"][0].__setitem__(0, "1"), r"field 'gram\[0\]\[0\]|field 'gram\[...\]\[...\]': expected `float`"),
        (lambda c: c["budget"].update(epsilon=-1), "field 'budget': epsilon is -1 and must be"),
        (lambda c: c["budget"].update(delta="small"), "field 'budget.delta': expected `float`, got `str`"),
        (lambda c: c["budget"].pop("delta"), "field 'budget': object missing required field `delta`"),
        (lambda c: c.update(rows=None), "field 'rows': must be a positive number"),
        (lambda c: c.update(rows=-3), "field 'rows': must be a positive number"),
        (lambda c: c.update(row_bound=1.0), "field 'row_bound': is 1, but the schema in the file gives"),
        (lambda c: c.update(neighbours="add-remove"), "field 'neighbours': is 'add-remove', but the schema in the file says"),
        (lambda c: c.update(unit="cat"), "field 'unit': is 'cat', but the schema in the file says 'person'"),
        (lambda c: c["noise"].update(sd_off_diagonal=0), "field 'noise.sd_off_diagonal': is 0 and must be positive"),
        (lambda c: c["noise"].update(shape="laplace"), "field 'noise.*laplace"),
        (lambda c: c["schema"]["columns"][0].update(lower=9), "field 'schema': column 'x': lower is 9 and upper is 5"),
        (lambda c: c.update(extra=1), "unknown field `extra`"),
        (lambda c: c.update(private="yes"), "field 'private': expected `bool`, got `str`"),
        (lambda c: c.update(arithmetic="rough"), "field 'arithmetic': invalid enum value 'rough'"),
        (lambda c: c.update(grid=0.3), "field 'grid': is 0.3 and must be a power of two"),
        (lambda c: c.update(grid=-0.5), "field 'grid': is -0.5 and must be a power of two"),
        (lambda c: c.update(grid=0.5), "field 'gram': holds a number that is no multiple of its grid, 0.5"),
    ],
)
def test_a_changed_file_is_refused_by_field(saved, edit, message):
    change(saved, edit)
    with pytest.raises(ReleaseFileError, match=message):
        dpgram.load(saved)


@pytest.mark.parametrize("keep", [0, 1, 50, -3])
def test_a_file_cut_short_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(ReleaseFileError, match="not valid JSON, or cut short"):
        dpgram.load(saved)


def test_numbers_that_are_not_finite_are_refused(saved):
    saved.write_text(saved.read_text().replace('"gram": [\n  [', '"gram": [\n  [1e999, ', 1))
    with pytest.raises(ReleaseFileError):
        dpgram.load(saved)


def test_a_protected_number_of_rows_cannot_be_in_a_file(tmp_path, table):
    release = dpgram.release(table, small_schema(neighbours="add-remove"), epsilon=1, delta=1e-6)
    assert release.rows is None
    release.save(tmp_path / "r.json")
    change(tmp_path / "r.json", lambda c: c.update(rows=4000))
    with pytest.raises(ReleaseFileError, match="field 'rows': must be null"):
        dpgram.load(tmp_path / "r.json")


def test_what_cannot_be_read_or_written_is_named(small_release, tmp_path):
    with pytest.raises(ReleaseFileError, match="cannot be read: No such file"):
        dpgram.load(tmp_path / "none.json")
    with pytest.raises(OutputError, match="there is no folder"):
        small_release.save(tmp_path / "nowhere" / "r.json")
    with pytest.raises(OutputError, match="it is a folder"):
        small_release.save(tmp_path)


def test_devices_are_refused_and_links_are_followed(small_release, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="it is a device or a pipe"):
        small_release.save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    small_release.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert dpgram.load(tmp_path / "target") == small_release


def test_a_failed_write_leaves_the_old_file_and_nothing_else(small_release, tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    path.write_text("old")

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match="No space left on device"):
        small_release.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]
    assert path.read_text() == "old"


def test_an_interrupted_write_leaves_nothing(small_release, tmp_path, monkeypatch):
    def interrupt(fd):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        small_release.save(tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_format_1_keeps_loading():
    """Written by version 0.1.0; it must load for ever, and mean the same."""
    from pathlib import Path

    release = dpgram.load(Path(__file__).parent / "format-1.json")
    assert release.columns == ("(intercept)", "x", "y", "c[b]", "c[other]", "b")
    assert release.budget == dpgram.Budget(5.0, 1e-6)
    assert not release.private
    assert math.isclose(release.gram[0, 0], 4002.3948960113216, rel_tol=1e-15)
