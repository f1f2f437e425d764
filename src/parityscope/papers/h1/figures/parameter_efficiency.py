"""How many trained numbers learn k-parity as n grows: k attention heads against FFNN-1 of growing width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, get_args

import torch
from jaxtyping import Bool
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import Share, wilson_share
from parityscope.core.ties import predicts_plus
from parityscope.models import FFNN1
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import Parity, draw_problems, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import population_accuracy
from parityscope.theory import parity_ffnn_parameters
from parityscope.training.learning import LEARNED_ACCURACY, learn
from parityscope.training.networks import FreshTraining, Target, seeded_ffnn, train_on_fresh_examples

ID = "H1-parameter-efficiency"
TITLE = "How many trained numbers does it take?"
TEXT = (
    "Left: trained numbers of the smallest model of each kind that learned in more than half of the seeds, against n "
    "(hollow: none of the widths tried did, the largest is shown). Right: seeds that learned, for every model tried. "
    "FFNN-1 and the bounded transformer see the same kind of data, fresh examples in batches; FFNN-1 trains all its "
    "weights by Adam on the hinge loss at several rates, of which the best is shown. The repaired transformer (2 "
    "numbers per head) descends on the population. The dotted line is n + 3, an FFNN-1 of one neuron: with fewer "
    "numbers some bit has no edge, and then no training can beat one half (Prop. 4)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 13, "reference": 23, "paper": 900}
Kind = Literal["FFNN-1", "bounded, fresh examples", "repaired, population"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_EXACT_BITS, _ESTIMATE_EXAMPLES = 16, 2**14


class SizeNumbers(Numbers):
    """TODO."""


class Size(Config):
    """One kind of model at one n and k; FFNN-1 grows through `widths` (in multiples of k) until every seed learns."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = SizeNumbers

    kind: Kind
    n: int
    k: int
    seeds: int
    steps: int
    batch: int
    widths: tuple[int, ...] = (1, 2, 4, 8)
    rates: tuple[float, ...] = (0.03, 0.01)

    def run(self) -> Result:
        """Train one kind of model at one size; FFNN-1 in growing widths."""
        problems = draw_problems(self.n, self.k, range(self.seeds))
        if self.kind == "FFNN-1":
            return Result({"tried": _grow(self, problems), "edge_missing": _without_an_edge(self, problems[0])})
        if self.kind == "repaired, population":
            trained = learn(problems, "repaired", range(self.seeds))
        else:
            trained = learn(
                problems,
                "bounded",
                range(self.seeds),
                batch=self.batch,
                optimiser="adam",
                learning_rate=0.02,
                steps=self.steps,
                stop_risk=0.008,
            )
        numbers = {
            "width": None,
            "parameters": trained.model.trained_parameters(),
            "learned": int(trained.learned.sum()),
            "rate": float(trained.recipe.learning_rate),
        }
        return Result({"tried": [numbers]})


def _configs(sizes: Sequence[int], ks: Sequence[int], seeds: int, steps: int, batch: int, **more: Any) -> list[Size]:
    return [
        Size(kind=kind, n=n, k=k, seeds=seeds, steps=steps, batch=batch, **more)
        for k in ks
        for kind in _KINDS
        for n in sizes
    ]


_Row = Row[Size, SizeNumbers]

CONFIGS: dict[Scale, list[Size]] = {
    "smoke": _configs((5, 6), (2,), 4, 60, 64, widths=(1, 8)),
    "demo": _configs((8, 16, 32), (3,), 4, 300, 128, rates=(0.03,)),
    "reference": _configs((8, 16, 32), (3,), 8, 600, 128),
    "paper": _configs(
        (8, 12, 16, 20, 32, 64), (2, 3), 16, 20_000, 512, widths=(1, 2, 3, 4, 6, 8, 16), rates=(0.03, 0.01, 3e-3)
    ),
}


def parity_target(problems: Sequence[Parity]) -> Target:
    """Return the labels as a function of bits (runs, batch, n).

    >>> parity_target([Parity(3, (0, 2))])(torch.tensor([[[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]])).tolist()
    [[-1.0, 1.0]]
    """
    hidden = torch.stack([problem.mask() for problem in problems]).unsqueeze(-1)

    def label(x: Tensor) -> Tensor:
        return 1 - 2 * ((x @ hidden.to(x.dtype)).squeeze(-1) % 2)

    return label


def _grow(config: Size, problems: Sequence[Parity]) -> list[dict[str, Any]]:
    """Return what each width reached at its best rate, smallest first, until one learned every seed."""
    tried = []
    seeds = [seed for _ in config.rates for seed in range(config.seeds)]
    rates = [rate for rate in config.rates for _ in range(config.seeds)]
    many = list(problems) * len(config.rates)
    for multiple in config.widths:
        net = seeded_ffnn(config.n, multiple * config.k, seeds).float()
        training = FreshTraining(steps=config.steps, batch=config.batch)
        train_on_fresh_examples(net, parity_target(many), config.n, seeds, rates, training)
        learned = network_learned(net, many).reshape(len(config.rates), config.seeds).sum(-1)
        best = int(learned.argmax())
        tried.append(
            {
                "width": multiple * config.k,
                "parameters": net.trained_parameters(),
                "learned": int(learned[best]),
                "rate": config.rates[best],
            }
        )
        if tried[-1]["learned"] == config.seeds:
            break
    return tried


def network_learned(net: FFNN1, problems: Sequence[Parity]) -> Bool[Tensor, " runs"]:
    """Say which runs classify more than 99 % of all inputs right: exact up to 16 bits, on fresh examples beyond.

    >>> from parityscope.models import parity_ffnn
    >>> from parityscope.training.networks import stacked
    >>> problem, other = Parity(7, (0, 2)), Parity(7, (0, 3))
    >>> network_learned(stacked([parity_ffnn(7, (0, 2))] * 2), [problem, other]).tolist()
    [True, False]
    """
    with torch.no_grad():
        if problems[0].n <= _EXACT_BITS:
            return population_accuracy(net, problems).value > LEARNED_ACCURACY
        x, _ = problems[0].sample(_ESTIMATE_EXAMPLES, seeded_generator(0, "held-out"))
        labels = torch.stack([problem.label(x) for problem in problems])
        return (predicts_plus(net(x)) == (labels > 0)).double().mean(-1) > LEARNED_ACCURACY


class _BlindFFNN(FFNN1):
    """FFNN-1 without the edges of one input."""

    missing: int

    def forward(self, x: Tensor) -> Tensor:
        seen = torch.ones(x.shape[-1], dtype=x.dtype)
        seen[self.missing] = 0
        return super().forward(x * seen)


def _without_an_edge(config: Size, problem: Parity) -> float | None:
    """Return the exact accuracy of a trained FFNN-1 that lacks the edges of one hidden bit (Prop. 4)."""
    if config.n > _EXACT_BITS:
        return None
    net = _BlindFFNN(config.n, 8 * config.k, runs=(1,), generator=seeded_generator(0, "start"))
    net.missing = problem.support[0]
    training = FreshTraining(steps=min(200, config.steps), batch=config.batch)
    train_on_fresh_examples(net, parity_target([problem]), config.n, [0], [config.rates[0]], training)
    return float(population_accuracy(net, [problem]).value)


def _share(row: _Row, one: dict[str, Any]) -> Share:
    return wilson_share(one["learned"], row.config.seeds)


def smallest(row: _Row) -> dict[str, Any] | None:
    """Return the first model of a row that learned in more than half of the seeds.

    >>> tried = [{"width": 2, "learned": 2}, {"width": 4, "learned": 3}]
    >>> smallest(Row("", {"seeds": 4}, {"tried": tried}))["width"]
    4
    """
    return next((one for one in row.numbers.tried if 2 * one["learned"] > row.config.seeds), None)


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw the smallest model that learns against n, and every model tried with its share."""
    ks = sorted({row.config.k for row in rows})
    figure, panels = new_figure(5 + 4.5 * len(ks), 4.6, 1, 2 * len(ks), width_ratios=[1.15] * len(ks) + [1] * len(ks))
    sizes = sorted({row.config.n for row in rows})
    for column, k in enumerate(ks):
        axes, shares = panels[column], panels[len(ks) + column]
        for index, kind in enumerate(_KINDS):
            chosen = [row for row in rows if (row.config.kind, row.config.k) == (kind, k)]
            found = [(row.config.n, smallest(row)) for row in chosen]
            line = [(n, one["parameters"]) for n, one in found if one]
            axes.plot([n for n, _ in line], [p for _, p in line], "o-", color=colour(index), label=kind)
            missing = [(row.config.n, row.numbers.tried[-1]["parameters"]) for row in chosen if not smallest(row)]
            hollow = {"marker": "o", "linestyle": "", "fillstyle": "none", "color": colour(index)}
            axes.plot([n for n, _ in missing], [p for _, p in missing], **hollow)
            _draw_tried(shares, chosen, index)
        axes.plot(sizes, [n + 3 for n in sizes], ":", color="#888888", label="n + 3" if column == 0 else None)
        axes.set(
            xlabel="n", ylabel="trained numbers", xscale="log", yscale="log", title=f"smallest that learns, k = {k}"
        )
        axes.set_xticks(sizes, [str(n) for n in sizes])
        axes.minorticks_off()
        shares.set(xlabel="trained numbers", ylabel="share of seeds", xscale="log", title=f"learned, k = {k}")
        shares.set_ylim(-0.04, 1.04)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_tried(axes: Any, rows: Sequence[_Row], index: int) -> None:
    for row in rows:
        tried = row.numbers.tried
        values = [_share(row, one) for one in tried]
        places = [one["parameters"] for one in tried]
        ends = ([s.value - s.low for s in values], [s.high - s.value for s in values])
        clipped = [[max(0.0, end) for end in side] for side in ends]
        heights = [share.value for share in values]
        axes.errorbar(places, heights, yerr=clipped, marker="o", color=colour(index), alpha=0.75, capsize=2)
        if len(tried) > 1:
            where = {"xytext": (6, -3), "textcoords": "offset points", "fontsize": 8}
            axes.annotate(f"n = {row.config.n}", (places[0], heights[0]), **where)


def table(rows: Sequence[_Row]) -> Table:
    """Return every model tried."""
    header = ["model", "n", "k", "width", "trained numbers", "learned", "best rate"]
    return Table(
        header,
        [
            [
                row.config.kind,
                str(row.config.n),
                str(row.config.k),
                "–" if one["width"] is None else str(one["width"]),
                str(one["parameters"]),
                str(_share(row, one)),
                f"{one['rate']:g}",
            ]
            for row in rows
            for one in row.numbers.tried
        ],
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare smallest models at the largest n, and state what a missing edge does."""
    largest = max(row.config.n for row in rows)
    ks = sorted({row.config.k for row in rows})

    def counts(kind: str) -> str:
        parts = []
        for k in ks:
            chosen = [row for row in rows if (row.config.kind, row.config.k) == (kind, k)]
            found = {row.config.n: smallest(row) for row in chosen}
            listed = ", ".join(f"{one['parameters'] if one else 'none'} (n = {n})" for n, one in found.items())
            parts.append(f"k = {k}: {listed}")
        return f"{kind}: " + "; ".join(parts)

    matched = [one for row in rows for one in row.numbers.tried if one["width"] == row.config.k]
    trials = sum(row.config.seeds for row in rows for one in row.numbers.tried if one["width"] == row.config.k)
    share = wilson_share(sum(one["learned"] for one in matched), trials)
    edges = [row.numbers.edge_missing for row in rows if row.numbers.get("edge_missing") is not None]
    return [
        Finding(
            "Transformers learn k-parity with O(k) parameters; FFNNs need Ω(n).",
            "Smallest count that learned in more than half of the seeds. " + ". ".join(map(counts, _KINDS)) + ".",
        ),
        Finding(
            f"Prop. 3: k neurons and {', '.join(str(parity_ffnn_parameters(k)) for k in ks)} distinct parameters "
            f"(k = {', '.join(map(str, ks))}) express k-parity.",
            f"Trained from random starts, FFNN-1 with k neurons learned {share} up to n = {largest}.",
        ),
        Finding(
            "Prop. 4: without an edge from every bit FFNNs cannot learn.",
            f"FFNN-1 of width 8k, trained without the edges of one hidden bit: exact accuracy between {min(edges):.3f} "
            f"and {max(edges):.3f}. A single neuron with all edges already has n + 3 numbers.",
        ),
    ]
