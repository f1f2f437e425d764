"""Softmax against its substitutes: the loss on the worst input against the step size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import median
from parityscope.models.positions import orthogonal
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.h2.one_gradient import least_worst_loss, seeded_scores, substitutes
from parityscope.records import Config, Numbers, Result, Row
from parityscope.theory import polylog_numbers

ID = "H2-softmax"
TITLE = "Softmax and its substitutes"
TEXT = (
    "The loss on the worst input (a lower bound; exact where the pair outweighs the rest) after one step of every size"
    " over eight decades, median over seeds. All start from the same code and take the same step direction; they differ"
    " in how scores become weights. Left with ⌈log² d⌉ numbers per head, right with one free number per position, where"
    " most substitutes succeed too: what softmax buys is the small number of parameters. The sigmoid shifted by 2 log d"
    " does not start uniform but near zero."
)
COST: dict[Scale, float] = {"smoke": 0.5, "demo": 2, "reference": 1, "paper": 20}
_STYLES = ("-", "--", ":", "-.", "--", "-")


class BestStep(Numbers):
    """The smallest loss over all steps, median over seeds, and the step at which the median curve is lowest."""

    loss: float
    step: float


class StepCurvesNumbers(Numbers):
    """The best step of softmax and of every substitute, in the order of the curves."""

    best: dict[str, BestStep]


class StepCurves(Config):
    """The loss against the step at one d; `free` gives a head one number per position instead of ⌈log² d⌉."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = StepCurvesNumbers

    n: int
    free: bool
    seeds: int
    points: int

    def run(self) -> Result:
        """Compute every curve."""
        # n/2 is the step that makes linear attention exact when every position has its own number.
        grid = torch.logspace(-3, 5, self.points, dtype=torch.float64)
        steps = torch.cat([grid, torch.tensor([self.n / 2], dtype=grid.dtype)]).sort().values
        if self.free:
            eye = orthogonal(self.n)
            scores = [eye @ (eye[0] + eye[1] - 2 * eye.mean(0))]
        else:
            scores = [seeded_scores(self.n, polylog_numbers(self.n), seed) for seed in range(self.seeds)]
        curves, best = [], dict[str, BestStep]()
        for name, weights in substitutes(self.n).items():
            losses = torch.tensor([[least_worst_loss(weights(float(a) * z)) for a in steps] for z in scores])
            curves.append(losses.quantile(0.5, 0))
            lowest = losses.min(-1).values.tolist()
            best[name] = BestStep(loss=median(lowest), step=float(steps[curves[-1].argmin()]))
        return Result(StepCurvesNumbers(best=best), {"steps": steps, "curves": torch.stack(curves)})


def _both(n: int, seeds: int, points: int) -> list[StepCurves]:
    few = StepCurves(n=n, free=False, seeds=seeds, points=points)
    return [few, StepCurves(n=1000, free=True, seeds=1, points=points)]


_Row = Row[StepCurves, StepCurvesNumbers]

CONFIGS: dict[Scale, list[StepCurves]] = {
    "smoke": _both(1000, seeds=3, points=41),
    "demo": _both(1000, seeds=15, points=161),
    "reference": _both(1000, seeds=15, points=161),
    "paper": _both(10_000, seeds=31, points=321),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw both panels."""
    figure, axes = new_figure(12, 4.4, 1, len(rows), sharey=True, squeeze=False)
    for ax, row in zip(axes[0], rows, strict=True):
        for index, name in enumerate(row.numbers.best):
            curve = row.arrays["curves"][index].clamp(min=1e-4, max=1e3).numpy()
            width = 2.2 if name == "softmax" else 1.4
            ax.plot(
                row.arrays["steps"].numpy(), curve, _STYLES[index], color=colour(index), label=name, linewidth=width
            )
        numbers = "one number per position" if row.config.free else f"r = {polylog_numbers(row.config.n)}"
        ax.set(xscale="log", yscale="log", ylim=(1e-4, 20), xlabel="step, score units")
        ax.set_title(f"d = {row.config.n:,}, {numbers}")
    axes[0][0].set_ylabel("loss on the worst input")
    axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return figure


def table(rows: Sequence[_Row]) -> Table:
    """Return the best loss and step of every kind."""
    return Table(
        ["attention", "d", "numbers per head", "best worst loss, median", "at step"],
        [
            [
                name,
                str(row.config.n),
                str(row.config.n if row.config.free else polylog_numbers(row.config.n)),
                f"{best.loss:.2g}",
                f"{best.step:.3g}",
            ]
            for row in rows
            for name, best in row.numbers.best.items()
        ],
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Set softmax beside the best of the others."""
    few, free = (next(row for row in rows if row.config.free is wanted) for wanted in (False, True))
    best = {name: one.loss for name, one in few.numbers.best.items()}
    usual = {name: loss for name, loss in best.items() if name != "softmax" and "2 log n" not in name}
    return [
        Finding(
            "Rapid feature discovery is uniquely driven by exact softmax, not by linear or component-wise attention.",
            f"With few numbers per head: softmax {best['softmax']:.2g}, the best substitute with a uniform start"
            f" {min(usual.values()):.2f}. But a sigmoid shifted by 2 log d reaches"
            f" {best['sigmoid, shifted 2 log n']:.2g}, and with one number per position linear attention reaches"
            f" {free.numbers.best['linear'].loss:.1g}: the need for softmax is a matter of parameters and start.",
        )
    ]
