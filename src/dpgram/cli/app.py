"""The commands, imported when they are called, and what becomes of errors."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from dpgram.errors import DpgramError, DpgramWarning
from dpgram.version import __version__

app = App(
    name="dpgram",
    help="Publish the Gram matrix of a table once, with differential privacy, and run every linear regression on it.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)
schema_app = App(name="schema", help="Schemas: what is declared about a table.")
schema_app.command("dpgram.cli.schema:draft", name="draft", help="Write a schema for a table, to be filled in.")

app.command(schema_app)
app.command("dpgram.cli.release:release", name="release", help="Make one private release of a table.")
app.command("dpgram.cli.inspect:inspect", name="inspect", help="Print a release's privacy label.")
app.command("dpgram.cli.regress:regress", name="regress", help="Fit a linear regression from a release.")
app.command("dpgram.cli.demo:demo", name="demo", help="Run the main job on the bundled flights table.")

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DpgramWarning)
        warnings.showwarning = lambda message, *_, **__: note(f"warning: {message}")
        try:
            app(list(argv), exit_on_error=False, result_action="return_value")
            sys.stdout.flush()
        except DpgramError as error:
            note(f"error: {error}")
            return BAD_INPUT
        except CycloptsError:
            return BAD_INPUT  # cyclopts has said what is wrong
        except KeyboardInterrupt:
            note("interrupted: no part of a file was left behind.")
            return INTERRUPTED
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at exit
            return BROKEN_PIPE
    return 0


def note(text: str) -> None:
    """Words, to standard error."""
    print(text, file=sys.stderr)
