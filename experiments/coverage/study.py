"""The study: every setting, mechanism and method, one cell after the other, each kept as soon as it is done."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from experiments.coverage import rounds, tables
from experiments.coverage.measure import KEY, TYPES, Row, Seen, Truth, look, r_squared, summarise
from experiments.coverage.releases import ALL, DRAWN, calibrated_once, claim, make_release, plain_schema, plan
from experiments.coverage.settings import EXTRA, PAPER, WHITENED, Setting, data_sets, draw_rows

RESAMPLED = (("single", 2**14), ("single", 2**18), ("multi", 2**18))  # the bootstrap costs half a second a regression
EXTRA_MECHANISMS = ("gaussian-noise", "gaussian-sketch", "inverse-wishart")


@dataclass(frozen=True)
class Batch:
    """Releases of one setting by one mechanism: they serve every regression on it, and become one line each."""

    setting: Setting | tables.Table
    mechanism: str
    epsilon: float
    method: str
    releases: int

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(map(str, (self.setting.name, self.setting.rows, self.epsilon, self.mechanism, self.method)))


def batches(releases: int, resampled: int) -> Iterator[Batch]:
    """All of the study, cheap settings first. The bootstrap takes ``resampled`` releases of the mechanisms that draw a matrix."""
    for table in tables.ALL:
        for epsilon in table.epsilons:
            for mechanism in EXTRA_MECHANISMS:
                yield Batch(table, mechanism, epsilon, "auto", releases)
    for table in tables.RARE:
        for epsilon in table.epsilons:
            for mechanism in ("gaussian-noise", rounds.MECHANISM):
                yield Batch(table, mechanism, epsilon, "auto", releases)
    for setting in EXTRA:
        for epsilon in setting.epsilons:
            for mechanism in EXTRA_MECHANISMS:
                yield Batch(setting, mechanism, epsilon, "auto", releases)
    for setting in PAPER:
        for mechanism in ALL:
            yield Batch(setting, mechanism, 0.1, "auto", releases)
    for setting in WHITENED:
        for epsilon in setting.epsilons:
            yield Batch(setting, rounds.MECHANISM, epsilon, "auto", releases)
    for setting in PAPER:
        for mechanism in DRAWN if (setting.name, setting.rows) in RESAMPLED else ():
            yield Batch(replace(setting, other_labels=setting.other_labels[:2]), mechanism, 0.1, "bootstrap", resampled)


def run(batch: Batch, folder: Path | None) -> list[Row]:
    """The lines of one batch; none where the mechanism's claim cannot be made."""
    if isinstance(batch.setting, tables.Table):
        return _of_table(batch)
    if batch.mechanism == rounds.MECHANISM:
        return _of_rows(batch)
    setting = batch.setting
    # A batch of fewer releases takes the first data sets of the file, and never writes a shorter one over it.
    data = data_sets(setting, batch.releases, folder)
    options = claim(data.grams, setting.row_bound) if batch.mechanism == "noisy-inverse" else None
    if batch.mechanism == "noisy-inverse" and options is None:
        return []
    looks: dict[int, list[Seen]] = {others: [] for others in setting.other_labels}
    left = float(data.left.mean())
    for i, gram in enumerate(data.grams):
        release = make_release(
            gram,
            schema=plain_schema(setting.columns),
            rows=setting.rows,
            row_bound=setting.row_bound,
            epsilon=batch.epsilon,
            mechanism=batch.mechanism,
            seed=tables.noise_seed(setting.name, setting.rows, batch.mechanism, batch.epsilon) + i,
            options=options,
        )
        for others in setting.other_labels:
            design = plan(release, setting.places(others))
            truth = Truth(setting.truth(data.betas[i], others), left, r_squared(gram, design))
            looks[others].append(look(release, design, truth, batch.method, seed=i))
    return [_row(batch, seen, others) for others, seen in looks.items()]


def _of_rows(batch: Batch) -> list[Row]:
    """The lines of a mechanism that looks at the rows more than once.

    The truth is that of all rows alike; only the variance of the errors is that of rows as the last round weighed them."""
    setting = batch.setting
    assert isinstance(setting, Setting)
    schema = plain_schema(setting.columns)
    looks: dict[int, list[Seen]] = {others: [] for others in setting.other_labels}
    for i in range(batch.releases):
        rows, beta, errors = draw_rows(setting, i)
        seed = tables.noise_seed(setting.name, setting.rows, batch.mechanism, batch.epsilon) + i
        release = rounds.release_rows(rows, schema=schema, row_bound=setting.row_bound, epsilon=batch.epsilon, seed=seed)
        weights = rounds.last_weights(rows, release)
        left = float(weights @ errors**2 / weights.sum())
        for others in setting.other_labels:
            design = plan(release, setting.places(others))
            truth = Truth(setting.truth(beta, others), left, r_squared(rows.T @ (weights[:, None] * rows), design))
            looks[others].append(look(release, design, truth, batch.method, seed=i))
    return [_row(batch, seen, others) for others, seen in looks.items()]


def _of_table(batch: Batch) -> list[Row]:
    table = batch.setting
    assert isinstance(table, tables.Table)
    looks = []
    for i in range(batch.releases):
        release, truth = table.release(i, batch.mechanism, batch.epsilon)
        looks.append(look(release, table.design(release), truth, batch.method, seed=i))
    rare = list(getattr(table, "rare", ()))
    if not rare:
        return [_row(batch, looks, 0)]
    others = [place for place in range(len(looks[0].covered)) if place not in rare]
    return [_row(batch, [one.of(places) for one in looks], k) for k, places in enumerate((others, rare))]


def _row(batch: Batch, looks: list[Seen], others: int) -> Row:
    return summarise(
        looks,
        setting=batch.setting.name,
        rows=batch.setting.rows,
        epsilon=batch.epsilon,
        others=others,
        mechanism=batch.mechanism,
        method=batch.method,
    )


def run_all(chosen: list[Batch], kept: Path, folder: Path, done: Callable[[Batch], None]) -> list[Row]:
    """Lines of all batches. What ``kept`` already holds with as many releases is not run again."""
    rows = read(kept) if kept.exists() else []
    known = {(row.setting, str(row.rows), str(row.epsilon), row.mechanism, row.method): row.releases for row in rows}
    with calibrated_once():
        for batch in chosen:
            if known.get(batch.key) != batch.releases:
                measured = run(batch, folder)
                rows = [row for row in rows if _key(row) not in {_key(new) for new in measured}] + measured
                write(kept, rows)
            done(batch)
    order = {batch.key: place for place, batch in enumerate(chosen)}
    mine = [r for r in rows if (r.setting, str(r.rows), str(r.epsilon), r.mechanism, r.method) in order]
    return sorted(mine, key=lambda r: (order[r.setting, str(r.rows), str(r.epsilon), r.mechanism, r.method], r.others))


def _key(row: Row) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in KEY)


def read(file: Path) -> list[Row]:
    with file.open(newline="") as lines:
        return [Row(**{name: TYPES[name](text) for name, text in line.items()}) for line in csv.DictReader(lines)]


def write(file: Path, rows: list[Row]) -> None:
    """The lines as CSV, numbers to five digits, so that a rerun on another machine differs in few of them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(TYPES), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: f"{v:.5g}" if TYPES[name] is float else v for name, v in asdict(row).items()})
