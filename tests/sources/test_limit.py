"""A query with a limit is warned of, and one that only looks so is not."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.errors import LimitedQueryWarning
from dpgram.sources.query import warn_of_limit
from tests.conftest import NUMBERS_TOML, small_schema

LIMITED = [
    "select * from t order by x limit 10",
    "SELECT * FROM t ORDER BY x LIMIT 10",
    "select * from t order by x\n  desc -- the largest\n  limit/* so many */10 offset 3",
    "select * from t limit 10",
    "select * from (select * from t order by x limit(5)) where y > 1",
    "select 'it''s -- no comment' as c from t order by 1 limit 5",
    "select t.limit from t order by 1 limit 5",
    "select * from t order by x fetch first 5 rows only",
    "select * from t order by x offset 2 fetch next row only",
    "select * from t using sample 10%",
    "select * from t USING\n SAMPLE reservoir(50 rows)",
    "select * from t tablesample bernoulli(10)",
    "select * from t where x in (select x from t order by x limit 3) union all select * from t limit all",
]
FREE = [
    "select * from t order by x",
    "select * from t where c = 'order by x limit 10'",
    "select * from t where c = E'it\\'s limit 10'",
    'select "limit" from t order by "limit"',
    'select "order by x limit 10" from t',
    "select * from t -- order by x limit 10",
    "select * from t /* order by x /* limit 5 */ limit 10 */ where x > 0",
    "select $$ limit 10 $$ as c from t order by c",
    "select t.limit, speed_limit, limits, off_limit from t order by x",
    "select speed as limit from t order by x",
    "select * from t where speed < $limit order by speed",
    "select * from t order by x limit all",
    "select * from t order by x limit null",
    "select fetch_first from t order by first",
    "select sample, using_sample, t.tablesample from t join u using (sample)",
]


@pytest.mark.parametrize("query", LIMITED)
def test_a_limit_is_warned_of(query):
    with pytest.warns(LimitedQueryWarning, match="if one row is taken away, another one takes its place"):
        warn_of_limit(query, stacklevel=2)


def test_where_units_have_ids_the_warning_is_about_units():
    words = (
        "a unit with k rows is taken away, k rows of up to k other units take their place.*differ in k \\+ 1 units.*one unit of"
    )
    with pytest.warns(LimitedQueryWarning, match=words):
        warn_of_limit(LIMITED[0], by_units=True, stacklevel=2)
    table = "select i as x, i as y, 'a' as c, true as b, i // 2 as id from range(100) t(i) limit 9"
    schema = replace(small_schema(), unit_id="id", rows_per_unit=2)
    with pytest.warns(LimitedQueryWarning, match=words):
        dpgram.release("duckdb:", schema, query=table, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")


@pytest.mark.parametrize("query", FREE)
def test_what_leaves_out_no_row_is_not_warned_of(query):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_limit(query, stacklevel=2)


def test_the_warning_comes_before_anything_is_spent_and_names_the_caller(tmp_path):
    pytest.importorskip("duckdb")
    ledger = dpgram.SessionLedger(1.0, 1e-3)
    query = "select i / 10.0 as x, i as y, 'a' as c, true as b from range(100) t(i)"
    asked = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian-noise", "ledger": ledger}
    with warnings.catch_warnings():
        warnings.simplefilter("error", LimitedQueryWarning)
        with pytest.raises(LimitedQueryWarning):
            dpgram.release("duckdb:", small_schema(), query=f"{query} order by x limit 9", **asked)
        assert not ledger.entries
        dpgram.release("duckdb:", small_schema(), query=f"{query} order by x", **asked)
    with pytest.warns(LimitedQueryWarning) as caught:
        dpgram.release("duckdb:", small_schema(), query=f"{query} order by x limit 9", **{**asked, "ledger": None})
    assert caught[0].filename == __file__


def test_the_command_says_it_too(tmp_path, monkeypatch, capsys):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(NUMBERS_TOML)
    words = ["release", "duckdb:", "--schema", "s.toml", "--epsilon", "1", "--delta", "1e-6", "--out", "r.json", "--query"]
    assert run([*words, "select i as x, i as y from range(100) t(i) order by x limit 9"]) == 0
    assert "warning: the query has a limit or a sample" in capsys.readouterr().err
