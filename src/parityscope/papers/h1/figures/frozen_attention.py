"""Frozen against learned attention as n grows: final risk, and the bounds of Theorem 11 and Corollary 20."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import median
from parityscope.core.ties import largest
from parityscope.models import FrozenAttention, ParityTransformer
from parityscope.papers.cells import by_label
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.papers.h1.figures.parameter_efficiency import parity_target
from parityscope.papers.h1.frozen_hard_attention import (
    exact_bayes_risk,
    hard_attention_cells,
    token_scores,
    worst_support,
)
from parityscope.papers.h1.trainings import FreshTraining, seeded_ffnn, train_on_fresh_examples
from parityscope.problems import Parity, draw_problems, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import population_accuracy, population_risk
from parityscope.runs import Training, training
from parityscope.theory import fixed_attention_bound, fixed_hard_attention_bound
from parityscope.training.build import build_model
from parityscope.training.learning import train
from parityscope.training.recipes import Recipe

ID = "H1-frozen-attention"
TITLE = "Is attention learning needed?"
TEXT = (
    "Squared-hinge risk with three heads, one dot per seed, lines through the medians. Frozen soft: random heads on "
    "the circle at τ = 1/n stay as they are, and an FFNN-1 behind them trains on fresh examples (best of several "
    "learning rates by exact risk); the hidden bits are drawn at random, or are the three least attended ones. Frozen "
    "hard: the exact Bayes risk of any classification head on the tokens that random heads attend to, which may look "
    "at bits as well as positions, for the worst hidden bits. Learned: the same heads trained, on the population "
    "(repaired) and on drawn examples (bounded). A constant 0 has risk 1. Right: ‖α‖‖β‖ of the trained FFNN-1; "
    "Theorem 11 says nothing above the dotted line n/(5m²), where its margin is used up."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 6, "reference": 14}
_HEADS = 3


class FinalRiskNumbers(Numbers):
    """What is left of the squared-hinge risk, one entry per seed."""

    risk: tuple[float, ...]
    accuracy: tuple[float, ...] | None = None  # none: of no particular classification head
    bound: tuple[float, ...] | None = None  # what theory says the risk cannot fall below
    alpha: tuple[float, ...] | None = None  # norms of the FFNN-1 behind frozen heads
    beta: tuple[float, ...] | None = None
    risk_of_random_bits: tuple[float, ...] | None = None  # where `risk` is that of the worst bits

    @property
    def norms(self) -> list[float] | None:
        """‖α‖‖β‖ of every seed."""
        if self.alpha is None or self.beta is None:
            return None
        return [a * b for a, b in zip(self.alpha, self.beta, strict=True)]


class FrozenSoftHeads(Config):
    """H1's heads stay at their start, an FFNN-1 behind them trains; `recipe` says how heads start."""

    ROWS: ClassVar[str] = f"{ID}-soft"
    NUMBERS: ClassVar[type[Numbers]] = FinalRiskNumbers

    n: int
    recipe: Recipe
    least_attended_bits: bool
    seeds: int
    width: int
    steps: int
    rates: tuple[float, ...] = (0.03, 0.003)

    @property
    def label(self) -> str:
        """What it is called in the figure."""
        return "frozen soft, least attended bits" if self.least_attended_bits else "frozen soft, random bits"

    def run(self) -> Result:
        """Train every seed at every rate and keep each seed's best rate by exact risk."""
        seeds = [seed for _ in self.rates for seed in range(self.seeds)]
        rates = [rate for rate in self.rates for _ in range(self.seeds)]
        heads = build_model(self.recipe, self.n, _HEADS, seeds)
        if self.least_attended_bits:
            problems = [Parity(self.n, support) for support in least_attended(heads)]
        else:
            problems = draw_problems(self.n, _HEADS, seeds)
        model = FrozenAttention(heads, self.width)
        model.ffnn = seeded_ffnn(4, self.width, seeds)
        fresh = FreshTraining(steps=self.steps, batch=256, loss="squared-hinge")
        train_on_fresh_examples(model, parity_target(problems), self.n, seeds, rates, fresh)
        with torch.no_grad():
            risk = population_risk(model, problems, loss="squared-hinge").value
            accuracy = population_accuracy(model, problems).value
            every = torch.stack([risk, accuracy, *model.ffnn.norms()]).unflatten(-1, (len(self.rates), self.seeds))
        best = every[0].argmin(0).expand(len(every), 1, -1)
        risk, accuracy, alpha, beta = every.gather(1, best).squeeze(1).tolist()
        bound = [fixed_attention_bound(self.n, _HEADS, a, b) for a, b in zip(alpha, beta, strict=True)]
        return Result(FinalRiskNumbers(risk=risk, accuracy=accuracy, bound=bound, alpha=alpha, beta=beta))


class FrozenHardHeads(Config):
    """Random heads that see bits and positions, at temperature 0; the exact Bayes risk behind them."""

    ROWS: ClassVar[str] = f"{ID}-hard"
    NUMBERS: ClassVar[type[Numbers]] = FinalRiskNumbers

    n: int
    seeds: int

    @property
    def label(self) -> str:
        """What it is called in the figure."""
        return "frozen hard, worst bits"

    def run(self) -> Result:
        """Look for the worst bits of every draw of heads."""
        worst, drawn = [], []
        seeds = range(self.seeds)
        for seed, problem in zip(seeds, draw_problems(self.n, _HEADS, seeds), strict=True):
            generator = seeded_generator(seed, "start")
            heads = ParityTransformer(self.n, _HEADS, full_matrix=True, generator=generator)
            with torch.no_grad():
                heads.matrix[..., 0, :2] = torch.randn(_HEADS, 2, generator=generator, dtype=torch.float64)
            cells = hard_attention_cells(token_scores(heads))
            worst.append(worst_support(cells, _HEADS).risk)
            drawn.append(exact_bayes_risk(cells, problem))
        bound = [fixed_hard_attention_bound(self.n, _HEADS)] * self.seeds
        return Result(FinalRiskNumbers(risk=worst, bound=bound, risk_of_random_bits=drawn))


class LearnedHeads(Config):
    """The same heads trained; a row of the training itself would have the risk of the loss it descended on."""

    ROWS: ClassVar[str] = f"{ID}-learned"
    NUMBERS: ClassVar[type[Numbers]] = FinalRiskNumbers

    training: Training

    @property
    def n(self) -> int:
        """The number of bits."""
        return self.training.n

    @property
    def label(self) -> str:
        """What it is called in the figure."""
        samples = self.training.samples
        return "learned, population" if samples is None else f"learned, {samples} examples"

    def run(self) -> Result:
        """Train all seeds and measure their squared-hinge risk."""
        problems = self.training.problems()
        trained = train(problems, [self.training.recipe], self.training.seeds, samples=self.training.samples)
        with torch.no_grad():
            risk = population_risk(trained.model, problems, loss="squared-hinge").value
        return Result(FinalRiskNumbers(risk=risk.tolist(), accuracy=trained.accuracy.tolist()))


_Heads = FrozenSoftHeads | FrozenHardHeads | LearnedHeads
_Row = Row[Any, FinalRiskNumbers]


def _configs(sizes: Sequence[int], seeds: int, width: int, steps: int, samples: int) -> list[_Heads]:
    def soft(n: int, *, least_attended_bits: bool) -> FrozenSoftHeads:
        recipe, network = training("as-written", n, _HEADS).recipe, {"seeds": seeds, "width": width, "steps": steps}
        return FrozenSoftHeads(n=n, recipe=recipe, least_attended_bits=least_attended_bits, **network)

    return [
        *(soft(n, least_attended_bits=False) for n in sizes),
        *(soft(n, least_attended_bits=True) for n in sizes),
        *(FrozenHardHeads(n=n, seeds=seeds) for n in sizes),
        *(LearnedHeads(training=training("repaired", n, _HEADS, seeds=range(seeds))) for n in sizes),
        *(LearnedHeads(training=training("bounded", n, _HEADS, seeds=range(seeds), samples=samples)) for n in sizes),
    ]


CONFIGS: dict[Scale, list[_Heads]] = {
    "smoke": _configs((6, 8), 4, 8, 30, 500),
    "demo": _configs((8, 16, 24), 4, 8, 200, 4000),
    "reference": _configs((8, 16, 24), 8, 16, 300, 4000),
}


def least_attended(heads: ParityTransformer) -> list[tuple[int, ...]]:
    """Return, for every run, the positions that get least attention: what frozen heads tell least about.

    Two positions of five are not among them: those that the head looks at.
    """
    return [tuple(row.tolist()) for row in largest(-heads.score_weights(), _HEADS)]


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw risk against n with both bounds, and the norms of the trained FFNN-1."""
    figure, (left, right) = new_figure(12.5, 5.0, 1, 2, width_ratios=[1.7, 1])
    sizes = sorted({row.config.n for row in rows})
    span = range(min(sizes), max(sizes) + 1)
    for index, (label, chosen) in enumerate(by_label(rows).items()):
        places = [row.config.n + 0.35 * (index - 2) for row in chosen]
        _draw_dots(left, places, [row.numbers.risk for row in chosen], index, label)
        _draw_dots(right, places, [row.numbers.norms for row in chosen if row.numbers.norms], index)
    bound = [fixed_hard_attention_bound(n, _HEADS) for n in span]
    left.plot(span, bound, "--", color=colour(2), drawstyle="steps-mid", label="bound of Corollary 20")
    free = [fixed_attention_bound(n, _HEADS, 0.0, 0.0) for n in span]
    left.plot(span, free, ":", color=colour(0), drawstyle="steps-mid", label="bound of Theorem 11 for ‖α‖‖β‖ → 0")
    left.set(xlabel="n", ylabel="squared-hinge risk", ylim=(-0.04, 1.15), xticks=sizes, title="final risk")
    right.plot(sizes, [n / (5 * _HEADS**2) for n in sizes], ":", color="#888888")
    right.set(xlabel="n", ylabel="‖α‖‖β‖", yscale="log", xticks=sizes, title="norms the FFNN-1 ends with")
    figure.legend(loc="outside lower center", ncols=4, fontsize=9)
    return figure


def _draw_dots(
    axes: Axes, places: Sequence[float], values: Sequence[Sequence[float]], index: int, label: str | None = None
) -> None:
    """Draw one dot per seed and a line through the medians; nothing where there are no values."""
    if values:
        for place, own in zip(places, values, strict=True):
            axes.plot([place] * len(own), own, ".", color=colour(index), alpha=0.45, markersize=6)
        axes.plot(places, [median(own) for own in values], color=colour(index), linewidth=1.8, label=label)


table = table_of(
    TableColumn("kind", lambda row: row.config.label),
    TableColumn("n", lambda row: row.config.n),
    TableColumn("median risk", lambda row: median(row.numbers.risk), ".4f"),
    TableColumn("smallest", lambda row: min(row.numbers.risk), ".4f"),
    TableColumn("largest", lambda row: max(row.numbers.risk), ".4f"),
    TableColumn("best accuracy", lambda row: max(row.numbers.accuracy) if row.numbers.accuracy else None, ".3f"),
    TableColumn("median ‖α‖‖β‖", lambda row: median(row.numbers.norms) if row.numbers.norms else None, ".1f"),
    TableColumn("largest bound", lambda row: max(row.numbers.bound) if row.numbers.bound else None, ".4f"),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Set Theorem 11 and the need for learning beside the computed risks."""
    random_bits, least_bits, _, population, examples = by_label(rows).values()

    def smallest(chosen: Sequence[_Row]) -> str:
        return ", ".join(f"{min(row.numbers.risk):.3f} at n = {row.config.n}" for row in chosen)

    def middle(chosen: Sequence[_Row]) -> str:
        return ", ".join(f"{median(row.numbers.risk):.3f} at n = {row.config.n}" for row in chosen)

    bounds = [bound for row in (*random_bits, *least_bits) for bound in row.numbers.bound or ()]
    return [
        Finding(
            "Theorem 11: behind frozen attention the risk stays near chance unless heads or norms grow with n.",
            f"Smallest risk an FFNN-1 reached behind frozen soft heads: {smallest(random_bits)} for random bits, "
            f"{smallest(least_bits)} for the least attended ones. The theorem's own bound at the norms they ended with "
            f"is above 0 for {sum(bound > 0 for bound in bounds)} of {len(bounds)} networks.",
        ),
        Finding(
            "Attention learning is needed.",
            f"With the same heads trained, median risk {middle(population)} on the population, {middle(examples)} from "
            f"{examples[0].config.training.samples} examples.",
        ),
    ]
