"""The commands, imported when they are called, and what becomes of errors."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cyclopts import App, CycloptsError, Parameter

from dpgram.errors import DpgramError, DpgramWarning
from dpgram.version import __version__

# Groups of commands, and the commands by module and function, with their help: it stands here so that `dpgram --help` need not import
# them, and its first line stands in the list of commands.
COMMANDS = {
    "schema": "Schemas: what is declared about a table.",
    "schema:draft": """Write a schema for a table, to be filled in.

It holds the column names, and kinds where the format declares types, but never a value. Bounds and categories stay blank:
declare them from what is known of the domain, not from the data.""",
    "plan:plan": """Forecast what a release would give.

Reads no table and spends nothing: errors, intervals and detectable effects of every mechanism, from the schema, the number of
rows, the budget and stated assumptions. docs/plan.md says how to read it.""",
    "release:release": """Make one private release of a table.

Epsilon and delta are your choice, so they have no default. Nothing is spent before the schema, the output folder and the
table's columns have been checked.""",
    "ledger": "Ledgers: what was spent on a dataset.",
    "ledger:open_command": """Open an account for a dataset, once.

All releases that name the ledger (`dpgram release --ledger FILE`) stay together within its epsilon and delta.""",
    "ledger:show": """Print what was spent on a dataset.

The plain sum and the composed total, every release, and the seal of the last line.""",
    "ledger:settle": """Give back the rounds that a failed release never drew.

For a release of several rounds that ended early, and not while it runs: the rounds that were drawn, or were about to be, stay spent.""",
    "inspect:inspect": """Print a release's privacy label.

What was promised, to whom, by which mechanism, and what in the file is public or protected.""",
    "regress:regress": """Fit linear regressions from a release.

Costs no budget: fit as many as you like. Coefficients are in the columns' own units, with intervals that count the privacy noise.""",
    "matrices:cov_command": """Print means, covariances and correlations from a release.

Costs no budget. In the columns' own units, with standard errors that count the privacy noise.""",
    "matrices:pca_command": """Print principal components from a release.

Costs no budget.""",
    "report:report": """Write one page about a release: its privacy label, and models to explore.

Costs no budget. One HTML file that opens from disk and asks for nothing from any network.""",
    "calibrate:calibrate": """Print a mechanism's parameters for a budget.

Touches no data. Mechanisms: gaussian-noise, gaussian-sketch, gaussian-sketch-adaptive, wishart-noise, inverse-wishart,
inverse-wishart-adaptive, noisy-inverse, whitened-noise.""",
    "audit:audit": """Attack a mechanism on its worst neighbours.

Touches no data: releases two made-up tables many times, and reports how far apart they can be told, beside what is claimed.
Exit code 1 where the claim is refuted. docs/audits.md says how to read it.""",
    "doctor:doctor": """Report what this installation can do.

Version, compiled kernel, threads, extras, Java and GPU, and self-tests with known answers. Reads no table. Exit code 1 where a
self-test fails.""",
    "demo:demo": """Run the main job on the bundled flights table.

One private release, three regressions from it, one figure, and the page that `dpgram report` writes. The table is public, so
private coefficients can be shown beside non-private ones. Never do this with data that need protection.""",
}

app = App(
    name="dpgram",
    help="Publish the Gram matrix of a table once, with differential privacy, and run every linear regression on it.",
    version=__version__,
    help_format="plaintext",
    default_parameter=Parameter(negative_bool=""),  # a flag is given or not
    suppress_keyboard_interrupt=False,
)
groups: dict[str, App] = {}
for place, words in COMMANDS.items():
    module, _, function = place.partition(":")
    if function:
        groups.get(module, app).command(f"dpgram.cli.{place}", name=function.removesuffix("_command"), help=words)
    else:
        groups[module] = App(name=module, help=words)
        app.command(groups[module])

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    with warnings.catch_warnings(), noted_log():
        warnings.simplefilter("always", DpgramWarning)
        warnings.showwarning = lambda message, *_, **__: note(f"warning: {message}")
        try:
            code = app(list(argv), exit_on_error=False, result_action="return_value")
            sys.stdout.flush()
        except DpgramError as error:
            note(" ".join([f"error: {error}", *notes_of(error)]))
            return BAD_INPUT
        except CycloptsError:
            return BAD_INPUT  # cyclopts has said what is wrong
        except KeyboardInterrupt as error:
            note(" ".join(["interrupted: no part of a file was left behind.", *notes_of(error)]))
            return INTERRUPTED
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at exit
            return BROKEN_PIPE
    return code if isinstance(code, int) else 0


@contextmanager
def noted_log() -> Iterator[None]:
    """Within it what the library logs, which is what it does by itself and can be told not to do, is said."""
    log, handler = logging.getLogger("dpgram"), _Notes()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def notes_of(error: BaseException) -> list[str]:
    """What was noted on an error on its way: the ledger's line that stays reserved."""
    return list(getattr(error, "__notes__", ()))


def note(text: str) -> None:
    """Words, to standard error."""
    print(text, file=sys.stderr)
