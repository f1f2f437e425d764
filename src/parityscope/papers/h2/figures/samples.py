"""Examples one gradient needs: against n for k = 2, 3, 4, and against the numbers per head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.h2.one_gradient import counts_around, fitted_exponent, smallest_samples
from parityscope.records import Config, Numbers, Result, Row
from parityscope.theory import one_gradient_samples

ID = "H2-samples"
TITLE = "Examples against d"
TEXT = (
    "The smallest number N of examples from which one gradient at uniform attention names all hidden bits in 90 % of"
    " trials, each with its own support, code and examples. Lines are predictions without a fitted constant:"
    " (variance/signal²)·(√(2 log n) + 1.3)², times 1 + n/r and a term for collisions when a head has r < n numbers."
    " k = 2 uses H2's two-neuron readout, k > 2 the bounded readout with its phase widened to (2/π)√((k−1)n)."
)
COST: dict[Scale, float] = {"smoke": 0.6, "demo": 2, "reference": 16, "paper": 600}


class SampleSearchNumbers(Numbers):
    """The N that was predicted, the one that was found (none: beyond the grid), and the share of trials at every N."""

    predicted: float
    samples: int | None
    counts: tuple[int, ...]
    shares: tuple[float, ...]


class SampleSearch(Config):
    """The search for N at one size; r none means one free number per position."""

    ROWS: ClassVar[str] = ID
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


_Row = Row[SampleSearch, SampleSearchNumbers]

CONFIGS: dict[Scale, list[SampleSearch]] = {
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
    "paper": [
        *_searches(2, (50, 100, 200, 400, 800), 100),
        *_searches(3, (12, 20, 32, 50, 80), 100),
        *_searches(4, (10, 14, 20, 28), 100),
        *_searches(2, (50, 100, 200, 400), 100, r=64),
    ],
}


def _series(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    groups: dict[str, list[_Row]] = {}
    for row in rows:
        k, r = row.config.k, row.config.r
        groups.setdefault(f"k = {k}" + ("" if r is None else f", r = {r}"), []).append(row)
    return groups


def _power(rows: Sequence[_Row]) -> float:
    sizes = [row.config.n for row in rows]
    counts = [(row.numbers.samples or math.nan) / math.log(row.config.n) for row in rows]
    return fitted_exponent([float(n) for n in sizes], counts)


def plot(rows: Sequence[_Row]) -> Figure:
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


def table(rows: Sequence[_Row]) -> Table:
    """Return measured and predicted N."""
    return Table(
        ["n", "k", "r", "trials", "N measured", "N predicted"],
        [
            [
                str(row.config.n),
                str(row.config.k),
                str(row.config.r or "n"),
                str(row.config.trials),
                "beyond the grid" if row.numbers.samples is None else str(row.numbers.samples),
                f"{row.numbers.predicted:.0f}",
            ]
            for row in rows
        ],
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare exponents with n^{k−1} and counts with the prediction."""
    ratios = [row.numbers.samples / row.numbers.predicted for row in rows if row.numbers.samples]
    free = {name: chosen for name, chosen in _series(rows).items() if "r =" not in name}
    powers = ", ".join(f"{name}: {_power(chosen):.1f}" for name, chosen in free.items())
    result = [
        Finding(
            "A finite-sample bound: polynomially many examples suffice. (Statistical queries suggest n^{k−1}.)",
            f"Exponents of n after division by log n: {powers}. Measured over predicted N: {min(ratios):.2f} to"
            f" {max(ratios):.2f}.",
        )
    ]
    coded = [row for row in rows if row.config.r is not None and row.numbers.samples]
    if coded:
        last = coded[-1]
        result.append(
            Finding(
                "(Not in the paper: what few numbers per head cost in examples.)",
                f"With r = {last.config.r} numbers per head at n = {last.config.n} one gradient needs"
                f" {last.numbers.samples} examples: the noise of all n gradients lands on every score.",
            )
        )
    return result
