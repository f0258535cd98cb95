"""The study of every answer: its page is that of its results, and its measure can see intervals that hold and ones that do not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import dpgram
from experiments.answers import page, study
from experiments.answers.__main__ import COVERAGE
from experiments.answers.study import Line, cells, measured
from experiments.answers.tables import Asked
from experiments.markers import fill
from experiments.real.study import read

ROOT = Path(__file__).parents[2]
ASKED = Asked("", "", "y x w z", "b", "y", "x", "w b", "b", "y ~ w + [x ~ z]")


def made_up():
    """A table on which all assumptions hold."""
    import pandas as pd

    rng = np.random.default_rng(0)
    z, w, u, e = rng.normal(size=(4, 6000))
    x = 0.7 * z + 0.3 * w + 0.5 * u
    frame = pd.DataFrame({"y": x + 0.5 * w + u + e, "x": x, "w": w, "z": z, "b": x + rng.normal(size=6000) > 0})
    columns = [*(dpgram.Numeric(name, -8, 8) for name in "yxwz"), dpgram.Boolean("b")]
    return frame, dpgram.Schema(unit="row", columns=columns)


def test_the_page_is_that_of_the_results():
    written = (ROOT / page.PAGE).read_text(encoding="utf-8")
    lines = read(COVERAGE, Line)
    assert fill(written, {"every answer": page.table(lines)}) == written
    assert [(line.table, line.mechanism, line.epsilon) for line in lines] == cells()


@pytest.mark.parametrize("mechanism", study.MECHANISMS)
def test_every_answer_is_asked_and_counted(mechanism, monkeypatch):
    """The truth is in nearly all intervals, because they leave room for the sampling of rows; a truth elsewhere is in none."""
    monkeypatch.setitem(study.LISTED, "made up", ASKED)
    monkeypatch.setattr(study, "load", lambda name: made_up())
    found = measured("made up", mechanism, 100.0, releases=3)
    shares = [getattr(found, kind) for kind in study.KINDS]
    assert not any(math.isnan(share) for share in shares)
    assert min(shares) > 0.75
    assert found.bounded > 0.9
    right = study.answers
    monkeypatch.setattr(study, "answers", lambda *given: ((name, (value + 9, *ends)) for name, (value, *ends) in right(*given)))
    assert max(getattr(measured("made up", mechanism, 100.0, releases=1), kind) for kind in study.KINDS) < 0.05
