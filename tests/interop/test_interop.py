"""Costs handed to dp-accounting and OpenDP, counted by those libraries, against our own curves."""

import pytest

import dpgram
from dpgram.accounting.gaussian import gaussian_delta
from dpgram.errors import MechanismError
from dpgram.interop.events import dp_event, privacy_loss_distribution
from dpgram.interop.measurement import opendp_measurement
from tests.conftest import small_schema

dp_accounting = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed: pip install 'dpgram[accounting]'")
dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed: pip install 'dpgram[opendp]'")


def made(table, schema, **options):
    return dpgram.release(table, schema, epsilon=1.0, delta=1e-7, **options)


def test_a_release_that_is_not_private_has_no_finite_cost(table, schema):
    release = made(table, schema, insecure_seed=1)
    assert isinstance(dp_event(release), dp_accounting.NonPrivateDpEvent)
    with pytest.raises(MechanismError, match="not private"):
        privacy_loss_distribution(release)
    with pytest.raises(MechanismError, match="not private, so it cannot be a measurement"):
        opendp_measurement(schema, epsilon=1.0, delta=1e-7, insecure_seed=1)


def test_a_gaussian_release_is_an_event_that_its_accountant_counts_as_we_do(table, schema):
    from dp_accounting.pld import PLDAccountant

    release = made(table, schema)
    accountant, doubling = PLDAccountant(), PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_event(release), 4)
    doubling.compose(dp_event(release), 1)
    mu = 2 * release.parameters["mu"]  # four of them, or one that is doubled
    for epsilon in (0.5, 2.0):
        assert accountant.get_delta(epsilon) == pytest.approx(gaussian_delta(epsilon, mu), rel=1e-2)
        assert doubling.get_delta(epsilon) == pytest.approx(gaussian_delta(epsilon, mu), rel=1e-2)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_all_rounds_of_a_release_are_one_event(table, neighbours):
    """One Gaussian mechanism, whose shift is that of looks and rounds together: as dp-accounting counts it, and as it composes them."""
    from dp_accounting.pld import PLDAccountant

    release = made(table, small_schema(neighbours=neighbours), mechanism="whitened-noise")
    whole, rounds = PLDAccountant(), PLDAccountant()
    whole.compose(dp_event(release))
    each = [value for name, value in release.parameters.items() if name.startswith("round_") and name.endswith("_mu")]
    assert len(each) == len(release.noise.rounds) > 1
    for mu in (*each, release.parameters["looks_mu"]):  # looks at columns come before the rounds
        rounds.compose(dp_accounting.GaussianDpEvent(1 / mu))
    for epsilon in (0.5, 1.0):
        expected = gaussian_delta(epsilon, release.parameters["mu"])
        assert whole.get_delta(epsilon) == pytest.approx(expected, rel=1e-2)
        assert rounds.get_delta(epsilon) == pytest.approx(expected, rel=2e-2)
    assert privacy_loss_distribution(release).get_delta_for_epsilon(1.0) == pytest.approx(1e-7, rel=1e-2)


def test_other_releases_are_events_and_loss_distributions(table, schema):
    release = made(table, schema, mechanism="wishart-noise")
    event = dp_event(release)
    assert (event.epsilon, event.delta) == (1.0, 1e-7)
    twice = privacy_loss_distribution(release).compose(privacy_loss_distribution(made(table, schema)))
    assert 1e-7 < twice.get_delta_for_epsilon(1.9) < 1e-4
    assert privacy_loss_distribution(release).get_delta_for_epsilon(1.001) == pytest.approx(1e-7, rel=1e-3)


@pytest.fixture
def features():
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")


def test_a_measurement_must_be_trusted_first(schema):
    with pytest.raises(MechanismError, match="enable_features"):
        opendp_measurement(schema, epsilon=1.0, delta=1e-7)


@pytest.mark.usefixtures("features")
def test_a_measurement_is_composed_by_opendp(table, schema):
    measurement = opendp_measurement(schema, epsilon=1.0, delta=1e-7)
    mu = made(table, schema).parameters["mu"]
    assert measurement.map(1) == pytest.approx(mu**2 / 2)
    assert measurement.map(3) == pytest.approx(9 * mu**2 / 2)
    both = dp.c.make_composition([measurement, measurement])
    assert both.map(1) == pytest.approx(mu**2)
    first, second = both(table)
    assert isinstance(first, dpgram.GramRelease)
    assert first != second
    curve = dp.c.make_zCDP_to_approxDP(measurement).map(1)
    assert curve.epsilon(1e-7) >= 1.0  # OpenDP goes through Renyi divergences, which loses a little
    assert curve.epsilon(1e-7) < 1.3


@pytest.mark.usefixtures("features")
@pytest.mark.parametrize(("neighbours", "hint"), [("replace", {}), ("add-remove", {}), ("add-remove", {"table_rows": 4000})])
def test_a_measurement_of_several_rounds(table, neighbours, hint):
    schema = small_schema(neighbours=neighbours)
    measurement = opendp_measurement(schema, epsilon=1.0, delta=1e-7, mechanism="whitened-noise", **hint)
    release = measurement(table)
    assert release.mechanism == "whitened-noise"
    assert measurement.map(1) == pytest.approx(release.parameters["mu"] ** 2 / 2, rel=1e-9)
    assert measurement.map(1) >= release.parameters["mu"] ** 2 / 2


@pytest.mark.usefixtures("features")
def test_a_measurement_of_another_mechanism_and_relation(table):
    schema = small_schema(neighbours="add-remove")
    measurement = opendp_measurement(schema, epsilon=1.0, delta=1e-7, mechanism="wishart-noise")
    assert measurement.map(1) == (1.0, 1e-7)
    assert measurement.map(0) == (0.0, 0.0)
    assert measurement.input_metric == dp.symmetric_distance()
    with pytest.raises(Exception, match="differ in one row"):
        measurement.map(2)
    assert measurement(table).mechanism == "wishart-noise"


@pytest.mark.usefixtures("features")
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_measurement_of_units_counts_units(neighbours):
    """A row that gets another id changes two units, so OpenDP's own metrics, which count rows, would promise too much."""
    columns = [dpgram.Numeric("x", 0, 1)]
    schema = dpgram.Schema(unit="person", columns=columns, neighbours=neighbours, unit_id="who", rows_per_unit=2)
    measurement = opendp_measurement(schema, epsilon=1.0, delta=1e-7)
    assert measurement.input_metric not in (dp.change_one_distance(), dp.symmetric_distance())
    assert "units" in str(measurement.input_metric)
    made = measurement({"x": [0.1, 0.2, 0.3], "who": [1, 1, 2]})
    assert measurement.map(1) == pytest.approx(made.parameters["mu"] ** 2 / 2)
