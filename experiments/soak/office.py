"""A day at the office: desks that release, some of them killed or without room, and a reader beside them; then the books are checked."""

from __future__ import annotations

import math
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

import dpgram
from dpgram import Budget, FileLedger
from dpgram.accounting.compose import GaussianCost
from dpgram.accounting.gaussian import gaussian_delta

ROWS, DELTA, EPSILONS = 5_000, 1e-9, (0.02, 0.05, 0.1)
TOTAL = 20.0, 1e-6
APART = 86_400.0 * 3  # seconds between the clocks of two machines
MECHANISMS = ("gaussian-noise", "whitened-noise", "gaussian-sketch")
KILLED, NO_ROOM = 0.25, 0.15  # of all releases
LIVES = (
    0.5,
    1.1,
)  # of the usual time of a release: between these a kill comes, so that many fall between reserving and recording
FIRST = 2.0  # seconds that are taken for usual as long as none is done
SMALLEST_ROOM, LARGEST_ROOM = 200, 200_000  # bytes
STUCK = 180.0  # seconds after which a desk counts as stuck
ONE_SENTENCE = re.compile(r"error: [^\n]+\n?\Z")
SCHEMA = """unit = "person"
columns = [
    { name = "age", kind = "numeric", lower = 0, upper = 100 },
    { name = "income", kind = "numeric", lower = 0, upper = 200000 },
    { name = "group", kind = "categorical", categories = ["a", "b", "c"] },
]
"""


@dataclass
class Desk:
    """One release that was asked for, and what became of it."""

    number: int
    out: Path
    mechanism: str
    killed: bool = False
    small: bool = False
    code: int | None = None
    words: str = ""
    seconds: float = 0.0


@dataclass
class Day:
    """All desks, what the reader saw, and what is wrong."""

    desks: list[Desk]
    reads: int = 0
    faults: list[str] = field(default_factory=list)
    entries: int = 0
    committed: int = 0
    seconds: float = 0.0

    @property
    def made(self) -> int:
        return sum(desk.code == 0 for desk in self.desks)

    @property
    def longest(self) -> float:
        return max(desk.seconds for desk in self.desks)


def spend(folder: Path, *, releases: int, at_once: int, seed: int) -> Iterator[Day]:
    """The day as it goes on, after every release; the books are checked at its end."""
    table, schema, book = folder / "people.csv", folder / "schema.toml", folder / "ledger.sqlite"
    _write_table(table)
    schema.write_text(SCHEMA, encoding="utf-8")
    ledger = FileLedger.create(book, epsilon=TOTAL[0], delta=TOTAL[1], unit="person", dataset="office")
    rng = random.Random(seed)
    day, began, over = Day([]), time.monotonic(), threading.Event()
    plans = [(number, rng.randrange(2**32)) for number in range(releases)]
    reader = threading.Thread(target=_read, args=(ledger, day, over))
    reader.start()
    try:
        with ThreadPoolExecutor(at_once) as pool:
            usual: list[float] = []
            for desk in pool.map(lambda plan: _release(folder, *plan, usual), plans):
                day.desks.append(desk)
                yield day
    finally:
        over.set()
        reader.join()
    day.seconds = time.monotonic() - began
    day.faults += _wrong_at_desks(day.desks) + _wrong_in_books(folder, ledger, day)
    yield day


def _write_table(path: Path) -> None:
    rng = np.random.default_rng(1)
    cells = zip(rng.uniform(18, 90, ROWS), rng.lognormal(10, 1, ROWS), rng.choice(list("abc"), ROWS), strict=True)
    lines = ["age,income,group", *(f"{age:.1f},{income:.2f},{group}" for age, income, group in cells)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _release(folder: Path, number: int, seed: int, usual: list[float]) -> Desk:
    """``usual`` are the seconds of the releases that are done, to which its own are added."""
    rng = random.Random(seed)
    desk = Desk(number, folder / f"release-{number}.json", rng.choice(MECHANISMS))
    desk.killed, desk.small = rng.random() < KILLED, rng.random() < NO_ROOM
    room = round(math.exp(rng.uniform(math.log(SMALLEST_ROOM), math.log(LARGEST_ROOM)))) if desk.small else 0
    asked = ["release", "people.csv", "--schema", "schema.toml", "--ledger", "ledger.sqlite", "--out", desk.out.name]
    asked += ["--epsilon", str(rng.choice(EPSILONS)), "--delta", str(DELTA), "--mechanism", desk.mechanism]
    ahead = APART * (number % 2)
    command = [sys.executable, "-m", "experiments.soak.desk", str(ahead), str(room), *asked]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        if desk.killed:
            try:
                life = rng.uniform(*LIVES) * (median(usual) if usual else FIRST)
                _, desk.words = process.communicate(timeout=life)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        _, words = process.communicate(timeout=STUCK)
        desk.words = desk.words or words
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        desk.words = "stuck"
    desk.code, desk.seconds = process.returncode, time.monotonic() - began
    if desk.code == 0:
        usual.append(desk.seconds)
    return desk


def _read(ledger: FileLedger, day: Day, over: threading.Event) -> None:
    """Reads the account again and again: no line that was there may be gone or be another one."""
    before: tuple = ()
    while not over.is_set():
        try:
            entries = ledger.account().entries
        except dpgram.errors.DpgramError as error:
            day.faults.append(f"the reader was refused: {error}")
        else:
            kept = tuple((entry.number, entry.seal, entry.budget) for entry in entries)
            if kept[: len(before)] != before:
                day.faults.append("a line that the reader had seen is gone, or is another one")
            before = kept
            day.reads += 1
        over.wait(0.2)


def _wrong_at_desks(desks: list[Desk]) -> list[str]:
    faults = []
    for desk in desks:
        name = f"desk {desk.number}"
        if desk.words == "stuck":
            faults.append(f"{name} was stuck")
        elif "Traceback" in desk.words:
            faults.append(f"{name} ended in a traceback: {desk.words[-300:]}")
        elif desk.code == 0 and not desk.out.exists():
            faults.append(f"{name} said that it was done, and there is no release")
        elif desk.code not in (0, -signal.SIGKILL):
            last = desk.words[desk.words.rfind("error: ") :]
            if desk.code != 2 or not ONE_SENTENCE.match(last):
                faults.append(f"{name} ended with {desk.code} and said {desk.words[-300:]!r}")
            if not desk.small:
                faults.append(f"{name} failed with nothing in its way: {desk.words[-300:]!r}")
    return faults


def _wrong_in_books(folder: Path, ledger: FileLedger, day: Day) -> list[str]:
    """Every release that anybody holds must be in the ledger, with its budget, and the ledger must add up."""
    faults = []
    account = ledger.account()
    entries = {entry.number: entry for entry in account.entries}
    day.entries, day.committed = len(entries), sum(entry.committed is not None for entry in entries.values())
    held: dict[int, str] = {}
    for path in sorted(folder.glob("release-*.json")):  # also those that were saved under another name
        try:
            release = dpgram.load(path)
        except dpgram.errors.DpgramError as error:
            faults.append(f"{path.name} is not whole: {error}")
            continue
        number = int(str(release.ledger_entry).partition(":")[0])
        if number in held:
            faults.append(f"{path.name} and {held[number]} share line {number}")
        held[number] = path.name
        if number not in entries:
            faults.append(f"{path.name} is not in the ledger")
        elif entries[number].budget != release.budget:
            faults.append(f"{path.name} has another budget than its line")
    made = {name for number, name in held.items() if number in entries and entries[number].committed}
    for desk in day.desks:
        if desk.code == 0 and desk.out.name not in made:
            faults.append(f"desk {desk.number} was done, and its line is not recorded as made")
    if not account.spending.fits(account.total):
        faults.append("more was spent than the ledger allows")
    faults += _wrong_sum(account)
    with sqlite3.connect(ledger.path) as database:
        if database.execute("pragma integrity_check").fetchone() != ("ok",):
            faults.append("the file of the ledger is damaged")
    return faults


def _wrong_sum(account) -> list[str]:
    """What Gaussian releases cost together, added up again: they are one release whose squared shift is the sum of theirs."""
    shifts = [entry.cost.mu for entry in account.entries if isinstance(entry.cost, GaussianCost)]
    others = [entry.budget for entry in account.entries if not isinstance(entry.cost, GaussianCost)]
    left = Budget(TOTAL[0] - sum(each.epsilon for each in others), TOTAL[1] - sum(each.delta for each in others))
    together = gaussian_delta(left.epsilon, math.hypot(*shifts)) if shifts else 0.0
    return [] if together <= left.delta else ["the costs of all lines, added up again, are more than the ledger allows"]
