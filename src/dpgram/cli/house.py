"""dpgram audit-house"""

from __future__ import annotations

from dataclasses import asdict

from dpgram.cli.app import note
from dpgram.cli.options import Json
from dpgram.cli.output import print_json, working_bar
from dpgram.errors import MechanismError
from dpgram.house.run import audit_house as find_faults
from dpgram.mechanisms.registry import AUTO, MECHANISMS

BROKEN, SHOWN = 1, 20


def audit_house(name: str | None = None, /, *, quick: bool = False, json: Json = False) -> int:
    """Release made-up tables through the real door, and look for anything that depends on their rows though it may not.

    Args:
        name: A mechanism, or auto. By default all of them.
        quick: Tables in memory at one budget, without files and a large budget. It takes two minutes instead of ten."""
    known = [*MECHANISMS, AUTO]
    if name is not None and name not in known:
        raise MechanismError(f"there is no mechanism {name!r}. There are {', '.join(known)}.")
    with working_bar("releasing") as advance:
        faults, releases = find_faults(name, quick=quick, progress=lambda case, share: advance and advance(share))
    if json:
        print_json({"releases": releases, "faults": [asdict(fault) for fault in faults]})
    for fault in faults[:SHOWN]:
        note(f"refuted on {fault.case}: {fault.words}.")
    if len(faults) > SHOWN:
        note(f"and {len(faults) - SHOWN} more; --json lists them all.")
    if not faults:
        note(f"not refuted by {releases} releases.")
    return BROKEN if faults else 0
