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
from dpgram.report.fact import Fact, Group, Rounds
from dpgram.report.facts import SEEDED, facts, pairs
from dpgram.report.page.data import page_data
from dpgram.terms.words import Point

HERE = Path(__file__).parent
LONG = 220  # characters of a declaration that are shown before the reader asks for all of them
BADGES = ("epsilon", "delta", "unit", "neighbours", "mechanism", "arithmetic")
WARNING = f'<p class="warning" role="note">NOT PRIVATE: {SEEDED}. Nothing below is a promise.</p>'
ELSEWHERE = (Group.NOISE, Group.COLUMNS, Group.DERIVED)  # have parts of the page to themselves


def write_report(
    release: GramRelease,
    path: str | Path,
    *,
    title: str | None = None,
    bootstrap: Sequence[str] = (),
    overwrite: bool = False,
) -> None:
    """Write a web page about a release: its privacy label, and models to explore.

    The page is one HTML file. It opens from disk in any browser and needs no network. It costs no budget.

    Parameters
    ----------
    release : GramRelease
        The release.
    path : str or Path
        The file to write.
    title : str, optional
        Heading of the page. By default it names the unit of privacy.
    bootstrap : sequence of str
        Targets for which the page gets bootstrap intervals, for the regression on all other columns. They are computed now, because a
        browser cannot do it.
    overwrite : bool
        Whether to replace an existing file.

    Raises
    ------
    OutputError
        If the file exists or cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("smoker")])
    >>> table = {"age": [31.0, 45.0, 62.0], "smoker": [True, False, False]}
    >>> made = dpgram.release(table, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> dpgram.write_report(made, path)
    >>> path.exists()
    True
    """
    path = Path(path)
    check_report_path(path, overwrite=overwrite)
    write_whole(path, report_page(release, title=title, bootstrap=bootstrap).encode(), overwrite=overwrite)


def check_report_path(path: Path, *, overwrite: bool, given: Path | None = None) -> None:
    """Raise if no page could or should be written there, before anything else is done. ``given`` is the release's own file."""
    if given is not None and path.exists() and given.exists() and path.samefile(given):
        raise OutputError(f"{path} is the release itself. Choose another place for the page.")
    check_writable(path, overwrite=overwrite)


def report_page(release: GramRelease, *, title: str | None = None, bootstrap: Sequence[str] = ()) -> str:
    """The page as text."""
    known = facts(release)
    script, style = ((HERE / name).read_text(encoding="utf-8").strip("\n") for name in ("bundle.js", "page.css"))
    parts = {
        "TITLE": html.escape(title or f"Private release: {release.schema.unit}"),
        "POLICY": f"default-src 'none'; script-src {source_hash(script)}; {policy_of(style)}",
        "STYLE": style,
        "BADGES": _badges(known),
        "WARNING": "" if release.private else WARNING,
        **{
            point.name: _facts([fact for fact in known if fact.point is point and fact.group not in ELSEWHERE])
            for point in Point
        },
        "SCHEMA": _schema(known),
        "NOISE": _facts([fact for fact in known if fact.group is Group.NOISE]),
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


def policy_of(style: str) -> str:
    """What a page may do besides running scripts: have this style, and nothing else."""
    return f"style-src {source_hash(style)}; base-uri 'none'; form-action 'none'"


def source_hash(text: str) -> str:
    """The source expression that allows this one inline text, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _badges(known: Sequence[Fact]) -> str:
    values = {fact.key: fact.value for fact in known}
    return pair_list((name, str(value) if isinstance(value := values[name,], str) else f"{value:g}") for name in BADGES)


def _facts(listed: Sequence[Fact]) -> str:
    """Names and what is said about them; tables of rounds are folded."""
    tables = "".join(_rounds(fact.rounds) for fact in listed if fact.rounds)
    return f'<dl class="facts">{pair_list(pairs([fact for fact in listed if fact.name]))}</dl>{tables}'


def pair_list(told: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd></div>" for name, text in told)


def _rounds(rounds: Rounds) -> str:
    header = "".join(f"<th>{html.escape(name)}</th>" for name in rounds.header)
    rows = "".join(f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for _, text in row)}</tr>" for row in rounds.rows)
    table = f'<table class="numbers"><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>'
    caption = f'<p class="small">{html.escape(rounds.caption)}</p>'
    return f'<details><summary>What each round did</summary><div class="scroll">{table}</div>{caption}</details>'


def _schema(known: Sequence[Fact]) -> str:
    rows = ""
    for fact in known:
        if fact.name and fact.group in (Group.COLUMNS, Group.DERIVED):
            kind, words = fact.value.values()
            made = "derived: " if fact.group is Group.DERIVED else ""
            rows += f'<tr><th scope="row">{html.escape(fact.name)}</th><td>{made}{html.escape(kind)}</td><td>{_long(words)}</td></tr>'
    return f'<table class="schema"><thead><tr><th>column</th><th>kind</th><th>declared</th></tr></thead><tbody>{rows}</tbody></table>'


def _long(words: str) -> str:
    """The text, folded where it is long: a category may have hundreds of levels."""
    if len(words) <= LONG:
        return html.escape(words)
    return f"<details><summary>{html.escape(words[: LONG - 40])} ...</summary>{html.escape(words)}</details>"
