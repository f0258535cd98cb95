"""Summaries in LaTeX, for papers, and in Markdown, for notebooks and repositories. Every text is escaped: names come from others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpgram.report.summary import Block, Summary

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
IN_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    }
)
LIGATURE = re.compile(
    "(?<=-)(?=-)|(?<=`)(?=`)|(?<=')(?=')|(?<=,)(?=,)|(?<=[!?])(?=`)"
)  # signs that TeX would print as one, as -- as a dash
IN_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~$&#])")
NUMBER = re.compile(r"^(-?)(inf|\d[\d.e+-]*)(\**)$")  # a number as a cell has it, with its stars


def latex_text(text: str) -> str:
    """``text`` as LaTeX prints it. A bracket or star at its start would belong to the end of the line before."""
    escaped = LIGATURE.sub("{}", CONTROL.sub(" ", text).translate(IN_LATEX))
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped[:1] in ("[", "*") else escaped


def latex_cell(text: str) -> str:
    """A cell of a table: numbers have a true minus, and stars above the line."""
    found = NUMBER.match(text)
    if not found:
        return latex_text(text)
    minus, digits, stars = found.groups()
    size = r"$\infty$" if digits == "inf" else digits
    return ("$-$" if minus else "") + size + (f"$^{{{stars}}}$" if stars else "")


def latex(summary: Summary, *, caption: str | None = None, label: str | None = None) -> str:
    """The tables of a summary with its notes below, for the package booktabs; a floating table where it has a caption or a label."""
    facts = [_facts(summary.facts)] if summary.facts else []
    blocks = [_tabular(block) for block in summary.blocks]
    lines = [line for part in (*facts, *blocks) for line in (*part, r"\par\smallskip")]
    notes = [f"{latex_text(note)}\\par" for note in summary.notes]
    if notes:
        lines += [r"\begin{minipage}{\linewidth}\footnotesize", *notes, r"\end{minipage}"]
    if caption is None and label is None:
        return "\n".join([r"\begingroup", r"\centering", *lines, r"\par\endgroup"])
    named = [*([f"\\caption{{{latex_text(caption)}}}"] if caption else []), *([f"\\label{{{label}}}"] if label else [])]
    return "\n".join([r"\begin{table}[htbp]", r"\centering", *named, *lines, r"\end{table}"])


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    rows = [f"{latex_text(name)} & {latex_cell(value)} \\\\" for name, value in facts]
    return [r"\begin{tabular}{ll}", r"\toprule", *rows, r"\bottomrule", r"\end{tabular}"]


def _tabular(block: Block) -> list[str]:
    def row(cells: Sequence[str]) -> str:
        first, *others = cells
        return " & ".join([latex_text(first), *map(latex_cell, others)]) + r" \\"

    lines = [f"\\begin{{tabular}}{{l{'c' * (len(block.header) - 1)}}}", r"\toprule", row(block.header), r"\midrule"]
    for place, cells in enumerate(block.rows):
        lines += [*([r"\midrule"] if place in block.rules else []), row(cells)]
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def markdown_text(text: str) -> str:
    """``text`` as Markdown prints it, in a table or outside."""
    return IN_MARKDOWN.sub(r"\\\1", CONTROL.sub(" ", text))


def markdown(summary: Summary) -> str:
    """The title, the facts, the tables and the notes of a summary."""
    parts = [f"**{markdown_text(summary.title)}**"]
    if summary.facts:
        parts.append(_pipes(("", ""), summary.facts))
    parts += [_pipes(block.header, block.rows) for block in summary.blocks]
    parts += [markdown_text(note) for note in summary.notes]
    return "\n\n".join(parts)


def _pipes(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, *rows]
    table = ["| " + " | ".join(markdown_text(cell) for cell in line) + " |" for line in lines]
    return "\n".join([table[0], "|:--|" + "--:|" * (len(header) - 1), *table[1:]])
