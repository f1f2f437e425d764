"""What is proved against what is measured: the rate of any number of heads, and examples enough for three rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import FigureSpec, Finding, TableColumn, fresh, table_of
from parityscope.papers.h2.one_gradient import SmallestSamples
from parityscope.papers.own.domain import all_right, drawn_gradients, entries_at_uniform, one_mirror_step
from parityscope.papers.own.flow import attention_of, heads_flow, loss_of
from parityscope.problems import draw_problems, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.theory import heads_rate, one_step_samples, path_samples, path_signal
from parityscope.training.attention_path import named_set

Start = Literal["uniform", "random"]
Rule = Literal["n paths", "one gradient", "one step"]


class RateNumbers(Numbers):
    """t·(−log C) at the end, and what it does not exceed in the limit."""

    reached: float
    bound: float


class HeadsRate(Config):
    """The plain gradient flow of some heads of equal mass with free logits."""

    ROWS: ClassVar[str] = "P-heads-rate"
    NUMBERS: ClassVar[type[Numbers]] = RateNumbers

    n: int
    k: int
    heads: int
    start: Start
    seed: int
    until: float
    records: int = 40

    def run(self) -> Result:
        """Follow the flow."""
        hidden, draw = np.arange(self.n) < self.k, np.random.default_rng(self.seed)
        logits = np.zeros((self.heads, self.n))
        while self.start == "random":
            logits = draw.normal(size=(self.heads, self.n))
            if math.isfinite(loss_of(self.k * attention_of(logits).mean(0), hidden)):
                break
        times = np.geomspace(1.0, self.until, self.records)
        path = heads_flow(logits, hidden, times)
        losses = np.array([loss_of(self.k * attention_of(one).mean(0), hidden) for one in path])
        numbers = RateNumbers(reached=float(times[-1] * losses[-1]), bound=heads_rate(self.n, self.k, self.heads))
        return Result(numbers, {"times": torch.from_numpy(times), "scaled": torch.from_numpy(times * losses)})


_RateRow = Row[HeadsRate, RateNumbers]


def _rates(sizes: Sequence[tuple[int, int]], heads: Sequence[int], seeds: int, until: float) -> list[HeadsRate]:
    cells = [(n, k, count) for n, k in sizes for count in heads]
    uniform = [HeadsRate(n=n, k=k, heads=count, start="uniform", seed=0, until=until) for n, k, count in cells]
    return uniform + [
        HeadsRate(n=n, k=k, heads=count, start="random", seed=seed, until=until)
        for n, k, count in cells
        for seed in fresh(seeds)
    ]


def _plot_rates(rows: Sequence[_RateRow]) -> Figure:
    """Draw t·(−log C) over its bound against time, and at the end against both bounds."""
    figure, (along, ends) = new_figure(10.5, 4.2, 1, 2)
    counts = sorted({row.config.heads for row in rows})
    for row in rows:
        hue, uniform = colour(counts.index(row.config.heads)), row.config.start == "uniform"
        style = {"color": hue, "linewidth": 1.6 if uniform else 0.7, "linestyle": "-" if uniform else ":"}
        along.plot(row.arrays["times"], row.arrays["scaled"] / row.numbers.bound, **style)
        ends.plot(row.numbers.bound, row.numbers.reached, "o" if uniform else "x", color=hue, markersize=5)
        ends.plot(_counted(row), row.numbers.reached, ".", color="#888888", markersize=3)
    for index, count in enumerate(counts):
        ends.plot([], [], "o", color=colour(index), label=f"{count} heads" if count > 1 else "1 head")
    ends.plot([], [], ".", color="#888888", label="against (Hn − max(H, k))/4")
    reached = [row.numbers.reached for row in rows]
    ends.plot([min(reached), max(reached)], [min(reached), max(reached)], color="#888888", linewidth=0.8)
    along.axhline(1, color="#888888", linewidth=0.8)
    along.set(xscale="log", xlabel="time t", ylabel="t·(−log C) over its bound", ylim=(0, 1.3))
    ends.set(xscale="log", yscale="log", xlabel="proved: (H/4)·max σ(1 − σ/n)", ylabel="t·(−log C) at the end")
    ends.legend(fontsize=8)
    return figure


def _counted(row: _RateRow) -> float:
    """Return the bound that counts the weights that vanish."""
    config = row.config
    return (config.heads * config.n - max(config.heads, config.k)) / 4


def _rate_findings(rows: Sequence[_RateRow]) -> list[Finding]:
    shares = {
        start: [r.numbers.reached / r.numbers.bound for r in rows if r.config.start == start]
        for start in get_args(Start)
    }
    said = ", ".join(f"{min(one):.3f} to {max(one):.3f} from {start} attention" for start, one in shares.items() if one)
    return [
        Finding("(Ours: limsup t·(−log C) ≤ (H/4)·max_{σ≤k} σ(1 − σ/n).)", f"At the end t·(−log C) over it is {said}.")
    ]


class NeededNumbers(Numbers):
    """The examples from which 90 % of the trials succeed (none: beyond the grid), and those that are proved enough."""

    samples: int | None
    proved: float


class ExamplesNeeded(Config):
    """One rule at one size, on a geometric grid of numbers of examples."""

    ROWS: ClassVar[str] = "P-proved-examples"
    NUMBERS: ClassVar[type[Numbers]] = NeededNumbers

    rule: Rule
    n: int
    k: int
    trials: int
    points: int = 16

    def run(self) -> Result:
        """Try every number of examples of the grid."""
        proved = _proved(self.rule, self.n, self.k)
        # Up to the proved number, which is far too large but for the paths.
        counts = sorted({round(one) for one in np.geomspace(4, proved, self.points)})
        right = torch.stack([self._right(count) for count in counts], dim=1)
        return Result(NeededNumbers(samples=SmallestSamples.of(counts, right).samples, proved=proved))

    def _right(self, count: int) -> Tensor:
        if self.rule == "n paths":
            seeds = fresh(self.trials)
            drawn = [
                (p, p.sample(count, seeded_generator(s, "data")))
                for p, s in zip(draw_problems(self.n, self.k, seeds), seeds, strict=True)
            ]
            return torch.tensor([named_set(x, y, self.k).support == problem.support for problem, (x, y) in drawn])
        terms, bits = entries_at_uniform(self.n, self.k)
        gradient = drawn_gradients(terms, count, 0.0, self.trials, np.random.default_rng([1000, count]))
        if self.rule == "one step":
            return all_right(one_mirror_step(gradient, self.k), bits, self.k)
        return gradient[:, : self.k].amin(-1) > gradient[:, self.k :].amax(-1)


def _proved(rule: Rule, n: int, k: int, failure: float = 0.1) -> float:
    """Return what is proved to be enough; for one gradient Hoeffding's bound on either side of half the signal."""
    if rule == "n paths":
        return path_samples(n, k, failure)
    return (
        8 * math.log(n / failure) / path_signal(n, k, 0) ** 2
        if rule == "one gradient"
        else one_step_samples(n, k, failure)
    )


_NeededRow = Row[ExamplesNeeded, NeededNumbers]


def _needed(sizes: Sequence[tuple[int, int]], trials: int) -> list[ExamplesNeeded]:
    return [ExamplesNeeded(rule=rule, n=n, k=k, trials=trials) for n, k in sizes for rule in get_args(Rule)]


def _plot_needed(rows: Sequence[_NeededRow]) -> Figure:
    """Draw measured and proved numbers of examples against n, a panel for each k."""
    ks = sorted({row.config.k for row in rows})
    figure, panels = new_figure(3.6 * len(ks) + 1, 3.8, 1, len(ks), sharey=True, squeeze=False)
    for axes, k in zip(panels[0], ks, strict=True):
        for index, rule in enumerate(get_args(Rule)):
            mine = sorted((r for r in rows if (r.config.k, r.config.rule) == (k, rule)), key=lambda row: row.config.n)
            at = [row.config.n for row in mine]
            axes.plot(
                at, [r.numbers.samples or math.nan for r in mine], "o-", color=colour(index), label=f"{rule}, measured"
            )
            axes.plot(at, [row.numbers.proved for row in mine], "s--", color=colour(index), label=f"{rule}, proved")
        axes.set(yscale="log", xlabel="n", title=f"k = {k}")
    panels[0, 0].set_ylabel("examples N")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8)
    return figure


def _needed_findings(rows: Sequence[_NeededRow]) -> list[Finding]:
    said = []
    for rule in get_args(Rule):
        ratios = [r.numbers.proved / r.numbers.samples for r in rows if r.config.rule == rule and r.numbers.samples]
        said += [f"{rule} {min(ratios):.1f} to {max(ratios):.0f}"] if ratios else []
    return [Finding("(Ours: each N is proved to be enough.)", f"Proved over measured: {', '.join(said)}.")]


FIGURES = (
    FigureSpec(
        ID="P-heads-rate",
        TITLE="The rate of any number of heads",
        TEXT="Plain gradient flow on log C of H heads with a free logit per position and equal masses. Left: t·(−log C)"
        " over its proved limit (H/4)·max σ(1 − σ/n), σ ≤ k, from uniform attention (thick), where equal heads attain"
        " it if k ≤ n/2, and from random logits (dotted). Right: its value at the end against that bound (rings and"
        " crosses), and against (Hn − max(H, k))/4 (grey), which the same proof gives without centring. Population"
        " gradients; seeds from 1000 on.",
        COST={"smoke": 1, "demo": 3, "reference": 25},
        CONFIGS={
            "smoke": _rates([(5, 2)], (1, 2), 1, 1e3),
            "demo": _rates([(6, 3), (8, 2)], (1, 2, 3), 2, 1e5),
            "reference": _rates([(6, 3), (8, 2), (12, 4), (7, 5)], (1, 2, 3, 5, 8), 3, 1e6),
        },
        plot=_plot_rates,
        table=table_of(
            TableColumn("n", lambda row: row.config.n),
            TableColumn("k", lambda row: row.config.k),
            TableColumn("heads", lambda row: row.config.heads),
            TableColumn("start", lambda row: row.config.start),
            TableColumn("t·(−log C) at the end", lambda row: row.numbers.reached, ".3f"),
            TableColumn("proved", lambda row: row.numbers.bound, ".3f"),
            TableColumn("(Hn − max(H, k))/4", _counted, ".2f"),
        ),
        findings=_rate_findings,
    ),
    FigureSpec(
        ID="P-proved-examples",
        TITLE="Examples that are proved to be enough",
        TEXT="Examples with which 90 % of the trials succeed (rings) and examples that are proved enough at δ = 0.1"
        " (dashed). The n paths recover B; one gradient has its k largest entries on B; one mirror step of height H ="
        " log(4n) + 3/(2k) answers all 2^n inputs correctly, for which the entries on B must be equal to 1/(2kH). The"
        " gap is large: the proofs bound every entry at once, by tails that hold for any terms in [−1, 1]. The grid is"
        " geometric, so that measured numbers are known to a factor of about 1.5.",
        COST={"smoke": 1, "demo": 4, "reference": 60},
        CONFIGS={
            "smoke": _needed([(5, 2)], 20),
            "demo": _needed([(6, 2), (8, 2), (7, 3)], 40),
            "reference": _needed([(6, 2), (8, 2), (10, 2), (12, 2), (7, 3), (9, 3), (11, 3), (9, 4), (11, 4)], 200),
        },
        plot=_plot_needed,
        table=table_of(
            TableColumn("rule", lambda row: row.config.rule),
            TableColumn("n", lambda row: row.config.n),
            TableColumn("k", lambda row: row.config.k),
            TableColumn("N for 90 %", lambda row: row.numbers.samples),
            TableColumn("proved enough", lambda row: row.numbers.proved, ".3g"),
            TableColumn("trials", lambda row: row.config.trials),
        ),
        findings=_needed_findings,
    ),
)
