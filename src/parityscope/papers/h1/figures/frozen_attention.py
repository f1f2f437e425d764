"""Frozen against learned attention as n grows: final risk, and the bounds of Theorem 11 and Corollary 20."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, ClassVar, Literal, get_args

import torch
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, new_figure
from parityscope.core.ties import largest
from parityscope.models import FrozenAttention, ParityTransformer
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.h1.figures.parameter_efficiency import parity_target
from parityscope.problems import Parity, draw_problems, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import population_accuracy, population_risk
from parityscope.risk.frozen_hard_attention import exact_bayes_risk, hard_attention_cells, token_scores, worst_support
from parityscope.theory import fixed_attention_bound, fixed_hard_attention_bound
from parityscope.training.build import build_model
from parityscope.training.learning import learn
from parityscope.training.networks import FreshTraining, seeded_ffnn, train_on_fresh_examples
from parityscope.training.recipes import named_recipe

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
COST: dict[Scale, float] = {"smoke": 2, "demo": 6, "reference": 14, "paper": 400}
Kind = Literal[
    "frozen soft, random bits",
    "frozen soft, least attended bits",
    "frozen hard, worst bits",
    "learned, population",
    "learned, N examples",
]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_HEADS = 3


class SizeNumbers(Numbers):
    """TODO."""


class Size(Config):
    """One kind at one n."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = SizeNumbers

    kind: Kind
    n: int
    seeds: int
    width: int
    steps: int
    samples: int
    rates: tuple[float, ...] = (0.03, 0.003)

    def run(self) -> Result:
        """Return the final risk of every seed."""
        seeds = range(self.seeds)
        problems = draw_problems(self.n, _HEADS, seeds)
        if self.kind == "frozen hard, worst bits":
            return _hard(self, problems)
        if self.kind.startswith("frozen soft"):
            return _soft(self, problems)
        if self.kind == "learned, population":
            trained = learn(problems, "repaired", seeds)
        else:
            trained = learn(problems, "bounded", seeds, samples=self.samples)
        with torch.no_grad():
            risk = population_risk(trained.model, problems, loss="squared-hinge").value
        return Result({"risk": risk.tolist(), "accuracy": trained.accuracy.tolist()})


def _configs(sizes: Sequence[int], seeds: int, width: int, steps: int, samples: int) -> list[Size]:
    return [
        Size(kind=kind, n=n, seeds=seeds, width=width, steps=steps, samples=samples) for kind in _KINDS for n in sizes
    ]


_Row = Row[Size, SizeNumbers]

CONFIGS: dict[Scale, list[Size]] = {
    "smoke": _configs((6, 8), 4, 8, 30, 500),
    "demo": _configs((8, 16, 24), 4, 8, 200, 4000),
    "reference": _configs((8, 16, 24), 8, 16, 300, 4000),
    "paper": _configs((8, 12, 16, 20, 24, 32), 32, 64, 10_000, 16_000),
}


def frozen_heads(n: int, seeds: Sequence[int]) -> ParityTransformer:
    """Return H1's random heads at their start, one run per seed: three heads at τ = 1/n.

    >>> heads = frozen_heads(12, range(5))
    >>> tuple(heads.attention().shape), round(1 / heads.temperature)
    ((5, 3, 12), 12)
    """
    recipe = named_recipe("as-written").resolved(n, _HEADS)
    return build_model(recipe, n, _HEADS, seeds)


def least_attended(heads: ParityTransformer) -> list[tuple[int, ...]]:
    """Return, for every run, the positions that get least attention: what frozen heads tell least about.

    Two positions of five are not among them: those that the head looks at.

    >>> from parityscope.models.positions import circle
    >>> looking_between = circle(5)[[1, 2]].mean(0)
    >>> sorted(least_attended(ParityTransformer(5, 1, directions=looking_between.expand(1, 1, 2)))[0])
    [0, 3, 4]
    """
    return [tuple(row.tolist()) for row in largest(-heads.score_weights(), _HEADS)]


def _soft(config: Size, problems: Sequence[Parity]) -> Result:
    seeds = [seed for _ in config.rates for seed in range(config.seeds)]
    rates = [rate for rate in config.rates for _ in range(config.seeds)]
    heads = frozen_heads(config.n, seeds)
    if config.kind == "frozen soft, least attended bits":
        many = [Parity(config.n, support) for support in least_attended(heads)]
    else:
        many = list(problems) * len(config.rates)
    model = FrozenAttention(heads, config.width)
    model.ffnn = seeded_ffnn(4, config.width, seeds)
    training = FreshTraining(steps=config.steps, batch=256, loss="squared-hinge")
    train_on_fresh_examples(model, parity_target(many), config.n, seeds, rates, training)
    with torch.no_grad():
        shape = (len(config.rates), config.seeds)
        risk = population_risk(model, many, loss="squared-hinge").value.reshape(shape)
        accuracy = population_accuracy(model, many).value.reshape(shape)
        alpha, beta = (norm.reshape(shape) for norm in model.ffnn.norms())
    best = risk.argmin(0, keepdim=True)

    def chosen(values: Tensor) -> list[float]:
        return values.gather(0, best)[0].tolist()

    norms = {"alpha": chosen(alpha), "beta": chosen(beta)}
    bound = [fixed_attention_bound(config.n, _HEADS, a, b) for a, b in zip(*norms.values(), strict=True)]
    return Result({"risk": chosen(risk), "accuracy": chosen(accuracy), "bound": bound, **norms})


def _hard(config: Size, problems: Sequence[Parity]) -> Result:
    worst, drawn = [], []
    for seed, problem in zip(range(config.seeds), problems, strict=True):
        generator = seeded_generator(seed, "start")
        heads = ParityTransformer(config.n, _HEADS, full_matrix=True, generator=generator)
        with torch.no_grad():
            heads.matrix[..., 0, :2] = torch.randn(_HEADS, 2, generator=generator, dtype=torch.float64)
        cells = hard_attention_cells(token_scores(heads))
        worst.append(worst_support(cells, _HEADS).risk)
        drawn.append(exact_bayes_risk(cells, problem))
    return Result({"risk": worst, "risk_of_random_bits": drawn})


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw risk against n with both bounds, and the norms of the trained FFNN-1."""
    figure, (left, right) = new_figure(12.5, 5.0, 1, 2, width_ratios=[1.7, 1])
    sizes = sorted({row.config.n for row in rows})
    span = range(min(sizes), max(sizes) + 1)
    for index, kind in enumerate(_KINDS):
        chosen = [row for row in rows if row.config.kind == kind]
        label = kind if "N examples" not in kind else kind.replace("N", str(chosen[0].config["samples"]))
        _draw_dots(left, chosen, "risk", index, label)
        if "alpha" in chosen[0].numbers:
            _draw_dots(right, chosen, "norms", index, label)
    bound = [fixed_hard_attention_bound(n, _HEADS) for n in span]
    left.plot(span, bound, "--", color=colour(2), drawstyle="steps-mid", label="bound of Corollary 20")
    free = [fixed_attention_bound(n, _HEADS, 0.0, 0.0) for n in span]
    left.plot(span, free, ":", color=colour(0), drawstyle="steps-mid", label="bound of Theorem 11 for ‖α‖‖β‖ → 0")
    left.set(xlabel="n", ylabel="squared-hinge risk", ylim=(-0.04, 1.15), xticks=sizes, title="final risk")
    right.plot(sizes, [n / (5 * _HEADS**2) for n in sizes], ":", color="#888888")
    right.set(xlabel="n", ylabel="‖α‖‖β‖", yscale="log", xticks=sizes, title="norms the FFNN-1 ends with")
    figure.legend(loc="outside lower center", ncols=4, fontsize=9)
    return figure


def _values(row: _Row, name: str) -> list[float]:
    if name == "norms":
        return [a * b for a, b in zip(row.numbers.alpha, row.numbers.beta, strict=True)]
    return list(row.numbers[name])


def _draw_dots(axes: Any, rows: Sequence[_Row], name: str, index: int, label: str) -> None:
    shift = 0.35 * (index - 2)
    for row in rows:
        values = _values(row, name)
        axes.plot([row.config.n + shift] * len(values), values, ".", color=colour(index), alpha=0.45, markersize=6)
    medians = [median(_values(row, name)) for row in rows]
    own = label if name == "risk" else None
    axes.plot([row.config.n + shift for row in rows], medians, color=colour(index), linewidth=1.8, label=own)


def table(rows: Sequence[_Row]) -> Table:
    """Return medians and extremes of every cell."""
    header = ["kind", "n", "median risk", "smallest", "largest", "best accuracy", "median ‖α‖‖β‖", "largest bound"]

    def line(row: _Row) -> list[str]:
        risk, numbers, n = row.numbers.risk, row.numbers, row.config.n
        hard = row.config.kind.startswith("frozen hard")
        bound = [fixed_hard_attention_bound(n, _HEADS)] if hard else numbers.get("bound")
        return [
            row.config.kind.replace("N", str(row.config.samples)),
            str(n),
            f"{median(risk):.4f}",
            f"{min(risk):.4f}",
            f"{max(risk):.4f}",
            f"{max(numbers['accuracy']):.3f}" if "accuracy" in numbers else "–",
            f"{median(_values(row, 'norms')):.1f}" if "alpha" in numbers else "–",
            f"{max(bound):.4f}" if bound else "–",
        ]

    return Table(header, [line(row) for row in rows])


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Set both lower bounds and the need for learning beside the computed risks."""
    by_kind = {kind: [row for row in rows if row.config.kind == kind] for kind in _KINDS}

    def smallest(kind: Kind) -> str:
        return ", ".join(f"{min(row.numbers.risk):.3f} at n = {row.config.n}" for row in by_kind[kind])

    def middle(kind: Kind) -> str:
        return ", ".join(f"{median(row.numbers.risk):.3f} at n = {row.config.n}" for row in by_kind[kind])

    soft = [row for kind in _KINDS[:2] for row in by_kind[kind]]
    bounds = [bound for row in soft for bound in row.numbers.bound]
    gaps = [
        risk - fixed_hard_attention_bound(row.config.n, _HEADS)
        for row in by_kind[_KINDS[2]]
        for risk in row.numbers.risk
    ]
    return [
        Finding(
            "Theorem 11: behind frozen attention the risk stays near chance unless heads or norms grow with n.",
            f"Smallest risk an FFNN-1 reached behind frozen soft heads: {smallest(_KINDS[0])} for random bits, "
            f"{smallest(_KINDS[1])} for the least attended ones. The theorem's own bound at the norms they ended with "
            f"is above 0 for {sum(bound > 0 for bound in bounds)} of {len(bounds)} networks.",
        ),
        Finding(
            "Corollary 20: behind frozen hard attention no classification head can do better than 1 − 2m/2^⌈(n−1)/m⌉.",
            f"Exact Bayes risk for the worst bits minus the bound: {min(gaps):.3f} at the smallest over {len(gaps)} "
            f"draws of heads; median risk {middle(_KINDS[2])}.",
        ),
        Finding(
            "Attention learning is needed.",
            f"With the same heads trained, median risk {middle(_KINDS[3])} on the population, {middle(_KINDS[4])} from "
            f"{by_kind[_KINDS[4]][0].config['samples']} examples.",
        ),
    ]
