"""Exact releases do not depend on the precision they start with, on what the table is like, or on what goes wrong."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from scipy.stats import chi2_contingency

from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import hold
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling import exact, reals
from dpgram.sampling.base import exact_gram, grid_step
from dpgram.sampling.bits import Uniforms
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.reals import RealMatrix
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import WhitenedGaussian
from tests.rounds import always

FALSE_ALARM = 1e-9
NEEDED = {
    "inverse-wishart": {"degrees_of_freedom": 9.5},
    "noisy-inverse": {"rho": 2.0},
    "whitened-noise": {"table_rows": 1000.0},
}
NAMES = sorted(MECHANISMS)
GRAM = 3.0 * np.ones((5, 5)) + np.diag([1.0, 20, 300, 4000, 50000])


class Counting(ExactSource):
    """Counts the decisions it takes and the attempts it needs for them."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.decisions = self.attempts = 0

    def _counted(self, attempt):
        def counted(bits):
            self.attempts += 1
            return attempt(bits)

        self.decisions += 1
        return counted

    def _refine(self, attempt):
        return super()._refine(self._counted(attempt))

    def _is_positive(self, value):
        return super()._is_positive(self._counted(value))


def publication(name, gram=GRAM, source=None, *, epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE, bound=1.0, **options):
    """Everything that a release by ``name`` publishes: the entries, and the released parameters."""
    given = {**NEEDED.get(name, {}), **options}
    dim = gram.shape[0]
    asked = registry.task(MECHANISMS[name], Budget(epsilon, delta), neighbours, dim, bound, "exact", given)
    outcome = hold(MECHANISMS[name].start(asked, source or ExactSource(1)), always(gram, 1000))
    assert np.isfinite(outcome.gram).all()
    assert np.array_equal(outcome.gram, outcome.gram.T)
    if outcome.grid is not None:
        assert np.array_equal(outcome.gram / outcome.grid, np.rint(outcome.gram / outcome.grid))
    rounds = outcome.noise.rounds if isinstance(outcome.noise, WhitenedGaussian) else ()
    for each in rounds:
        for matrix in (each.gram, *each.outer):
            on_grid = matrix / grid_step(each.sd_off_diagonal)
            assert np.array_equal(on_grid, np.rint(on_grid))
    published = [(each.through.tolist(), each.gram.tolist(), [outer.tolist() for outer in each.outer]) for each in rounds]
    return outcome.gram.tolist(), outcome.grid, outcome.parameters, published


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in NAMES),
        ("gaussian-sketch", {"sketch_rows": 3.0}),  # fewer than columns
        ("gaussian-sketch", {"sketch_rows": 4.001}),  # a last chi-square number of a thousandth of a degree
        ("gaussian-sketch-adaptive", {"first_stage": "gauss"}),
    ],
)
def test_a_starved_precision_publishes_the_same_bits_as_a_generous_one(name, options):
    """The refinement has to fire when it starts with 8 bits, and changes nothing."""
    starved, generous = Counting(7, first_bits=8), Counting(7, first_bits=512)
    expected = publication(name, source=generous, **options)
    assert publication(name, source=starved, **options) == expected
    assert starved.decisions == generous.decisions == generous.attempts
    assert starved.attempts > starved.decisions
    for bits in (16, 64, 128):
        assert publication(name, source=ExactSource(7, first_bits=bits), **options) == expected


class Forgetful(Uniforms):
    """The mistake: where more bits are needed, all are drawn again."""

    def _reveal(self, needed):
        if needed > self._bytes:
            self._numbers, self._bytes = [0] * len(self._numbers), 0
        super()._reveal(needed)


def sizes(first_bits, draws=9000):
    """How often a Laplace number, rounded down to a 64th, has which size; on the operating system's bits."""
    source = ExactSource(first_bits=first_bits)
    drawn = [abs(source.publish_below(source.laplace(1.0), 1 / 64)) for _ in range(draws)]
    return np.histogram(drawn, [0, 0.25, 0.5, 1, 2, 3, np.inf])[0]


@pytest.mark.parametrize(("uniforms", "accepted"), [(Uniforms, True), (Forgetful, False)])
def test_what_is_decided_late_has_the_law_of_what_is_decided_at_once(uniforms, accepted, monkeypatch):
    """Of 8 bits of v, ln(v) is known to a 64th only where v is large. Had the rest been drawn again, large numbers would become rare."""
    generous = sizes(512)
    monkeypatch.setattr(exact, "Uniforms", uniforms)
    assert (chi2_contingency([generous, sizes(8)]).pvalue > FALSE_ALARM) == accepted


def just_beside_a_half(by):
    """A matrix of the number 1/2 + by sqrt(2), which no ball of few bits can tell from 1/2."""
    return RealMatrix((1, 1), lambda bits: arb_mat([[arb(0.5) + by * arb(2).sqrt()]]))


@pytest.mark.parametrize(("by", "rounded"), [(arb((1, -200)), 1.0), (arb((-1, -200)), 0.0), (arb((-1, -3000)), 0.0)])
def test_a_number_beside_a_tie_is_decided_by_more_bits(by, rounded):
    source = Counting(0)
    assert source.publish(just_beside_a_half(by), 1.0) == rounded
    assert source.attempts > 1


def test_a_tie_that_is_known_exactly_goes_up_and_one_that_is_not_is_an_error():
    source = ExactSource(0)
    assert source.publish(RealMatrix.of_floats(np.array([[0.5]])), 1.0) == 1.0
    assert source.publish(RealMatrix.of_floats(np.array([[-0.5]])), 1.0) == 0.0
    assert not np.signbit(source.publish(RealMatrix.of_floats(np.array([[-0.25]])), 1.0)).any()
    with pytest.raises(ArithmeticError, match="undecided at 65536 bits"):
        source.publish(RealMatrix((1, 1), lambda bits: arb_mat([[arb(2).sqrt() ** 2 / 4]])), 1.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_many_digits_are_rounded_to_a_float_at_the_end_and_never_up_where_that_is_promised(sign):
    source = ExactSource(0)
    for whole in (2**53 + 1, 2**60 + 1, 2**60 - 1, 2**92 + 2**39 + 1, 2**92 - 1):
        number = RealMatrix.of_integers([[sign * whole]], 0)
        assert source.publish(number, 1.0)[0, 0] == float(sign * whole)
        released = source.publish_below(reals.Real(lambda bits, number=number: number.at(bits)[0, 0]), 1.0)
        assert int(released) <= sign * whole < int(math.nextafter(released, math.inf))


ROWS = np.random.default_rng(0).integers(-(2**20), 2**20, size=(2, 5))
GRAMS = {
    "nothing": np.zeros((5, 5), dtype=object),
    "one column": np.array([[700 << 40]], dtype=object),
    "one column of zeros": np.array([[0]], dtype=object),
    "fewer rows than columns": (ROWS.T @ ROWS).astype(object),
    "a column twice": np.ones((3, 3), dtype=object) << 40,
    "a constant and zeros": np.diag([1000, 0, 0]).astype(object) << 40,
    "as many rows as there may be": np.array([[2**92, 2**91 + 1], [2**91 + 1, 2**92 - 1]], dtype=object),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", GRAMS)
@pytest.mark.parametrize("neighbours", Neighbours)
def test_every_gram_gives_a_release_on_its_grid_whatever_the_first_precision(name, case, neighbours):
    gram = exact_gram(GRAMS[case], -40)
    one, other = (
        publication(name, gram, ExactSource(3, first_bits=bits), neighbours=neighbours, **NEEDED.get(name, {}))
        for bits in (8, 128)
    )
    assert one == other


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-15), (1.0, 1e-15), (20.0, 1e-6), (20.0, 0.3)])
def test_every_budget_gives_a_release(name, epsilon, delta):
    publication(name, source=ExactSource(3), epsilon=epsilon, delta=delta)
    publication(name, source=ExactSource(3), epsilon=epsilon, delta=delta, neighbours=Neighbours.ADD_REMOVE)


@pytest.mark.parametrize("name", ["gaussian-sketch", "gaussian-sketch-adaptive", "inverse-wishart", "inverse-wishart-adaptive"])
@pytest.mark.parametrize("degrees", [5.0, 5.25, 1e6 + 0.5, 1e12])
def test_all_degrees_of_freedom_are_drawn(name, degrees):
    option = "sketch_rows" if "sketch" in name else "degrees_of_freedom"
    one, other = (publication(name, source=ExactSource(3, first_bits=bits), **{option: degrees}) for bits in (8, 256))
    assert one == other


@pytest.mark.parametrize("degrees", [4.001, 4 + 1e-9])
def test_degrees_of_freedom_whose_draws_overflow_are_refused_before_any_row_is_read(degrees):
    """A chi-square number of a thousandth of a degree is below 2^-2000 every third time, and its inverse is no float."""
    with pytest.raises(registry.MechanismError, match="must lie between d = 5 and 1e12"):
        publication("inverse-wishart", degrees_of_freedom=degrees)


def test_a_published_inverse_that_is_singular_is_no_error(monkeypatch):
    """A single column is published as exactly zero once in 2^25 releases."""
    monkeypatch.setattr(ExactSource, "publish", lambda self, matrix, step: np.zeros((1, 1)))
    assert publication("noisy-inverse", np.array([[9.0]]))[0] == [[0.0]]


@pytest.mark.parametrize("name", ["gaussian-noise", "wishart-noise"])
def test_added_noise_is_the_same_whatever_it_is_added_to(name):
    """With one seed, two tables whose Grams are multiples of the grid give releases that differ by the difference of these, exactly."""
    table = np.array([[1000, -3], [-3, 70]], dtype=object)
    with_table, without = (
        publication(name, exact_gram(gram << 40, -40), ExactSource(5), repair="none")[0] for gram in (table, 0 * table)
    )
    assert np.array_equal(np.array(with_table) - np.array(without), table.astype(float))


def test_the_precision_of_the_library_is_what_it_was_after_errors_and_interrupts():
    before = ctx.prec
    for problem in (ArithmeticError, KeyboardInterrupt, reals.Undecided, MemoryError):

        def fail(bits, problem=problem):
            assert ctx.prec == bits
            raise problem

        with pytest.raises(ArithmeticError if problem is reals.Undecided else problem):
            reals.refine(fail, 64)
        assert ctx.prec == before


def test_an_interrupted_release_can_be_followed_by_another(monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    before, expected = ctx.prec, publication("gaussian-sketch-adaptive")
    with monkeypatch.context() as patch:
        patch.setattr(reals, "_small_cholesky", interrupt)
        with pytest.raises(KeyboardInterrupt):
            publication("gaussian-sketch-adaptive")
    assert ctx.prec == before
    assert publication("gaussian-sketch-adaptive") == expected


def test_threads_that_release_at_once_get_what_they_would_get_alone():
    """They ask for different precisions, which is one global setting."""
    jobs = [(name, seed, bits) for name in ("gaussian-noise", "inverse-wishart") for seed, bits in ((1, 8), (2, 700), (3, 64))]
    alone = {job: publication(job[0], source=ExactSource(job[1], first_bits=job[2])) for job in jobs}
    together = {}

    def work(job):
        for _ in range(5):
            together[job] = publication(job[0], source=ExactSource(job[1], first_bits=job[2]))

    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    before = ctx.prec
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
    assert ctx.prec == before
