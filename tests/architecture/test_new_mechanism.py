"""A mechanism with a shape of noise of its own goes through the whole library without a change in src: two files are all it takes."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

import dpgram
from dpgram.audits.laws.gaussian_noise import GaussianNoiseLaw
from dpgram.audits.laws.registry import LAWS
from dpgram.audits.run import audit
from dpgram.errors import MechanismError, ReleaseFileError
from dpgram.evidence.evidence import Evidence
from dpgram.mechanisms import registry
from dpgram.planning.forecast import forecast
from dpgram.planning.ground import ground_of
from dpgram.report.facts import label_data, label_groups
from dpgram.report.page.data import page_data
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.noise import SHAPES, SymmetricGaussian
from tests.architecture.two_draws import MECHANISM, NAME, TwoDraws, start
from tests.architecture.two_draws_evidence import TwoDrawsEvidence
from tests.conftest import small_schema, small_table
from tests.page.node import evaluate

SRC = Path(dpgram.__file__).parent
KINDS = ("SymmetricGaussian", "WishartSample", "InverseWishartSample", "NoisyInverse", "WhitenedGaussian")


@pytest.fixture
def release(monkeypatch):
    monkeypatch.setitem(registry.MECHANISMS, NAME, MECHANISM)
    return dpgram.release(small_table(), small_schema(), epsilon=8, delta=1e-6, mechanism=NAME, insecure_seed=3)


def as_gaussian(release):
    """The same matrix, said to carry the noise of the same size that the library knows."""
    noise = SymmetricGaussian(release.noise.sd_off_diagonal, release.noise.sd_diagonal)
    return dataclasses.replace(release, noise=noise)


def test_it_is_written_and_read(release, tmp_path):
    path = tmp_path / "release.json"
    release.save(path)
    found = dpgram.load(path)
    assert found == release
    assert isinstance(found.noise, TwoDraws)
    content = json.loads(path.read_text())
    content["noise"]["apart"][0] = content["noise"]["apart"][0][1:]
    path.write_text(json.dumps(content))
    with pytest.raises(ReleaseFileError, match=r"noise\.apart"):
        dpgram.load(path)


def test_a_reader_that_does_not_know_it_says_so(release, tmp_path, monkeypatch):
    path = tmp_path / "release.json"
    release.save(path)
    monkeypatch.delitem(SHAPES, NAME)
    with pytest.raises(ReleaseFileError, match=r"noise\.shape.*two-draws"):
        dpgram.load(path)


def test_it_is_fitted_like_noise_of_its_size(release):
    assert isinstance(Evidence.of(release), TwoDrawsEvidence)
    for intervals in ("auto", "fieller", "bootstrap"):
        one, other = (dpgram.regress(r, "y", intervals=intervals).to_dict() for r in (release, as_gaussian(release)))
        assert one == other
    for estimator in ("plain", "log-det", "ridge"):
        one, other = (dpgram.regress(r, "y", estimator=estimator).coefficients for r in (release, as_gaussian(release)))
        assert np.array_equal(one, other)
    assert dpgram.covariance(release).to_dict() == dpgram.covariance(as_gaussian(release)).to_dict()
    assert dpgram.select(release, "y") == dpgram.select(as_gaussian(release), "y")


def test_it_has_a_label_and_a_page(release, tmp_path):
    assert label_data(release)["mechanism"] == NAME
    assert TwoDraws.words in [line for _, facts in label_groups(release) for fact in facts for line in fact.lines]
    dpgram.write_report(release, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert TwoDraws.words in page


@pytest.mark.system("nodejs")
def test_its_page_has_the_numbers_of_python(release):
    case = {"target": "y", "features": ["x", "c", "b"], "options": {}, "cells": []}
    (found,) = evaluate(page_data(release), [case])["fits"]
    wanted = dpgram.regress(release, "y", ["x", "c", "b"]).params
    assert [one["coefficient"] for one in found["coefficients"]] == pytest.approx(list(wanted), rel=1e-8)


def test_it_is_planned(release):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    rows = np.column_stack([np.ones(400), x, x / 2 + rng.normal(scale=0.2, size=400)])
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -1, 1) for name in ("x", "y")])
    found = forecast(ground_of(schema, rows, "y"), dpgram.Budget(1.0, 1e-6), 10_000, mechanisms=[NAME, "gaussian-noise"])
    assert found.of(NAME).typical.error == pytest.approx(found.of("gaussian-noise").typical.error, rel=0.5)


def test_it_is_audited_once_its_law_is_listed(release, monkeypatch):
    """Its law is that of gaussian-noise, and an audit with it finds a mechanism that adds too little."""
    task = registry.task(MECHANISM, dpgram.Budget(1.0, 0.01), dpgram.Neighbours.REPLACE, 2, 1.5, "exact", {})
    with pytest.raises(MechanismError, match=r"two-draws cannot be audited: its law is not known"):
        audit(MECHANISM, task, SeededSource(1), draws=3000)
    monkeypatch.setitem(LAWS, NAME, GaussianNoiseLaw)
    assert not any(result.broken for result in audit(MECHANISM, task, SeededSource(1), draws=3000))
    wrong = dataclasses.replace(MECHANISM, start=lambda task, rng: start(dataclasses.replace(task, row_bound=0.7), rng))
    assert any(result.broken for result in audit(wrong, task, SeededSource(1), draws=3000))


def test_at_most_four_places_ask_which_noise_it_is():
    """Besides them, kinds of noise are named where mechanisms make them, and by audits, which know each mechanism's law."""
    asks = re.compile(rf"(isinstance\(|case ).*\b({'|'.join(KINDS)})\b")
    found = {path.relative_to(SRC).parts[0] for path in SRC.rglob("*.py") if asks.search(path.read_text())}
    assert found <= {"audits"}


def test_the_count_above_would_see_a_branch():
    asks = re.compile(rf"(isinstance\(|case ).*\b({'|'.join(KINDS)})\b")
    assert asks.search("if isinstance(release.noise, WhitenedGaussian):")
    assert asks.search("        case WishartSample() | InverseWishartSample():")
