"""What is and is not a table, and how each mistake is called."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpgram
from dpgram.errors import ColumnTypeError, DuplicateColumnError, MissingColumnError, TableError, UnreadableTableError
from tests.conftest import small_schema, small_table

SCHEMA = small_schema()
TABLE = small_table(rows=50)


def release(table, **more):
    return dpgram.release(table, SCHEMA, epsilon=1, delta=1e-3, insecure_seed=0, mechanism="gaussian-noise", **more)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (3, "a int is not a table"),
        ([[1, 2]], "a list is not a table"),
        (np.zeros((3, 4)), "a NumPy array needs column names"),
        (np.zeros((3, 4), dtype=[("x", float)]), "has 2 dimensions, but it must have one"),
        ({}, "has no columns"),
        ({"x": np.zeros((2, 2))}, "column 'x' has 2 dimensions"),
        ({"x": np.zeros(2), "y": np.zeros(3)}, "differ in length"),
        ({"x": 3}, "must be a one-dimensional array or a list"),
        (pd.Series([1.0]), "a Series is one column, not a table"),
        (pl.Series([1.0]), "a Series is one column, not a table"),
        ("nowhere.csv", "nowhere.csv is not a file, folder or glob"),
        ("nowhere/*.csv", "no file matches"),
    ],
)
def test_what_is_not_a_table(table, message):
    with pytest.raises(TableError, match=message):
        release(table)


def test_names_for_a_matrix_must_fit():
    with pytest.raises(TableError, match="must be a two-dimensional array with 2 columns"):
        release(np.zeros((3, 4)), columns=["x", "y"])
    with pytest.raises(TableError, match="gives a name twice"):
        release(np.zeros((3, 2)), columns=["x", "x"])
    with pytest.raises(TableError, match="must be a list of names"):
        release(np.zeros((3, 2)), columns=5)
    with pytest.raises(TableError, match="has names already"):
        release(TABLE, columns=["x", "y", "c", "b"])


@pytest.mark.parametrize("convert", [lambda t: t, pl.from_arrow, lambda t: t.to_pandas(), lambda t: pl.from_arrow(t).lazy()])
def test_a_missing_column_is_named_with_those_there_are(convert):
    with pytest.raises(MissingColumnError, match=r"the schema declares column 'y', but .* It has x, c, b"):
        release(convert(TABLE.drop_columns("y")))


def test_a_duplicate_column_is_named():
    doubled = pa.table([TABLE["x"], TABLE["x"], TABLE["y"], TABLE["c"], TABLE["b"]], names=["x", "x", "y", "c", "b"])
    for table in (doubled, pd.concat([TABLE.to_pandas(), TABLE.to_pandas()[["x"]]], axis=1)):
        with pytest.raises(DuplicateColumnError, match="several columns named 'x'"):
            release(table)


def test_an_undeclared_duplicate_is_nobodys_business():
    frame = pd.concat([TABLE.to_pandas(), pd.DataFrame({"q": range(50)}), pd.DataFrame({"q": range(50)})], axis=1)
    release(frame)


def test_a_wrong_type_is_an_error_where_types_are_declared(tmp_path):
    wrong = TABLE.set_column(0, "x", TABLE["x"].cast(pa.string()))
    pa.parquet.write_table(wrong, tmp_path / "t.parquet")
    for table in (wrong, pl.from_arrow(wrong), pl.from_arrow(wrong).lazy(), tmp_path / "t.parquet"):
        with pytest.raises(ColumnTypeError, match="column 'x' is declared numeric, but the table holds (large_)?string"):
            release(table)


def test_text_in_pandas_is_cast_cell_by_cell():
    """pandas itself makes text of a column when one cell does not parse, so its type depends on somebody's row."""
    frame = TABLE.to_pandas()
    for dtype in (object, "str", "string"):
        assert release(frame.astype({"x": str}).astype({"x": dtype})) == release(frame)


def test_a_second_file_of_another_type_is_an_error(tmp_path):
    pa.parquet.write_table(TABLE, tmp_path / "1.parquet")
    pa.parquet.write_table(TABLE.set_column(0, "x", TABLE["x"].cast(pa.string())), tmp_path / "2.parquet")
    with pytest.raises(ColumnTypeError, match="'x'"):
        release(tmp_path)
    pa.parquet.write_table(TABLE.drop_columns("x"), tmp_path / "2.parquet")
    with pytest.raises(MissingColumnError, match="2.parquet"):
        release(tmp_path)


def test_files_of_numbers_in_several_types_are_one_table(tmp_path):
    whole = TABLE.set_column(0, "x", pa.array(np.arange(50) % 5))
    pa.parquet.write_table(whole, tmp_path / "1.parquet")
    pa.parquet.write_table(whole.set_column(0, "x", whole["x"].cast(pa.float32())), tmp_path / "2.parquet")
    assert release(tmp_path).rows == 100


@pytest.mark.parametrize("keep", [0, 3, 100, -20])
def test_a_truncated_parquet_file_says_so(tmp_path, keep):
    pa.parquet.write_table(TABLE, tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(content[:keep])
    with pytest.raises(UnreadableTableError, match="It is not a Parquet file, or it is truncated"):
        release(tmp_path / "t.parquet")


def test_folders_of_no_or_several_formats(tmp_path):
    with pytest.raises(TableError, match="contains no table"):
        release(tmp_path)
    (tmp_path / "a.csv").write_text("x\n1\n")
    pa.parquet.write_table(TABLE, tmp_path / "b.parquet")
    with pytest.raises(TableError, match="several formats"):
        release(tmp_path)
    (tmp_path / "c.xlsx").touch()
    with pytest.raises(TableError, match="the file format is not known"):
        release(tmp_path / "c.xlsx")


def test_strange_columns_that_are_not_declared_do_no_harm():
    frame = TABLE.to_pandas()
    frame["period"] = pd.period_range("2020-01", periods=50, freq="M")
    frame["complex"] = np.zeros(50, dtype=complex)
    frame["mixed"] = [1, "a", None, object(), b"x"] * 10
    assert release(frame) == release(TABLE)
    arrays = {name: frame[name].to_numpy() for name in frame.columns}
    assert release(arrays) == release(TABLE)


def test_a_strange_column_that_is_declared_is_an_error():
    frame = TABLE.to_pandas().assign(x=pd.period_range("2020-01", periods=50, freq="M"))
    with pytest.raises(ColumnTypeError, match="pandas.period"):
        release(frame)
    sparse = TABLE.to_pandas().assign(x=pd.arrays.SparseArray(["CANARY"] * 50, fill_value="CANARY"))
    with pytest.raises(ColumnTypeError, match="SparseDtype") as caught:
        release(sparse)
    assert "CANARY" not in str(caught.value)


def test_dicts_of_series_are_tables():
    frame = TABLE.to_pandas()
    for table in ({n: frame[n] for n in frame}, {n: pl.Series(frame[n]) for n in frame}):
        assert release(table) == release(TABLE)


def test_a_file_without_permission_says_so(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("x\n1\n")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(TableError, match="permission denied"):
        release(tmp_path / "t.csv")


def test_masked_cells_are_missing():
    values = np.arange(50.0) % 4
    hidden = np.arange(50) % 3 == 0
    named = {name: TABLE[name].to_numpy() for name in TABLE.column_names}
    masked = release({**named, "x": np.ma.array(values, mask=hidden)})
    assert masked == release({**named, "x": np.where(hidden, np.nan, values)})
    assert masked == release({**named, "x": np.ma.array(values.astype(object), mask=hidden)})


def test_one_file_under_two_names_is_not_counted_twice(tmp_path):
    TABLE.to_pandas().to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "latest.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(TableError, match=r"contains latest.csv twice"):
        release(tmp_path)
    (tmp_path / "latest.csv").unlink()
    TABLE.to_pandas().to_csv(tmp_path / "a.csv.gz", index=False)
    with pytest.raises(TableError, match=r"contains a.csv.gz twice"):
        release(tmp_path)


def test_files_of_an_unknown_format_are_not_passed_over(tmp_path):
    TABLE.to_pandas().to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "b.csv.zst").touch()
    with pytest.raises(TableError, match="several formats"):
        release(tmp_path)


def test_pandas_types_that_depend_on_a_cell_do_not_decide():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Categorical("c", ["1", "2"]), dpgram.Numeric("b", 0, 1)])
    for frame in (pd.DataFrame({"c": [1, 2], "b": [True, False]}), pd.DataFrame({"c": [1, None], "b": [True, None]})):
        dpgram.release(frame, schema, epsilon=1, delta=1e-3)


@pytest.mark.slow
def test_cells_beyond_two_gigabytes_in_all_are_cells():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)])
    table = {"x": ["z" * 30_000_000] * 75}
    assert dpgram.release(table, schema, epsilon=1, delta=1e-3).rows == 75


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_progress_says_the_same_of_every_table(neighbours):
    schema = small_schema(neighbours=neighbours)
    calls = []
    for rows in (10, 100_003, 250_000):
        said = []
        dpgram.release(small_table(rows), schema, epsilon=1, delta=1e-6, progress=said.append)
        dpgram.release(small_table(rows).to_pandas(), schema, epsilon=1, delta=1e-6, progress=said.append)
        calls.append(said)
    assert calls[0] == calls[1] == calls[2]
    assert calls[0] == 2 * [i / 100 for i in range(1, 101)]


def test_an_interrupt_inside_a_reader_gets_through():
    def batches():
        yield TABLE.to_batches()[0]
        raise KeyboardInterrupt("8675309")

    with pytest.raises(KeyboardInterrupt) as caught:
        release(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))
    assert caught.value.args == ()
