"""Files of many columns: matrices are packed, rounds are pooled, and a release reads back as it was written."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dpgram
from dpgram.artifact import matrices, release
from dpgram.artifact.matrices import InFile, packed, unpacked
from dpgram.errors import ReleaseFileError
from dpgram.evidence.evidence import Evidence
from dpgram.mechanisms import whitening
from dpgram.sampling.base import grid_step
from dpgram.terms.noise import MANY_COLUMNS, Pooled, Round, WhitenedGaussian
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import first_scales
from tests.releases import in_rounds, labelled, matrix_release

WIDE = 300
LARGEST = 8e6  # bytes of a file of so many columns


def read(content: object) -> InFile:
    """What a file with this in it is read as."""
    return msgspec.json.decode(msgspec.json.encode(content), type=InFile)


ANY_FLOAT = st.floats(allow_nan=False, allow_infinity=False)
ON_A_GRID = st.builds(math.ldexp, st.integers(-(2**40), 2**40).map(float), st.integers(-60, -20))


@settings(deadline=None)
@given(
    matrix=st.integers(1, 6).flatmap(
        lambda dim: arrays(float, (dim, dim), elements=st.one_of(ANY_FLOAT, ON_A_GRID, st.just(0.0)))
    ),
    symmetric=st.booleans(),
)
def test_every_matrix_reads_back_to_the_bit(matrix, symmetric):
    matrix = np.triu(matrix) + np.triu(matrix, 1).T if symmetric else matrix
    assert np.array_equal(unpacked(read(packed(matrix)), len(matrix)), matrix)
    assert np.array_equal(unpacked(read(matrix.tolist()), len(matrix)), matrix)


def test_numbers_on_a_grid_are_whole_and_symmetric_ones_are_there_once():
    rng = np.random.default_rng(0)
    step = grid_step(1.7)
    draw = step * np.rint(rng.normal(size=(5, 5)) * 1.7 / step)
    told = packed(draw + draw.T)
    assert [len(row) for row in told["rows"]] == [1, 2, 3, 4, 5]
    assert all(isinstance(number, int) for row in told["rows"] for number in row)
    through = PublicMap.near(rng.normal(size=(5, 5))).matrix
    told = packed(through)
    assert [len(row) for row in told["rows"]] == [5] * 5
    assert max(abs(number) for row in told["rows"] for number in row) <= 2**33


def wide_release(dim=WIDE, *, seed=0):
    """A release of ``dim`` columns in rounds, with as many matrices as there can be, on the grids that they are published on."""
    rng = np.random.default_rng(seed)
    sd = 11.7
    step, scales = grid_step(sd), first_scales(8)

    def noisy(size):
        draw = np.triu(rng.normal(size=(dim, dim)) * sd)
        return step * np.rint((draw + draw.T + size * np.eye(dim)) / step)

    through = PublicMap.near(np.linalg.qr(rng.normal(size=(dim, dim)))[0] / 3).matrix
    last = Round(through, noisy(5e4), sd, 0.8, tuple(noisy(100.0) for _ in scales[1:]), scales)
    half = rng.normal(size=(dim, dim)) / dim + np.eye(dim)
    pooled = Pooled((half + half.T) / 2, noisy(5e4) / 0.83, sd / 0.83)
    return labelled(matrix_release(whitening.unwhitened(last), WhitenedGaussian((last,), pooled), rows=100_000))


def test_a_file_of_300_columns_is_small_and_reads_back_equal(tmp_path):
    path, made = tmp_path / "wide.json", wide_release()
    made.save(path)
    assert path.stat().st_size < LARGEST
    assert dpgram.load(path) == made
    assert made.format == json.loads(path.read_text())["format"] == 2
    last = json.loads(path.read_text())["noise"]["rounds"][-1]
    assert all(isinstance(number, int) for row in last["gram"]["rows"] for number in row)


def test_a_file_of_few_columns_is_of_format_1_with_a_number_a_line(small_release, tmp_path):
    path = tmp_path / "few.json"
    small_release.save(path)
    content = json.loads(path.read_text())
    assert content["format"] == 1
    assert content["gram"] == small_release.gram.tolist()
    assert path.read_text().startswith('{\n "format": 1,\n')


def test_a_wide_file_of_format_1_means_the_same(tmp_path):
    """As versions wrote it that packed nothing, and kept all rounds."""
    rng = np.random.default_rng(1)
    rows = np.column_stack([np.ones(500), rng.uniform(-1, 1, (500, MANY_COLUMNS))])
    gram, noise = in_rounds(rows)
    made = labelled(matrix_release(gram, noise, rows=500))
    made.save(tmp_path / "new.json")
    content = json.loads((tmp_path / "new.json").read_text())
    for place, each in enumerate(noise.rounds):
        content["noise"]["rounds"][place] |= {"gram": each.gram.tolist(), "through": each.through.tolist()}
    content |= {"format": 1, "gram": gram.tolist()}
    (tmp_path / "old.json").write_text(json.dumps(content))
    assert dpgram.load(tmp_path / "old.json") == dpgram.load(tmp_path / "new.json") == made


@pytest.fixture
def many(monkeypatch):
    """Two columns count as many."""
    for module in (matrices, release, whitening):
        monkeypatch.setattr(module, "MANY_COLUMNS", 1)


def some_release(**changes):
    table = {name: np.random.default_rng(k).standard_t(3, 3000).clip(-50, 50) for k, name in enumerate("xy")}
    table["y"] = table["y"] + table["x"] / 2
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -50, 50, missing="midpoint") for name in "xy"], **changes)
    hint = {"table_rows": 3000} if changes.keys() == {"neighbours", "intercept"} else {}
    return dpgram.release(
        table, schema, epsilon=1.0, delta=1e-6, mechanism="whitened-noise", arithmetic="exact", insecure_seed=3, **hint
    )


@pytest.fixture
def saved(many, tmp_path):
    path = tmp_path / "many.json"
    some_release().save(path)
    return path


@pytest.mark.parametrize(
    "changes", [{}, {"neighbours": "add-remove"}, {"intercept": False}, {"neighbours": "add-remove", "intercept": False}]
)
def test_what_is_kept_of_rounds_answers_as_all_of_them_do(changes, request):
    changes = {key: dpgram.Neighbours(value) if key == "neighbours" else value for key, value in changes.items()}
    whole = some_release(**changes)
    request.getfixturevalue("many")
    kept = some_release(**changes)
    assert len(whole.noise.rounds) > 1
    assert kept.noise.rounds == whole.noise.rounds[-1:]
    assert kept.noise.pooled is not None
    assert kept.parameters == whole.parameters
    one, other = Evidence.of(kept), Evidence.of(whole)
    for mine, theirs in ((one.together, other.together), (one.alone, other.alone)):
        scale = np.abs(theirs.matrix).max()
        assert np.allclose(mine.matrix, theirs.matrix, rtol=0, atol=1e-10 * scale)
        assert np.allclose(mine.turn, theirs.turn, rtol=1e-9)
        assert math.isclose(mine.law.sd_off_diagonal, theirs.law.sd_off_diagonal, rel_tol=1e-12)
    assert np.allclose(one.repaired, other.repaired, rtol=1e-9)
    for estimator in ("shrunk", "debiased", "log-det"):
        fits = [dpgram.regress(each, "y", estimator=estimator) for each in (kept, whole)]
        assert fits[0].estimates.to_dict() == pytest.approx(fits[1].estimates.to_dict(), rel=1e-9)


def test_rounds_that_tell_of_other_weights_are_not_pooled():
    whole = some_release()
    *before, last = whole.noise.rounds
    rounds = (*before[:-1], replace(before[-1], kept=before[-1].kept / 5), last)
    seen = Evidence.of(replace(whole, noise=WhitenedGaussian(rounds))).together.matrix
    kept = whitening.pooled_rounds(rounds, whole.rows).gram
    assert np.allclose(kept, seen, rtol=0, atol=1e-10 * np.abs(seen).max())


def test_a_release_of_many_columns_keeps_what_is_pooled_and_reads_back_equal(tmp_path):
    rng = np.random.default_rng(2)
    names = [f"x{k}" for k in range(MANY_COLUMNS)]
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -1, 1) for name in names])
    table = {name: rng.uniform(-1, 1, 4000) for name in names}
    made = dpgram.release(table, schema, epsilon=50, delta=1e-6, mechanism="whitened-noise", insecure_seed=1)
    assert made.parameters["rounds"] > 1
    assert len(made.noise.rounds) == 1
    step = grid_step(made.noise.last.sd_off_diagonal)
    for matrix in (made.noise.last.gram, *made.noise.last.outer):
        assert np.array_equal(matrix, step * np.rint(matrix / step))
    made.save(tmp_path / "r.json")
    assert dpgram.load(tmp_path / "r.json") == made
    other = replace(made.noise.pooled, gram=made.noise.pooled.gram + 1)
    assert replace(made, noise=replace(made.noise, pooled=other)) != made


def in_gram(edit):
    return lambda content: edit(content["gram"])


def in_last(edit):
    return lambda content: edit(content["noise"]["rounds"][-1])


def in_pooled(edit):
    return lambda content: edit(content["noise"]["pooled"])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c.update(format=4), "field 'format': is 4, but this version of dpgram reads formats 1 to 3. Update dpgram"),
        (in_gram(lambda m: m["rows"].pop()), "field 'gram': has 2 rows of 1/2 numbers, but 3 columns need a matrix of 3 by 3"),
        (in_gram(lambda m: m["rows"][2].pop()), "field 'gram': has 3 rows of 1/2 numbers"),
        (in_gram(lambda m: m["rows"][0].append(1)), "field 'gram': has 3 rows of 2/3 numbers"),
        (in_gram(lambda m: m["rows"].reverse()), "field 'gram': has 3 rows of 1/2/3 numbers"),
        (in_gram(lambda m: m["exponents"].pop()), "field 'gram': has 2 exponents, but needs 3 between -1100 and 1100"),
        (in_gram(lambda m: m["exponents"].__setitem__(0, 10**30)), "field 'gram.*"),
        (
            in_gram(lambda m: m["exponents"].__setitem__(0, 1101)),
            "field 'gram': has 3 exponents, but needs 3 between -1100 and 1100",
        ),
        (in_gram(lambda m: m["exponents"].__setitem__(0, 1050)), "field 'gram': contains a number that is not finite"),
        (in_gram(lambda m: m["exponents"].__setitem__(0, 0.5)), "expected `int`, got `float`"),
        (in_gram(lambda m: m["rows"][0].__setitem__(0, "AAAA")), "expected `float`, got `str`"),
        (in_gram(lambda m: m["rows"][0].__setitem__(0, None)), "expected `float`, got `null`"),
        (in_gram(lambda m: m.update(more=1)), "unknown field `more`"),
        (in_gram(lambda m: m.pop("rows")), "missing required field `rows`"),
        (lambda c: c.update(gram="AAAA"), "field 'gram': expected"),
        (in_gram(lambda m: m["rows"][2].__setitem__(2, m["rows"][2][2] * 1.01)), "does not agree with the last round"),
        (
            in_last(lambda r: r["gram"]["rows"][1].__setitem__(1, 1e60)),
            r"rounds\[0\].gram': contains a number that is too large",
        ),
        (in_last(lambda r: r["outer"][0]["rows"].pop()), r"rounds\[0\].outer\[0\]': has 2 rows of 1/2 numbers"),
        (in_last(lambda r: r["through"]["rows"][0].pop()), r"rounds\[0\].through': has 3 rows of 2/3 numbers"),
        (in_last(lambda r: r["through"]["exponents"].__setitem__(1, -900)), r"rounds\[0\].through': cannot be inverted"),
        (
            in_pooled(lambda p: p.update(sd_off_diagonal=0.0)),
            "field 'noise.pooled.sd_off_diagonal': is 0 and must be a number from",
        ),
        (in_pooled(lambda p: p["half"]["exponents"].__setitem__(2, -900)), "field 'noise.pooled.half': cannot be inverted"),
        (in_pooled(lambda p: p["half"].update(rows=[[1, 2, 3]] * 3)), "field 'noise.pooled.half': is not symmetric"),
        (
            in_pooled(lambda p: p["gram"]["rows"][0].__setitem__(0, 1e200)),
            "field 'noise.pooled.gram': contains a number that is too large",
        ),
        (in_pooled(lambda p: p.pop("gram")), "field 'noise.pooled': object missing required field `gram`"),
        (in_pooled(lambda p: p.update(more=1)), "unknown field `more`"),
        (lambda c: c["noise"].update(pooled=[]), "field 'noise.pooled': expected"),
    ],
)
def test_what_was_changed_is_refused_by_field(saved, edit, message):
    content = json.loads(saved.read_text())
    edit(content)
    saved.write_text(json.dumps(content))
    with pytest.raises(ReleaseFileError, match=message):
        dpgram.load(saved)
