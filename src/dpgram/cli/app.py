"""The commands, imported when they are called, and what becomes of errors."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

from dpgram.errors import DpgramError, DpgramWarning
from dpgram.terms.words import visible
from dpgram.version import __version__

# Groups of commands, and the commands by module and function, with their help: it stands here so that `dpgram --help` need not import
# them, and its first line stands in the list of commands.
COMMANDS = {
    "schema": "Write a schema: what you declare about a table.",
    "schema:draft": """Write a schema for a table, to be filled in.

The draft goes to standard output. It contains the column names, and their kinds if the file format declares types. It never
contains a value. Fill in bounds and categories from what you know of the domain. Do not look them up in the data.

Example: dpgram schema draft visits.parquet > visits.toml""",
    "schema:suggest_derived": """List the derived columns that wished models need, and what they cost.

Use it before a release, because derived columns cannot be added afterwards. The lines for the schema file go to standard output,
and the costs in noise to standard error. It reads no table and spends no budget. See docs/formulas.md.

Example: dpgram schema suggest-derived --schema visits.toml --formula "cost ~ age*sex + I(age**2)" """,
    "check:check": """Compare a table with its schema, before a release.

It tells which cells are missing, clamped, undeclared or unreadable, and why. It also tells columns that are constant or follow
from others, and rows that would not count. It spends no budget. It looks at the rows, so do not publish what it prints. See
docs/custodian.md.

Example: dpgram check visits.csv --schema visits.toml""",
    "plan:plan": """Forecast how accurate a release would be.

Use it to choose the budget, the mechanism and the row bound before a release. It prints expected errors, confidence
intervals and detectable effects for every mechanism. It reads no table and spends no budget. See docs/plan.md.

Example: dpgram plan --schema visits.toml --epsilon 1 --delta 1e-7 --table-rows 50000""",
    "release:release": """Make one private release of a table.

The release is a file that you can publish. It costs epsilon and delta once, and all regressions from it are free. The
schema, the output folder and the table's columns are checked before anything is spent.

Example: dpgram release visits.parquet --schema visits.toml --epsilon 1 --delta 1e-7 --out visits.json""",
    "keys": "Make keys to sign releases with.",
    "keys:new": """Make a key to sign releases with.

It writes two files: a private key, which only you may have, and beside it the public key, with which readers check your
signature. It needs pip install 'dpgram[sign]'.

Example: dpgram keys new custodian.key --name "Data office, City Hospital\"""",
    "verify:verify": """Check who signed a release.

It says whether the release was signed with a key, and was not changed since. The exit code is 1 if not. It needs
pip install 'dpgram[sign]'.

Example: dpgram verify visits.json --key custodian.pub""",
    "ledger": "Keep several releases of one dataset within a single budget.",
    "ledger:open_command": """Create the ledger of a dataset, once.

To keep several releases of one dataset within a single budget, record them in a ledger: pass --ledger FILE to every `dpgram
release`.

Example: dpgram ledger open --epsilon 3 --delta 1e-6 --unit person --dataset visits-2026""",
    "ledger:show": """Print what was spent on a dataset.

It prints every release, the plain sum and the composed total, and the seal of the last line. Note the seal elsewhere to
detect later if lines are removed.""",
    "ledger:settle": """Give back the rounds that a failed release never drew.

Use it for a release of several rounds that ended early. Do not use it while the release runs. The rounds that were drawn,
or were about to be drawn, stay spent.""",
    "inspect:inspect": """Print a release's privacy label.

The label says what is promised, to whom, and by which mechanism. It also says what in the file is public and what is
protected.""",
    "regress:regress": """Fit linear regressions from a release.

Fit as many as you like, because this costs no budget. Coefficients are in the columns' own units. Standard errors and
confidence intervals include the privacy noise. See docs/regression.md.

Example: dpgram regress visits.json --target cost --features age,sex""",
    "logit:logit": """Fit a logit of a yes-or-no target from a release.

Coefficients come from the linear regression of the 0/1 target (the discriminant route), with odds ratios. They approximate
those of a maximum likelihood logit. docs/yes-no.md says when this is good. It costs no budget.

Example: dpgram logit visits.json --formula "readmitted ~ age + stay\"""",
    "lda:lda": """Print a linear discriminant analysis from a release.

It prints the scores that tell the classes of a categorical target apart, and error rates. It costs no budget.

Example: dpgram lda visits.json --target ward --features age,stay""",
    "margins:margins": """Print marginal effects of a column in a regression.

Use it if the model has a square, a logarithm or a product of the column. Then no single coefficient is its effect. Standard
errors include the privacy noise. It costs no budget. See docs/tables.md.

Example: dpgram margins visits.json --formula "cost ~ age*smoker" --column age --at age=30,50 --at smoker=yes""",
    "controls:controls_command": """Show how one coefficient moves as controls enter.

It fits a sequence of regressions from a release, each with one group of controls more, and says how much each group moves
the coefficient (Gelbach 2016). Standard errors include the privacy noise. It costs no budget. See docs/controls.md.

Example: dpgram controls visits.json --target cost --coefficient treated --add age,sex --add region""",
    "iv:iv": """Fit a regression with instrumental variables from a release.

Use it if a regressor is related to the errors. It costs no budget. Standard errors, confidence sets and the F statistic of
the first stage include the privacy noise, and weak instruments are reported. See docs/instruments.md.

Example: dpgram iv wages.json --formula "lwage ~ exper + [educ ~ distance]\"""",
    "matrices:cov_command": """Print means, covariances and correlations from a release.

All numbers are in the columns' own units. Standard errors include the privacy noise. It costs no budget.

Example: dpgram cov visits.json --columns age,cost --kind correlation""",
    "matrices:pca_command": """Print principal components from a release.

It prints the loadings and the share of the variance of each component. It costs no budget.

Example: dpgram pca visits.json --standardise""",
    "structure:partial_command": """Print partial correlations from a release.

The partial correlation of two columns is their correlation given all the others. Standard errors and confidence intervals
include the privacy noise. It costs no budget. See docs/structure.md.

Example: dpgram partial visits.json --columns age,cost,stay""",
    "structure:graph_command": """Print which columns are related given all the others, as a graph.

It uses the graphical lasso of scikit-learn. It prints the edges, and draws the graph with --plot. It costs no budget. See
docs/structure.md.

Example: dpgram graph visits.json --plot graph.png""",
    "report:report": """Write a web page about a release: its privacy label, and models to explore.

The page is one HTML file. It opens from disk and needs no network. It costs no budget.

Example: dpgram report visits.json --out visits.html""",
    "signoff:signoff": """Write a page about a release for an officer to sign.

It sums up the release's label and what the dataset has spent, in plain words, on one or two printed pages. The ledger must
have paid for this very file. It runs the self-tests of 'dpgram doctor'. It costs no budget.

Example: dpgram signoff visits.json --ledger ledger.sqlite --out signoff.html""",
    "combine:combine_command": """Combine several releases into one.

The releases can be of disjoint rows, such as those of several hospitals or years, or of the same rows, released twice. The
result is a release file for all other commands. It costs no budget. See docs/combine.md.

Example: dpgram combine north.json south.json --rows disjoint --out both.json""",
    "calibrate:calibrate": """Print a mechanism's parameters for a budget.

Use it to see how much noise a mechanism needs. It reads no data. The mechanisms are gaussian-noise, gaussian-sketch,
gaussian-sketch-adaptive, wishart-noise, inverse-wishart, inverse-wishart-adaptive, noisy-inverse and whitened-noise.

Example: dpgram calibrate gaussian-noise --epsilon 1 --delta 1e-6 --dim 10 --row-bound 3""",
    "audit:audit": """Test a mechanism's privacy claim by attacking it.

It makes many releases of two neighbouring made-up tables, and measures how well they can be told apart. It reads no data of
yours. The exit code is 1 if the claim is refuted. See docs/audits.md.

Example: dpgram audit gaussian-noise""",
    "house:audit_house": """Test whole releases: nothing but the noisy matrices may depend on the rows.

It releases made-up tables through the real door, from files and from memory. Whatever is published is replaced by what
another table published. Then all questions, numbers, words, ledger lines and files must be the same. Neighbours may differ
by no more than the noise hides. It reads no data of yours. The exit code is 1 if it finds a fault. See docs/audits.md.

Example: dpgram audit-house whitened-noise --quick""",
    "doctor:doctor": """Report what this installation can do.

It shows the version, the compiled kernel, threads, extras, Java and GPU, and runs self-tests with known answers. It reads no
table. The exit code is 1 if a self-test fails.""",
    "demo:demo": """Try dpgram on a bundled table of flights.

It makes one private release and fits three regressions from it. It writes a figure, and the page of 'dpgram report'. The
table is public, so the results can be shown beside non-private ones. Never do this with data that need protection.""",
}


app = App(
    name="dpgram",
    help="Publish the Gram matrix of a table once, with differential privacy, and run every linear regression on it.\n\n"
    "Custodian: schema draft, check, plan, keys, release, ledger, report, signoff. Analyst: verify, inspect, regress, margins, iv, logit, "
    "lda, controls, cov, pca, partial, graph, combine. Researcher: calibrate, audit, audit-house. Anyone: doctor, demo.",
    version=__version__,
    help_format="markdown",
    default_parameter=Parameter(negative_bool="", negative_iterable=""),  # a flag is given or not
    suppress_keyboard_interrupt=False,
)
groups: dict[str, App] = {}
for place, words in COMMANDS.items():
    module, _, function = place.partition(":")
    if function:
        groups.get(module, app).command(
            f"dpgram.cli.{place}", name=function.removesuffix("_command").replace("_", "-"), help=words
        )
    else:
        groups[module] = App(name=module, help=words)
        app.command(groups[module])

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def misuse(error: CycloptsError) -> str:
    """What is wrong with the words of a command, on one line."""
    command = " ".join(["dpgram", *(error.command_chain or ())])
    match error:
        case MissingArgumentError(argument=argument) if argument is not None:
            problem = f"{argument.name} is missing, or has no value."
        case UnusedCliTokensError(unused_tokens=tokens) if tokens:
            problem = f"'{command}' does not take {', '.join(map(repr, tokens))}."
        case _:
            problem = " ".join(str(error).split())
    return f"{problem} '{command} --help' shows what it takes."


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    with warnings.catch_warnings(), noted_log():
        warnings.simplefilter("always", DpgramWarning)
        warnings.showwarning = lambda message, *_, **__: note(f"warning: {message}")
        try:
            code = app(list(argv), exit_on_error=False, print_error=False, result_action="return_value")
            sys.stdout.flush()
        except DpgramError as error:
            note(" ".join([f"error: {error}", *notes_of(error)]))
            return BAD_INPUT
        except CycloptsError as error:
            note(f"error: {misuse(error)}")
            return BAD_INPUT
        except KeyboardInterrupt as error:
            note(" ".join(["interrupted: no incomplete file was left behind.", *notes_of(error)]))
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
    print(visible(text), file=sys.stderr)
