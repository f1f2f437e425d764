"""Beyond pairs: how many seeds learn, in how many steps, with how many parameters, for every k."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.cells import ShownTraining, TrainingRow, by_label, draw_heat_map, ink_on, of_learned, share_of
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.runs import training
from parityscope.theory import one_head_numbers
from parityscope.training.recipes import named_recipe

ID = "P-every-k"
TITLE = "Every k in a few steps"
TEXT = (
    "Seeds that learn with one head on random-sign positions, from exactly uniform attention, by second-order steps on"
    " log C, the logarithm of the bounded readout's correlation with the label; in each cell the share, and below it"
    " the most steps any seed took (20 at most). Left with r = ⌈3k log n⌉ parameters, then with half and a quarter of"
    " them: below 2k log n chance scores begin to reach the hidden bits'. Not in any of the papers. The gradient"
    " contains the hidden bits: this is about optimisation; what examples cost stands in H2-samples."
)
COST: dict[Scale, float] = {"smoke": 1.0, "demo": 4, "reference": 11}


_FULL, _HALF, _QUARTER = "r = ⌈3k log n⌉", "r = 0.5 × ⌈3k log n⌉", "r = 0.25 × ⌈3k log n⌉"
_PARTS = {_FULL: 1.0, _HALF: 0.5, _QUARTER: 0.25}


def _shown(label: str, n: int, k: int, seeds: int) -> ShownTraining:
    # Pairs too are trained as every other k is.
    changes = named_recipe("one-step").beyond_pairs
    changes = {**changes, "numbers_per_head": max(8, round(_PARTS[label] * one_head_numbers(n, k)))}
    return ShownTraining(label=label, training=training("one-step", n, k, seeds=range(seeds), **changes))


def _grid(sizes: Sequence[int], ks: Sequence[int], seeds: int) -> list[ShownTraining]:
    # Runs that fail take all their steps: a quarter of the numbers is tried where a step is cheap.
    return [
        _shown(label, n, k, seeds)
        for label in _PARTS
        for n in sizes
        for k in ks
        if 2 * k <= n and (label != _QUARTER or n <= 300)
    ]


CONFIGS: dict[Scale, list[ShownTraining]] = {
    "smoke": _grid((20, 100), (2, 5), 3),
    "demo": _grid((20, 100, 300, 1000), (2, 3, 5, 7, 10), 5),
    "reference": _grid((20, 100, 300, 1000), (2, 3, 4, 5, 7, 10), 10),
}


def _steps(row: TrainingRow) -> list[int]:
    """Return the steps of every seed that learned."""
    return of_learned(row.numbers, row.numbers.steps)


def plot(rows: Sequence[TrainingRow]) -> Figure:
    """Draw shares as heat maps over n × k."""
    labels = by_label(rows)
    sizes = sorted({row.config.training.n for row in rows})
    ks = sorted({row.config.training.k for row in rows})
    width, height = 2 + 0.9 * len(labels) + 0.5 * len(labels) * len(ks), 1.4 + 0.62 * len(sizes)
    figure, axes = new_figure(width, height, 1, len(labels))
    for ax, (label, chosen) in zip(axes, labels.items(), strict=True):
        grid = [[float("nan")] * len(ks) for _ in sizes]
        for row in chosen:
            y, x = sizes.index(row.config.training.n), ks.index(row.config.training.k)
            share, steps = row.numbers.share, _steps(row)
            grid[y][x] = share.value
            text = f"{share.successes}/{share.trials}\n" + (f"≤ {max(steps)}" if steps else "–")
            ax.text(x, y, text, ha="center", va="center", color=ink_on(grid[y][x]), fontsize=8)
        image = draw_heat_map(ax, grid, [str(k) for k in ks], [str(n) for n in sizes])
        ax.set(xlabel="k", ylabel="n", title=label)
    figure.colorbar(image, ax=list(axes), label="share of seeds", pad=0.01)
    return figure


table = table_of(
    TableColumn("n", lambda row: row.config.training.n),
    TableColumn("k", lambda row: row.config.training.k),
    TableColumn("parameters per head", lambda row: row.config.training.recipe.numbers_per_head),
    TableColumn("learned", lambda row: f"{row.numbers.share.successes} of {row.numbers.share.trials}"),
    TableColumn("support recovered", lambda row: sum(row.numbers.recovered)),
    TableColumn("in one step", lambda row: _steps(row).count(1)),
    TableColumn("most steps", lambda row: max(_steps(row), default=None)),
)


def findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Sum up full, half and quarter codes."""

    def total(label: str) -> str:
        chosen = by_label(rows)[label]
        steps = [count for row in chosen for count in _steps(row)]
        most = max(steps, default=0)
        return f"{share_of(chosen)} seeds learn, {steps.count(1)} of them in one step, none needs more than {most}"

    return [
        Finding(
            "(Beyond the papers: one step is stated for pairs only.)",
            f"Every k up to {max(row.config.training.k for row in rows)}, r = ⌈3k log n⌉ parameters in one head:"
            f" {total(_FULL)}."
            f" With half as many: {total(_HALF)}. With a quarter: {total(_QUARTER)}.",
        )
    ]
