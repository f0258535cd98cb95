"""Hive partition columns: the same bits as the whole table, and types that no row and no folder decides."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import dpgram
from dpgram.errors import DuplicateColumnError, MissingColumnError, TableError
from dpgram.sources.open import open_source
from tests.conftest import small_table

ROWS = 60
YEARS = [2019, 2020, 2021]
TABLE = small_table(rows=ROWS).append_column("year", pa.array([YEARS[k % 3] for k in range(ROWS)]))
TABLE = TABLE.append_column("month", pa.array([f"{1 + k % 12:02}" for k in range(ROWS)]))
COLUMNS = [
    dpgram.Numeric("x", -5, 5),
    dpgram.Numeric("year", 2000, 2030),
    dpgram.Categorical("month", [f"{m:02}" for m in range(1, 11)], other=True),
]
WRITERS = {
    "parquet": pa.parquet.write_table,
    "csv": pa.csv.write_csv,
    "arrow": lambda table, path: pa.feather.write_feather(table, str(path), compression="uncompressed"),
}


def write(folder, ending="parquet", table=TABLE, keep=()):
    """The table in folders by year and month, whose columns the files hold only if they are to ``keep``."""
    for year in YEARS:
        for month in sorted(set(table["month"].to_pylist())):
            part = table.filter(pa.compute.and_(pa.compute.equal(table["year"], year), pa.compute.equal(table["month"], month)))
            if len(part):
                place = folder / f"year={year}" / f"month={month}"
                place.mkdir(parents=True, exist_ok=True)
                WRITERS[ending](part.drop_columns({"year", "month"} - set(keep)), place / f"part-0.{ending}")
    return folder


def release(table, columns=COLUMNS, mechanism="gaussian-noise", **more):
    schema = dpgram.Schema(unit="person", columns=columns)
    return dpgram.release(table, schema, epsilon=1, delta=1e-3, insecure_seed=0, mechanism=mechanism, **more)


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
@pytest.mark.filterwarnings("ignore::dpgram.errors.LargeDeltaWarning")
def test_folders_give_the_bits_of_the_whole_table(tmp_path, ending, mechanism):
    """With threads and one by one, kept in memory and read again."""
    given = TABLE
    if ending == "csv":  # its cells are decimals, which may be cut
        pa.csv.write_csv(TABLE, tmp_path / "whole.csv")
        given = tmp_path / "whole.csv"
    expected = release(given, mechanism=mechanism)
    place = write(tmp_path / "parts", ending)
    for path in (place, f"{place}/**/*.{ending}"):
        assert (release(path, mechanism=mechanism).gram == expected.gram).all()
        assert (release(path, mechanism=mechanism, cache=False, threads=1).gram == expected.gram).all()


def test_the_schema_decides_what_the_text_is(tmp_path):
    place = write(tmp_path)
    by_number = [dpgram.Numeric("month", 0, 12), dpgram.Categorical("year", YEARS[1:])]
    as_read = TABLE.set_column(TABLE.column_names.index("month"), "month", TABLE["month"].cast(pa.int64()))
    assert (release(place, by_number).gram == release(as_read, by_number).gram).all()
    assert "kind" in dpgram.draft_schema(place)
    assert {"year", "month"} <= open_source(place).untyped


def test_only_folders_in_the_path_as_it_was_given_are_read(tmp_path, monkeypatch):
    place = write(tmp_path)
    names = open_source(place / "year=2020" / "month=02").columns.names
    assert names[-2:] == ["year", "month"]
    monkeypatch.chdir(place / "year=2020")
    assert "year" not in open_source("month=02").columns.names
    assert open_source("month=02/part-0.parquet").columns.names[-1] == "month"


@pytest.mark.parametrize("ending", WRITERS)
def test_a_file_of_which_only_folders_are_declared(tmp_path, ending):
    place = write(tmp_path, ending)
    year = [dpgram.Numeric("year", 2000, 2030)]
    assert (release(place, year).gram == release(TABLE, year).gram).all()
    assert release(place, year).rows == ROWS


@pytest.mark.parametrize(
    ("folder", "cell"),
    [
        ("year=__HIVE_DEFAULT_PARTITION__", None),
        ("year=", b""),
        ("year=a%20b%2Fc", b"a b/c"),
        ("y%65ar=a=b", b"a=b"),
        ("year=é", "é".encode()),
    ],
)
def test_what_a_folder_says(tmp_path, folder, cell):
    (tmp_path / folder).mkdir()
    pa.parquet.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / folder / "t.parquet")
    (piece,) = open_source(tmp_path).pieces(["year"])
    assert piece.batch.column("year").to_pylist() == [cell, cell]


@pytest.mark.parametrize("folder", ["=2020", "year", "year2020"])
def test_what_names_no_column(tmp_path, folder):
    (tmp_path / folder).mkdir()
    pa.parquet.write_table(pa.table({"x": [1.0]}), tmp_path / folder / "t.parquet")
    assert open_source(tmp_path).columns.names == ["x"]


def test_a_column_that_the_files_hold_is_read_from_them(tmp_path):
    """As it was before; what the folder says is then not looked at."""
    place = write(tmp_path, keep=["year", "month"])
    (place / "year=2020").rename(place / "year=1900")
    assert (release(place).gram == release(TABLE).gram).all()


def test_a_column_in_two_places_is_refused_where_it_is_declared(tmp_path):
    place = write(tmp_path)
    for file in (place / "year=2020").rglob("*.parquet"):
        table = pa.parquet.read_table(file, partitioning=None)
        pa.parquet.write_table(table.append_column("year", pa.array([2020] * len(table))), file)
    with pytest.raises(TableError, match="'year' stands in the names of some folders, and in the files of others"):
        release(place)
    assert release(place, COLUMNS[:1]).rows == ROWS
    (tmp_path / "twice" / "year=1" / "year=2").mkdir(parents=True)
    pa.parquet.write_table(TABLE.drop_columns("year"), tmp_path / "twice" / "year=1" / "year=2" / "t.parquet")
    with pytest.raises(DuplicateColumnError, match="'year'"):
        release(tmp_path / "twice")
    assert release(tmp_path / "twice", COLUMNS[:1]).rows == ROWS


def test_a_file_outside_the_folders_is_named(tmp_path):
    place = write(tmp_path)
    pa.parquet.write_table(TABLE.drop_columns("year"), place / "zz.parquet")
    with pytest.raises(MissingColumnError, match=r"zz.parquet"):
        release(place)
