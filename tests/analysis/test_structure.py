"""Partial correlations and the graph of them: those of the rows where noise is nil, and honest where it is not."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import dpgram
from dpgram.cli.app import run
from dpgram.errors import ModelError, UnknownColumnError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.moments import unrelated_errors, unrelated_penalty
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.regression.moments import moments
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.noise import SymmetricGaussian
from experiments.structure.study import measured
from tests.analysis.test_fit import released
from tests.conftest import small_schema, small_table
from tests.regression.test_regress import columns_in_own_units, noiseless
from tests.releases import NOISES, pass_through, true_gram, whitened_release, with_gram

NAMES = ("x", "y", "c[b]", "c[other]", "b")
OFF = np.triu_indices(5, 1)


@pytest.fixture(scope="module")
def exact():
    return noiseless(small_schema())


def partial_of_rows():
    columns = columns_in_own_units()
    precision = np.linalg.inv(np.cov(np.array([columns[name] for name in NAMES])))
    return -precision / np.sqrt(np.outer(np.diag(precision), np.diag(precision)))


def test_partial_correlations_are_those_of_the_rows_when_noise_is_nil(exact):
    found = dpgram.partial_correlations(exact)
    wanted = partial_of_rows()
    assert found.names == NAMES
    assert found.estimate[OFF] == pytest.approx(wanted[OFF], abs=1e-5)
    assert (np.diag(found.estimate) == 1).all()
    sampling = (1 - wanted[OFF] ** 2) / math.sqrt(3000)
    assert found.se[OFF] == pytest.approx(sampling, rel=2e-3)
    ends = np.tanh(np.arctanh(wanted[OFF]) + np.array([[-1.96], [1.96]]) / math.sqrt(3000))
    assert np.array([found.lower[OFF], found.upper[OFF]]) == pytest.approx(ends, abs=1e-4)
    assert found.identified.all()
    assert ((found.p_value[OFF] < 0.05) == (found.lower[OFF] * found.upper[OFF] > 0)).all()


@pytest.mark.parametrize("kind", ["gaussian", "shifted", "wishart", "noisy-inverse"])
def test_the_privacy_part_is_how_far_noise_moves_them(kind):
    """150 draws of noise around one Gram: the relative sd of a standard deviation is 6 %, so 27 % off comes up once in 100,000."""
    table, schema, noise = small_table(20_000), small_schema(), NOISES[kind]
    gram, base = true_gram(table, schema), noiseless(schema, table)
    releases = [replace(base, noise=noise, gram=pass_through(noise, gram, SeededSource(seed))) for seed in range(150)]
    found = [dpgram.partial_correlations(release) for release in releases]
    moved = np.std([each.estimate[OFF] for each in found], axis=0)
    told = np.median([each.privacy[OFF] for each in found], axis=0)
    assert told == pytest.approx(moved, rel=0.27)


def test_the_graph_is_that_of_scikit_learn_when_noise_is_nil(exact):
    from sklearn.covariance import graphical_lasso

    columns = columns_in_own_units()
    correlation = np.corrcoef(np.array([columns[name] for name in NAMES]))
    for penalty in (0.05, 0.1, 0.4):
        found = dpgram.graph(exact, penalty=penalty)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # steps of its inner solver, which the outer one makes up for
            _, precision = graphical_lasso(correlation, alpha=penalty, max_iter=1000)
        assert found.precision == pytest.approx(precision, abs=1e-5)
        assert len(found.edges) == np.count_nonzero(precision[OFF])
    assert dpgram.graph(exact, penalty=0).sparse.partial[OFF] == pytest.approx(partial_of_rows()[OFF], abs=1e-5)
    assert dpgram.graph(exact, penalty=1).edges == []
    assert "No pair of columns has an edge" in str(dpgram.graph(exact, penalty=1))
    assert dpgram.graph(exact, penalty=1).to_frame().empty


def test_the_default_penalty_is_beyond_all_but_five_in_a_hundred_sets_of_unrelated_columns():
    """The number of pairs beyond it is 0.05 on average: of 200 releases 10 have an edge, and more than 24 one time in 20,000."""
    rng = np.random.default_rng(5)
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(f"x{j}", -1, 1, missing="midpoint") for j in range(4)])
    noise, edges = SymmetricGaussian.orthogonal(12.0), 0
    base = noiseless(schema, dict.fromkeys(schema.names, np.zeros(10)))
    for seed in range(200):
        rows = np.vstack([np.ones(1500), rng.uniform(-1, 1, size=(4, 1500))])
        made = replace(base, noise=noise, gram=pass_through(noise, rows @ rows.T, SeededSource(seed)), rows=1500)
        edges += bool(dpgram.graph(made).edges)
    assert 1 <= edges <= 24
    of = moments(Evidence.of(made))
    alone = unrelated_penalty(Evidence.of(replace(made, noise=SymmetricGaussian.orthogonal(1e-9))), of)
    assert alone == pytest.approx(2.64 / math.sqrt(1500), rel=0.02)  # of six pairs, by sampling alone
    assert unrelated_errors(Evidence.of(made), of)[0, 1] > 1 / math.sqrt(1500)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("rows", "epsilon"), [(4000, 5.0), (60, 0.01)])
def test_every_mechanism_has_an_answer(mechanism, rows, epsilon):
    release = released(mechanism, rows=rows, epsilon=epsilon)
    for found in (dpgram.partial_correlations(release), dpgram.graph(release)):
        json.dumps(found.to_dict(), allow_nan=False)
        assert str(found)
    found = dpgram.partial_correlations(release)
    assert (np.abs(found.estimate) <= 1).all()
    assert ((found.lower <= found.estimate) & (found.estimate <= found.upper)).all()
    if epsilon < 1:
        assert not found.identified[OFF].all()
        assert "not identified at this budget" in str(found)


def test_whitened_releases_count_clipping():
    release = whitened_release(small_table(), small_schema(), scales=(1.0, 4.0, 16.0))
    found = dpgram.partial_correlations(release)
    assert (found.clipping[OFF] > 0).all()
    assert found.estimate[OFF] == pytest.approx(partial_of_rows()[OFF], abs=0.1)
    assert "clipping" in str(found)


def test_what_is_not_identified_has_no_clipping_where_nothing_was_clipped(table, schema):
    """Gaussian noise has no clipping, but a part of 1 was told, and so a standard error of the square root of two."""
    release = dpgram.release(table, schema, epsilon=0.01, delta=1e-6, mechanism="gaussian-noise", insecure_seed=3)
    found = dpgram.partial_correlations(release)
    unknown = (found.estimate == 0) & ~found.identified
    assert unknown.any()
    assert (found.privacy[unknown] == 1).all()
    assert (found.clipping == 0).all()
    assert found.se[unknown] == pytest.approx(1, abs=1e-2)
    assert "clipping" not in str(found)


def test_units_and_weights_widen_them():
    release = released()
    one, four = (dpgram.partial_correlations(release, ["x", "y"], design_effect=effect) for effect in (1.0, 4.0))
    assert four.sampling[0, 1] == pytest.approx(2 * one.sampling[0, 1], rel=1e-3)
    assert four.privacy[0, 1] == pytest.approx(one.privacy[0, 1])
    assert dpgram.graph(release, design_effect=4.0).penalty > dpgram.graph(release, design_effect=1.0).penalty
    protected = released(neighbours="add-remove")
    assert dpgram.partial_correlations(protected, ["x", "y"]).identified.all()


def test_two_columns_have_their_plain_correlation(exact):
    found = dpgram.partial_correlations(exact, ["x", "y"])
    assert found.estimate[0, 1] == pytest.approx(dpgram.covariance(exact, ["x", "y"]).correlation[0, 1], abs=1e-5)


def test_refusals(exact):
    with pytest.raises(ModelError, match="needs at least two columns. Name another one"):
        dpgram.partial_correlations(exact, ["x"])
    with pytest.raises(UnknownColumnError, match="q"):
        dpgram.graph(exact, ["x", "q"])
    with pytest.raises(ModelError, match="need the intercept column"):
        dpgram.partial_correlations(released(intercept=False))
    with pytest.raises(ModelError, match="penalty is -1 and must be a finite number of at least 0"):
        dpgram.graph(exact, penalty=-1)
    with pytest.raises(ModelError, match="pairs is 0 and must be a whole number"):
        dpgram.partial_correlations(exact).summary(0)
    with pytest.raises(ModelError, match="edges is 1.5 and must be a whole number"):
        dpgram.graph(exact).summary(1.5)
    with pytest.raises(ModelError, match="confidence is 2 and must be a number between 0 and 1"):
        dpgram.partial_correlations(exact, confidence=2)
    for function in (dpgram.partial_correlations, dpgram.graph, dpgram.covariance, dpgram.pca):
        with pytest.raises(ModelError, match="^columns is 'x' and must be a list of names"):
            function(exact, "x")
        with pytest.raises(ModelError, match="^column 'x' is named twice"):
            function(exact, ["x", "y", "x"])
        with pytest.raises(ModelError, match=r"^'\(intercept\)' is not a column. The intercept is added automatically\.$"):
            function(exact, ["x", "(intercept)"])


def test_dependent_columns_are_refused_or_not_identified():
    x = np.linspace(-1, 1, 500)
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(n, -1, 1, missing="midpoint") for n in "abc"])
    table = {"a": x, "b": x, "c": np.sin(9 * x)}
    gram = true_gram(table, schema)
    with pytest.raises(ModelError, match="exactly dependent in the release"):
        dpgram.partial_correlations(with_gram(SymmetricGaussian(0.0, 0.0), gram, table, schema))
    noise = SymmetricGaussian.orthogonal(1.0)
    found = dpgram.partial_correlations(with_gram(noise, pass_through(noise, gram, SeededSource(0)), table, schema))
    assert not found.identified[0, 1]
    assert (found.lower[0, 1], found.upper[0, 1]) == (-1, 1)


def test_the_picture_has_a_line_for_each_edge_and_every_name(exact):
    graph = dpgram.graph(exact, penalty=0.05)
    ax = graph.plot(Figure().subplots())
    lines = [line for line in ax.lines if len(line.get_xdata()) == 2]
    assert len(lines) == len(graph.edges)
    assert {text.get_text() for text in ax.texts} == set(NAMES)
    assert len({(round(t.get_position()[0], 6), round(t.get_position()[1], 6)) for t in ax.texts}) == 5
    assert "NOT PRIVATE" in ax.get_title()
    positive, negative = (
        next(line for line in ax.lines if line.get_label().startswith(sign)) for sign in ("positive", "negative")
    )
    assert (
        to_rgb(positive.get_color())[0] > 0.8 > 0.2 > to_rgb(negative.get_color())[0]
    )  # red ones and blue ones, as in a heat map
    for edge in graph.edges:
        place = {text.get_text(): np.array(text.get_position()) / 1.08 for text in ax.texts}
        ends = np.array([place[edge["first"]], place[edge["second"]]]).T
        drawn = next(line for line in lines if np.allclose([line.get_xdata(), line.get_ydata()], ends))
        like = positive if edge["penalised"] > 0 else negative
        assert edge["same_column"] or drawn.get_color() == like.get_color()
    assert sum(edge["same_column"] for edge in graph.edges) == 1  # c[b] and c[other]


def test_the_commands(tmp_path, capsys, exact):
    file, picture = tmp_path / "r.json", tmp_path / "g.png"
    released().save(file)
    assert run(["graph", str(file), "--plot", str(picture), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["edges"]
    assert picture.stat().st_size > 10_000
    assert run(["partial", str(file), "--columns", "x,y,b", "--pairs", "1", "--plot", str(picture), "--overwrite"]) == 0
    assert "2 more pairs" in capsys.readouterr().out
    assert run(["partial", str(file), "--columns", "x"]) == 2
    assert "needs at least two columns" in capsys.readouterr().err


@pytest.mark.parametrize(("mechanism", "epsilon"), [("gaussian-noise", 3.0), ("whitened-noise", 1.0)])
def test_intervals_cover(mechanism, epsilon):
    """30 samples of 15 pairs. Were coverage 95 %, and pairs of a sample as if one, fewer than 85 % would come up once in 500."""
    found = measured(10_000, mechanism, epsilon, samples=30)
    assert found.coverage > 0.85
    assert found.width < 2.0 or mechanism == "gaussian-noise"


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
def test_rare_levels_do_not_hide_the_graph_of_the_others(mechanism):
    """With two of them, and a constant, the penalty was so large that no edge was left."""
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=(2, 20_000))
    level = rng.choice(["x", "y", "r", "s"], 20_000, p=[0.5, 0.4994, 0.0003, 0.0003])
    table = {"a": a, "b": 0.8 * a + 0.6 * rng.normal(size=20_000), "c": c, "g": level, "k": np.zeros(20_000)}
    columns = [*(dpgram.Numeric(name, -5, 5) for name in "abck"), dpgram.Categorical("g", ["x", "y", "r", "s"])]
    schema = dpgram.Schema(unit="person", columns=columns)
    made = dpgram.release(table, schema, epsilon=2, delta=1e-6, mechanism=mechanism, insecure_seed=0)
    found = dpgram.graph(made)
    assert {"k", "g[r]"} <= set(found.hidden) <= {"g[r]", "g[s]", "k"}
    assert set(found.hidden).isdisjoint(name for edge in found.edges for name in (edge["first"], edge["second"]))
    assert ("a", "b") in {(edge["first"], edge["second"]) for edge in found.edges}
    assert found.penalty < 0.1
    assert "nothing is known about their edges" in str(found).replace("\n  ", " ")
    assert found.to_dict()["hidden"] == list(found.hidden)
    assert found.precision.shape == (7, 7)
    assert dpgram.graph(made, ["a", "b"]).hidden == ()
    assert dpgram.graph(made, ["g[r]", "k"]).hidden == ()  # too few are left: nothing has an edge, by the penalty
    assert dpgram.graph(made, ["g[r]", "k"]).edges == []
