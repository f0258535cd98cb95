"""The page as one file: no network, no other files, whatever names the schema has."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from dpgram.artifact.atomic import check_writable, write_whole
from dpgram.artifact.release import GramRelease
from dpgram.errors import OutputError
from dpgram.report.label import computed, declared
from dpgram.report.page.data import page_data
from dpgram.report.page.officer import NOT_PRIVATE, evaluation_points, noise_facts

HERE = Path(__file__).parent
LONG = 220  # characters of a declaration that are shown before the reader asks for all of them


def write_report(
    release: GramRelease,
    path: str | Path,
    *,
    title: str | None = None,
    bootstrap: Sequence[str] = (),
    overwrite: bool = False,
) -> None:
    """Write one self-contained page about ``release``: its privacy label, and models to explore. Costs no budget.

    Opens from disk in any browser and asks for nothing else. ``bootstrap`` names targets for which intervals are simulated now, because a
    browser does not: those of the regression on all other columns. Written whole or not at all; an existing file is kept unless
    ``overwrite``."""
    path = Path(path)
    check_report_path(path, overwrite=overwrite)
    write_whole(path, report_page(release, title=title, bootstrap=bootstrap).encode())


def check_report_path(path: Path, *, overwrite: bool, given: Path | None = None) -> None:
    """Raise if no page could or should be written there, before anything else is done. ``given`` is the release's own file."""
    check_writable(path)
    if given is not None and path.exists() and given.exists() and path.samefile(given):
        raise OutputError(f"{path} is the release itself: choose another place for the page.")
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} exists and is not replaced: pass --overwrite (overwrite=True in Python), or choose another place."
        )


def report_page(release: GramRelease, *, title: str | None = None, bootstrap: Sequence[str] = ()) -> str:
    """The page as text."""
    script, style = ((HERE / name).read_text(encoding="utf-8").strip("\n") for name in ("bundle.js", "page.css"))
    parts = {
        "TITLE": html.escape(title or f"Private release: {release.schema.unit}"),
        "POLICY": f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'",
        "STYLE": style,
        "BADGES": _badges(release),
        "WARNING": "" if release.private else f'<p class="warning" role="note">{html.escape(NOT_PRIVATE)}</p>',
        "LABEL": _label(release),
        "SCHEMA": _schema(release),
        "NOISE": _facts(noise_facts(release)),
        "VERSION": html.escape(release.library_version),
        "DATA": _embedded(page_data(release, bootstrap)),
        "SCRIPT": script,
    }
    # One pass over the template: a marker within a schema's text is text.
    pieces = (HERE / "template.html").read_text(encoding="utf-8").split("@@")
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))


def _embedded(data: object) -> str:
    """JSON that cannot end the element it stands in, nor begin another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    """The source expression that allows this one inline text, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _badges(release: GramRelease) -> str:
    badges = [
        ("epsilon", f"{release.budget.epsilon:g}"),
        ("delta", f"{release.budget.delta:g}"),
        ("unit", release.schema.unit),
        ("neighbours", release.neighbours.value),
        ("mechanism", release.mechanism),
        ("arithmetic", release.arithmetic),
    ]
    return "".join(f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>" for name, value in badges)


def _label(release: GramRelease) -> str:
    return "".join(
        f'<section class="point"><h3>{html.escape(point.title)}</h3><p>{html.escape(point.words)}</p>{_facts(point.facts)}</section>'
        for point in evaluation_points(release)
    )


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{rows}</dl>'


def _schema(release: GramRelease) -> str:
    schema = release.schema
    listed = [
        *((column.name, column.kind, declared(column)) for column in schema.columns),
        *((d.name, f"derived: {d.kind}", computed(d, schema)) for d in schema.derived),
    ]
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(kind)}</td><td>{_long(words)}</td></tr>'
        for name, kind, words in listed
    )
    return f'<table class="schema"><thead><tr><th>column</th><th>kind</th><th>declared</th></tr></thead><tbody>{rows}</tbody></table>'


def _long(words: str) -> str:
    """The text, folded where it is long: a category may have hundreds of levels."""
    if len(words) <= LONG:
        return html.escape(words)
    return f"<details><summary>{html.escape(words[: LONG - 40])} ...</summary>{html.escape(words)}</details>"
