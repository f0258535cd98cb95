"""What can be seen of a release of units beside its matrix does not depend on the number of rows, nor by ADD_REMOVE on that of units."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram import custody
from dpgram.errors import EmptyTableError
from tests.properties.test_data_independence import at_one_place, observe

COLUMNS = [dpgram.Numeric("x", -3, 3), dpgram.Boolean("b", missing="drop-row")]
FEW = 40  # units, so that delta is too large for them
TABLES = {
    "plain": {},
    "one has a row more": {"more": 1},
    "one has many rows": {"more": 700},
    "rows without an id": {"without": 50},
    "cells are missing": {"missing": True},
    "ids are long": {"name": "a name of more than fifteen bytes {}"},
}
MORE_UNITS = {
    "one unit more": {"units": FEW + 1},
    "many units": {"units": 3000},
    "one unit": {"units": 1},
    "no unit": {"units": 0},
}


def schema(neighbours: str) -> dpgram.Schema:
    return dpgram.Schema(unit="person", columns=COLUMNS, neighbours=neighbours, unit_id="who", rows_per_unit=2)


def table(*, units: int = FEW, more: int = 0, without: int = 0, missing: bool = False, name: str = "{}") -> pa.Table:
    """Two rows of each unit, and more of the first."""
    rng = np.random.default_rng(1)
    who = [name.format(i) for i in range(units) for _ in range(2)] + [name.format(0)] * more * bool(units) + [None] * without
    x = [None if missing and i % 7 == 0 else float(each) for i, each in enumerate(rng.normal(size=len(who)))]
    return pa.table(
        {"who": pa.array(who, pa.string()), "x": pa.array(x, pa.float64()), "b": pa.array([True] * len(who), pa.bool_())}
    )


def seen(name: str, neighbours: str, mechanism: str, folder, capfd, caplog):
    """All of it but the numbers that carry noise, or are made of such: how many rounds there are may follow what was drawn."""
    folder = folder / name.replace(" ", "-")
    folder.mkdir()
    pq.write_table(table(**{**TABLES, **MORE_UNITS}[name]), folder / "t.parquet", row_group_size=50)
    options = {"mechanism": mechanism, **({"table_rows": 100, "looks": "none"} if mechanism == "whitened-noise" else {})}
    found = observe(folder / "t.parquet", folder, capfd, caplog, schema=schema(neighbours), **options)
    noisy = {"noise": None, "mechanism": sorted(found.published["mechanism"]["parameters"])} if found.published else {}
    return at_one_place(found._replace(published={**found.published, **noisy}), folder)


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_what_can_be_seen(neighbours, mechanism, tmp_path, capfd, caplog):
    names = [*TABLES, *(MORE_UNITS if neighbours == "add-remove" else ())]
    first, *others = (seen(name, neighbours, mechanism, tmp_path, capfd, caplog) for name in names)
    assert first.error is None
    assert first.published["rows"] is None
    assert first.published.get("units") == (FEW if neighbours == "replace" else None)
    for name, other in zip(names[1:], others, strict=True):
        assert other == first, name


def test_a_leak_would_be_seen(tmp_path, capfd, caplog, monkeypatch):
    """A custody that takes the number of rows for that of units is planted."""
    count = custody.Custody._count_units

    def talkative(self):
        count(self)
        self.units = self._pass._counted

    monkeypatch.setattr(custody.Custody, "_count_units", talkative)
    found = [seen(name, "replace", "gaussian-noise", tmp_path, capfd, caplog) for name in ("plain", "one has a row more")]
    assert found[0] != found[1]


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise", "auto"])
@pytest.mark.parametrize("without", [0, 1, 90])
def test_rows_of_nobody_are_no_table_where_the_number_of_units_is_public(without, mechanism):
    with pytest.raises(EmptyTableError):
        dpgram.release(table(units=0, without=without), schema("replace"), epsilon=1, delta=1e-6, mechanism=mechanism)
