"""What the phase diagrams share: a cell of seeds, its packed training, the heat maps with contours, the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from parityscope.core.drawing import HEAT, colour, new_figure
from parityscope.papers.cells import ink_on, share_of
from parityscope.papers.figure import Table
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import training as training_runs
from parityscope.runs.training import Training, train_together

# Cells per program: some thousand runs, after which a program is no longer bound by its overhead.
PACK = 64


class CellNumbers(Numbers):
    """TODO."""


class Cell(Config):
    """Some seeds at one point of a diagram; `panel` names the diagram."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = CellNumbers

    panel: str
    recipe: str
    n: int
    k: int
    seeds: int
    samples: int | None = None
    noise: float = 0.0
    settings: dict[str, Any] = Field({}, description="fields of the recipe that are changed")

    def trainings(self) -> list[Training]:
        """Return one training per seed."""
        shared = self.model_dump(exclude={"panel", "seeds"})
        return [Training(seed=seed, **shared) for seed in range(self.seeds)]

    def run(self) -> Result:
        """Train the seeds of one cell."""
        return run_batch([self])[0]


def batch_shape(config: Cell) -> tuple[Any, ...]:
    """Return what cells must share to be one tensor program."""
    return training_runs.batch_shape(config.trainings()[0])


def run_batch(configs: Sequence[Cell]) -> list[Result]:
    """Train all seeds of all cells at once."""
    trained = train_together([training for cell in configs for training in cell.trainings()])
    results, first = [], 0
    for cell in configs:
        runs = slice(first, first + cell.seeds)
        learned, steps = trained.learned[runs], trained.steps[runs]
        numbers = {
            "learned": int(learned.sum()),
            "recovered": int(trained.recovered[runs].sum()),
            "diverged": int(trained.diverged[runs].sum()),
            "median_steps": int(steps[learned].median()) if bool(learned.any()) else None,
        }
        results.append(Result(numbers))
        first += cell.seeds
    return results


Axis = Callable[[Row], float]


def panels_of(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """Return the rows of every panel, in the order they were made.

    >>> rows = [Row("phase-n-k", {"panel": name}, {}) for name in ("bounded", "repaired", "bounded")]
    >>> {name: len(cells) for name, cells in panels_of(rows).items()}
    {'bounded': 2, 'repaired': 1}
    """
    names = list(dict.fromkeys(row.config.panel for row in rows))
    return {name: [row for row in rows if row.config.panel == name] for name in names}


def draw_phases(rows: Sequence[_Row], x: tuple[str, Axis], y: tuple[str, Axis], columns: int) -> Figure:
    """Draw a heat map per panel: the share of seeds that learned, with counts.

    The solid contour is where half of the seeds learn. Between the dashed ones Wilson's 95 % interval contains one
    half: there the seeds do not decide.

    >>> def row(n, k, learned):
    ...     return Row("phase-n-k", {"panel": "bounded", "n": n, "k": k, "seeds": 8}, {"learned": learned})
    >>> rows = [row(8, 2, 8), row(16, 2, 6), row(8, 3, 5), row(16, 3, 0)]
    >>> axes = ("n", lambda row: row.config.n), ("k", lambda row: row.config.k)
    >>> draw_phases(rows, *axes, columns=1).axes[0].get_title()
    'bounded (8 seeds)'
    """
    panels = panels_of(rows)
    x_values, y_values = (sorted({axis(row) for row in rows}) for _, axis in (x, y))
    height = math.ceil(len(panels) / columns)
    width = max(2.7, 0.6 + 0.42 * len(x_values))  # a panel's title needs room also above a few columns
    size = (1.4 + columns * width, height * (1.1 + 0.36 * len(y_values)))
    figure, grid = new_figure(*size, height, columns, squeeze=False, sharex=True, sharey=True)
    places = list(grid.flat)
    images = []
    for axes, (name, cells) in zip(places, panels.items(), strict=False):
        images.append(_draw_panel(axes, cells, (x[1], x_values), (y[1], y_values)))
        seeds = "–".join(str(count) for count in sorted({row.config.seeds for row in cells}))
        axes.set_title(f"{name} ({seeds} seeds)", fontsize=10)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set(ylabel=y[0], yticks=range(len(y_values)), yticklabels=[f"{value:g}" for value in y_values])
    for index, axes in enumerate(places[: len(panels)]):
        axes.set(xticks=range(len(x_values)))
        axes.set_xticklabels([f"{value:g}" for value in x_values], fontsize=8)
        lowest = index + columns >= len(panels)
        axes.tick_params(length=0, labelbottom=lowest)
        axes.set_xlabel(x[0] if lowest else "")
    figure.colorbar(images[0], ax=grid, label="share of seeds that learned", pad=0.01)
    return figure


def _draw_panel(axes: Axes, rows: Sequence[_Row], x: tuple[Axis, list[float]], y: tuple[Axis, list[float]]) -> Any:
    empty = [[math.nan] * len(x[1]) for _ in y[1]]
    value, low, high = ([list(line) for line in empty] for _ in range(3))
    for row in rows:
        across, up, share = x[1].index(x[0](row)), y[1].index(y[0](row)), share_of([row])
        value[up][across], low[up][across], high[up][across] = share.value, share.low, share.high
        axes.text(across, up, str(share.successes), ha="center", va="center", color=ink_on(share.value), fontsize=8)
    image = axes.imshow(value, cmap=HEAT, vmin=0, vmax=1, aspect="auto", origin="lower")
    for surface, style in ((value, "solid"), (low, "dashed"), (high, "dashed")):
        known = [number for line in surface for number in line if not math.isnan(number)]
        if min(known) < 0.5 < max(known):
            axes.contour(surface, levels=[0.5], colors=[colour(1)], linestyles=[style], linewidths=1.6)
    axes.spines[:].set_visible(False)
    return image


def phase_table(rows: Sequence[_Row], x: tuple[str, Axis], y: tuple[str, Axis]) -> Table:
    """Return every cell as learned/seeds with its 95 % interval: a line per panel and y, a column per x.

    >>> row = Row("phase-n-k", {"panel": "bounded", "n": 8, "k": 2, "seeds": 8}, {"learned": 8})
    >>> phase_table([row], ("n", lambda row: row.config.n), ("k", lambda row: row.config.k)).rows
    [['bounded', '2', '8/8 (68%–100%)']]
    """
    x_values = sorted({x[1](row) for row in rows})
    lines = []
    for name, cells in panels_of(rows).items():
        for up in sorted({y[1](row) for row in cells}, reverse=True):
            found = {x[1](row): str(share_of([row])) for row in cells if y[1](row) == up}
            lines.append([name, f"{up:g}", *(found.get(across, "–") for across in x_values)])
    return Table(["panel", f"{y[0]} ╲ {x[0]}", *(f"{across:g}" for across in x_values)], lines)


def counted(rows: Sequence[_Row]) -> str:
    """Return how many cells every seed learned in, and in how many none.

    >>> counted([Row("phase-n-k", {"seeds": 4}, {"learned": learned}) for learned in (4, 0, 2)])
    '6/12 (25%–75%) seeds; all of them in 1 of 3 cells, none in 1'
    """
    every = sum(row.numbers.learned == row.config.seeds for row in rows)
    none = sum(row.numbers.learned == 0 for row in rows)
    return f"{share_of(rows)} seeds; all of them in {every} of {len(rows)} cells, none in {none}"
