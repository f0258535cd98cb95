"""A release as an OpenDP measurement (``pip install 'dpgram[opendp]'``): calling it reads a table and makes a release."""

from __future__ import annotations

from typing import Any

from dpgram import curator
from dpgram.accounting.compose import GaussianCost
from dpgram.errors import MechanismError, MissingExtraError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import known_cost
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import Schema


def opendp_measurement(
    schema: Schema, *, epsilon: float, delta: float, mechanism: str = "gaussian-noise", **options: Any
) -> Any:
    """Make an OpenDP measurement from tables to releases, for use in an OpenDP program.

    OpenDP allows such measurements only after ``opendp.prelude.enable_features("contrib", "honest-but-curious")``.

    Parameters
    ----------
    schema : Schema
        What is declared about the tables. The metric is ChangeOneDistance for the neighbours "replace", and SymmetricDistance for
        "add-remove". With a ``unit_id`` it is a metric of its own that counts units, because OpenDP's count rows.
    epsilon, delta : float
        The privacy budget of one release.
    mechanism : str
        Name of the mechanism. "auto" is not possible, because the cost must be known before there is a table.
    **options
        Options of ``dpgram.release``.

    Returns
    -------
    opendp.mod.Measurement
        The measurement. Its input is any table that ``dpgram.release`` takes, and its output is a release. A Gaussian mechanism is measured
        exactly in zero-concentrated divergence. Others are measured in (epsilon, delta).

    Raises
    ------
    MechanismError
        If OpenDP does not allow the measurement, or if the mechanism cannot be used with these options.
    MissingExtraError
        If OpenDP is not installed.
    """
    try:
        import opendp.prelude as dp
        from opendp.mod import OpenDPException
    except ImportError:
        raise MissingExtraError(package="opendp", extra="opendp", purpose="a release as an OpenDP measurement") from None
    if options.get("insecure_seed") is not None:
        raise MechanismError("a release from a seed is not private, so it cannot be a measurement. Leave out insecure_seed.")
    chosen = registry.find(mechanism)
    known = {name: options[name] for name in options if name in chosen.options}
    task = registry.schema_task(chosen, Budget(epsilon, delta), schema, options.get("calibration", "exact"), known)
    cost = known_cost(chosen, task)
    replaced = schema.neighbours is Neighbours.REPLACE
    metric = dp.change_one_distance() if replaced else dp.symmetric_distance()
    if schema.unit_id is not None:  # a row that gets another id changes two units
        metric = dp.user_distance(f"units, neighbours = {schema.neighbours.value}")

    def distance(d_in: int) -> int:
        if d_in < 0:
            raise ValueError("the distance between two tables must be at least zero")
        return int(d_in)

    def concentrated(d_in: int) -> float:
        return (distance(d_in) * cost.mu) ** 2 / 2 * (1 + 1e-12)  # type: ignore[union-attr]

    def approximate(d_in: int) -> tuple[float, float]:
        if distance(d_in) == 0:
            return 0.0, 0.0
        if d_in > 1:
            raise ValueError("the cost is known only for tables that differ in one row or unit")
        return epsilon, delta

    measure, privacy_map = (
        (dp.zero_concentrated_divergence(), concentrated)
        if isinstance(cost, GaussianCost)
        else (dp.approximate(dp.max_divergence()), approximate)
    )
    try:
        return dp.m.make_user_measurement(
            dp.user_domain("table", lambda table: True),
            metric,
            measure,
            lambda table: curator.release(table, schema, epsilon=epsilon, delta=delta, mechanism=mechanism, **options),
            privacy_map,
        )
    except OpenDPException as error:
        problem = str(error)
    raise MechanismError(
        'OpenDP does not allow the measurement. Call opendp.prelude.enable_features("contrib", "honest-but-curious") first '
        f"({problem.splitlines()[0]})."
    )
