"""A release reads back as it was written, and a changed file is refused by the field that changed."""

import dataclasses
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
from tests.conftest import small_schema, small_table
from tests.releases import in_rounds, labelled, matrix_release, whitened_release


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


SCALE, LARGE = st.floats(1e-40, 1e40), st.floats(1e-2, 1e40)  # what is small would cost more than a budget can be
SHIFT = st.one_of(st.just(0.0), SCALE)
DEGREES = st.floats(1e6, 1e12)
NOISE = st.one_of(
    st.builds(SymmetricGaussian, LARGE, LARGE, SHIFT),
    st.builds(lambda degrees, floor: WishartSample(degrees, floor, floor), DEGREES, LARGE),
    st.builds(lambda degrees, floor, multiple: InverseWishartSample(degrees, floor, floor, multiple), DEGREES, LARGE, SCALE),
    st.builds(NoisyInverse, SCALE, SCALE, LARGE, st.just(0.0)),
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
    gram, noise = np.triu(draw) + np.triu(draw, 1).T, data.draw(NOISE)
    if isinstance(noise, WishartSample | InverseWishartSample):  # a draw is definite
        gram = 1e-12 * (gram @ gram.T)
        gram = np.triu(gram) + np.triu(gram, 1).T
    release = GramRelease(  # its label follows from its noise
        schema=schema,
        gram=gram,
        rows=data.draw(st.integers(1, 2**53)) if neighbours is dpgram.Neighbours.REPLACE else None,
        row_bound=schema.effective_row_bound,
        budget=dpgram.Budget(1.0, 1e-6),
        mechanism="gaussian-noise",
        noise=noise,
        randomness="test",
        private=data.draw(st.booleans()),
        arithmetic=data.draw(st.sampled_from(["float64", "exact"])),
        library_version="0",
    )
    release = labelled(release)
    release.save(tmp_path / "r.json", overwrite=True)
    assert dpgram.load(tmp_path / "r.json") == release


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    mus=st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=8),
    room=st.floats(0.05, 100.0),
    sizes=st.lists(st.floats(-5, 0), min_size=3, max_size=3),
)
def test_every_release_in_rounds_reads_back_equal(tmp_path, seed, mus, room, sizes):
    """Columns whose sizes are up to five orders apart, so that the maps are badly conditioned."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([np.ones(200), rng.uniform(-1, 1, (200, 3)) * 10.0 ** np.array(sizes)])
    gram, noise = in_rounds(rows, seed, mus=tuple(mus), room=room)
    release = labelled(matrix_release(gram, noise, rows=200))
    release.save(tmp_path / "r.json", overwrite=True)
    assert dpgram.load(tmp_path / "r.json") == release


def test_the_file_of_many_rounds_and_columns_is_not_huge(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.ones(2000), rng.uniform(-1, 1, (2000, 99))])
    gram, noise = in_rounds(rows, mus=(1.0,) * 8)
    labelled(matrix_release(gram, noise, rows=2000)).save(tmp_path / "r.json")
    assert (tmp_path / "r.json").stat().st_size < 6e6
    assert dpgram.load(tmp_path / "r.json").noise == noise


@pytest.fixture
def saved_rounds(tmp_path):
    path = tmp_path / "rounds.json"
    whitened_release(small_table(), small_schema()).save(path)
    return path


def in_round(number, field, edit):
    """A change of one field of one round."""
    return lambda content: edit(content["noise"]["rounds"][number][field])


def set_in_round(number, **fields):
    return lambda content: content["noise"]["rounds"][number].update(fields)


def singular(through):
    through[1] = [2 * value for value in through[0]]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c["noise"].update(rounds=[]), "field 'noise.rounds': is empty, but at least one round is needed"),
        (lambda c: c["noise"].pop("rounds"), "field 'noise': object missing required field `rounds`"),
        (lambda c: c["noise"]["rounds"].pop(), "field 'mechanism.parameters.rounds': is 3, but the file has 2"),
        (lambda c: c["noise"]["rounds"].reverse(), "field 'gram': does not agree with the last round"),
        (
            lambda c: [row.__setitem__(k, row[k] * 1.001) for k, row in enumerate(c["gram"])],
            "does not agree with the last round",
        ),
        (set_in_round(2, kept=0.5), "field 'gram': does not agree with the last round"),
        (set_in_round(0, kept=0.0), r"field 'noise.rounds\[0\].kept': is 0 and must be a number from 1e-06 to 1"),
        (
            set_in_round(1, sd_off_diagonal=1.5e-260),
            r"rounds\[1\].sd_off_diagonal': is 1.5e-260 and must be a number from 1e-15 to",
        ),
        (
            set_in_round(2, sd_off_diagonal=1e99),
            r"rounds\[2\].sd_off_diagonal': is 1e\+99 and must be a number from .* to 1e\+15",
        ),
        (
            in_round(1, "through", lambda m: [row.__setitem__(k, v * 1e30) for row in m for k, v in enumerate(row)]),
            r"field 'noise.rounds\[1\].through': has a very different size from that of the last round",
        ),
        (set_in_round(1, kept=1.01), r"field 'noise.rounds\[1\].kept': is 1.01 and must be"),
        (set_in_round(1, kept="all"), "expected `float`, got `str`"),
        (set_in_round(1, sd_off_diagonal=0.0), r"field 'noise.rounds\[1\].sd_off_diagonal': is 0 and must be a number from"),
        (set_in_round(1, sd_off_diagonal=1e200), r"field 'noise.rounds\[1\].sd_off_diagonal': is 1e\+200 and must be"),
        (set_in_round(0, more=1), "unknown field `more`"),
        (in_round(0, "gram", lambda m: m.pop()), r"field 'noise.rounds\[0\].gram': has 5 rows of 6 numbers"),
        (in_round(0, "gram", lambda m: m[1].append(1.0)), r"field 'noise.rounds\[0\].gram': has 6 rows of 6/7 numbers"),
        (
            in_round(1, "gram", lambda m: m[0].__setitem__(1, 7.0)),
            r"rounds\[1\].gram': is not symmetric at '\(intercept\)', 'x'",
        ),
        (in_round(1, "gram", lambda m: m[0].__setitem__(0, 1e30)), r"rounds\[1\].gram': contains a number that is too large"),
        (in_round(1, "through", lambda m: m[0].pop()), r"field 'noise.rounds\[1\].through': has 6 rows of 5/6 numbers"),
        (in_round(1, "through", singular), r"field 'noise.rounds\[1\].through': cannot be inverted"),
        (in_round(1, "through", lambda m: m[0].__setitem__(0, 1e150)), r"rounds\[1\].through': cannot be inverted"),
        (in_round(2, "through", lambda m: m[0].__setitem__(0, m[0][0] * 1.01)), "does not agree with the last round"),
    ],
)
def test_a_changed_round_is_refused_by_field(saved_rounds, edit, message):
    change(saved_rounds, edit)
    with pytest.raises(ReleaseFileError, match=message):
        dpgram.load(saved_rounds)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(data=st.data())
def test_any_change_of_a_round_is_refused_or_read_whole(saved_rounds, data):
    """A number anywhere in the rounds becomes another, or something else: one of our errors, or a release that estimates."""
    content = json.loads(saved_rounds.read_text())
    one = content["noise"]["rounds"][data.draw(st.integers(0, 2))]
    value = data.draw(st.one_of(st.floats(), st.none(), st.integers(-3, 3), st.just("1"), st.just([])))
    field = data.draw(st.sampled_from(sorted(one)))
    if isinstance(one[field], list):
        i, j = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 5))
        one[field][i][j] = one[field][j][i] = value
    else:
        one[field] = value
    changed = saved_rounds.with_name("changed.json")
    changed.write_text(json.dumps(content))
    try:
        release = dpgram.load(changed)
    except ReleaseFileError:
        return
    assert np.isfinite(list(dpgram.regress(release, "y").estimates)).all()


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
        (lambda c: c.update(format=4), "field 'format': is 4, but this version of dpgram reads formats 1 to 3. Update dpgram"),
        (lambda c: c.pop("format"), "missing required field `format`"),
        (pop_column, "field 'columns': has 5 names, which are not the 6 encoded columns"),
        (lambda c: c["schema"]["columns"].pop(), "field 'columns': has 6 names, which are not the 5"),
        (bend, r"field 'gram': is not symmetric at '\(intercept\)', 'x'"),
        (drop_row, "field 'gram': has 5 rows of 6 numbers, but 6 columns need a matrix of 6 by 6"),
        (inflate, "field 'gram': contains a number that is too large for a sum over rows"),
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
        (lambda c: c["noise"].update(sd_off_diagonal=0), "field 'noise.sd_off_diagonal': is 0 and must be a number from"),
        (lambda c: c["noise"].update(shape="laplace"), "field 'noise.*laplace"),
        (lambda c: c["schema"]["columns"][0].update(lower=9), "field 'schema': column 'x': lower is 9 and upper is 5"),
        (lambda c: c.update(extra=1), "unknown field `extra`"),
        (lambda c: c.update(private="yes"), "field 'private': expected `bool`, got `str`"),
        (lambda c: c.update(arithmetic="rough"), "field 'arithmetic': invalid enum value 'rough'"),
        (lambda c: c.update(grid=0.3), "field 'grid': is 0.3 and must be a power of two"),
        (lambda c: c.update(grid=-0.5), "field 'grid': is -0.5 and must be a power of two"),
        (lambda c: c.update(grid=0.5), "field 'gram': contains a number that is not a multiple of the grid, 0.5"),
    ],
)
def test_a_changed_file_is_refused_by_field(saved, edit, message):
    change(saved, edit)
    with pytest.raises(ReleaseFileError, match=message):
        dpgram.load(saved)


@pytest.mark.parametrize("keep", [0, 1, 50, -3])
def test_a_file_cut_short_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(ReleaseFileError, match="not valid JSON, or it was cut short"):
        dpgram.load(saved)


def test_a_file_nested_too_deeply_is_refused(saved):
    saved.write_text(saved.read_text().replace('"noise":', '"noise": ' + '{"shape":' * 50_000, 1))
    with pytest.raises(ReleaseFileError, match="nested more than 32 deep"):
        dpgram.load(saved)


def test_numbers_that_are_not_finite_are_refused(saved):
    saved.write_text(saved.read_text().replace('"gram": [\n  [', '"gram": [\n  [1e999, ', 1))
    with pytest.raises(ReleaseFileError):
        dpgram.load(saved)


def test_a_protected_number_of_rows_cannot_be_in_a_file(tmp_path, table):
    release = dpgram.release(table, small_schema(neighbours="add-remove"), epsilon=1, delta=1e-6, mechanism="gaussian-noise")
    assert release.rows is None
    release.save(tmp_path / "r.json")
    change(tmp_path / "r.json", lambda c: c.update(rows=4000))
    with pytest.raises(ReleaseFileError, match="field 'rows': must be null"):
        dpgram.load(tmp_path / "r.json")


def test_the_number_of_units_is_in_the_file_where_units_have_ids(tmp_path, small_release):
    """Of a table whose units have ids the number of units is public, and never that of rows."""
    schema = dataclasses.replace(small_release.schema, unit_id="person", rows_per_unit=3)
    release = labelled(dataclasses.replace(small_release, schema=schema, rows=None, units=900))
    release.save(tmp_path / "r.json")
    assert dpgram.load(tmp_path / "r.json") == release
    for edit, message in (
        (
            lambda c: c.update(rows=1000),
            "field 'rows': must be null, because the schema has a unit_id, so only the number of units",
        ),
        (
            lambda c: c.pop("units"),
            "field 'units': must be a positive number, because neighbours = \"replace\" makes the number of units",
        ),
        (lambda c: c.update(units=0), "field 'units': must be a positive number"),
        (lambda c: c["schema"].pop("unit_id"), "field 'schema': unit_id is blank"),
        (
            lambda c: (c.update(neighbours="add-remove"), c["schema"].update(neighbours="add-remove")),
            "field 'units': must be null",
        ),
    ):
        release.save(tmp_path / "changed.json", overwrite=True)
        change(tmp_path / "changed.json", edit)
        with pytest.raises(ReleaseFileError, match=message):
            dpgram.load(tmp_path / "changed.json")


def test_units_without_ids_cannot_be_in_a_file(saved):
    change(saved, lambda c: c.update(units=7))
    with pytest.raises(ReleaseFileError, match="field 'units': must be null, because the schema has no unit_id"):
        dpgram.load(saved)


def test_sums_in_rounds_may_be_as_large_as_all_rows_of_all_units(tmp_path):
    rows = np.column_stack([np.ones(900), np.random.default_rng(0).uniform(-1, 1, (900, 3))])
    gram, noise = in_rounds(rows)
    plain = matrix_release(gram, noise, rows=900)
    schema = dataclasses.replace(plain.schema, unit_id="person", rows_per_unit=3)
    release = labelled(dataclasses.replace(plain, schema=schema, rows=None))
    dataclasses.replace(release, units=300).save(tmp_path / "enough.json")
    assert dpgram.load(tmp_path / "enough.json").units == 300
    dataclasses.replace(release, units=3).save(tmp_path / "few.json")
    with pytest.raises(ReleaseFileError, match="too large for a sum over rows"):
        dpgram.load(tmp_path / "few.json")


def test_what_cannot_be_read_or_written_is_named(small_release, tmp_path):
    with pytest.raises(ReleaseFileError, match="cannot be read .No such file"):
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
        small_release.save(path, overwrite=True)
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
