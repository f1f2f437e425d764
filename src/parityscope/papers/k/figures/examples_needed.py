"""How many examples the chain needs: where Theorem 5 begins, and the same with other steps and with our objective."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import FigureSpec, Finding, TableColumn, fresh, table_of
from parityscope.papers.k.chain import COSINE, QUADRATIC, ChainTransformer, ParityTree
from parityscope.papers.k.training import (
    fresh_answers,
    learn_end_to_end,
    learn_log_correlation,
    one_step_rate,
    stepped,
    streamed_gradients,
)
from parityscope.problems import seeded_generator
from parityscope.records import Config, Numbers, Result, Row

Method = Literal[
    "one step",
    "one step, −cos πt",
    "teacher forcing, 350 steps",
    "log₂ k rounded steps, end to end",
    "log-correlation, −cos πt",
    "log-correlation, −cos πt, end to end",
]
METHODS: tuple[Method, ...] = get_args(Method)
_ENOUGH = 0.9  # of the seeds
_STEPS = 350


class TrialNumbers(Numbers):
    """For every N and seed, whether all fresh inputs were answered right, and a bound on |ŷ − y| over all inputs."""

    right: tuple[tuple[bool, ...], ...]
    certified_error: tuple[tuple[float, ...], ...]

    @property
    def shares(self) -> list[float]:
        """The share of seeds that answered all inputs right, for every N."""
        return [sum(one) / len(one) for one in self.right]


class Trials(Config):
    """One method on fresh trees and examples, at several N; a seed's smaller samples are the beginnings of its largest.

    >>> numbers = Trials(method="one step", d=16, k=2, counts=(8, 4096), seeds=(0, 1)).run().numbers
    >>> numbers.shares
    [0.0, 1.0]
    """

    ROWS: ClassVar[str] = "K-trials"
    NUMBERS: ClassVar[type[Numbers]] = TrialNumbers

    method: Method
    d: int
    k: int
    counts: tuple[int, ...]
    seeds: tuple[int, ...]

    def run(self) -> Result:
        """Learn with every seed at every N."""
        found = [[fresh_answers(model, seed) for model in self._models(seed)] for seed in self.seeds]
        by_count = list(zip(*found, strict=True))
        numbers = TrialNumbers(
            right=tuple(tuple(one.accuracy == 1 for one in line) for line in by_count),
            certified_error=tuple(tuple(one.certified_error for one in line) for line in by_count),
        )
        return Result(numbers)

    def _models(self, seed: int) -> list[ChainTransformer]:
        tree = ParityTree.random(self.d, self.k, seed)
        if self.method.startswith("one step"):
            link = COSINE if "cos" in self.method else QUADRATIC
            rate = one_step_rate(tree, link)
            return [stepped(tree, link, -rate * one) for one in streamed_gradients(tree, self.counts, seed, link)]
        if self.method.startswith("log₂"):
            return [learn_end_to_end(tree, count, seed) for count in self.counts]
        if self.method.startswith("log-correlation"):
            forced = "end to end" not in self.method
            return [learn_log_correlation(tree, count, seed, COSINE, forced=forced) for count in self.counts]
        return [_descended(tree, count, seed) for count in self.counts]

    def enough(self, numbers: TrialNumbers) -> int | None:
        """Return the smallest N from which on 90 % of the seeds are right at every N that was tried."""
        short = [place for place, share in enumerate(numbers.shares) if share < _ENOUGH]
        first = short[-1] + 1 if short else 0
        return self.counts[first] if first < len(self.counts) else None


def _descended(tree: ParityTree, count: int, seed: int) -> ChainTransformer:
    """Return the model of K's teacher forcing; the rate is K's 50 at (64, 16), by the population's first step."""
    model = ChainTransformer(tree, QUADRATIC)
    rate = 50 / 15 * (tree.k - 1) * (tree.d / 64) ** 2
    chain = tree.chain(tree.draw(count, seeded_generator(seed, "data")))
    for _ in range(_STEPS):
        loss = (model.forced(chain) - chain[:, tree.d :]).square().mean() / 2
        (gradient,) = torch.autograd.grad(loss, model.weights)
        with torch.no_grad():
            model.weights.sub_(rate * gradient)
    return model


_TrialRow = Row[Trials, TrialNumbers]


def _trials(method: Method, d: int, k: int, factors: Sequence[float], seeds: int) -> Trials:
    counts = tuple(sorted({round(d * factor) for factor in factors}))
    return Trials(method=method, d=d, k=k, counts=counts, seeds=tuple(fresh(seeds)))


def _half_octaves(low: int, high: int) -> list[float]:
    return [2 ** (place / 2) for place in range(2 * low, 2 * high + 1)]


def _one_step_at(sizes: Sequence[int], hidden: Sequence[int], top: int, seeds: int) -> list[Trials]:
    return [
        _trials("one step", d, k, _half_octaves(3, top), seeds) for d in sizes for k in hidden if 2 * k <= d or k == 16
    ]


class Growth(NamedTuple):
    """N = constant·d^exponent by least squares, over the three largest sizes at which N was reached.

    >>> [round(number, 6) for number in growth([(10, 200), (100, 2000)])]
    [20.0, 1.0]
    """

    constant: float
    exponent: float


def growth(reached: Sequence[tuple[int, int | None]]) -> Growth | None:
    """Fit (d, N); nothing where fewer than two sizes were reached."""
    points = sorted((d, count) for d, count in reached if count is not None)[-3:]
    if len({d for d, _ in points}) < 2:
        return None
    sizes, counts = np.log(np.array(points, dtype=float)).T
    exponent, constant = np.polyfit(sizes, counts, 1)
    return Growth(float(np.exp(constant)), float(exponent))


def reached(rows: Sequence[_TrialRow]) -> list[tuple[int, int | None]]:
    """Return d and the N that was enough, for every row."""
    return [(row.config.d, row.config.enough(row.numbers)) for row in rows]


def _groups(rows: Sequence[_TrialRow], by: str) -> dict[Any, list[_TrialRow]]:
    found: dict[Any, list[_TrialRow]] = {}
    for row in rows:
        found.setdefault(getattr(row.config, by), []).append(row)
    return found


def _plot_begins(rows: Sequence[_TrialRow]) -> Figure:
    """Draw the share of seeds against N/d² and against N/(d·log² d), and N against d."""
    figure, axes = new_figure(13, 4.2, 1, 3)
    sizes = list(_groups(rows, "d"))
    hidden = list(_groups(rows, "k"))
    for row in rows:
        d, k = row.config.d, row.config.k
        style = {"color": colour(sizes.index(d)), "alpha": 0.35 + 0.65 * hidden.index(k) / max(1, len(hidden) - 1)}
        for ax, scale in zip(axes, (d**2, d * math.log(d) ** 2), strict=False):
            ax.plot([count / scale for count in row.config.counts], row.numbers.shares, "o-", markersize=3, **style)
    for place, d in enumerate(sizes):
        axes[0].plot([], [], "o-", color=colour(place), label=f"d = {d}")
    axes[0].legend(loc="upper left", fontsize=8)
    for ax, name in zip(axes, ("N/d²", "N/(d·log² d)"), strict=False):
        ax.set(xscale="log", xlabel=name, ylim=(-0.03, 1.03))
    axes[0].set_ylabel("seeds with every answer right")
    _draw_reached(axes[2], _groups(rows, "k"), lambda k: f"k = {k}")
    axes[2].legend(loc="lower right", fontsize=8)
    return figure


def _draw_reached(ax: Axes, groups: Mapping[Any, Sequence[_TrialRow]], name: Callable[[Any], str]) -> None:
    """Draw the N that was enough against d, beside d²."""
    seen = sorted({row.config.d for rows in groups.values() for row in rows})
    for place, (key, rows) in enumerate(groups.items()):
        # Methods that need the same lie on each other.
        style = ("o-", "s--", "^:")[place % 3]
        points = [(d, count) for d, count in reached(rows) if count is not None]
        fit = growth(points)
        slope = f", $d^{{{fit.exponent:.2f}}}$" if fit else ""
        if points:
            ax.plot(*zip(*points, strict=True), style, color=colour(place), label=f"{name(key)}{slope}", markersize=4)
    ax.plot(seen, [d**2 for d in seen], ":", color="grey", label="d²")
    ax.set(xscale="log", yscale="log", xlabel="d", ylabel="examples for 90 % of the seeds")
    ax.set_xticks(seen, [str(d) for d in seen])
    ax.set_xticks([], minor=True)


def _plot_methods(rows: Sequence[_TrialRow]) -> Figure:
    """Draw the N that each method needs against d, a panel for every k."""
    by_k = _groups(rows, "k")
    figure, axes = new_figure(5.6 * len(by_k) + 0.5, 6.0, 1, len(by_k), squeeze=False, sharey=True)
    for ax, (k, some) in zip(axes[0], by_k.items(), strict=True):
        _draw_reached(ax, _groups(some, "method"), str)
        ax.set_title(f"k = {k}")
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.18), fontsize=8)
    return figure


def _found(rows: Sequence[_TrialRow]) -> list[Finding]:
    """Say how the numbers of examples grow with d."""
    fits = {
        (method, k): growth(reached(some))
        for method, of_method in _groups(rows, "method").items()
        for k, some in _groups(of_method, "k").items()
    }
    said = "; ".join(
        f"{method}, k = {k}: {fit.constant:.2g}·d^{fit.exponent:.2f}" for (method, k), fit in fits.items() if fit
    )
    return [
        Finding(
            "(Our question.) N for 90 % of the seeds, as a power of d at the three largest sizes",
            said or "not reached at two sizes",
        )
    ]


_TABLE = table_of(
    TableColumn("method", lambda row: row.config.method),
    TableColumn("d", lambda row: row.config.d),
    TableColumn("k", lambda row: row.config.k),
    TableColumn("seeds", lambda row: len(row.config.seeds)),
    TableColumn("largest N tried", lambda row: row.config.counts[-1], ","),
    TableColumn("N for 90 %", lambda row: row.config.enough(row.numbers)),
    TableColumn(
        "over d²",
        lambda row: None if (count := row.config.enough(row.numbers)) is None else count / row.config.d**2,
        ".2f",
    ),
    TableColumn(
        "proved right on all 2^d inputs at the largest N",
        lambda row: sum(one < 1 for one in row.numbers.certified_error[-1]),
    ),
)


def _compared(sizes: Sequence[int], hidden: Sequence[int], octaves: range, seeds: int) -> list[Trials]:
    more = range(octaves.start, octaves.stop + 1)  # one step needs more examples, and costs nothing
    return [
        _trials(method, d, k, [2.0**one for one in (more if method.startswith("one") else octaves)], seeds)
        for method in METHODS
        for k in hidden
        for d in sizes
        if 2 * k <= d
    ]


FIGURES = (
    FigureSpec(
        ID="K-where-it-begins",
        TITLE="Where one step with teacher forcing begins to work",
        TEXT="K's one step from W = 0 with teacher forcing, its link and loss, on fresh trees and examples: the share "
        "of seeds that answer 2000 fresh inputs right by their own generated chain, against N/d² and N/(d log² d) "
        "(darker: larger k), and the N from which on 90 % do. The rate is a rule of d, k and the link: the "
        "population's step adds log M + 3 to the top node's children. Theorem 5 asks for N = Ω(d^{2+ε}).",
        COST={"smoke": 0.5, "demo": 2, "reference": 35},
        CONFIGS={
            "smoke": _one_step_at((16, 32), (4,), 7, 4),
            "demo": _one_step_at((16, 32, 64), (4, 16), 9, 8),
            "reference": _one_step_at((16, 32, 64, 128, 256), (4, 8, 16, 32, 64), 9, 16),
        },
        plot=_plot_begins,
        table=_TABLE,
        findings=_found,
    ),
    FigureSpec(
        ID="K-examples",
        TITLE="Examples that K's chain needs, by method",
        TEXT="The N from which on 90 % of the seeds answer all fresh inputs right: K's one step and the same with "
        "−cos πt for a link; K's teacher forcing with 350 small steps; the log₂ k rounded steps of Theorem 7; and "
        "ascent of every node's log-correlation with −cos πt (60 steps a level), with true values below and with the "
        "model's own. N doubles from 2d to 128d (one step: 256d); a method without a point did not get there.",
        COST={"smoke": 2, "demo": 8, "reference": 180},
        CONFIGS={
            "smoke": _compared((16,), (4,), range(4, 6), 2),
            "demo": _compared((16, 32), (4,), range(2, 8), 4),
            "reference": _compared((16, 32, 64, 128), (4, 8), range(1, 8), 16),
        },
        plot=_plot_methods,
        table=_TABLE,
        findings=_found,
    ),
)
