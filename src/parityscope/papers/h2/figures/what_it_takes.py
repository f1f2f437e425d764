"""What one gradient step takes: trainable parameters per head, and examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import median
from parityscope.papers.figure import FigureSpec, Finding, TableColumn, table_of
from parityscope.papers.h2.one_gradient import counts_around, fitted_exponent, smallest_code, smallest_samples
from parityscope.records import Config, Numbers, Result, Row
from parityscope.theory import one_gradient_samples, polylog_numbers


class SmallestCodeNumbers(Numbers):
    """The fewest parameters per head of every seed; none where `most` were too few."""

    smallest: tuple[int | None, ...]
    most: int

    @property
    def median(self) -> float:
        """The median over seeds, infinite where most of them need more than was tried."""
        return median(math.inf if r is None else r for r in self.smallest)


class SmallestCode(Config):
    """The search at one d, with some seeds."""

    ROWS: ClassVar[str] = "H2-parameters"
    NUMBERS: ClassVar[type[Numbers]] = SmallestCodeNumbers

    n: int
    seeds: int

    def run(self) -> Result:
        """Find the smallest code of every seed."""
        most = 16 * math.ceil(math.log(self.n))
        found = [smallest_code(self.n, seed, most) for seed in range(self.seeds)]
        return Result(SmallestCodeNumbers(smallest=tuple(found), most=most))


_CodeRow = Row[SmallestCode, SmallestCodeNumbers]


def _plot_numbers(rows: Sequence[_CodeRow]) -> Figure:
    """Draw r against d on a logarithmic d axis."""
    figure, axes = new_figure(7.5, 4.2)
    sizes = [row.config.n for row in rows]
    for row in rows:
        known = [r for r in row.numbers.smallest if r is not None]
        axes.plot([row.config.n] * len(known), known, "o", color=colour(0), alpha=0.35, markersize=4)
    axes.plot(sizes, [row.numbers.median for row in rows], "o-", color=colour(0), label="smallest r, median")
    axes.plot(sizes, [polylog_numbers(n) for n in sizes], "--", color=colour(1), label="⌈log² d⌉")
    axes.plot(sizes, [2 * math.log2(n) for n in sizes], ":", color=colour(2), label="2 log₂ d")
    axes.set(xscale="log", xlabel="d", ylabel="parameters per head r", ylim=(0, None))
    axes.legend(loc="upper left")
    return figure


def _range(row: _CodeRow) -> str | None:
    known = [r for r in row.numbers.smallest if r]
    return f"{min(known)} to {max(known)}" if known else None


class SampleSearchNumbers(Numbers):
    """The N that was predicted, the one that was found (none: beyond the grid), and the share of trials at every N."""

    predicted: float
    samples: int | None
    counts: tuple[int, ...]
    shares: tuple[float, ...]


class SampleSearch(Config):
    """The search for N at one size; r none means one free number per position."""

    ROWS: ClassVar[str] = "H2-samples"
    NUMBERS: ClassVar[type[Numbers]] = SampleSearchNumbers

    n: int
    k: int
    r: int | None = None
    trials: int

    def run(self) -> Result:
        """Find the smallest N on a grid around the prediction."""
        two_neuron = self.k == 2
        predicted = one_gradient_samples(self.n, self.k, self.r, two_neuron=two_neuron)
        counts = counts_around(predicted)
        found = smallest_samples(self.n, self.k, self.trials, counts, r=self.r, two_neuron=two_neuron)
        return Result(SampleSearchNumbers(predicted=predicted, **found._asdict()))


def _searches(k: int, sizes: Sequence[int], trials: int, r: int | None = None) -> list[SampleSearch]:
    return [SampleSearch(n=n, k=k, r=r, trials=trials) for n in sizes]


_SearchRow = Row[SampleSearch, SampleSearchNumbers]


def _series(rows: Sequence[_SearchRow]) -> dict[str, list[_SearchRow]]:
    groups: dict[str, list[_SearchRow]] = {}
    for row in rows:
        k, r = row.config.k, row.config.r
        groups.setdefault(f"k = {k}" + ("" if r is None else f", r = {r}"), []).append(row)
    return groups


def _power(rows: Sequence[_SearchRow]) -> float:
    sizes = [row.config.n for row in rows]
    counts = [(row.numbers.samples or math.nan) / math.log(row.config.n) for row in rows]
    return fitted_exponent([float(n) for n in sizes], counts)


def _plot_samples(rows: Sequence[_SearchRow]) -> Figure:
    """Draw N against n with the predictions."""
    figure, axes = new_figure(7.5, 4.6)
    for index, (name, chosen) in enumerate(_series(rows).items()):
        sizes = [row.config.n for row in chosen]
        measured = [row.numbers.samples or math.nan for row in chosen]
        label = f"{name}: $N/\\log n ∝ n^{{{_power(chosen):.1f}}}$"
        axes.plot(sizes, measured, "os^D"[index % 4], color=colour(index), label=label)
        axes.plot(sizes, [row.numbers.predicted for row in chosen], "-", color=colour(index), linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="n (H2's d)", ylabel="examples N for 90 % success")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _findings_samples(rows: Sequence[_SearchRow]) -> list[Finding]:
    """Say what few parameters per head cost."""
    coded = [row for row in rows if row.config.r is not None and row.numbers.samples]
    return [
        Finding(
            "(Not in the paper: what few parameters per head cost in examples.)",
            f"With r = {last.config.r} parameters per head at n = {last.config.n} one gradient needs"
            f" {last.numbers.samples} examples: the noise of all n gradients lands on every score.",
        )
        for last in coded[-1:]
    ]


FIGURES = (
    FigureSpec(
        ID="H2-parameters",
        TITLE="Parameters against d",
        TEXT="The smallest number r of random signs per position, and so of trainable parameters per head, with which "
        "the best single step from uniform attention loses less than 0.5 on every input: every seed and the median. "
        "Dashed: the ⌈log² d⌉ of our reading of H2. Dotted: 2 log₂ d; the two hidden codes agree with each other in "
        "about r/2 signs, and another position draws level with them only by agreeing in all of those. A network that "
        "sees every bit has at least d parameters.",
        COST={"smoke": 0.5, "demo": 3, "reference": 22},
        CONFIGS={
            "smoke": [SmallestCode(n=100, seeds=3), SmallestCode(n=1000, seeds=3)],
            "demo": [
                *(SmallestCode(n=n, seeds=9) for n in (100, 300, 1000, 3000, 10_000)),
                SmallestCode(n=30_000, seeds=5),
                SmallestCode(n=100_000, seeds=3),
            ],
            "reference": [
                *(SmallestCode(n=n, seeds=15) for n in (100, 300, 1000, 3000, 10_000)),
                SmallestCode(n=30_000, seeds=9),
                SmallestCode(n=100_000, seeds=5),
                SmallestCode(n=1_000_000, seeds=2),
            ],
        },
        plot=_plot_numbers,
        table=table_of(
            TableColumn("d", lambda row: row.config.n),
            TableColumn("seeds", lambda row: row.config.seeds),
            TableColumn("smallest r, median", lambda row: row.numbers.median, "g"),
            TableColumn("range", _range),
            TableColumn("⌈log² d⌉", lambda row: polylog_numbers(row.config.n)),
            TableColumn("2 log₂ d", lambda row: 2 * math.log2(row.config.n), ".0f"),
        ),
    ),
    FigureSpec(
        ID="H2-samples",
        TITLE="Examples against d",
        TEXT="The smallest number N of examples from which one gradient at uniform attention recovers all hidden bits "
        "in 90 % of trials, each with its own support, code and examples. Lines are predictions without a fitted "
        "constant: (variance/signal²)·(√(2 log n) + 1.3)², times 1 + n/r and a term for collisions when a head has r < "
        "n parameters. k = 2 uses H2's two-neuron readout, k > 2 the bounded readout with its phase widened to "
        "(2/π)√((k−1)n).",
        COST={"smoke": 0.6, "demo": 2, "reference": 16},
        CONFIGS={
            "smoke": [*_searches(2, (25, 50), 20), *_searches(3, (10, 16), 20)],
            "demo": [
                *_searches(2, (50, 100, 200), 20),
                *_searches(3, (12, 20, 32), 20),
                *_searches(4, (10, 14), 20),
                *_searches(2, (50, 100), 10, r=64),
            ],
            "reference": [
                *_searches(2, (50, 100, 200), 40),
                *_searches(2, (400,), 20),
                *_searches(3, (12, 20, 32, 50), 40),
                *_searches(4, (10, 14, 20), 40),
                *_searches(2, (50, 100), 20, r=64),
                *_searches(2, (200,), 10, r=64),
            ],
        },
        plot=_plot_samples,
        table=table_of(
            TableColumn("n", lambda row: row.config.n),
            TableColumn("k", lambda row: row.config.k),
            TableColumn("r", lambda row: row.config.r or "n"),
            TableColumn("trials", lambda row: row.config.trials),
            TableColumn(
                "N measured", lambda row: "beyond the grid" if row.numbers.samples is None else row.numbers.samples
            ),
            TableColumn("N predicted", lambda row: row.numbers.predicted, ".0f"),
        ),
        findings=_findings_samples,
    ),
)
