"""Spark counts rows by unit, weight and missing cells to the bits of the local engine, wherever the rows of a unit lie."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.engines import partial, spark_units
from dpgram.engines.open import open_pass
from dpgram.engines.spark import SparkPass
from dpgram.errors import ColumnTypeError, TableError
from dpgram.mechanisms.ranges import next_bins
from dpgram.rows.coins import Coins
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, first_scales
from tests.panels import PANEL, SCHEMAS, mechanism

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
TABLE = pa.Table.from_pandas(PANEL.astype({"when": "datetime64[us]"}), preserve_index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The panel in five files, one of them empty."""
    place = tmp_path_factory.mktemp("panel")
    for i, (start, stop) in enumerate([(0, 700), (700, 700), (700, 1500), (1500, 2900), (2900, len(TABLE))]):
        pq.write_table(TABLE.slice(start, stop - start), place / f"{i}.parquet")
    return place


def same(one, other) -> bool:
    return np.array_equal(one.in_whole_numbers()[0], other.in_whole_numbers()[0]) and one.rows == other.rows


@pytest.mark.parametrize("ids", SCHEMAS)
def test_every_sum_has_the_bits_of_the_local_engine(spark, folder, ids):
    schema = SCHEMAS[ids]
    dim = len(schema.encoded)
    through = PublicMap.near(np.random.default_rng(dim).normal(size=(dim, dim)) / 4)
    bins = next_bins([], schema.looked_at)
    local, there = open_pass(TABLE, schema), open_pass(spark.read.parquet(str(folder)).repartition(4), schema)
    with local.one_state(), there.one_state():
        assert there.count_units() == local.count_units() == PANEL[ids].nunique()
        for given in ((1.6, None, ONE_CLIP), (1.0, through, ONE_CLIP), (1.0, through, first_scales(4))):
            assert same(there.gram(*given), local.gram(*given))
        counts, expected = there.counts(bins), local.counts(bins)
        assert same(counts, expected)
        assert expected.low.any()  # some rows count partly
        kept, rows = there.kept(None)
        assert rows == len(TABLE)
        assert same(kept.gram(1.6), local.gram(1.6))
        assert same(kept.counts(bins), expected)
        some, rows = there.kept(Coins(bytes(32), 0.25))
        assert rows == len(TABLE)
        assert abs(some.gram(1.6).rows - 750) < 6 * len(TABLE) ** 0.5 / 2


def test_more_rows_than_memory_may_hold_stay_with_spark(spark, folder):
    local, there = (open_pass(table, SCHEMAS["person"], memory=0.05) for table in (TABLE, spark.read.parquet(str(folder))))
    with local.one_state(), there.one_state():
        assert there.count_units() == local.count_units()
        again, rows = there.kept(None)
        assert again is there
        assert rows == len(TABLE)
        assert not isinstance(there.kept(Coins(bytes(32), 0.25))[0], SparkPass)


@pytest.mark.parametrize("method", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_releases_have_the_bits_of_the_local_engine(classic, folder, method, neighbours):
    schema = replace(SCHEMAS["person"], neighbours=neighbours)
    one, other = (
        dpgram.release(table, schema, delta=1e-6, insecure_seed=3, **mechanism(method))
        for table in (classic.read.parquet(str(folder)), TABLE)
    )
    assert np.array_equal(one.gram, other.gram)
    assert (one.units, one.rows) == (other.units, other.rows)
    assert one.units == (PANEL["person"].nunique() if neighbours == "replace" else None)


@pytest.mark.parametrize("few", [True, False], ids=["ids are sent to the rows", "rows are sent to the ids"])
def test_however_spark_joins(classic, few):
    """One unit with half of the rows, all others with two; and rows that lie in any order."""
    rng, rows = np.random.default_rng(2), 20_000
    ids = np.where(rng.random(rows) < 0.5, -1, rng.integers(0, rows // 4, rows))
    table = pa.table({"id": ids, "x": rng.normal(size=rows)})
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -2, 2)], unit_id="id", rows_per_unit=1)
    limit = classic.conf.get("spark.sql.autoBroadcastJoinThreshold")
    classic.conf.set("spark.sql.autoBroadcastJoinThreshold", limit if few else "-1")
    try:
        frame = classic.createDataFrame(table.to_pandas()).repartition(5)
        local, there = open_pass(table, schema), open_pass(frame, schema)
        with local.one_state(), there.one_state():
            assert there.count_units() == local.count_units()
            plan = there._rows()._jdf.queryExecution().toString()
            assert ("BroadcastHashJoin" in plan) == few
            assert same(there.gram(1.4), local.gram(1.4))
    finally:
        classic.conf.set("spark.sql.autoBroadcastJoinThreshold", limit)


def test_ids_that_spark_could_take_for_one(spark):
    """Case, white space at the end, Unicode forms and leading zeros make other ids; a collation that says otherwise is not asked.

    A whole number with a point and zeros behind it is that number, in text and in bytes."""
    names = ["a", "A", "a ", " a", "\u00e9", "e\u0301", "7", "07", "7.0\n", "7.", "x.0", "", None, "null", "NaN", "-70"]
    names += ["7.0", "-70.00", "07.0"]  # ids that were there before
    rows = [(name, float(i)) for i, name in enumerate(names) for _ in range(i + 1)]
    plain = spark.createDataFrame(rows, "id string, x double")
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 19)], unit_id="id", rows_per_unit=2)
    local = open_pass(pa.table({"id": [name for name, _ in rows], "x": [x for _, x in rows]}), schema)
    with local.one_state():
        assert local.count_units() == len(names) - 5
        expected = local.gram(1.4)
    for ids in ("id", "id collate UTF8_LCASE", "cast(id as binary)"):
        there = open_pass(plain.selectExpr(f"{ids} as id", "x"), schema)
        with there.one_state():
            assert there.count_units() == len(names) - 5
            assert same(there.gram(1.4), expected)


@pytest.mark.parametrize("kind", ["tinyint", "int", "bigint", "float", "double", "decimal(20, 0)", "string", "binary"])
def test_ids_of_every_type(classic, kind):
    """A whole number is the same id in any of them."""
    ids = [1, 1, 1, 2, 3, 3, None, -0, 100]
    table = pa.table({"id": pa.array(ids, pa.int64()), "x": np.arange(9.0)})
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 9)], unit_id="id", rows_per_unit=1)
    as_kind = "cast(cast(id as string) as binary)" if kind == "binary" else f"cast(id as {kind})"
    frame = classic.createDataFrame([*zip(ids, map(float, range(9)), strict=True)], "id bigint, x double")
    local, there = open_pass(table, schema), open_pass(frame.selectExpr(f"{as_kind} as id", "x"), schema)
    with local.one_state(), there.one_state():
        assert there.count_units() == local.count_units() == 5
        assert same(there.gram(1.4), local.gram(1.4))


@pytest.mark.parametrize("kind", ["date", "timestamp", "boolean", "decimal(20, 2)", "array<int>"])
def test_types_that_are_no_ids(classic, kind):
    frame = classic.range(3).selectExpr(f"cast(null as {kind}) as id", "cast(id as double) as x")
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 9)], unit_id="id", rows_per_unit=1)
    with pytest.raises(ColumnTypeError, match="column 'id' is the unit_id, but the table holds"):
        open_pass(frame, schema)


def test_an_id_that_is_a_column_too_and_names_that_need_quotes(classic):
    rng = np.random.default_rng(1)
    table = pa.table({"my.x `": rng.normal(size=500), "the id": rng.integers(0, 200, 500), "rows": rng.random(500)})
    columns = [dpgram.Numeric("my.x `", -2, 2), dpgram.Numeric("the id", 0, 200), dpgram.Numeric("rows", 0, 1)]
    schema = dpgram.Schema(
        unit="p", columns=columns, unit_id="the id", rows_per_unit=2, weight="rows", largest_weight=0.5, intercept=False
    )
    local, there = open_pass(table, schema), open_pass(classic.createDataFrame(table.to_pandas()), schema)
    with local.one_state(), there.one_state():
        assert there.count_units() == local.count_units()
        assert same(there.gram(1.4), local.gram(1.4))


def test_an_empty_table(classic):
    frame = classic.createDataFrame([], "id string, x double")
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 9)], unit_id="id", rows_per_unit=1)
    there = open_pass(frame, schema)
    with there.one_state():
        assert there.count_units() == 0
        assert there.gram(1.0).rows == 0


@pytest.mark.parametrize("act", ["more rows", "other ids"])
def test_a_table_that_changed_since_its_units_were_counted(classic, tmp_path, act):
    """Also where it has as many rows as before: units that were small could be large by now."""
    changed = tmp_path / "changed"
    pq.write_table(TABLE, tmp_path / "t.parquet")
    frame = classic.read.parquet(str(tmp_path / "t.parquet"))

    def rows(batches):
        for batch in batches:
            if changed.exists() and act == "more rows":
                yield batch
            ids = pa.array(["somebody"] * batch.num_rows) if changed.exists() else batch.column("person")
            yield batch.set_column(batch.schema.names.index("person"), "person", ids)

    there = open_pass(frame.mapInArrow(rows, frame.schema), SCHEMAS["person"])
    there._while_kept = ExitStack()
    there.count_units()  # outside of ``one_state``, where every job computes the frame again
    assert there.gram(1.0).rows == len(TABLE)
    changed.touch()
    for ask in (lambda: there.gram(1.0), lambda: there.kept(None), lambda: there.counts(next_bins([], {"x": (-2.0, 2.0)}))):
        with pytest.raises(TableError, match="was changed since the rows of units were counted"):
            ask()
    there._while_kept.close()


def test_nothing_stays_persisted(classic, folder):
    before = classic.sparkContext._jsc.getPersistentRDDs().size()
    there = open_pass(classic.read.parquet(str(folder)), SCHEMAS["number"])
    with there.one_state():
        there.count_units()
        there.gram(1.0)
        assert classic.sparkContext._jsc.getPersistentRDDs().size() == before + 1
    assert classic.sparkContext._jsc.getPersistentRDDs().size() == before
    assert there._long_units is None


def test_a_planted_mistake_is_seen(classic, monkeypatch):
    """A unit's rows counted within each partition only; here a unit's rows lie in five of them."""
    local, frame = open_pass(TABLE, SCHEMAS["number"]), classic.createDataFrame(TABLE.to_pandas()).repartition(5)
    frame = frame.withColumn("n", frame["n"].cast("long")).withColumn("b", frame["b"].cast("boolean"))
    right = spark_units.long_units

    def within_partitions(rows, ids, most):
        from pyspark.sql import functions

        some = rows.where(functions.spark_partition_id() == 0)
        return right(some, ids, most)

    monkeypatch.setattr("dpgram.engines.spark.long_units", within_partitions)
    there = open_pass(frame, SCHEMAS["number"])
    assert isinstance(there, SparkPass)
    with local.one_state(), there.one_state():
        assert local.count_units() != there.count_units()
        there._counted = None
        assert not same(there.gram(1.6), local.gram(1.6))


def test_what_a_worker_finds_of_ids():
    """Ids with more rows than count in full, missing ones, and a line of numbers; of no group at all the numbers are zero."""
    groups = pa.record_batch({"unit": pa.array([b"a", b"", b"b", None]), "count": [3, 9, 2, 4], "mark": [2**62, 5, 2**62, 0]})
    found = pa.Table.from_batches([*partial.long_part(iter([groups]), pa.binary(), 2)]).to_pylist()
    lines = [tuple(line.values()) for line in found]
    none = (None, None, None)
    numbers = (2, 18, 5 * 2**62 + 45 - 2**64)
    assert lines == [(b"a", 3, *none), (b"", 0, *none), (None, 0, *none), (None, None, *numbers)]
    (nothing,) = partial.long_part(iter([]), pa.int64(), 2)
    assert nothing.schema.field("unit").type == pa.int64()
    assert [*nothing.to_pylist()[0].values()] == [None, None, 0, 0, 0]
