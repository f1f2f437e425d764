"""H1, Figure 2: attention over training, for separate and for neighbouring hidden bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from parityscope.core.drawing import HEAT, colour
from parityscope.core.ties import first_largest
from parityscope.papers.cells import ShownTraining, TrainingRow, by_label, of_learned
from parityscope.papers.figure import Column, Scale, claims_say_it, table_of
from parityscope.papers.h1.trainings import FIGURE_2, NEIGHBOURS, SEPARATE, WATCHED, coded_heads
from parityscope.records import Row
from parityscope.runs import training
from parityscope.runs.training import TrainingNumbers

ID = "H1-figure-2"
TITLE = "H1, Figure 2: what the heads attend to while they learn"
TEXT = (
    "Twenty bits, three hidden (triangles): far apart on the left, two of them neighbours on the right. Wide panels "
    "show the weight of every position in the score, c = Σ γ over heads, step by step; narrow panels the heads after"
    " training. This is the attention the model uses, temperature included. Each row shows the first seed that "
    "learned, or seed 0 if none did; the share of all seeds stands in the title."
)
COST: dict[Scale, float] = {"smoke": 4, "demo": 8, "reference": 39}


def _configs(
    n: int, supports: Sequence[tuple[int, ...]], seeds: int, coded_steps: int, **changes: Any
) -> list[ShownTraining]:
    coded = f"as coded, rate 0.2, {coded_steps} steps"
    return [
        *(ShownTraining(label=coded, training=coded_heads(n, one, seeds, coded_steps)) for one in supports),
        *(
            ShownTraining(
                label=recipe,
                training=training(
                    recipe, n, len(one), seeds=range(seeds), support=one, record_every=2, **WATCHED, **changes
                ),
            )
            for recipe in ("repaired", "bounded")
            for one in supports
        ),
    ]


CONFIGS: dict[Scale, list[ShownTraining]] = {
    "smoke": _configs(10, ((1, 4, 8), (2, 6, 7)), 2, 100, steps=100),
    **{scale: _configs(20, (SEPARATE, NEIGHBOURS), *sizes) for scale, sizes in FIGURE_2.items()},
}


def plot(rows: Sequence[TrainingRow]) -> Figure:
    """Draw recipes from top to bottom, the two supports side by side."""
    recipes = list(by_label(rows))
    supports = list(dict.fromkeys(_support(row) for row in rows))
    figure = Figure(figsize=(13, 2.9 * len(recipes)), layout="constrained")
    grid = figure.subplots(
        len(recipes), 2 * len(supports), sharey=True, squeeze=False, width_ratios=[3.2, 1] * len(supports)
    )
    for row in rows:
        line, column = recipes.index(row.config.label), 2 * supports.index(_support(row))
        _draw_training(grid[line][column], row)
        image = _draw_heads(grid[line][column + 1], row)
    figure.colorbar(image, ax=grid, shrink=0.5, label="attention", pad=0.01)
    return figure


def _support(row: TrainingRow) -> tuple[int, ...]:
    return row.numbers.supports[0]  # the same for all seeds


def _shown(row: TrainingRow) -> int:
    """Return the first seed that learned, or seed 0."""
    return row.numbers.learned.index(True) if any(row.numbers.learned) else 0


def one_head_per_bit(row: Row[Any, TrainingNumbers]) -> int:
    """Return how many of the seeds that learned have heads that all attend to different bits most.

    >>> from parityscope.papers.claim import computed
    >>> trained = training("bounded", 8, 2, seeds=range(3), watch=("attention",))
    >>> one_head_per_bit(computed(trained))
    3
    """
    # Attention is stored in single precision, whose ties would be wider than what two heads between neighbours differ.
    heads = first_largest(row.arrays["attention"].double()).tolist()
    distinct = [len(set(found)) == len(support) for found, support in zip(heads, row.numbers.supports, strict=True)]
    return sum(of_learned(row.numbers, distinct))


def _draw_training(axes: Axes, row: TrainingRow) -> None:
    n, support, shown = row.config.training.n, _support(row), _shown(row)
    steps, weights = row.arrays["steps"].numpy(), row.arrays["weights"][:, shown].numpy()
    used = steps <= max(1, row.numbers.steps[shown])
    axes.pcolormesh(
        steps[used], range(n), weights[used].T, cmap=HEAT, vmin=0, vmax=1, shading="nearest", rasterized=True
    )
    axes.set(xlabel="step", ylabel="position", yticks=range(0, n, 5))
    edge: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "clip_on": False}
    axes.plot([0.0] * len(support), support, ">", color=colour(1), markersize=8, **edge)
    share = row.numbers.share
    axes.set_title(f"{row.config.label}: {share.successes} of {share.trials} learned; seed {shown}", fontsize=11)


def _draw_heads(axes: Axes, row: TrainingRow) -> AxesImage:
    shown = _shown(row)
    attention = row.arrays["attention"][shown].numpy()
    image = axes.imshow(attention.T, aspect="auto", cmap=HEAT, vmin=0, vmax=1, origin="lower", interpolation="nearest")
    axes.set(xlabel="head", xticks=range(len(attention)))
    axes.set_title(f"risk {row.numbers.risk[shown]:.3f}", fontsize=11)
    return image


table = table_of(
    Column("recipe", lambda row: row.config.label),
    Column("hidden", lambda row: ", ".join(map(str, _support(row)))),
    Column("seeds learned", lambda row: row.numbers.share),
    Column("of those one head per bit", lambda row: f"{one_head_per_bit(row)} of {sum(row.numbers.learned)}"),
    Column("shown seed", _shown),
    Column("risk", lambda row: row.numbers.risk[_shown(row)], ".4f"),
    Column("accuracy", lambda row: row.numbers.accuracy[_shown(row)], ".4f"),
    Column("steps", lambda row: row.numbers.steps[_shown(row)]),
)


findings = claims_say_it
