"""The sign-off: a release on one or two printed pages, for the file of whoever agrees to its publication.

It is written for somebody who knows the project and no mathematics. What it says of the dataset's budget holds at the time of writing."""

from __future__ import annotations

import hashlib
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dpgram.accounting.total import rounded_up
from dpgram.artifact.combined import CombinedRelease
from dpgram.artifact.release import GramRelease
from dpgram.errors import LedgerError, ReleaseFileError
from dpgram.ledger.file import Account, Entry
from dpgram.mechanisms import registry
from dpgram.report.fact import Fact
from dpgram.report.facts import SEEDED, facts
from dpgram.report.notes import certainty, chance
from dpgram.report.page.write import pair_list, policy_of
from dpgram.report.signed import signature_words

CSS = Path(__file__).with_name("signoff.css")
PROOFS = Path(registry.__file__).parent / "proofs"
LOOKED_AT = "looked at with dpgram check"  # as `dpgram check` writes it into the provenance
MOST_NAMES = 24  # of columns; the label has all of them
BY_HAND = "........................................................ (fill in by hand)"
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class SelfTests:
    """What the software said of itself when the page was written."""

    version: str
    passed: Sequence[str]
    failed: Sequence[str]


def signoff_page(
    release: GramRelease, account: Account, *, file: str, sha256: str, tests: SelfTests, by: str | None = None
) -> str:
    """The page as text. Raises if the ledger did not pay for this very file, because it could not say then what the dataset has spent."""
    entry = paid_by(release, account, file=file, sha256=sha256)
    style, now = CSS.read_text(encoding="utf-8").strip("\n"), datetime.now(UTC).isoformat(timespec="minutes")
    known = {fact.key: fact for fact in facts(release) if fact.key}
    title = f"Sign-off of a private release: {account.opened.dataset}"
    sections: dict[str, Pairs] = {
        "The release": _about(release, account, entry, file, by),
        "The promise": _promise(release, known),
        "The budget": _budget(release, account, now),
        "What is in the file": [
            ("public", "; ".join(known["public",].lines)),
            (
                "all else",
                "contains noise: the matrix, and whatever was computed from it. No row is in the file, and no sum without noise",
            ),
        ],
        "What is assumed": _assumed(release, known),
        "How noise was added": _mechanism(release, known, tests),
        "Software": _software(release, tests, now),
        "The file": _file(release, account, entry, sha256),
    }
    policy = f"default-src 'none'; {policy_of(style)}"
    head = (
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{html.escape(title)}</title>\n<style>{style}</style>'
    )
    told = "\n".join(f"<h2>{name}</h2>\n<dl>{pair_list(pairs)}</dl>" for name, pairs in sections.items())
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n<h1>{html.escape(title)}</h1>\n'
        f'<p class="lead">For the file of the privacy officer. It sums up the privacy label of the release and the dataset\'s ledger.</p>\n'
        f"{_warnings(release, entry, tests)}\n{told}\n{SIGN}\n"
        f"<footer><p>Written by dpgram {html.escape(tests.version)} on {_date(now)}.</p></footer>\n</body>\n</html>\n"
    )


SIGN = (
    '<section class="lines"><h2>Agreed</h2>\n<p>I have read this page and the privacy label, and agree that the file named above is '
    "published.</p>\n<div><span>Name</span><span>Date</span><span>Signature</span></div></section>"
)


def paid_by(release: GramRelease, account: Account, *, file: str, sha256: str) -> Entry:
    """The line of the ledger that paid for the release."""
    if isinstance(release, CombinedRelease):
        raise LedgerError(
            f"{file} was combined of several releases, and no ledger paid for it. Sign off the file of each of them."
        )
    if release.ledger_entry is None:
        raise LedgerError(
            f"{file} was made without a ledger, so nobody knows what the dataset has spent. Sign off releases that were made with --ledger."
        )
    number, _, seal = release.ledger_entry.partition(":")
    entry = next((each for each in account.entries if str(each.number) == number and each.seal == seal), None)
    if entry is None:
        raise LedgerError(
            f"{file} was paid for by line {number} of another ledger than this one. Name the ledger of its dataset."
        )
    if entry.sha256 not in (None, sha256):
        raise ReleaseFileError(
            where=file,
            field=None,
            problem=f"this is not the file that line {number} of the ledger paid for: its SHA-256 is another one. Use the file as it was "
            f"written",
        )
    return entry


def _warnings(release: GramRelease, entry: Entry, tests: SelfTests) -> str:
    found = [
        *([] if release.private else [f"NOT PRIVATE: {SEEDED}. Nothing below is a promise."]),
        *([f"CONDITIONAL: {release.condition.rstrip('.')}."] if release.condition else []),
        *([] if entry.committed else ["The ledger does not say that this release was finished. Ask the custodian why."]),
        *([f"The software failed a self-test: {', '.join(tests.failed)}. Do not publish."] if tests.failed else []),
    ]
    return "\n".join(f'<p class="warning">{html.escape(text)}</p>' for text in found)


def _about(release: GramRelease, account: Account, entry: Entry, file: str, by: str | None) -> Pairs:
    signature = release.signature
    signer = f"{signature.by}, who signed it" if signature and signature.holds and signature.by else BY_HAND
    names = [column.name for column in release.schema.columns]
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return [
        ("dataset", account.opened.dataset),
        ("file", file),
        ("made on", _date(entry.committed or entry.time)),
        ("run by", by or signer),
        ("columns", f"{', '.join(names[:MOST_NAMES])}{more}. The label lists their bounds and categories"),
    ]


def _promise(release: GramRelease, known: dict[tuple[str, ...], Fact]) -> Pairs:
    schema, budget = release.schema, release.budget
    return [
        ("who is protected", f"one {schema.unit}" if schema.unit_id is None else f"one {schema.unit}, with all rows"),
        ("budget", f"epsilon {budget.epsilon:g}, delta {budget.delta:g}"),
        (
            "in plain words",
            f"somebody who hesitates between two possible tables that differ in one {schema.unit}, and thinks both equally likely, can "
            f"become {certainty(budget)} sure of one of them, whatever else they know. This may fail with a chance of {chance(budget)}",
        ),
        ("neighbours", " ".join(known["neighbours",].lines)),
        ("number of rows", "protected" if release.rows is None else f"{release.rows:,}, which is public"),
        *([("number of units", f"{release.units:,}, which is public")] if release.units is not None else []),
    ]


def _budget(release: GramRelease, account: Account, now: str) -> Pairs:
    spent, total, opened = account.spending, account.total, account.opened
    releases = len(spent.asked)
    plain = tuple(rounded_up(each) for each in spent.plain) if spent.asked else (0.0, 0.0)
    together = f"epsilon {plain[0]:.6g}, delta {plain[1]:.6g}, added up"
    if opened.composition == "composed" and spent.asked and math.isfinite(composed := spent.epsilon(total.delta)):
        together += (
            f". That is at most epsilon {composed:.4g} at delta {total.delta:g}, if each budget was chosen without looking at "
        )
        together += "earlier releases"
    return [
        ("this release", f"epsilon {release.budget.epsilon:g}, delta {release.budget.delta:g}"),
        ("all so far", f"{together} ({releases} release{'' if releases == 1 else 's'} of the dataset, on {_date(now)})"),
        ("allowed in all", f"epsilon {total.epsilon:g}, delta {total.delta:g}"),
    ]


def _assumed(release: GramRelease, known: dict[tuple[str, ...], Fact]) -> Pairs:
    schema, said = release.schema, release.schema.provenance
    unit = known["unit_enforced",] if schema.unit_id is not None else known["unit_assumption",]
    where = (
        f"the schema says of its bounds: {said}"
        if said
        else "the schema does not say where its bounds come from. Ask the custodian"
    )
    looked = f"{where} What was chosen after that look is not covered by the promise" if LOOKED_AT in said else where
    query = [("query", "the rows are the result of a query or a stream. Ask to see it")] if release.rows_of == "result" else []
    return [
        ("rows of a unit", " ".join([f"{unit.name}:", *unit.lines])),
        ("bounds", looked),
        *query,
        ("other releases", "this ledger has all releases of the same people"),
        ("custodian", "holds the rows, and keeps them safe"),
    ]


def _mechanism(release: GramRelease, known: dict[tuple[str, ...], Fact], tests: SelfTests) -> Pairs:
    mechanism = registry.MECHANISMS.get(release.mechanism)
    if mechanism is None:
        proof = f"not known to dpgram {tests.version}. Use the version that made the release"
    else:
        digest = hashlib.sha256((PROOFS / mechanism.proof).read_bytes()).hexdigest()
        proof = f"{mechanism.proof} of dpgram {tests.version}, which tests tie to the code. SHA-256 {digest}"
    return [
        ("mechanism", f"{release.mechanism}: {mechanism.summary}" if mechanism else release.mechanism),
        ("proof", proof),
        ("arithmetic", " ".join(known["arithmetic",].lines)),
        ("randomness", release.randomness),
    ]


def _software(release: GramRelease, tests: SelfTests, now: str) -> Pairs:
    result = f"FAILED: {', '.join(tests.failed)}" if tests.failed else f"passed: {', '.join(tests.passed)}"
    return [
        ("made with", f"dpgram {release.library_version}"),
        ("self-test", f"{result} (dpgram {tests.version}, where this page was written, {_date(now)})"),
    ]


def _file(release: GramRelease, account: Account, entry: Entry, sha256: str) -> Pairs:
    recorded = "the same as in the ledger" if entry.sha256 == sha256 else "the ledger has none to compare it with"
    return [
        ("signature", signature_words(release)),
        ("SHA-256", f"{sha256} ({recorded})"),
        ("ledger", f"line {entry.number}. Seal of its last line, {account.lines}: {account.seal}"),
    ]


def _date(time: str) -> str:
    """A moment as people write it."""
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
