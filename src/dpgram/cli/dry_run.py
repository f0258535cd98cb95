"""dpgram release --dry-run: the label and the forecast of a release that is not made.

The table is not opened, not even for its header: a dry run can be made where the table is not, and no connection is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpgram import curator
from dpgram.cli.app import note
from dpgram.cli.inspect import print_label
from dpgram.cli.output import print_json
from dpgram.cli.plan import print_plan
from dpgram.errors import MechanismError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, Mechanism, Task, hold
from dpgram.mechanisms.registry import AUTO, TABLE_ROWS
from dpgram.planning.choose import check_hint, choose
from dpgram.report.fact import Planned
from dpgram.report.facts import label_data
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Neighbours


def show_without_release(planned: Planned, options: Mapping[str, Any], table_rows: int | None, *, json: bool) -> None:
    """Print what is known of the release beforehand. Reads no row, spends nothing, writes nothing."""
    schema, budget, calibration = planned.schema, planned.budget, planned.calibration
    choice = ""
    if planned.mechanism == AUTO:
        if table_rows is None and schema.neighbours is Neighbours.REPLACE:
            raise MechanismError(
                "a dry run with mechanism 'auto', the default, needs --table-rows, because the choice depends on the number of rows. "
                "Pass it, or name a --mechanism."
            )
        check_hint(table_rows, options)
        named, choice = choose(schema, table_rows, budget, calibration)
    else:
        named = registry.find(planned.mechanism)
    hint = {} if table_rows is None or TABLE_ROWS not in named.options else {TABLE_ROWS: table_rows}
    task = registry.schema_task(named, budget, schema, calibration, {**options, **hint})
    public = schema.neighbours is Neighbours.REPLACE and not task.by_unit
    parameters, condition = _known(named, replace(task, rows=table_rows if public else None))
    planned = replace(planned, mechanism=named.name, parameters=parameters, condition=condition, choice=choice)
    plan = None
    if table_rows is not None:
        plan = curator.plan(
            schema,
            epsilon=budget.epsilon,
            delta=budget.delta,
            table_rows=table_rows,
            mechanisms=None if choice else [named.name],
            calibration=calibration,
            **options,
        )
    if json:
        print_json({"dry_run": True, "label": label_data(planned), "forecast": None if plan is None else plan.to_dict()})
    else:
        print_label(planned)
        if plan is not None:
            print_plan(plan, coefficients=False)
    if plan is None:
        note("to forecast the release's errors, pass --table-rows with a public number of rows")
    note("dry run: the table was not opened, and nothing was released or spent")


def _known(mechanism: Mechanism, task: Task) -> tuple[dict[str, float], str]:
    """The parameters, and what the guarantee hangs on; parameters that follow an unknown number of rows are left out."""
    try:
        parameters = mechanism.calibrate(task)
    except MechanismError:
        if "degrees_of_freedom" in task.options or task.rows is not None or task.neighbours is Neighbours.ADD_REMOVE:
            raise
        return {}, ""
    if mechanism.several:  # rounds follow each other by what they publish; none of them hangs on a claim
        return parameters, ""
    floor = parameters.get("claimed_floor", 1.0)
    stand_in = GramAnswer(2 * floor * np.eye(task.dim), task.rows or 1)
    return parameters, hold(mechanism.start(task, SeededSource(0)), lambda question: stand_in).condition
