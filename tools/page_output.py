"""Run the code of a page and write what it prints below it: `python tools/page_output.py docs/five-minutes.md`.

Blocks marked bash and python run from top to bottom in one empty folder. A block marked text is what the block above it printed.
Noise is new in every run, so a test compares words and leaves numbers out (``words``)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", flags=re.MULTILINE | re.DOTALL)
WIDTH = 124


def run_page(text: str, folder: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Each block of code with what it printed; stops where one fails."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "MPLBACKEND": "Agg", "COLUMNS": str(WIDTH)}
    commands = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-W", "error", "-c"]}
    for block in BLOCK.finditer(text):
        language, code, _ = block.groups()
        done = subprocess.run(
            [*commands[language], code],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{code}\nends with exit code {done.returncode}:\n{done.stdout}")
        yield block, done.stdout


def words(output: str) -> list[str]:
    """What is the same in every run: no numbers, no spaces, no lengths of rules."""
    return re.sub(r"<?[-+]?\d[\d.,]*(e[-+]?\d+)?", " # ", re.sub(r"[─=-]{3,}", " --- ", output)).split()


def shown(output: str) -> str:
    """Output as a page shows it: long sentences wrapped, tables as they are, no spaces at the ends of lines."""
    return "".join(f"{wrapped(line.rstrip())}\n" for line in output.strip("\n").splitlines())


def wrapped(line: str) -> str:
    if re.search(r"\S  +\S|[─=-]{3}", line):
        return line  # of a table
    return "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)) if len(line) > WIDTH else line


def renewed(text: str) -> str:
    """The page with every output that it shows made anew."""
    with tempfile.TemporaryDirectory() as folder:
        pieces, end = [], 0
        for block, printed in run_page(text, Path(folder)):
            if block[3] is not None:
                pieces += [text[end : block.start(3)], shown(printed)]
                end = block.end(3)
        return "".join([*pieces, text[end:]])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(renewed(Path(name).read_text(encoding="utf-8")), encoding="utf-8")
