"""Success against the number of examples: concave, bounded and one gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import wilson_share
from parityscope.papers.figure import Finding, Scale, TableColumn, fresh, table_of
from parityscope.papers.h2.one_gradient import (
    SmallestSamples,
    counts_around,
    named_by_one_gradient,
    streamed_gradients,
)
from parityscope.problems import draw_problems, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import training
from parityscope.theory import path_samples
from parityscope.training.learning import train
from parityscope.training.recipes import Recipe

ID = "P-examples-concave"
TITLE = "Examples that attention needs"
TEXT = (
    "Seeds that learn against the number N of examples, from 32 fresh seeds each with its own support, code and"
    " examples (bars: 95 % intervals); dashed where 20 % of the labels are wrong. Concave follows n paths of attention,"
    " each adding the position with the largest gradient of the empirical correlation, and trains on the set whose"
    " parity agrees best with the labels. Bounded descends on the examples' risk. One gradient selects the k largest"
    " entries at uniform attention. The paths need a factor of n fewer examples than a gradient, and n times its"
    " computation; for k = 2 they look at every pair."
)
COST: dict[Scale, float] = {"smoke": 0.5, "demo": 2, "reference": 180}

Method = Literal["concave", "bounded", "one gradient"]
_METHODS: tuple[Method, ...] = ("concave", "bounded", "one gradient")


class SuccessNumbers(Numbers):
    """How many seeds succeed at every N, and the N from which 90 % do (none: beyond the grid)."""

    successes: tuple[int, ...]
    samples: int | None


class SuccessByExamples(Config):
    """One method on one size of problem, with several numbers of examples; without a recipe it is one gradient."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = SuccessNumbers

    recipe: Recipe | None
    n: int
    k: int
    noise: float
    counts: tuple[int, ...]
    seeds: tuple[int, ...]

    @property
    def method(self) -> Method:
        """What it is called."""
        name = "one gradient" if self.recipe is None else self.recipe.name
        return next(method for method in _METHODS if method == name)

    def run(self) -> Result:
        """Learn, or name, with every N."""
        right = self._named() if self.recipe is None else self._learned(self.recipe)
        found = SmallestSamples.of(self.counts, right)
        return Result(SuccessNumbers(successes=tuple(right.sum(0).tolist()), samples=found.samples))

    def _learned(self, recipe: Recipe) -> Tensor:
        problems = draw_problems(self.n, self.k, self.seeds, noise=self.noise)
        return torch.stack([train(problems, [recipe], self.seeds, samples=N).learned for N in self.counts], dim=1)

    def _named(self) -> Tensor:
        rows = []
        for seed, problem in zip(self.seeds, draw_problems(self.n, self.k, self.seeds, noise=self.noise), strict=True):
            gradients = streamed_gradients(problem, self.counts, seeded_generator(seed, "data"))
            rows.append(named_by_one_gradient(gradients, problem))
        return torch.stack(rows)


_Row = Row[SuccessByExamples, SuccessNumbers]
# Where each method's success is expected to rise; the grids reach from a third of it to twice it.
_AROUND: dict[tuple[int, int], dict[Method, int]] = {
    (30, 2): {"concave": 12, "bounded": 180, "one gradient": 450},
    (100, 2): {"concave": 16, "bounded": 750, "one gradient": 1800},
    (20, 3): {"concave": 30, "bounded": 600, "one gradient": 4200},
    (50, 3): {"concave": 150, "bounded": 6000, "one gradient": 40_000},
    (16, 4): {"concave": 90, "bounded": 1800, "one gradient": 11_000},
    (20, 4): {"concave": 160, "bounded": 4000, "one gradient": 26_000},
}


def _cell(n: int, k: int, noise: float, seeds: int, methods: Sequence[Method] = _METHODS) -> list[SuccessByExamples]:
    around = {method: _AROUND[n, k][method] / (1 - 2 * noise) ** 2 for method in methods}
    return [
        SuccessByExamples(
            recipe=None if method == "one gradient" else training(method, n, k, samples=1).recipe,
            n=n,
            k=k,
            noise=noise,
            counts=tuple(counts_around(N)[1:-1]),
            seeds=tuple(fresh(seeds)),
        )
        for method, N in around.items()
    ]


_FAST: tuple[Method, ...] = ("concave", "one gradient")
CONFIGS: dict[Scale, list[SuccessByExamples]] = {
    "smoke": _cell(30, 2, 0.0, 4, _FAST),
    "demo": [*_cell(30, 2, 0.0, 32, _FAST), *_cell(20, 3, 0.0, 32, _FAST)],
    "reference": [
        *(config for n, k in _AROUND for config in _cell(n, k, 0.0, 32)),
        *(config for n, k in _AROUND for config in _cell(n, k, 0.2, 32, _FAST)),
    ],
}


def _theorem(config: SuccessByExamples) -> float | None:
    return path_samples(config.n, config.k, noise=config.noise) if config.method == "concave" else None


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw the share of seeds against N, a panel for each size."""
    sizes = list(dict.fromkeys((row.config.n, row.config.k) for row in rows))
    columns = min(3, len(sizes))
    lines = -(-len(sizes) // columns)
    figure, axes = new_figure(3.3 * columns + 0.6, 2.5 * lines + 0.6, lines, columns, sharey=True, squeeze=False)
    for ax, (n, k) in zip(axes.flat, sizes, strict=True):
        for row in (row for row in rows if (row.config.n, row.config.k) == (n, k)):
            config = row.config
            style = {"color": colour(_METHODS.index(config.method)), "linestyle": "--" if config.noise else "-"}
            label = config.method + (f", {config.noise:.0%} noise" if config.noise else "")
            shares = [wilson_share(count, len(config.seeds)) for count in row.numbers.successes]
            draw_shares(ax, config.counts, shares, label=label, **style)
        ax.set(xscale="log", ylim=(-0.05, 1.05), title=f"n = {n}, k = {k}")
        ax.axhline(0.9, color="grey", linewidth=0.6)
    for ax in axes[-1]:
        ax.set_xlabel("examples N")
    for ax in axes[:, 0]:
        ax.set_ylabel("share of seeds")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


table = table_of(
    TableColumn("n", lambda row: row.config.n),
    TableColumn("k", lambda row: row.config.k),
    TableColumn("noise", lambda row: row.config.noise, ".0%"),
    TableColumn("method", lambda row: row.config.method),
    TableColumn("N for 90 %", lambda row: "beyond the grid" if row.numbers.samples is None else row.numbers.samples),
    TableColumn("enough by the theorem", lambda row: _theorem(row.config), ".0f"),
    TableColumn("seeds", lambda row: len(row.config.seeds)),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare the methods where both reached 90 %."""
    needed: dict[Method, dict[tuple[int, int, float], int]] = {method: {} for method in _METHODS}
    for row in rows:
        if row.numbers.samples is not None:
            needed[row.config.method][row.config.n, row.config.k, row.config.noise] = row.numbers.samples

    def ratios(other: Method) -> str:
        ours, theirs = needed["concave"], needed[other]
        found = [theirs[size] / ours[size] for size in ours if size in theirs]
        return f"{min(found):.0f} to {max(found):.0f} times as many as concave ({len(found)} sizes)" if found else ""

    said = [f"{other} needs {ratios(other)}" for other in _METHODS[1:] if ratios(other)]
    return [Finding("(Not in any of the papers: examples for 90 % success.)", "; ".join(said) + ".")]
