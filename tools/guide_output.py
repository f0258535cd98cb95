"""Run the code of a guide and renew what it shows: `python tools/guide_output.py docs/custodian.md`.

Blocks marked bash and python run from top to bottom in one folder with the demo's table and one release. A block marked text shows lines
that the block above it printed; a line of three dots leaves some out. A block marked console is a command that fails, and its message.
Noise is new in every run, so a test compares words and leaves numbers out (``words``)."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DEMO = Path(__file__).parents[1] / "src" / "dpgram" / "demo"
BLOCK = re.compile(r"^```(bash|python|text|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"\$ ((?:.*\\\n)*.*\n)((?:.*\n)*)")  # a command, on several lines where they end in \, and what it prints
RUNNERS = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-W", "error", "-c"]}
DOTS, NOTE, WIDTH, FOLDED, BAD_INPUT = "...", "  ", 126, 92, 2


class Shown(NamedTuple):
    """A part of a page that shows output, beside what was printed."""

    block: re.Match[str]
    text: str  # as the page has it
    printed: tuple[str, str]  # on standard output and standard error

    @property
    def is_true(self) -> bool:
        """Whether each part between dots was printed, up to numbers."""
        parts = re.split(rf"^{re.escape(DOTS)}$", self.text, flags=re.MULTILINE)
        return all(any(words(part) in words(stream) for stream in self.printed) for part in parts)

    @property
    def renewed(self) -> str:
        """Each part between dots as it is printed now, from the line most like its first to the one most like its last.

        Messages of console blocks are taken as a whole."""
        if self.block[1] == "console":
            return "".join(folded(line) for line in self.printed[1].splitlines())
        streams = [[line.rstrip() for line in stream.splitlines()] for stream in self.printed if stream.strip()]
        new: list[str] = []
        for piece in re.split(rf"^({re.escape(DOTS)})$", self.text, flags=re.MULTILINE):
            lines = [line for line in piece.splitlines() if line.strip()]
            if piece == DOTS:
                new.append(DOTS)
            elif lines:
                stream = max(filter(None, streams), key=lambda each: likeness(lines[0], each[nearest(lines[0], each)]))
                start = nearest(lines[0], stream)
                stop = start + nearest(lines[-1], stream[start:], near=len(lines) - 1) + 1
                while stop < len(stream) and stream[stop].startswith(NOTE):  # the last line was one of a note that goes on
                    stop += 1
                new += stream[start:stop]
                del stream[:stop]  # what comes later on the page was printed later
        return "".join(folded(line) for line in new)


def folded(line: str) -> str:
    """``line`` with its end, on several lines where it is a sentence wider than tables are."""
    is_sentence = len(line) > WIDTH and "   " not in line and " " in line.strip()
    return (textwrap.fill(line, FOLDED, break_on_hyphens=False) if is_sentence else line) + "\n"


def words(text: str) -> str:
    """``text`` without what differs from one run to the next: numbers with their stars, times, seals, and the widths of columns and rules.

    >>> words("Seal: 73f9ae902618be0d  at  -1.5e-07,  or 1.02*** and <0.001 =====")
    'Seal: # at # or # and # ='
    """
    masked = re.sub(r"<?-?\b\d[\d.,:e+T-]*\**", "#", re.sub(r"\b[0-9a-f]{16}\b", "#", text))
    ruled = " ".join(re.sub("─+|=+|-{3,}", lambda rule: rule[0][0], masked).split())
    return ruled.replace("[ ", "[").replace(" ]", "]")  # NumPy pads what it prints


def likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, words(one), words(other)).ratio()


def nearest(line: str, printed: list[str], near: int = 0) -> int:
    """Where the printed line stands whose words are most like those of ``line``, and of several the one nearest to ``near``."""
    return max(range(len(printed)), key=lambda place: (likeness(line, printed[place]), -abs(place - near)), default=0)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def prepare(folder: Path) -> None:
    """Put the demo's table and schema into ``folder``, and one release of it."""
    (folder / "demo").mkdir()
    for name in ("flights.parquet", "flights.toml"):
        shutil.copy(DEMO / name, folder / "demo")
    table = "dpgram release demo/flights.parquet --schema demo/flights.toml"
    made = run([*RUNNERS["bash"], f"{table} --epsilon 1 --delta 1e-7 --out release.json"], folder)
    if made.returncode:
        raise RuntimeError(made.stderr)


def run_guide(page: str, folder: Path) -> Iterator[Shown]:
    """Everything that ``page`` shows, in order; stops where a block of code fails, or a console block does not."""
    last: subprocess.CompletedProcess[str] | None = None
    for block in BLOCK.finditer(page):
        language, code = block.groups()
        if language in RUNNERS:
            last = run([*RUNNERS[language], code], folder)
            if last.returncode:
                raise RuntimeError(f"{code}\nends with exit code {last.returncode}:\n{last.stderr}")
        elif language == "console" and (parts := CONSOLE.fullmatch(code)):
            failed = run([*RUNNERS["bash"], parts[1]], folder)
            if failed.returncode != BAD_INPUT:
                raise RuntimeError(f"{code}\nends with exit code {failed.returncode} instead of {BAD_INPUT}:\n{failed.stderr}")
            yield Shown(block, parts[2], (failed.stdout, failed.stderr))
        elif language == "text" and last is not None:
            yield Shown(block, code, (last.stdout, last.stderr))


def renew(page: str) -> str:
    """``page`` with what it shows made anew where words have changed."""
    with tempfile.TemporaryDirectory() as name:
        folder, pieces, end = Path(name), [], 0
        prepare(folder)
        if "--out release.json" in page:  # the page makes it
            (folder / "release.json").unlink()
        for shown in run_guide(page, folder):
            start = shown.block.end(2) - len(shown.text)
            pieces += [page[end:start], shown.text if shown.is_true else shown.renewed]
            end = shown.block.end(2)
        return "".join([*pieces, page[end:]])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(renew(Path(name).read_text(encoding="utf-8")), encoding="utf-8")
