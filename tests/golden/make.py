"""python -m tests.golden.make writes the goldens anew, with whatever dpgram is first on the path.

They were made by the commit before the renovation, from a checkout of it:

    PYTHONPATH=CHECKOUT/src python -m tests.golden.make

``--renew MECHANISM``, where its releases are meant to give other numbers, makes those anew, with what is said about them and the plans that
move, names what it renewed, and keeps everything else as it is. Release files in ``files/`` stay: old files must load.

``--renew-answers``, where estimators are meant to give other numbers, does the same and keeps all releases as they are.

``--compare-with OTHER/src`` writes nothing: it computes everything with that source and with this tree's, and compares releases to the bit
and answers to 1e-9. On one machine bits can be asked of all releases, also of those that are made with LAPACK."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import dpgram
from tests.golden import doors, plans, refusals
from tests.golden.answers import answers, plain, simulated
from tests.golden.compare import TOLERANCE, count, differences, in_words, largest
from tests.golden.page import shown
from tests.golden.releases import SETTINGS, contents, loaded, numbers
from tests.golden.store import FILES, HERE, WHOLE, golden, keep
from tests.needs import program

SAMPLE = "gaussian-noise/replace"  # the release that commands and refusals are about


def releases() -> dict[str, dict]:
    """The contents of every release's file; of one that is refused the type of the error."""
    found = {}
    for name, setting in SETTINGS.items():
        try:
            found[name] = contents(setting.release())
        except dpgram.DpgramError as problem:
            found[name] = {"error": type(problem).__name__}
    return found


def all_answers(files: dict[str, dict], *, slow: bool) -> dict[str, Any]:
    """Everything that is said about releases in these files, and without any; answers start from files, so from the same bits anywhere."""
    auto = {**plans.AUTO, **(plans.SLOW_AUTO if slow else {})}
    made = {**plans.PLANS, **(plans.SLOW_PLANS if slow else {})}
    return {
        "answers": {name: answers(one, loaded(files[name])) for name, one in SETTINGS.items() if one.answers},
        "page": {name: shown(one, loaded(files[name])) for name, one in SETTINGS.items() if one.page},
        "doors": {
            "bootstrap": {name: simulated(one, loaded(files[name])) for name, one in SETTINGS.items() if one.bootstrap},
            "plans": {name: plain(make()) for name, make in made.items()},
            "auto": {name: plans.chosen(*which) for name, which in auto.items()},
            "estimators": {name: doors.fitted(name) for name in doors.ESTIMATORS},
            "commands": {name: doors.printed(name, files[SAMPLE]) for name in doors.COMMANDS},
            "refusals": refusals.refusals(loaded(files[SAMPLE])),
        },
    }


def write() -> None:
    made = releases()
    keep("releases", made)
    for name, value in all_answers(made, slow=True).items():
        keep(name, value)
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir()
    for file, name in WHOLE.items():
        SETTINGS[name].release().save(FILES / file)


def renew(mechanism: str | None) -> None:
    """Of releases only those of ``mechanism``, if any, and of what is said about releases only what differs."""
    made = {**golden("releases")}
    new = {
        name: contents(setting.release())
        for name, setting in SETTINGS.items()
        if setting.mechanism == mechanism and "error" not in made[name]
    }
    keep("releases", {**made, **new})
    for part, now in all_answers(golden("releases"), slow=True).items():
        was = golden(part)
        nested = part == "doors"
        kept = {group: _renewed(was[group], now[group], group) for group in was} if nested else _renewed(was, now, part)
        keep(part, kept)


def _renewed(was: dict, now: dict, what: str) -> dict:
    was = {name: was[name] for name in was if name in now}  # what is asked no more is kept no more
    moved = [name for name in was if differences(was[name], now[name], TOLERANCE)]
    print(f"{what}: {len(moved)} of {len(was)} renewed: {', '.join(moved)}")
    return {name: now[name] if name in moved else was[name] for name in was}


def dump(path: Path, *, slow: bool) -> None:
    found = {"releases": {n: f if "error" in f else numbers(f) for n, f in releases().items()}}
    path.write_text(json.dumps({**found, **all_answers(golden("releases"), slow=slow)}))


def compare_with(other: Path, *, slow: bool) -> bool:
    """Whether the other source gives the same; says so part by part."""
    was, now = (_computed(source, slow=slow) for source in (other, HERE.parents[1] / "src"))
    same = True
    for part, allowed in (("releases", 0.0), ("answers", TOLERANCE), ("page", TOLERANCE), ("doors", TOLERANCE)):
        found, most = differences(was[part], now[part], allowed), largest(was[part], now[part])
        asked = "to the bit" if allowed == 0 else f"to {allowed:g}"
        print(f"{part}: {count(was[part])} numbers compared {asked}: {'DIFFERENT' if found else 'the same'}")
        print(f"  largest difference: {most or 'none, not in one bit'}")
        if found:
            print(in_words(found, most=40))
        same = same and not found
    return same


def _computed(source: Path, *, slow: bool) -> dict[str, Any]:
    """Everything, by the dpgram in ``source``, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dump.json")
        command = [sys.executable, "-m", "tests.golden.make", "--dump", str(path), *(["--slow"] if slow else [])]
        places = {"PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=HERE.parents[1], env={**os.environ, **places}, check=True)
        return json.loads(path.read_bytes())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.make", description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--compare-with", type=Path, metavar="SRC", help="the src folder of another checkout; nothing is written"
    )
    parser.add_argument("--renew", metavar="MECHANISM", help="only what follows from releases by this mechanism")
    parser.add_argument("--renew-answers", action="store_true", help="only what is said about the releases, which stay")
    parser.add_argument("--slow", action="store_true", help="with --compare-with: plans that take long, too")
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if program("node") is None:
        parser.error("node is not installed, and the page's numbers need it")
    if asked.dump is not None:
        dump(asked.dump, slow=asked.slow)
    elif asked.compare_with is not None:
        return 0 if compare_with(asked.compare_with, slow=asked.slow) else 1
    elif asked.renew is not None or asked.renew_answers:
        renew(asked.renew)
    else:
        write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
