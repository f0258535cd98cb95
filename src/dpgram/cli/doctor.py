"""dpgram doctor"""

from __future__ import annotations

from dpgram.cli.app import note
from dpgram.cli.options import Json
from dpgram.cli.output import print_json, print_pairs
from dpgram.doctor.facts import Extra, Facts, gather


def doctor(*, json: Json = False) -> int:
    """Report what this installation can do, and test its arithmetic."""
    facts = gather()
    if json:
        print_json(facts.to_dict())
    else:
        _print(facts)
    if not facts.healthy:
        note(
            "A self-test failed: do not make releases with this installation. Install dpgram again, or report the output above."
        )
    return int(not facts.healthy)


def _print(facts: Facts) -> None:
    print_pairs(
        f"dpgram {facts.version}",
        [
            ("Python", f"{facts.python}, {facts.platform}"),
            ("installed in", facts.place),
            ("kernel", facts.kernel.words),
            ("threads", f"{facts.threads} (set DPGRAM_THREADS or --threads to change it)"),
            ("Java", facts.java),
            ("GPU", facts.gpu),
        ],
    )
    print_pairs("Extras", [(name, _extra(name, extra)) for name, extra in facts.extras.items()])
    results = [(result.name, f"{'ok' if result.passed else 'FAILED'}: {result.words}") for result in facts.self_tests]
    print_pairs("Self-tests", results)


def _extra(name: str, extra: Extra) -> str:
    present = ", ".join(f"{package} {version}" for package, version in extra.versions.items() if version)
    if extra.installed:
        return present
    missing = ", ".join(package for package, version in extra.versions.items() if not version)
    state = f"{present}; {missing} not installed" if present else "not installed"
    return f"{state} ({extra.purpose}): pip install 'dpgram[{name}]'"
