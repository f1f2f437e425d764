"""Attention before and after the one step: two heads, each on one bit of the pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.models import ParityTransformer
from parityscope.papers.figure import Column, Scale, claims_say_it, table_of
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import Training, training
from parityscope.training.learning import train

ID = "H2-one-step"
TITLE = "One gradient step"
TEXT = (
    "Attention of H2's two heads (our reading) over all positions, before and after one gradient step on the population"
    " risk. Initial scores have variance 1/log d; the step is 4 log d score units; each head has ⌈log² d⌉ trainable"
    " numbers. Triangles mark the hidden pair; less than 10⁻⁹ is drawn as 10⁻⁹. The gradient contains the hidden bits:"
    " for examples, see H2-samples."
)
_FLOOR = 1e-9
COST: dict[Scale, float] = {"smoke": 0.5, "demo": 0.1, "reference": 0.0}


class OneStepNumbers(Numbers):
    """What the two heads found, and where they look."""

    support: tuple[int, ...]
    found: tuple[int, ...]
    worst_loss: float
    largest_before: float
    on_pair: tuple[tuple[float, ...], ...]  # of each head, after the step


class OneStep(Config):
    """One training, with its attention before and after."""

    ROWS: ClassVar[str] = ID
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


_Row = Row[OneStep, OneStepNumbers]

CONFIGS: dict[Scale, list[OneStep]] = {
    "smoke": _steps(1000),
    "demo": _steps(1000, 10_000),
    "reference": _steps(1000, 10_000),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw attention against position, one column per size."""
    figure, axes = new_figure(4.6 * len(rows) + 1, 5, 2, len(rows), squeeze=False, sharey=True)
    for column, row in enumerate(rows):
        n = row.config.training.n
        for line, when in enumerate(("before", "after")):
            ax = axes[line][column]
            for head, marker in ((0, "o"), (1, "s")):
                attention = row.arrays[when][head].clamp(min=_FLOOR).numpy()
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
            ax.set(yscale="log", ylim=(_FLOOR / 3, 2), xlim=(-0.02 * n, 1.02 * n))
            ax.set_title(f"d = {n:,}, {when} the step", pad=14)
            if line:
                ax.set_xlabel("position")
            if not column:
                ax.set_ylabel("attention")
    axes[1][0].legend(loc="center left", markerscale=2)
    return figure


def _on_pair(row: _Row, head: int) -> str:
    return " + ".join(f"{value:.3f}" for value in row.numbers.on_pair[head])


table = table_of(
    Column("d", lambda row: row.config.training.n),
    Column("numbers per head", lambda row: row.config.training.recipe.numbers_per_head),
    Column("hidden", lambda row: ", ".join(map(str, row.numbers.support))),
    Column("found", lambda row: ", ".join(map(str, row.numbers.found))),
    Column("head 0 on the pair", lambda row: _on_pair(row, 0)),
    Column("head 1 on the pair", lambda row: _on_pair(row, 1)),
    Column("worst loss", lambda row: row.numbers.worst_loss, ".2g"),
)


findings = claims_say_it
