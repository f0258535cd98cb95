"""From a table to a release, end to end, and what is public on the way."""

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpgram
from dpgram import custody
from dpgram.engines.local import LocalPass
from dpgram.errors import BudgetError, EmptyTableError, LargeDeltaWarning, SchemaError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, hold
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.base import grid_step
from dpgram.sampling.exact import ExactSource
from dpgram.sources.open import open_source
from tests.conftest import small_schema, small_table

EMPTY = small_table(rows=0)


def test_a_release_says_what_it_cost_and_how(table, schema):
    release = dpgram.release(table, schema, epsilon=1.0, delta=1e-7, mechanism="gaussian-noise")
    assert release.private
    assert release.budget == dpgram.Budget(1.0, 1e-7)
    assert release.rows == table.num_rows
    assert release.row_bound == schema.effective_row_bound
    assert release.noise.sd_off_diagonal == pytest.approx(release.row_bound**2 / release.parameters["mu"])
    assert "cryptographic" in release.randomness
    assert release.gram.shape == (6, 6)


def test_two_releases_have_independent_noise(table, schema):
    one, two = (dpgram.release(table, schema, epsilon=1.0, delta=1e-7, mechanism="gaussian-noise").gram for _ in range(2))
    assert (np.triu(one) != np.triu(two))[np.triu_indices(6)].all()


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_a_release_is_exact_by_default_and_lies_on_its_grid(table, schema, mechanism, tmp_path):
    options = {"noisy-inverse": {"rho": 0.01}, "inverse-wishart": {"degrees_of_freedom": 40.0}}.get(mechanism, {})
    release = dpgram.release(table, schema, epsilon=1.0, delta=1e-7, mechanism=mechanism, **options)
    assert release.arithmetic == "exact"
    assert release.private
    assert all(float(value) == release.parameters[name] for name, value in release.exact_parameters.items())
    if mechanism == "noisy-inverse":  # its inverse lies on a grid, and is turned back in floats
        assert release.grid is None
        steps = np.linalg.inv(release.gram) / release.parameters["grid_of_inverse"]
        assert np.abs(steps - np.rint(steps)).max() < 1e-3
    elif mechanism == "whitened-noise":  # each round lies on a grid, and the last one is turned back in floats
        assert release.grid is None
        for each in release.noise.rounds:
            steps = each.gram / grid_step(each.sd_off_diagonal)
            assert np.array_equal(steps, np.rint(steps))
    else:
        assert release.noise.sd_off_diagonal * 2.0**-25 < release.grid <= release.noise.sd_off_diagonal * 2.0**-24
        assert np.array_equal(release.gram, release.grid * np.rint(release.gram / release.grid))
    assert np.array_equal(release.gram, release.gram.T)
    release.save(tmp_path / "release.json")
    assert dpgram.load(tmp_path / "release.json") == release


def test_floats_are_marked(table, schema):
    release = dpgram.release(table, schema, epsilon=1.0, delta=1e-7, mechanism="gaussian-noise", arithmetic="float")
    assert release.arithmetic == "float64"
    assert release.grid is None
    assert release.private


def test_the_exact_noisy_inverse_is_near_the_gram():
    """The claim is true here, and the noise on the inverse a ten-thousandth of its entries."""
    gram = 1000 * np.eye(3) + np.outer([1, 2, 3], [1, 2, 3])
    mechanism = MECHANISMS["noisy-inverse"]
    asked = registry.task(mechanism, dpgram.Budget(200.0, 1e-4), dpgram.Neighbours.REPLACE, 3, 1.0, "exact", {"rho": 900.0})
    outcome = hold(mechanism.start(asked, ExactSource(1)), lambda question: GramAnswer(gram, None))
    assert np.abs(outcome.gram - gram).max() < 1
    assert not np.array_equal(outcome.gram, gram)


@pytest.mark.parametrize("mechanism", sorted(set(MECHANISMS) - {"noisy-inverse"}))
def test_exact_draws_surround_the_true_gram_as_floats_do(table, schema, mechanism):
    """At a huge budget both arithmetics publish nearly the same matrix: the exact path means the same Gram."""
    options = {"inverse-wishart": {"degrees_of_freedom": 1e6}, "gaussian-sketch": {"sketch_rows": 1e6}}.get(mechanism, {})
    close, exact = (
        dpgram.release(table, schema, epsilon=200.0, delta=1e-4, mechanism=mechanism, arithmetic=a, insecure_seed=1, **options)
        for a in ("float", "exact")
    )
    size = np.sqrt(np.outer(np.diag(close.gram), np.diag(close.gram)))
    wide = 60 * (close.noise.sd_off_diagonal + exact.noise.sd_off_diagonal) / size + (2.0 if "adaptive" in mechanism else 0.05)
    assert (np.abs(close.gram - exact.gram) / size < wide).all()


def test_a_seed_must_be_asked_for_by_name_and_is_not_private(table, schema):
    one, two = (
        dpgram.release(table, schema, epsilon=1.0, delta=1e-7, mechanism="gaussian-noise", insecure_seed=3) for _ in range(2)
    )
    assert one == two
    assert not one.private
    assert "NOT PRIVATE" in repr(one)
    with pytest.raises(BudgetError, match="insecure_seed is 'x' and must be a whole number"):
        dpgram.release(table, schema, epsilon=1.0, delta=1e-7, insecure_seed="x")


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-6), (1, 0), (1, 1)])
def test_a_bad_budget_is_refused_before_the_table_is_looked_at(epsilon, delta, schema):
    with pytest.raises(BudgetError):
        dpgram.release("no such file", schema, epsilon=epsilon, delta=delta)


def test_the_schema_must_be_one(table):
    with pytest.raises(SchemaError, match=r"schema is a str and must be a Schema. Use dpgram.Schema.load"):
        dpgram.release(table, "schema.toml", epsilon=1, delta=1e-6)


def test_a_large_delta_is_warned_of_where_the_number_of_rows_is_public(table, schema):
    with pytest.warns(LargeDeltaWarning, match="above 1/\\(number of rows\\)"):
        dpgram.release(table, schema, epsilon=1, delta=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dpgram.release(table, small_schema(neighbours="add-remove"), epsilon=1, delta=1e-3)


def test_a_table_whose_rows_all_lack_an_id_has_no_units():
    """The rows are there, so the words must not say that they are not."""
    schema = dpgram.Schema(unit="person", unit_id="id", rows_per_unit=2, columns=[dpgram.Numeric("x", 0, 1)])
    with pytest.raises(EmptyTableError, match="no units.*column of ids"):
        dpgram.release({"x": [0.5, 0.25], "id": [None, ""]}, schema, epsilon=1, delta=1e-6)


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_pandas(), lambda t: {n: t[n].to_numpy() for n in t.column_names}])
def test_an_empty_table_is_an_error_only_where_the_number_of_rows_is_public(make):
    with pytest.raises(EmptyTableError, match='declare neighbours = "add-remove"'):
        dpgram.release(make(EMPTY), small_schema(), epsilon=1, delta=1e-6)
    given = {"epsilon": 1, "delta": 1e-6, "insecure_seed": 1}
    assert dpgram.release(make(EMPTY), small_schema(neighbours="add-remove"), **given).rows is None
    release = dpgram.release(make(EMPTY), small_schema(neighbours="add-remove"), mechanism="gaussian-noise", **given)
    assert release.rows is None
    assert np.abs(release.gram).max() < 8 * release.noise.sd_diagonal


def test_add_remove_never_tells_the_number_of_rows(tmp_path, capfd):
    """Releases of 4000 and of 4001 rows differ in the matrix alone."""
    schema = small_schema(neighbours="add-remove")
    files = []
    for rows in (4000, 4001):
        release = dpgram.release(small_table(rows), schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
        release.save(tmp_path / f"{rows}.json")
        files.append((tmp_path / f"{rows}.json").read_text().partition('"gram"')[0])
    assert files[0] == files[1]
    assert "400" not in repr(release)
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.parametrize("name", ["gaussian-noise", "whitened-noise", "inverse-wishart"])
@pytest.mark.parametrize(("neighbours", "expected"), [("add-remove", None), ("replace", 4000)])
def test_a_mechanism_is_told_the_number_of_rows_only_where_it_is_public(name, neighbours, expected, monkeypatch):
    told, plain = [], MECHANISMS[name]

    def overheard(task, rng):
        conversation, answer = plain.start(task, rng), None
        try:
            while True:
                answer = yield conversation.send(answer)
                told.extend([] if answer is None else [answer.rows])
        except StopIteration as end:
            return end.value

    monkeypatch.setitem(MECHANISMS, name, replace(plain, start=overheard))
    options = {"degrees_of_freedom": 40.0} if name == "inverse-wishart" else {}
    made = dpgram.release(
        small_table(), small_schema(neighbours=neighbours), epsilon=5, delta=1e-6, mechanism=name, insecure_seed=1, **options
    )
    assert told
    assert set(told) == {expected}
    assert made.rows == expected


def test_the_intercept_entry_counts_shrunk_rows_for_less():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -1, 1)], row_bound=1.0, neighbours="add-remove")
    rows = {"x": np.array([0.0] * 3000 + [1.0] * 3000)}  # of norm 1 and sqrt(2): the latter count for a half
    release = dpgram.release(rows, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    assert release.gram[0, 0] == pytest.approx(4500, abs=6 * release.noise.sd_diagonal)


def test_fewer_rows_than_columns():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(f"x{i}", -1, 1) for i in range(30)])
    with pytest.warns(LargeDeltaWarning):
        release = dpgram.release({f"x{i}": np.array([0.5, -0.5]) for i in range(30)}, schema, epsilon=1, delta=0.6)
    assert np.isfinite(dpgram.regress(release, "x0").coefficients).all()


def test_columns_of_nothing_and_of_extremes():
    schema = small_schema(neighbours="add-remove")
    table = pa.table(
        {
            "x": pa.array([1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf, 0.0, -0.0]),
            "y": pa.nulls(8),
            "c": pa.nulls(8, pa.string()),
            "b": pa.array([True, None] * 4),
        }
    )
    assert np.isfinite(dpgram.release(table, schema, epsilon=0.01, delta=1e-15, mechanism="gaussian-noise").gram).all()


def test_a_draft_of_a_typed_table_names_kinds_and_no_values():
    table = small_table().append_column("when", pa.array([0] * 4000, pa.timestamp("s")))
    table = table.append_column("lasted", pa.array([0] * 4000, pa.duration("s")))
    text = dpgram.draft_schema(table)
    kinds = [line for line in text.splitlines() if line.startswith("kind")]
    assert kinds == [f'kind = "{kind}"' for kind in ("numeric", "numeric", "categorical", "boolean", "date")]
    assert '# "lasted" is left out: its type duration[s] is not supported' in text
    assert "# [[derived]]" in text
    assert "1970" not in text


def test_a_draft_of_dictionaries_does_not_list_their_values():
    text = dpgram.draft_schema(pa.table({"c": pa.array(["SECRET", "a"]).dictionary_encode()}))
    assert "SECRET" not in text
    assert 'kind = "categorical"' in text


def test_the_sum_of_an_exact_release_is_never_rounded(monkeypatch):
    """Over so many rows a sum has more digits than a float: rounded, neighbours would lie further apart than the noise is made for."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)])
    table = {"x": np.random.default_rng(0).uniform(size=60_000)}
    answers = []
    monkeypatch.setattr(custody, "GramAnswer", lambda gram, *more: answers.append(gram) or GramAnswer(gram, *more))
    dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", arithmetic="exact")
    whole, exponent = LocalPass(open_source(table), schema).gram(schema.effective_row_bound).in_whole_numbers()
    assert any(int(float(entry)) != entry for entry in whole.ravel())
    (gram,) = answers
    assert gram.exponent == exponent
    assert np.array_equal(gram.whole, whole)
