"""Beyond pairs: how many seeds learn, in how many steps, with how many numbers, for every k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.cells import draw_heat_map, ink_on, share_of
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import draw_problems
from parityscope.records import Config, Numbers, Result, Row
from parityscope.theory import one_head_numbers
from parityscope.training.learning import learn
from parityscope.training.recipes import named_recipe

ID = "P-every-k"
TITLE = "Every k in a few steps"
TEXT = (
    "Seeds that learn with one head on random-sign positions, from exactly uniform attention, by second-order steps on"
    " log C, the logarithm of the bounded readout's correlation with the label; in each cell the share, and below it"
    " the most steps any seed took (20 at most). Left with r = ⌈3k log n⌉ numbers, then with half and a quarter of"
    " them: below 2k log n chance scores begin to reach the hidden bits'. Not in any of the papers. The gradient"
    " contains the hidden bits: this is about optimisation; what examples cost stands in H2-samples."
)
COST: dict[Scale, float] = {"smoke": 1.0, "demo": 4, "reference": 11, "paper": 300}


class CellNumbers(Numbers):
    """TODO."""


class Cell(Config):
    """One n and k; `part` scales the numbers per head."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = CellNumbers

    n: int
    k: int
    part: float
    seeds: int

    def run(self) -> Result:
        """Train every seed."""
        recipe = named_recipe("one-step")
        seeds = range(self.seeds)
        r = max(8, round(self.part * one_head_numbers(self.n, self.k)))
        changes: dict[str, Any] = {**recipe.beyond_pairs, "numbers_per_head": r}
        trained = learn(draw_problems(self.n, self.k, seeds), recipe, seeds, **changes)
        return Result(
            {
                "learned": trained.success.successes,
                "found": int(trained.recovered.sum()),
                "most_steps": int(trained.steps[trained.learned].max()) if bool(trained.learned.any()) else None,
                "in_one_step": int((trained.learned & (trained.steps == 1)).sum()),
                "r": r,
            }
        )


def _cells(sizes: Sequence[int], ks: Sequence[int], seeds: int) -> list[Cell]:
    cells = [Cell(n=n, k=k, part=part, seeds=seeds) for part in (1.0, 0.5, 0.25) for n in sizes for k in ks]
    # Runs that fail take all their steps: a quarter of the numbers is tried where a step is cheap.
    return [cell for cell in cells if 2 * cell.k <= cell.n and (cell.part > 0.25 or cell.n <= 300)]


_Row = Row[Cell, CellNumbers]

CONFIGS: dict[Scale, list[Cell]] = {
    "smoke": _cells((20, 100), (2, 5), 3),
    "demo": _cells((20, 100, 300, 1000), (2, 3, 5, 7, 10), 5),
    "reference": _cells((20, 100, 300, 1000), (2, 3, 4, 5, 7, 10), 10),
    "paper": _cells((20, 100, 300, 1000, 3000), (2, 3, 4, 5, 6, 7, 8, 9, 10), 32),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw shares as heat maps over n × k."""
    parts = sorted({row.config.part for row in rows}, reverse=True)
    sizes = sorted({row.config.n for row in rows})
    ks = sorted({row.config.k for row in rows})
    figure, axes = new_figure(2 + 0.9 * len(parts) + 0.5 * len(parts) * len(ks), 1.4 + 0.62 * len(sizes), 1, len(parts))
    for ax, part in zip(axes, parts, strict=True):
        grid = [[float("nan")] * len(ks) for _ in sizes]
        for row in (row for row in rows if row.config.part == part):
            y, x = sizes.index(row.config.n), ks.index(row.config.k)
            grid[y][x] = row.numbers.learned / row.config.seeds
            steps = row.numbers.most_steps
            text = f"{row.numbers.learned}/{row.config.seeds}\n" + ("–" if steps is None else f"≤ {steps}")
            ax.text(x, y, text, ha="center", va="center", color=ink_on(grid[y][x]), fontsize=8)
        image = draw_heat_map(ax, grid, [str(k) for k in ks], [str(n) for n in sizes])
        ax.set(xlabel="k", ylabel="n", title=f"r = {'' if part == 1 else f'{part:g} × '}⌈3k log n⌉")
    figure.colorbar(image, ax=list(axes), label="share of seeds", pad=0.01)
    return figure


def table(rows: Sequence[_Row]) -> Table:
    """Return every cell."""
    return Table(
        ["n", "k", "numbers per head", "learned", "support named", "in one step", "most steps"],
        [
            [
                str(row.config.n),
                str(row.config.k),
                str(row.numbers.r),
                f"{row.numbers.learned} of {row.config.seeds}",
                str(row.numbers.found),
                str(row.numbers.in_one_step),
                "–" if row.numbers.most_steps is None else str(row.numbers.most_steps),
            ]
            for row in rows
        ],
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Sum up full, half and quarter codes."""

    def total(part: float) -> str:
        chosen = [row for row in rows if row.config.part == part]
        once = sum(row.numbers.in_one_step for row in chosen)
        most = max((row.numbers.most_steps or 0) for row in chosen)
        return f"{share_of(chosen)} seeds learn, {once} of them in one step, none needs more than {most}"

    return [
        Finding(
            "(Beyond the papers: one step is stated for pairs only.)",
            f"Every k up to {max(row.config.k for row in rows)}, r = ⌈3k log n⌉ numbers in one head: {total(1.0)}."
            f" With half as many: {total(0.5)}. With a quarter: {total(0.25)}.",
        )
    ]
