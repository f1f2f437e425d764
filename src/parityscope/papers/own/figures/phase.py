"""What the phase diagrams share: the heat maps with contours, the table, the counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from parityscope.core.drawing import HEAT, colour, new_figure
from parityscope.core.statistics import Share
from parityscope.papers.cells import TrainingRow, ink_on, share_of
from parityscope.papers.figure import Table


class Axis(NamedTuple):
    """An axis of a diagram: its name, and where on it a training stands.

    >>> Axis("n", lambda row: row.config.training.n).name
    'n'
    """

    name: str
    place: Callable[[TrainingRow], float]


def panels_of(rows: Sequence[TrainingRow]) -> dict[str, list[TrainingRow]]:
    """Return the rows of every panel, in the order they were made.

    >>> from parityscope.papers.cells import ShownTraining
    >>> from parityscope.records import Row
    >>> from parityscope.runs import training
    >>> shown = [ShownTraining(label=name, training=training(name, 8, 2)) for name in ("bounded", "repaired")]
    >>> panels = panels_of([Row(one, one.training.run().numbers) for one in shown])
    >>> {name: [row.numbers.learned for row in chosen] for name, chosen in panels.items()}
    {'bounded': [(True,)], 'repaired': [(True,)]}
    """
    panels: dict[str, list[TrainingRow]] = {}
    for row in rows:
        panels.setdefault(row.config.label, []).append(row)
    return panels


def draw_phases(rows: Sequence[TrainingRow], x: Axis, y: Axis, columns: int) -> Figure:
    """Draw a heat map per panel: the share of seeds that learned, with counts.

    The solid contour is where half of the seeds learn. Between the dashed ones Wilson's 95 % interval contains one
    half: there the seeds do not decide.

    >>> from parityscope.papers.cells import ShownTraining
    >>> from parityscope.records import Row
    >>> from parityscope.runs import training
    >>> trainings = [training("bounded", n, k, seeds=range(2)) for n in (8, 10) for k in (1, 2)]
    >>> rows = [Row(ShownTraining(label="bounded", training=one), one.run().numbers) for one in trainings]
    >>> axes = Axis("n", lambda row: row.config.training.n), Axis("k", lambda row: row.config.training.k)
    >>> draw_phases(rows, *axes, columns=1).axes[0].get_title()
    'bounded (2 seeds)'
    """
    panels = panels_of(rows)
    x_values, y_values = (sorted({axis.place(row) for row in rows}) for axis in (x, y))
    height = math.ceil(len(panels) / columns)
    width = max(2.7, 0.6 + 0.42 * len(x_values))  # a panel's title needs room also above a few columns
    size = (1.4 + columns * width, height * (1.1 + 0.36 * len(y_values)))
    figure, grid = new_figure(*size, height, columns, squeeze=False, sharex=True, sharey=True)
    places = list(grid.flat)
    images = []
    for axes, (name, chosen) in zip(places, panels.items(), strict=False):
        points = {(x.place(row), y.place(row)): row.numbers.share for row in chosen}
        images.append(_draw_panel(axes, points, x_values, y_values))
        seeds = "–".join(str(count) for count in sorted({share.trials for share in points.values()}))
        axes.set_title(f"{name} ({seeds} seeds)", fontsize=10)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set(ylabel=y.name, yticks=range(len(y_values)), yticklabels=[f"{value:g}" for value in y_values])
    for index, axes in enumerate(places[: len(panels)]):
        axes.set(xticks=range(len(x_values)))
        axes.set_xticklabels([f"{value:g}" for value in x_values], fontsize=8)
        lowest = index + columns >= len(panels)
        axes.tick_params(length=0, labelbottom=lowest)
        axes.set_xlabel(x.name if lowest else "")
    figure.colorbar(images[0], ax=grid, label="share of seeds that learned", pad=0.01)
    return figure


def _draw_panel(axes: Axes, points: Mapping[tuple[float, float], Share], x: list[float], y: list[float]) -> AxesImage:
    value, low, high = ([[math.nan] * len(x) for _ in y] for _ in range(3))
    for place, share in points.items():
        across, up = x.index(place[0]), y.index(place[1])
        value[up][across], low[up][across], high[up][across] = share.value, share.low, share.high
        axes.text(across, up, str(share.successes), ha="center", va="center", color=ink_on(share.value), fontsize=8)
    image = axes.imshow(value, cmap=HEAT, vmin=0, vmax=1, aspect="auto", origin="lower")
    for surface, style in ((value, "solid"), (low, "dashed"), (high, "dashed")):
        known = [number for line in surface for number in line if not math.isnan(number)]
        if min(known) < 0.5 < max(known):
            axes.contour(surface, levels=[0.5], colors=[colour(1)], linestyles=[style], linewidths=1.6)
    axes.spines[:].set_visible(False)
    return image


def phase_table(rows: Sequence[TrainingRow], x: Axis, y: Axis) -> Table:
    """Return every point as learned/seeds with its 95 % interval: a line per panel and y, a column per x.

    >>> from parityscope.papers.cells import ShownTraining
    >>> from parityscope.records import Row
    >>> from parityscope.runs import training
    >>> trained = training("bounded", 8, 2, seeds=range(3))
    >>> rows = [Row(ShownTraining(label="bounded", training=trained), trained.run().numbers)]
    >>> axes = Axis("n", lambda row: row.config.training.n), Axis("k", lambda row: row.config.training.k)
    >>> phase_table(rows, *axes).rows
    [['bounded', '2', '3/3 (44%–100%)']]
    """
    x_values = sorted({x.place(row) for row in rows})
    lines = []
    for name, chosen in panels_of(rows).items():
        points = {(x.place(row), y.place(row)): str(row.numbers.share) for row in chosen}
        for up in sorted({up for _, up in points}, reverse=True):
            lines.append([name, f"{up:g}", *(points.get((across, up), "–") for across in x_values)])
    return Table(["panel", f"{y.name} ╲ {x.name}", *(f"{across:g}" for across in x_values)], lines)


def counted(rows: Sequence[TrainingRow]) -> str:
    """Return how many seeds of a panel learned, at how many points all of them did, and at how many none.

    >>> from parityscope.papers.cells import ShownTraining
    >>> from parityscope.records import Row
    >>> from parityscope.runs import training
    >>> trainings = [training("bounded", n, 2, seeds=range(2)) for n in (8, 10)]
    >>> counted([Row(ShownTraining(label="bounded", training=one), one.run().numbers) for one in trainings])
    '4/4 (51%–100%) seeds; all of them in 2 of 2 cells, none in 0'
    """
    every, none = (sum(row.numbers.share.value == value for row in rows) for value in (1, 0))
    return f"{share_of(rows)} seeds; all of them in {every} of {len(rows)} cells, none in {none}"
