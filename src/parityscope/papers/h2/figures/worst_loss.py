"""What one gradient step leaves: attention on the pair, the loss on the worst input, softmax and its substitutes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import median
from parityscope.models import ParityTransformer
from parityscope.models.positions import orthogonal
from parityscope.papers.cells import ShownTraining
from parityscope.papers.figure import FigureSpec, TableColumn, fresh, table_of
from parityscope.papers.h2.one_gradient import fitted_exponent, least_worst_loss, seeded_scores, substitutes
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import Training, training
from parityscope.runs.training import TrainingNumbers
from parityscope.theory import best_uniform_step, initial_score_variance, one_step_learning_rate, polylog_numbers
from parityscope.training.learning import train

_LEAST_ATTENTION = 1e-9


class OneStepNumbers(Numbers):
    """The pair that the two heads recover, and where they look."""

    support: tuple[int, ...]
    found: tuple[int, ...]
    worst_loss: float
    largest_before: float
    on_pair: tuple[tuple[float, ...], ...]  # of each head, after the step


class OneStep(Config):
    """One training, with its attention before and after."""

    ROWS: ClassVar[str] = "H2-one-step"
    NUMBERS: ClassVar[type[Numbers]] = OneStepNumbers

    training: Training

    def run(self) -> Result:
        """Take the step and keep attention before and after."""
        (problem,), recipe = self.training.problems(), self.training.recipe
        seen: dict[str, torch.Tensor] = {}

        def keep(step: int, model: ParityTransformer) -> None:
            seen["before" if step == 0 else "after"] = model.attention()[0].detach()

        trained = train([problem], [recipe], self.training.seeds, on_record=keep)
        assert trained.worst_loss is not None
        numbers = OneStepNumbers(
            support=problem.support,
            found=trained.found[0].tolist(),
            worst_loss=float(trained.worst_loss[0]),
            largest_before=float(seen["before"].max()),
            on_pair=seen["after"][:, list(problem.support)].tolist(),
        )
        return Result(numbers, {when: attention.float() for when, attention in seen.items()})  # as it is drawn


def _steps(*sizes: int) -> list[OneStep]:
    return [OneStep(training=training("one-step", n, 2)) for n in sizes]


_StepRow = Row[OneStep, OneStepNumbers]


def _plot_steps(rows: Sequence[_StepRow]) -> Figure:
    """Draw attention against position, one column per size."""
    figure, axes = new_figure(4.6 * len(rows) + 1, 5, 2, len(rows), squeeze=False, sharey=True)
    for column, row in enumerate(rows):
        n = row.config.training.n
        for line, when in enumerate(("before", "after")):
            ax = axes[line][column]
            for head, marker in ((0, "o"), (1, "s")):
                attention = row.arrays[when][head].clamp(min=_LEAST_ATTENTION).numpy()
                ax.plot(
                    attention,
                    marker,
                    color=colour(head),
                    markersize=3 if line else 2,
                    label=f"head {head}",
                    alpha=0.5,
                    rasterized=True,
                )
            ax.plot(row.numbers.support, [2.2, 2.2], "v", color=colour(2), markersize=8, clip_on=False)
            ax.set(yscale="log", ylim=(_LEAST_ATTENTION / 3, 2), xlim=(-0.02 * n, 1.02 * n))
            ax.set_title(f"d = {n:,}, {when} the step", pad=14)
            if line:
                ax.set_xlabel("position")
            if not column:
                ax.set_ylabel("attention")
    axes[1][0].legend(loc="center left", markerscale=2)
    return figure


def _on_pair(row: _StepRow, head: int) -> str:
    return " + ".join(f"{value:.3f}" for value in row.numbers.on_pair[head])


_LEAST_LOSS = 1e-6


class _ShownStart(ShownTraining):
    """A training from one start, in the panel of its label.

    The variance is a multiple of 1/log d, and 0 is exactly uniform attention.
    """

    variance: float


def _shown(panel: str, n: int, variance: float, seeds: int) -> _ShownStart:
    r = polylog_numbers(n)
    changes: dict[str, Any] = {"start_radius": math.sqrt(r * variance * initial_score_variance(n))}
    if variance == 0:
        changes["learning_rate"] = one_step_learning_rate(n, score_units=best_uniform_step(n, r))
    trained = training("one-step", n, 2, seeds=fresh(seeds), **changes)
    return _ShownStart(label=panel, training=trained, variance=variance)


def _both_starts(n: int, seeds: int) -> list[_ShownStart]:
    return [_shown("size", n, variance, seeds) for variance in (0.0, 1.0)]


def _scan(n: int, seeds: int) -> list[_ShownStart]:
    factors = (1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    return [_shown("variance", n, factor, seeds) for factor in factors]


_StartRow = Row[_ShownStart, TrainingNumbers]


def _rows(rows: Sequence[_StartRow], panel: str, variance: float | None = None) -> list[_StartRow]:
    return [row for row in rows if row.config.label == panel and variance in (None, row.config.variance)]


class _Losses(NamedTuple):
    """The worst loss over seeds: median and central 80 %."""

    low: float
    median: float
    high: float


def _losses(row: _StartRow) -> _Losses:
    losses = torch.tensor(row.numbers.worst_loss, dtype=torch.float64)
    return _Losses(*losses.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)).tolist())


def _rate(rows: Sequence[_StartRow]) -> float:
    large = [row for row in rows if row.config.training.n >= 300]
    sizes = [float(row.config.training.n) for row in large]
    return fitted_exponent(sizes, [max(_LEAST_LOSS, _losses(row).median) for row in large])


def _plot_error(rows: Sequence[_StartRow]) -> Figure:
    """Draw both panels."""
    figure, (left, right) = new_figure(11, 4.2, 1, 2, sharey=True)
    for index, (variance, name) in enumerate(((0.0, "uniform initialisation"), (1.0, "variance 1/log d"))):
        chosen = _rows(rows, "size", variance)
        sizes = [row.config.training.n for row in chosen]
        _band(left, sizes, chosen, colour(index), f"{name}: $d^{{{_rate(chosen):.2f}}}$")
    left.set(xscale="log", yscale="log", xlabel="d", ylabel="loss on the worst input", ylim=(_LEAST_LOSS, 3))
    left.legend(loc="lower left")
    scanned = _rows(rows, "variance")
    _band(right, [row.config.variance for row in scanned], scanned, colour(2), "")
    right.set(xscale="log", xlabel="initial variance × log d", title=f"d = {scanned[0].config.training.n:,}")
    right.axvline(1.0, color=colour(1), linestyle="--", linewidth=1)
    return figure


def _band(axes: Axes, x: Sequence[float], rows: Sequence[_StartRow], ink: str, label: str) -> None:
    low, middle, high = (
        [max(_LEAST_LOSS, loss) for loss in losses] for losses in zip(*map(_losses, rows), strict=True)
    )
    axes.fill_between(x, low, high, color=ink, alpha=0.2, linewidth=0)
    axes.plot(x, middle, "o-", color=ink, label=label, markersize=4)


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

    ROWS: ClassVar[str] = "H2-softmax"
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


def _both_sizes(n: int, seeds: int, points: int) -> list[StepCurves]:
    few = StepCurves(n=n, free=False, seeds=seeds, points=points)
    return [few, StepCurves(n=1000, free=True, seeds=1, points=points)]


_CurvesRow = Row[StepCurves, StepCurvesNumbers]


def _plot_substitutes(rows: Sequence[_CurvesRow]) -> Figure:
    """Draw both panels."""
    figure, axes = new_figure(12, 4.4, 1, len(rows), sharey=True, squeeze=False)
    for ax, row in zip(axes[0], rows, strict=True):
        for index, name in enumerate(row.numbers.best):
            curve = row.arrays["curves"][index].clamp(min=1e-4, max=1e3).numpy()
            width = 2.2 if name == "softmax" else 1.4
            ax.plot(
                row.arrays["steps"].numpy(), curve, _STYLES[index], color=colour(index), label=name, linewidth=width
            )
        numbers = "one parameter per position" if row.config.free else f"r = {polylog_numbers(row.config.n)}"
        ax.set(xscale="log", yscale="log", ylim=(1e-4, 20), xlabel="step, score units")
        ax.set_title(f"d = {row.config.n:,}, {numbers}")
    axes[0][0].set_ylabel("loss on the worst input")
    axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return figure


FIGURES = (
    FigureSpec(
        ID="H2-one-step",
        TITLE="One gradient step",
        TEXT="Attention of H2's two heads (our reading) over all positions, before and after one gradient step on the "
        "population risk. Initial scores have variance 1/log d; the step is 4 log d score units; each head has ⌈log² "
        "d⌉ trainable parameters. Triangles mark the hidden pair; less than 10⁻⁹ is drawn as 10⁻⁹. The gradient "
        "contains the hidden bits: for examples, see H2-samples.",
        COST={"smoke": 0.5, "demo": 0.1, "reference": 0.0},
        CONFIGS={
            "smoke": _steps(1000),
            "demo": _steps(1000, 10_000),
            "reference": _steps(1000, 10_000),
        },
        plot=_plot_steps,
        table=table_of(
            TableColumn("d", lambda row: row.config.training.n),
            TableColumn("parameters per head", lambda row: row.config.training.recipe.numbers_per_head),
            TableColumn("hidden", lambda row: ", ".join(map(str, row.numbers.support))),
            TableColumn("recovered", lambda row: ", ".join(map(str, row.numbers.found))),
            TableColumn("head 0 on the pair", lambda row: _on_pair(row, 0)),
            TableColumn("head 1 on the pair", lambda row: _on_pair(row, 1)),
            TableColumn("worst loss", lambda row: row.numbers.worst_loss, ".2g"),
        ),
    ),
    FigureSpec(
        ID="H2-error",
        TITLE="Error against d",
        TEXT="The exact hinge loss on the worst of all 2^d inputs after one population gradient step, ⌈log² d⌉ "
        "parameters per head: median and central 80 % of seeds. Left, against d, from exactly uniform attention with "
        "the best data-free step and from initial scores of variance 1/log d with a step of 4 log d. Right, against "
        "the initial variance at one d: too little and both heads stay on both bits, too much and attention starts on "
        "wrong ones.",
        COST={"smoke": 1.5, "demo": 8, "reference": 25},
        CONFIGS={
            "smoke": [*_both_starts(300, 4), *_both_starts(1000, 4), *_scan(300, 4)],
            "demo": [
                *(one for n in (100, 300, 1000, 3000, 10_000) for one in _both_starts(n, 8)),
                *_scan(300, 8),
            ],
            "reference": [
                *(one for n in (100, 300, 1000, 3000, 10_000, 100_000) for one in _both_starts(n, 32)),
                *_scan(3000, 24),
            ],
        },
        plot=_plot_error,
        table=table_of(
            TableColumn("d", lambda row: row.config.training.n),
            TableColumn("r", lambda row: row.config.training.recipe.numbers_per_head),
            TableColumn("variance × log d", lambda row: row.config.variance, "g"),
            TableColumn("seeds", lambda row: len(row.config.training.seeds)),
            TableColumn("pair recovered", lambda row: sum(row.numbers.recovered)),
            TableColumn("worst loss < 0.1", lambda row: sum(loss < 0.1 for loss in row.numbers.worst_loss)),
            TableColumn("median worst loss", lambda row: _losses(row).median, ".2g"),
            TableColumn("10 % to 90 %", lambda row: f"{_losses(row).low:.1g} to {_losses(row).high:.2g}"),
        ),
    ),
    FigureSpec(
        ID="H2-softmax",
        TITLE="Softmax and its substitutes",
        TEXT="The loss on the worst input (a lower bound; exact where the pair outweighs the rest) after one step of "
        "every size over eight decades, median over seeds. All start from the same code and take the same step "
        "direction; they differ in how scores become weights. Left with ⌈log² d⌉ parameters per head, right with one "
        "free parameter per position, where most substitutes succeed too: what softmax buys is the small number of "
        "parameters. The sigmoid shifted by 2 log d does not start uniform but near zero.",
        COST={"smoke": 0.5, "demo": 2, "reference": 1},
        CONFIGS={
            "smoke": _both_sizes(1000, seeds=3, points=41),
            "demo": _both_sizes(1000, seeds=15, points=161),
            "reference": _both_sizes(1000, seeds=15, points=161),
        },
        plot=_plot_substitutes,
        table=table_of(
            TableColumn("attention", lambda line: line[1]),
            TableColumn("d", lambda line: line[0].n),
            TableColumn("parameters per head", lambda line: line[0].n if line[0].free else polylog_numbers(line[0].n)),
            TableColumn("best worst loss, median", lambda line: line[2].loss, ".2g"),
            TableColumn("at step", lambda line: line[2].step, ".3g"),
            lines=lambda rows: [(row.config, name, best) for row in rows for name, best in row.numbers.best.items()],
        ),
    ),
)
