"""Models side by side, in every way of asking."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpgram
from dpgram.errors import ModelError
from tests.conftest import small_schema, small_table


@pytest.fixture(scope="module")
def fits(small_release):
    return [dpgram.regress(small_release, "y", ["x"]), dpgram.regress(small_release, "y", ["x", "c"])]


def test_all_ways_of_asking_give_the_same_models(fits):
    first, second = fits
    for made in (
        dpgram.compare(first, second),
        dpgram.compare([first, second]),
        dpgram.compare((first, second)),
        dpgram.compare(dpgram.Fits([first, second])),
        dpgram.compare(fit for fit in fits),
    ):
        assert list(made.models) == ["(1) y", "(2) y"]
        assert list(made.models.values()) == fits
    assert list(dpgram.compare({"small": first, "large": second}).models) == ["small", "large"]
    assert list(dpgram.compare(first).models) == ["(1) y"]


@pytest.mark.parametrize("wrong", [(), ([],), ({},), (3,), ("y",), (None,), ([1, 2],), ({"a": 1},)])
def test_what_cannot_be_compared(wrong):
    with pytest.raises(ModelError, match="compare"):
        dpgram.compare(*wrong)
    with pytest.raises(ModelError, match="compare"):
        dpgram.compare(*wrong, 7)


def test_the_table_shows_every_coefficient_once(fits):
    made = dpgram.compare({"small": fits[0], "large": fits[1]})
    assert made.names == ("(intercept)", "x", "c[b]", "c[other]")
    lines = str(made).splitlines()
    starts = [line.split()[0] for line in lines if line and not line.startswith((" ", "=", "-"))]
    assert [name for name in starts if name in made.names] == list(made.names)
    assert repr(made) == str(made) == str(made.summary())
    assert f"{fits[1].params['c[b]']:.5g}***" in str(made)
    assert f"({fits[1].bse['c[b]']:.5g})" in str(made)
    frame = made.to_frame()
    assert frame.loc[("large", "x"), "coefficient"] == fits[1].params["x"]
    assert len(frame) == 2 + 4
    data = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert data["models"]["large"] == json.loads(json.dumps(fits[1].to_dict()))
    assert data["same_release"]
    assert "different releases" not in str(made)
    assert "NOT PRIVATE" in str(made)
    assert "NOT PRIVATE" in made._repr_html_()


def test_models_of_different_releases_are_marked(fits):
    other = dpgram.release(
        small_table(60), small_schema(), epsilon=0.1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=3
    )
    made = dpgram.compare(fits[0], dpgram.regress(other, "y", ["x"]))
    text = " ".join(str(made).split())
    assert not made.to_dict()["same_release"]
    assert "These fits come from different releases" in text
    assert "(not id.): not identified at this budget, so the interval is infinite." in text
    assert np.isinf(made.to_frame().loc[("(2) y", "x"), "upper"])


def test_a_release_that_was_saved_is_the_same_release(fits, small_release, tmp_path):
    small_release.save(tmp_path / "r.json")
    again = dpgram.regress(dpgram.load(tmp_path / "r.json"), "y")
    assert dpgram.compare(fits[0], again).to_dict()["same_release"]


def test_several_fits_compare_themselves(small_release):
    made = dpgram.regress(small_release, ["y", "x"])
    assert list(made.compare().models) == ["y", "x"]
    assert made._repr_html_() == made.compare()._repr_html_()


def test_fits_of_the_same_target_are_all_kept(small_release):
    made = dpgram.regress(small_release, ["y ~ x", "y ~ x + c"])
    assert len(made.compare().models) == 2
