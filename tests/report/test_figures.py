"""Figures: the right number of points, and files written whole or not at all."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.figure import Figure

import dpgram
from dpgram.errors import OutputError
from dpgram.report.figures import check_figure_path, save_figure
from tests.analysis.test_fit import released


@pytest.fixture
def ax():
    return Figure().subplots()


def bars(ax):
    """Coefficients that are drawn with an interval: (x, left end, right end) each."""
    found = []
    for container in ax.containers:
        line, _, (lines,) = container.lines
        for x, ((left, _), (right, _)) in zip(line.get_xdata(), lines.get_segments(), strict=True):
            found.append((x, left, right))
    return found


def test_every_slope_has_a_point_and_its_interval(small_release, ax):
    fit = dpgram.regress(small_release, "y")
    assert fit.plot(ax) is ax
    slopes = fit.names[1:]
    assert [label.get_text() for label in ax.get_yticklabels()] == list(slopes)
    drawn = bars(ax)
    assert len(drawn) == len(slopes)
    for name, (x, left, right) in zip(slopes, drawn, strict=True):
        assert x == pytest.approx(fit.params[name])
        assert (left, right) == pytest.approx(fit.conf_int().loc[name])
    (second,) = [line for line in ax.lines if line.get_label().startswith("shrunk")]
    assert second.get_xdata().tolist() == pytest.approx([fit.shrunk[name] for name in slopes])
    assert "y" in ax.get_title()


def test_an_intercept_alone_is_drawn(small_release, ax):
    dpgram.regress(small_release, "y", []).plot(ax)
    assert len(bars(ax)) == 1


def test_a_debiased_fit_has_no_second_mark(small_release, ax):
    dpgram.regress(small_release, "y", estimator="debiased").plot(ax)
    assert not [line for line in ax.lines if "prediction" in str(line.get_label())]


def test_what_is_not_identified_is_written_in_its_place(ax):
    fit = dpgram.regress(released(rows=60, epsilon=0.1), "y")
    fit.plot(ax)
    assert bars(ax) == []
    assert [text.get_text() for text in ax.texts] == ["not identified at this budget"] * 4


def test_models_side_by_side(small_release, ax):
    made = dpgram.compare(dpgram.regress(small_release, "y", ["x"]), dpgram.regress(small_release, "y", ["x", "c"]))
    made.plot(ax)
    assert len(bars(ax)) == 1 + 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["(1) y", "(2) y"]
    heights = [container.lines[0].get_ydata() for container in ax.containers]
    assert heights[0][0] != heights[1][0]


def test_matrices_components_and_paths(small_release):
    found = dpgram.covariance(small_release)
    for kind, matrix in (("correlation", found.correlation), ("partial", found.partial_correlation)):
        ax = found.plot(kind, Figure().subplots())
        assert np.asarray(ax.images[0].get_array()) == pytest.approx(matrix)
        assert len(ax.texts) == 25
        assert kind in ax.get_title()
    ax = dpgram.pca(small_release).plot(Figure().subplots())
    assert len(ax.patches) == 5
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(1)
    path = dpgram.penalty_path(small_release, "y", penalties=9)
    ax = path.plot(Figure().subplots())
    assert len(ax.lines) == 4
    assert all(len(line.get_xdata()) == 9 for line in ax.lines)
    assert sorted(text.get_text() for text in ax.texts) == sorted(path.names[1:])


def test_names_are_text_and_not_mathematics(ax):
    """Matplotlib reads $...$ as mathematics, and fails on what is none."""
    names = ["$a^$", "b_{", "y"]
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(n, -5, 5) for n in names])
    table = {n: np.random.default_rng(0).normal(size=500) for n in names}
    release = dpgram.release(table, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    for draw in (
        dpgram.regress(release, "y").plot,
        dpgram.regress(release, "$a^$").plot,
        dpgram.compare({"$x^$": dpgram.regress(release, "y"), "n": dpgram.regress(release, "b_{")}).plot,
        lambda ax: dpgram.covariance(release).plot("correlation", ax),
        dpgram.penalty_path(release, "$a^$").plot,
        dpgram.penalty_path(release, "y").plot,
    ):
        figure = Figure()
        draw(figure.subplots())
        figure.savefig(io.BytesIO())


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "PNG"])
def test_a_figure_is_written_whole(small_release, tmp_path, ending):
    fit = dpgram.regress(small_release, "y")
    path = tmp_path / f"f.{ending}"
    save_figure(path, fit.plot, rows=4)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending.lower()]
    assert path.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "message"),
    [("f.jpg", "ending '.jpg'"), ("f", "ending ''"), ("none/f.png", "there is no folder"), ("folder.png", "it is a folder")],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_drawn(tmp_path, name, message):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(OutputError, match=message):
        check_figure_path(tmp_path / name)
    with pytest.raises(OutputError, match=message):
        save_figure(tmp_path / name, lambda ax: pytest.fail("drawn"), rows=1)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.png"]


def test_a_figure_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "f.png"
    path.write_bytes(b"old")

    def fails(ax):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        save_figure(path, fails, rows=1, overwrite=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_every_figure_says_what_is_not_private(small_release, table, schema):
    private = dpgram.release(table, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise")
    for release, marked in ((small_release, True), (private, False)):
        for draw in (
            dpgram.regress(release, "y").plot,
            dpgram.regress(release, ["y", "x"]).compare().plot,
            lambda ax, of=release: dpgram.covariance(of).plot("correlation", ax),
            dpgram.pca(release).plot,
            dpgram.penalty_path(release, "y").plot,
        ):
            assert ("NOT PRIVATE" in draw(Figure().subplots()).get_title()) == marked
