"""The loss on the worst of all inputs after one step: against d, and against the initial variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.cells import ShownTraining
from parityscope.papers.figure import Finding, Scale, Table, fresh
from parityscope.papers.h2.one_gradient import fitted_exponent
from parityscope.records import Row
from parityscope.runs import training
from parityscope.runs.training import TrainingNumbers
from parityscope.theory import best_uniform_step, initial_score_variance, one_step_learning_rate, polylog_numbers

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


class ShownStart(ShownTraining):
    """A training from one start, in the panel of its label.

    The variance is a multiple of 1/log d, and 0 is exactly uniform attention.

    >>> CONFIGS["smoke"][0].row_config().recipe.name
    'one-step'
    """

    variance: float


def _shown(panel: str, n: int, variance: float, seeds: int) -> ShownStart:
    r = polylog_numbers(n)
    changes: dict[str, Any] = {"start_radius": math.sqrt(r * variance * initial_score_variance(n))}
    if variance == 0:
        changes["learning_rate"] = one_step_learning_rate(n, score_units=best_uniform_step(n, r))
    trained = training("one-step", n, 2, seeds=fresh(seeds), **changes)
    return ShownStart(label=panel, training=trained, variance=variance)


def _both(n: int, seeds: int) -> list[ShownStart]:
    return [_shown("size", n, variance, seeds) for variance in (0.0, 1.0)]


def _scan(n: int, seeds: int) -> list[ShownStart]:
    factors = (1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    return [_shown("variance", n, factor, seeds) for factor in factors]


_Row = Row[ShownStart, TrainingNumbers]

CONFIGS: dict[Scale, list[ShownStart]] = {
    "smoke": [*_both(300, 4), *_both(1000, 4), *_scan(300, 4)],
    "demo": [
        *(one for n in (100, 300, 1000, 3000, 10_000) for one in _both(n, 8)),
        *_scan(300, 8),
    ],
    "reference": [
        *(one for n in (100, 300, 1000, 3000, 10_000, 100_000) for one in _both(n, 32)),
        *_scan(3000, 24),
    ],
    "paper": [
        *(one for n in (100, 300, 1000, 3000, 10_000, 30_000, 100_000) for one in _both(n, 32)),
        *_both(1_000_000, 4),
        *_scan(30_000, 32),
    ],
}


def _rows(rows: Sequence[_Row], panel: str, variance: float | None = None) -> list[_Row]:
    return [row for row in rows if row.config.label == panel and variance in (None, row.config.variance)]


class _Losses(NamedTuple):
    """The worst loss over seeds: median and central 80 %."""

    low: float
    median: float
    high: float


def _losses(row: _Row) -> _Losses:
    losses = torch.tensor(row.numbers.worst_loss, dtype=torch.float64)
    return _Losses(*losses.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)).tolist())


def _rate(rows: Sequence[_Row]) -> float:
    large = [row for row in rows if row.config.training.n >= 300]
    sizes = [float(row.config.training.n) for row in large]
    return fitted_exponent(sizes, [max(_FLOOR, _losses(row).median) for row in large])


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw both panels."""
    figure, (left, right) = new_figure(11, 4.2, 1, 2, sharey=True)
    for index, (variance, name) in enumerate(((0.0, "uniform start"), (1.0, "variance 1/log d"))):
        chosen = _rows(rows, "size", variance)
        sizes = [row.config.training.n for row in chosen]
        _band(left, sizes, chosen, colour(index), f"{name}: $d^{{{_rate(chosen):.2f}}}$")
    left.set(xscale="log", yscale="log", xlabel="d", ylabel="loss on the worst input", ylim=(_FLOOR, 3))
    left.legend(loc="lower left")
    scanned = _rows(rows, "variance")
    _band(right, [row.config.variance for row in scanned], scanned, colour(2), "")
    right.set(xscale="log", xlabel="initial variance × log d", title=f"d = {scanned[0].config.training.n:,}")
    right.axvline(1.0, color=colour(1), linestyle="--", linewidth=1)
    return figure


def _band(axes: Axes, x: Sequence[float], rows: Sequence[_Row], ink: str, label: str) -> None:
    low, middle, high = ([max(_FLOOR, loss) for loss in losses] for losses in zip(*map(_losses, rows), strict=True))
    axes.fill_between(x, low, high, color=ink, alpha=0.2, linewidth=0)
    axes.plot(x, middle, "o-", color=ink, label=label, markersize=4)


def table(rows: Sequence[_Row]) -> Table:
    """Return every size and start."""
    return Table(
        ["d", "r", "variance × log d", "seeds", "pair found", "worst loss < 0.1", "median worst loss", "10 % to 90 %"],
        [
            [
                str(row.config.training.n),
                str(row.config.training.recipe.numbers_per_head),
                f"{row.config.variance:g}",
                str(len(row.config.training.seeds)),
                str(sum(row.numbers.recovered)),
                str(sum(loss < 0.1 for loss in row.numbers.worst_loss or ())),
                f"{_losses(row).median:.2g}",
                f"{_losses(row).low:.1g} to {_losses(row).high:.2g}",
            ]
            for row in rows
        ],
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare both starts and the range of variances."""
    uniform, varied, scanned = _rows(rows, "size", 0.0), _rows(rows, "size", 1.0), _rows(rows, "variance")
    good = [row.config.variance for row in scanned if _losses(row).median < 0.1]
    band = f"{min(good):g}/log d to {max(good):g}/log d" if good else "none scanned"
    return [
        Finding(
            "The loss on every input is driven to nearly 0.",
            f"At d = {varied[-1].config.training.n:,} the median worst loss is {_losses(uniform[-1]).median:.2g} from a"
            f" uniform start (falling like d^{_rate(uniform):.2f}) and {_losses(varied[-1]).median:.1g} from initial"
            " variance 1/log d, where each head takes one bit.",
        ),
        Finding(
            "The initial variance lies in [c₁/log d, c₂/log d].",
            f"Median worst loss below 0.1 for variances {band} at d = {scanned[0].config.training.n:,}.",
        ),
    ]
