"""The loss on the worst of all inputs after one step: against d, and against the initial variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import draw_problems
from parityscope.records import Config, Numbers, Result, Row
from parityscope.theory import best_uniform_step, initial_score_variance, one_step_learning_rate, polylog_numbers
from parityscope.training.learning import learn
from parityscope.training.pair_step import fitted_exponent

ID = "H2-error"
TITLE = "Error against d"
TEXT = (
    "The exact hinge loss on the worst of all 2^d inputs after one population gradient step, ⌈log² d⌉ numbers per head:"
    " median and central 80 % of seeds. Left, against d, from exactly uniform attention with the best data-free"
    " step and from initial scores of variance 1/log d with a step of 4 log d. Right, against the initial variance"
    " at one d: too little and both heads stay on both bits, too much and attention starts on wrong ones."
)
COST: dict[Scale, float] = {"smoke": 1.5, "demo": 8, "reference": 25, "paper": 300}
_FLOOR = 1e-6


class CellNumbers(Numbers):
    """TODO."""


class Cell(Config):
    """One size and one start; the variance is a multiple of 1/log d, and 0 is exactly uniform attention."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = CellNumbers

    panel: str
    n: int
    variance: float
    seeds: int

    def run(self) -> Result:
        """Take one step with every seed."""
        seeds, n = range(self.seeds), self.n
        r = polylog_numbers(n)
        changes: dict[str, Any] = {"start_radius": math.sqrt(r * self.variance * initial_score_variance(n))}
        if self.variance == 0:
            changes["learning_rate"] = one_step_learning_rate(n, score_units=best_uniform_step(n, r))
        trained = learn(draw_problems(n, 2, seeds), "one-step", seeds, **changes)
        assert trained.worst_loss is not None
        losses = trained.worst_loss
        low, middle, high = losses.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=losses.dtype)).tolist()
        good = int((losses < 0.1).sum())
        found = int(trained.recovered.sum())
        return Result({"low": low, "median": middle, "high": high, "below_0.1": good, "found": found, "r": r})


def _both(n: int, seeds: int) -> list[Cell]:
    return [Cell(panel="size", n=n, variance=variance, seeds=seeds) for variance in (0.0, 1.0)]


def _scan(n: int, seeds: int) -> list[Cell]:
    factors = (1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    return [Cell(panel="variance", n=n, variance=factor, seeds=seeds) for factor in factors]


_Row = Row[Cell, CellNumbers]

CONFIGS: dict[Scale, list[Cell]] = {
    "smoke": [*_both(300, 4), *_both(1000, 4), *_scan(300, 4)],
    "demo": [
        *(cell for n in (100, 300, 1000, 3000, 10_000) for cell in _both(n, 8)),
        *_scan(300, 8),
    ],
    "reference": [
        *(cell for n in (100, 300, 1000, 3000, 10_000) for cell in _both(n, 32)),
        *_both(100_000, 8),
        *_scan(3000, 24),
    ],
    "paper": [
        *(cell for n in (100, 300, 1000, 3000, 10_000, 30_000, 100_000) for cell in _both(n, 32)),
        *_both(1_000_000, 4),
        *_scan(30_000, 32),
    ],
}


def _rows(rows: Sequence[_Row], panel: str, variance: float | None = None) -> list[_Row]:
    return [row for row in rows if row.config.panel == panel and variance in (None, row.config.variance)]


def _rate(rows: Sequence[_Row]) -> float:
    large = [row for row in rows if row.config.n >= 300]
    sizes = [float(row.config.n) for row in large]
    return fitted_exponent(sizes, [max(_FLOOR, row.numbers.median) for row in large])


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw both panels."""
    figure, (left, right) = new_figure(11, 4.2, 1, 2, sharey=True)
    for index, (variance, name) in enumerate(((0.0, "uniform start"), (1.0, "variance 1/log d"))):
        chosen = _rows(rows, "size", variance)
        _band(left, [row.config.n for row in chosen], chosen, colour(index), f"{name}: $d^{{{_rate(chosen):.2f}}}$")
    left.set(xscale="log", yscale="log", xlabel="d", ylabel="loss on the worst input", ylim=(_FLOOR, 3))
    left.legend(loc="lower left")
    scanned = _rows(rows, "variance")
    _band(right, [row.config.variance for row in scanned], scanned, colour(2), "")
    right.set(xscale="log", xlabel="initial variance × log d", title=f"d = {scanned[0].config['n']:,}")
    right.axvline(1.0, color=colour(1), linestyle="--", linewidth=1)
    return figure


def _band(axes: Any, x: list[float], rows: Sequence[_Row], ink: str, label: str) -> None:
    low, middle, high = ([max(_FLOOR, row.numbers[key]) for row in rows] for key in ("low", "median", "high"))
    axes.fill_between(x, low, high, color=ink, alpha=0.2, linewidth=0)
    axes.plot(x, middle, "o-", color=ink, label=label, markersize=4)


def table(rows: Sequence[_Row]) -> Table:
    """Return every cell."""
    return Table(
        ["d", "r", "variance × log d", "seeds", "pair found", "worst loss < 0.1", "median worst loss", "10 % to 90 %"],
        [
            [
                str(row.config.n),
                str(row.numbers.r),
                f"{row.config.variance:g}",
                str(row.config.seeds),
                str(row.numbers.found),
                str(row.numbers["below_0.1"]),
                f"{row.numbers.median:.2g}",
                f"{row.numbers.low:.1g} to {row.numbers.high:.2g}",
            ]
            for row in rows
        ],
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare both starts and the range of variances."""
    uniform, varied, scanned = _rows(rows, "size", 0.0), _rows(rows, "size", 1.0), _rows(rows, "variance")
    good = [row.config.variance for row in scanned if row.numbers.median < 0.1]
    band = f"{min(good):g}/log d to {max(good):g}/log d" if good else "none scanned"
    return [
        Finding(
            "The loss on every input is driven to nearly 0.",
            f"At d = {varied[-1].config['n']:,} the median worst loss is {uniform[-1].numbers['median']:.2g} from a"
            f" uniform start (falling like d^{_rate(uniform):.2f}) and {varied[-1].numbers['median']:.1g} from initial"
            " variance 1/log d, where each head takes one bit.",
        ),
        Finding(
            "The initial variance lies in [c₁/log d, c₂/log d].",
            f"Median worst loss below 0.1 for variances {band} at d = {scanned[0].config['n']:,}.",
        ),
    ]
