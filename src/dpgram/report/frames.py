"""Plain rows as a pandas data frame, for those who have pandas."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from dpgram.errors import MissingExtraError


def data_frame(rows: Sequence[dict], *, index: str | list[str]) -> Any:
    if find_spec("pandas") is None:
        raise MissingExtraError(package="pandas", extra="frames", purpose="a data frame")
    import pandas as pd

    return pd.DataFrame.from_records(list(rows)).set_index(index)
