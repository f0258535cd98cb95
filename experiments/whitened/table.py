"""The study's tables: all of them in tables.md, and a summary between the markers of docs/whitened.md."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from experiments.markers import fill_page
from experiments.whitened.study import CHOSEN, COMPARED, EPSILONS, HELD_OUT, Line, read

RESULTS, TABLES, PAGE = (
    Path("experiments/whitened/results.csv"),
    Path("experiments/whitened/tables.md"),
    Path("docs/whitened.md"),
)

AIMS = {  # the mean l2 error that was the goal, by setting, log2 of rows and epsilon
    ("single", 14, 0.1): 0.16,
    ("single", 16, 0.1): 0.026,
    ("single", 18, 0.1): 0.0088,
    ("m = 5", 16, 0.1): 0.18,
    ("m = 5", 18, 0.1): 0.040,
    ("m = 19", 16, 0.1): 0.36,
    ("m = 19", 18, 0.1): 0.075,
    ("AR(0.9)", 16, 0.1): 0.072,
}
MOST_OVER_LEAST_SQUARES = 1.5  # at epsilon 1 and 2^16 rows
MOST_BELOW = 0.005  # of test R^2, below the better single release, for epsilon from 0.1 to 3
MOST_OVER_SINGLE = 1.02  # of the error on real tables, for epsilon 3 and 5
SAID = {"single": "`gaussian-noise`", "clipped": "`gaussian-noise`, clipped hard", "whitened": "`whitened-noise`"}


def update(root: Path) -> None:
    lines = read(root / RESULTS)
    (root / TABLES).write_text(everything(lines), encoding="utf-8")
    fill_page(root / PAGE, parts(lines))


def parts(lines: list[Line]) -> dict[str, str]:
    """The page's tables by the name of their markers."""
    return {"in short": in_short(lines), "measured": summary(lines)}


def in_short(lines: list[Line]) -> str:
    """One line per mechanism, over all real tables."""
    real = [x for x in lines if x.part == "real"]
    many = len({x.setting for x in real})
    head = (f"prediction error over that of least squares, mean of {many} real tables", *(f"epsilon {e:g}" for e in EPSILONS))
    rows = []
    for name in ("single", "whitened"):
        means = [_geometric(getattr(x, f"{name}_error") for x in real if x.epsilon == e) for e in EPSILONS]
        rows.append((SAID[name], *(f"{mean:.3g}" for mean in means)))
    return _table(head, rows)


def summary(lines: list[Line]) -> str:
    drawn, real = [x for x in lines if x.part == "simulated"], [x for x in lines if x.part == "real"]
    parts = (_aims(drawn), _over_least_squares(drawn), _by_epsilon(real), _compact(real), _lost(real), _second_best(real))
    return "\n\n".join(part for part in parts if part) + "\n"


def everything(lines: list[Line]) -> str:
    parts = [
        "# The whitened release, measured",
        "All numbers of the study behind docs/whitened.md, written by `make whitened-study`. All releases are for REPLACE. *Gaussian* is a "
        "release by `gaussian-noise` at the schema's row bound. *Clipped* is the same with rows clipped at a fifth of the squared bound. "
        "Both get the better of the estimators `shrunk` and `log-det`. *Whitened* is a release by `whitened-noise` with `shrunk`. "
        "*Weighted* is least squares without noise, on the rows as the last round weighted them. Its difference to *without privacy* "
        "is the part that clipping causes. The column without a name says how a table was used, as docs/whitened.md explains.",
        "## Simulated\n\nMean l2 error of coefficients, delta e^-9.\n\n" + _all_simulated(lines),
        "## Real\n\nTest R^2, delta 1e-6. The last four columns are prediction errors over those of least squares.\n\n"
        + _all_real(lines),
    ]
    return "\n\n".join(parts) + "\n"


def best_error(x: Line) -> float:
    return min(x.single_shrunk, x.single_log_det)


def best_r2(x: Line) -> float:
    return max(x.single_shrunk, x.single_log_det)


def loses(x: Line) -> bool:
    """Whether more of the test R^2 is lost than may be; asked up to epsilon 3."""
    return x.part == "real" and x.epsilon <= 3 and x.whitened_shrunk < best_r2(x) - MOST_BELOW


def _aims(lines: list[Line]) -> str:
    head = ("setting", "rows", "datasets", "goal", "`whitened-noise`", "`gaussian-noise`", "least squares")
    rows = []
    for x in lines:
        aim = AIMS.get((x.setting, _length(x), x.epsilon))
        if aim is not None and x.columns in (22, 41):
            measured = f"{x.whitened_shrunk:.3g} ± {x.whitened_se:.1g}"
            said = measured if x.whitened_shrunk <= aim else f"**{measured}**"
            rows.append((x.setting, f"2^{_length(x)}", x.runs, f"{aim:g}", said, f"{best_error(x):.3g}", f"{x.without:.3g}"))
    return (
        "*Simulated tables, epsilon 0.1: mean l2 errors of coefficients, with standard errors. Bold: above the goal.*\n\n"
        + _table(head, rows)
    )


def _over_least_squares(lines: list[Line]) -> str:
    head = (
        "setting",
        "d",
        "",
        "datasets",
        "`gaussian-noise`",
        "`whitened-noise`",
        "least squares",
        "whitened over least squares",
    )
    rows = []
    for x in lines:
        if _length(x) == 16 and x.epsilon == 1:
            ratio = f"{x.whitened_shrunk / x.without:.2f}"
            said = ratio if x.whitened_shrunk <= MOST_OVER_LEAST_SQUARES * x.without else f"**{ratio}**"
            numbers = [f"{v:.3g}" for v in (best_error(x), x.whitened_shrunk, x.without)]
            rows.append((x.setting, x.columns, x.group, x.runs, *numbers, said))
    limit = MOST_OVER_LEAST_SQUARES
    words = f"*Simulated tables, epsilon 1, 2^16 rows: mean l2 errors. Bold: above {limit:g} times the error without privacy.*"
    return f"{words}\n\n{_table(head, rows)}"


def _by_epsilon(lines: list[Line]) -> str:
    head = ("tables", "release", *(f"epsilon {e:g}" for e in EPSILONS))
    rows = []
    for group in (CHOSEN, COMPARED, HELD_OUT):
        own = [x for x in lines if x.group == group]
        if not own:
            continue
        many = len({x.setting for x in own})
        for name, said in SAID.items():
            means = [_geometric(getattr(x, f"{name}_error") for x in own if x.epsilon == e) for e in EPSILONS]
            rows.append((f"{many}, {group}", said, *(f"{mean:.3g}" for mean in means)))
    return (
        "*Real tables: prediction error over that of least squares, geometric means. 1 is as good as without privacy.*\n\n"
        + _table(head, rows)
    )


def _compact(lines: list[Line]) -> str:
    head = ("table", "rows", "d", "", "least squares", *(f"epsilon {e:g}" for e in EPSILONS))
    rows = []
    for name in dict.fromkeys(x.setting for x in lines):
        own = {x.epsilon: x for x in lines if x.setting == name}
        one = next(iter(own.values()))
        cells = [_pair(own[e]) if e in own else "" for e in EPSILONS]
        rows.append((name, f"{one.rows:,}", one.columns, one.group, f"{one.without:.3f}", *cells))
    return (
        "*Real tables: mean test R^2 of `gaussian-noise` → `whitened-noise`. Bold: `whitened-noise` is more than "
        f"{MOST_BELOW:g} lower.*\n\n" + _table(head, rows)
    )


def _pair(x: Line) -> str:
    said = f"{x.whitened_shrunk:.3f}"
    return f"{best_r2(x):.3f} → " + (f"**{said}**" if x.whitened_shrunk < best_r2(x) - MOST_BELOW else said)


def _lost(lines: list[Line]) -> str:
    asked = [x for x in lines if x.epsilon <= 3]
    lost = [x for x in asked if loses(x)]
    head = (
        "table",
        "epsilon",
        "`gaussian-noise`",
        "`whitened-noise`",
        "difference",
        "no noise, same weights of rows",
        "without privacy",
    )
    rows = []
    for x in lost:
        numbers = [f"{v:.3f}" for v in (best_r2(x), x.whitened_shrunk)]
        apart = f"{x.whitened_shrunk - best_r2(x):+.3f} ± {x.difference_se:.1g}"
        rows.append((x.setting, f"{x.epsilon:g}", *numbers, apart, f"{x.weighed:.3f}", f"{x.without:.3f}"))
    below = f"`whitened-noise` is more than {MOST_BELOW:g} of test R^2 below `gaussian-noise`"
    said = f"In {len(lost)} of {len(asked)} cases with epsilon up to 3, {below}"
    return f"{said}:\n\n{_table(head, rows)}" if lost else f"{said}."


def _second_best(lines: list[Line]) -> str:
    asked = [x for x in lines if x.epsilon >= 3]
    over = [x for x in asked if x.whitened_error > MOST_OVER_SINGLE * x.single_error]
    said = [f"{x.name}: {x.whitened_error / x.single_error:.2f}" for x in over]
    clipped = [x for x in lines if x.epsilon <= 3 and x.whitened_shrunk < max(x.clipped_shrunk, x.clipped_log_det) - MOST_BELOW]
    also = [f"{x.name}: {x.whitened_shrunk - max(x.clipped_shrunk, x.clipped_log_det):+.3f}" for x in clipped]
    return (
        f"Cases with epsilon 3 or 5 where the error is more than {MOST_OVER_SINGLE:g} times that of `gaussian-noise`: {len(over)} of "
        f"{len(asked)}{_listed(said)}\n\nCases with epsilon up to 3 where `gaussian-noise` with hard clipping is better by more than "
        f"{MOST_BELOW:g} of test R^2: {len(clipped)}{_listed(also)}"
    )


def _all_simulated(lines: list[Line]) -> str:
    head = ("setting", "d", "rows", "epsilon", "datasets", "", "without privacy", "weighted", "gaussian", "clipped", "whitened")
    rows = []
    for x in lines:
        if x.part == "simulated":
            clipped = min(x.clipped_shrunk, x.clipped_log_det)
            numbers = (x.without, x.weighed, best_error(x), clipped, x.whitened_shrunk, x.whitened_log_det)
            first = (x.setting, x.columns, f"2^{_length(x)}", f"{x.epsilon:g}", x.runs, x.group)
            rows.append((*first, *(f"{v:.3g}" for v in numbers), f"{x.whitened_se:.1g}"))
    return _table((*head, "whitened, log-det", "standard error"), rows)


def _all_real(lines: list[Line]) -> str:
    head = ("table", "d", "rows", "epsilon", "draws", "", "without privacy", "weighted", "gaussian", "clipped", "whitened")
    more = ("whitened, log-det", "standard error", "gaussian", "clipped", "whitened", "weighted")
    rows = []
    for x in lines:
        if x.part == "real":
            clipped = max(x.clipped_shrunk, x.clipped_log_det)
            numbers = (x.without, x.weighed, best_r2(x), clipped, x.whitened_shrunk, x.whitened_log_det)
            errors = (x.single_error, x.clipped_error, x.whitened_error, x.weighed_error)
            first = (x.setting, x.columns, x.rows, f"{x.epsilon:g}", x.runs, x.group)
            said = (*(f"{v:.3f}" for v in numbers), f"{x.whitened_se:.1g}", *(f"{v:.3g}" for v in errors))
            rows.append((*first, *said))
    return _table((*head, *more), rows)


def _table(head: tuple, rows: list[tuple]) -> str:
    lines = [f"| {' | '.join(str(cell) for cell in line)} |" for line in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def _listed(said: list[str]) -> str:
    return (f" ({'; '.join(said)})" if said else "") + "."


def _geometric(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def _length(x: Line) -> int:
    return round(math.log2(x.rows))
