"""The other doors: estimators in scikit-learn's style, the command line, and tables in several forms."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import dpgram
from tests.golden.answers import plain
from tests.golden.releases import cells_of

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "least squares": lambda: dpgram.PrivateLinearRegression(**_declared(), target_bounds=(-20, 40)),
    "debiased": lambda: dpgram.PrivateLinearRegression(estimator="debiased", **_declared(), target_bounds=(-20, 40)),
    "whitened": lambda: dpgram.PrivateLinearRegression(**_declared("whitened-noise"), target_bounds=(-20, 40)),
    "ridge": lambda: dpgram.PrivateRidge(alpha=20.0, **_declared(), target_bounds=(-20, 40), fit_intercept=False),
    "ridge, penalty chosen": lambda: dpgram.PrivateRidge(alpha=None, **_declared(), target_bounds=(-20, 40)),
    "lasso": lambda: dpgram.PrivateLasso(alpha=0.05, **_declared(), target_bounds=(-20, 40)),
    "covariance": lambda: dpgram.PrivateCovariance(**_declared()),
    "components": lambda: dpgram.PrivatePCA(n_components=2, **_declared()),
}
FITTED = (
    "coef_", "intercept_", "covariance_", "location_", "precision_", "correlation_", "components_", "explained_variance_", "mean_",
)  # fmt: skip


def _declared(mechanism: str = "gaussian-noise") -> dict[str, Any]:
    return {"epsilon": 5.0, "delta": 1e-6, "bounds": ([0, -1, -2], [3, 4, 2]), "random_state": 5, "mechanism": mechanism}


def fitted(name: str) -> dict:
    """What an estimator has learned, and what it makes of three rows."""
    cells = cells_of("origin")
    X, y = np.column_stack([cells["u"], cells["v"], cells["w"]]), cells["t"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpgram.DpgramWarning)  # not private, and fitted again
        model = ESTIMATORS[name]()
        model.fit(X, y) if hasattr(model, "predict") else model.fit(X)
    found = {what: getattr(model, what) for what in FITTED if hasattr(model, what)}
    use = getattr(model, "predict", None) or getattr(model, "transform", None)
    return plain({**found, **({"rows": use(np.array([[1.0, 0.5, 0.0], [9.0, -9.0, 1.0], [0.0, np.nan, 2.0]]))} if use else {})})


COMMANDS = {
    "regress": "regress RELEASE --target y --estimator debiased --confidence 0.9 --json",
    "cov": "cov RELEASE --columns x,y --json",
    "pca": "pca RELEASE --standardise --json",
    "plan": "plan --schema SCHEMA --epsilon 1 --delta 1e-6 --table-rows 5000 --mechanism whitened-noise --json",
}
SCHEMA = """
unit = "person"
[[columns]]
name = "x"
kind = "numeric"
lower = -5
upper = 5
[[columns]]
name = "y"
kind = "numeric"
lower = -10
upper = 30
"""


def printed(command: str, release: dict) -> Any:
    """The JSON that ``dpgram COMMAND`` prints, given a release file with these contents."""
    with tempfile.TemporaryDirectory() as folder:
        file, schema = Path(folder, "release.json"), Path(folder, "schema.toml")
        file.write_text(json.dumps(release))
        schema.write_text(SCHEMA)
        words = [{"RELEASE": str(file), "SCHEMA": str(schema)}.get(word, word) for word in COMMANDS[command].split()]
        out, problems = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(problems),
            mock.patch.object(sys, "argv", ["dpgram", *words]),
            contextlib.suppress(SystemExit),
        ):
            runpy.run_module("dpgram", run_name="__main__", alter_sys=True)
    assert out.getvalue(), problems.getvalue()
    return plain(json.loads(out.getvalue()))


def sources(table: str, folder: Path) -> dict[str, object]:
    """The cells of a table in several forms, each of which ``dpgram.release`` takes."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = cells_of(table)
    frame = pd.DataFrame(cells)
    arrow = pa.table(cells)
    frame.to_csv(folder / f"{table}.csv", index=False)
    pq.write_table(arrow, folder / f"{table}.parquet", row_group_size=400)
    found: dict[str, object] = {
        "CSV": folder / f"{table}.csv",
        "Parquet": folder / f"{table}.parquet",
        "Arrow": arrow,
        "pandas": frame,
        "dict of arrays": cells,
    }
    if all(isinstance(one, np.ndarray) and one.dtype == float for one in cells.values()):
        found["structured array"] = frame.to_records(index=False)
    return found
