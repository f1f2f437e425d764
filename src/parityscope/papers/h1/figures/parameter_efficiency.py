"""How many trained parameters learn k-parity as n grows: k attention heads against FFNN-1 of growing width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, interval_lengths, new_figure
from parityscope.core.statistics import Share, share_of_true, wilson_share
from parityscope.core.ties import predicts_plus
from parityscope.models import FFNN1
from parityscope.papers.cells import ShownTraining
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.papers.h1.trainings import FreshTraining, Target, seeded_ffnn, train_on_fresh_examples
from parityscope.problems import Parity, draw_problems, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import population_accuracy
from parityscope.runs import training
from parityscope.theory import parity_ffnn_parameters
from parityscope.training.learning import LEARNED_ACCURACY

ID = "H1-parameter-efficiency"
TITLE = "How many trained parameters does it take?"
TEXT = (
    "Left: trained parameters of the smallest model of each kind that learned in more than half of the seeds, against "
    "n (hollow: none of the widths tried did, the largest is shown). Right: seeds that learned, for every model tried. "
    "FFNN-1 and the bounded transformer see the same kind of data, fresh examples in batches; FFNN-1 trains all its "
    "weights by Adam on the hinge loss at several rates, of which the best is shown. The repaired transformer (2 "
    "parameters per head) descends on the population. The dotted line is n + 3, an FFNN-1 of one neuron: with fewer "
    "parameters some bit has no edge, and then no training can beat one half (Prop. 4)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 13, "reference": 23}
_NETWORK, _FRESH, _POPULATION = _KINDS = ("FFNN-1", "bounded, fresh examples", "repaired, population")
_EXACT_BITS, _ESTIMATE_EXAMPLES = 16, 2**14


class TriedModel(Numbers):
    """One model that was trained, and which of its seeds learned."""

    width: int | None  # none: a transformer
    parameters: int
    learned: tuple[bool, ...]
    rate: float

    @property
    def share(self) -> Share:
        """The share of seeds that learned."""
        return wilson_share(sum(self.learned), len(self.learned))


class GrowingNetworkNumbers(Numbers):
    """Every width tried at its best rate, smallest first, and the accuracy without the edges of one hidden bit."""

    tried: tuple[TriedModel, ...]
    edge_missing: float | None  # none where it is not exact


class GrowingNetwork(Config):
    """FFNN-1 at one n and k: it grows through `widths` (in multiples of k) until every seed learns."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = GrowingNetworkNumbers

    n: int
    k: int
    seeds: int
    steps: int
    batch: int
    widths: tuple[int, ...] = (1, 2, 4, 8)
    rates: tuple[float, ...] = (0.03, 0.01)

    def run(self) -> Result:
        """Train growing widths, and one network that cannot see a hidden bit."""
        problems = draw_problems(self.n, self.k, range(self.seeds))
        edge_missing = _without_an_edge(self, problems[0])
        return Result(GrowingNetworkNumbers(tried=_grow(self, problems), edge_missing=edge_missing))


def _configs(
    sizes: Sequence[int], ks: Sequence[int], seeds: int, steps: int, batch: int, **more: Any
) -> list[GrowingNetwork | ShownTraining]:
    def network(n: int, k: int) -> GrowingNetwork:
        return GrowingNetwork(n=n, k=k, seeds=seeds, steps=steps, batch=batch, **more)

    def fresh(n: int, k: int) -> ShownTraining:
        changes: dict[str, Any] = {"optimiser": "adam", "learning_rate": 0.02, "steps": steps, "stop_risk": 0.008}
        trained = training("bounded", n, k, seeds=range(seeds), batch=batch, **changes)
        return ShownTraining(label=_FRESH, training=trained)

    def population(n: int, k: int) -> ShownTraining:
        return ShownTraining(label=_POPULATION, training=training("repaired", n, k, seeds=range(seeds)))

    return [config(n, k) for k in ks for config in (network, fresh, population) for n in sizes]


CONFIGS: dict[Scale, list[GrowingNetwork | ShownTraining]] = {
    "smoke": _configs((5, 6), (2,), 4, 60, 64, widths=(1, 8)),
    "demo": _configs((8, 16, 32), (3,), 4, 300, 128, rates=(0.03,)),
    "reference": _configs((8, 16, 32), (3,), 8, 600, 128),
}


def parity_target(problems: Sequence[Parity]) -> Target:
    """Return the labels as a function of bits (runs, batch, n)."""
    hidden = torch.stack([problem.mask() for problem in problems]).unsqueeze(-1)

    def label(x: Tensor) -> Tensor:
        return 1 - 2 * ((x @ hidden.to(x.dtype)).squeeze(-1) % 2)

    return label


def _grow(config: GrowingNetwork, problems: Sequence[Parity]) -> tuple[TriedModel, ...]:
    """Return what each width reached at its best rate, smallest first, until one learned every seed."""
    tried: list[TriedModel] = []
    seeds = [seed for _ in config.rates for seed in range(config.seeds)]
    rates = [rate for rate in config.rates for _ in range(config.seeds)]
    many = list(problems) * len(config.rates)
    for width in (multiple * config.k for multiple in config.widths):
        net = seeded_ffnn(config.n, width, seeds).float()
        fresh = FreshTraining(steps=config.steps, batch=config.batch)
        train_on_fresh_examples(net, parity_target(many), config.n, seeds, rates, fresh)
        learned = network_learned(net, many).reshape(len(config.rates), config.seeds)
        best = int(learned.sum(-1).argmax())
        one = TriedModel(
            width=width, parameters=net.trained_parameters(), learned=learned[best].tolist(), rate=config.rates[best]
        )
        tried.append(one)
        if all(one.learned):
            break
    return tuple(tried)


def network_learned(net: FFNN1, problems: Sequence[Parity]) -> Bool[Tensor, " runs"]:
    """Say which runs classify more than 99 % of all inputs right: exact up to 16 bits, on fresh examples beyond."""
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


def _without_an_edge(config: GrowingNetwork, problem: Parity) -> float | None:
    """Return the exact accuracy of a trained FFNN-1 that lacks the edges of one hidden bit (Prop. 4)."""
    if config.n > _EXACT_BITS:
        return None
    net = _BlindFFNN(config.n, 8 * config.k, runs=(1,), generator=seeded_generator(0, "start"))
    net.missing = problem.support[0]
    fresh = FreshTraining(steps=min(200, config.steps), batch=config.batch)
    train_on_fresh_examples(net, parity_target([problem]), config.n, [0], [config.rates[0]], fresh)
    return float(population_accuracy(net, [problem]).value)


class TriedModels(NamedTuple):
    """What a row says of one kind at one size: the models tried, smallest first."""

    kind: str
    n: int
    k: int
    tried: Sequence[TriedModel]

    @property
    def smallest(self) -> TriedModel | None:
        """The first model that learned in more than half of the seeds."""
        return next((one for one in self.tried if 2 * sum(one.learned) > len(one.learned)), None)


def tried_models(row: Row[Any, Any]) -> TriedModels:
    """Return what was tried, whether networks or heads."""
    if isinstance(row.config, GrowingNetwork):
        return TriedModels(_NETWORK, row.config.n, row.config.k, row.numbers.tried)
    trained = row.config.training
    heads = TriedModel(
        width=None,
        parameters=row.numbers.parameters,
        learned=row.numbers.learned,
        rate=float(trained.recipe.learning_rate),
    )
    return TriedModels(row.config.label, trained.n, trained.k, [heads])


def plot(rows: Sequence[Row[Any, Any]]) -> Figure:
    """Draw the smallest model that learns against n, and every model tried with its share."""
    every = [tried_models(row) for row in rows]
    ks, sizes = sorted({one.k for one in every}), sorted({one.n for one in every})
    figure, panels = new_figure(5 + 4.5 * len(ks), 4.6, 1, 2 * len(ks), width_ratios=[1.15] * len(ks) + [1] * len(ks))
    for column, k in enumerate(ks):
        axes, shares = panels[column], panels[len(ks) + column]
        for index, kind in enumerate(_KINDS):
            chosen = [one for one in every if (one.kind, one.k) == (kind, k)]
            _draw_smallest(axes, chosen, index)
            _draw_tried(shares, chosen, index)
        axes.plot(sizes, [n + 3 for n in sizes], ":", color="#888888", label="n + 3" if column == 0 else None)
        axes.set(
            xlabel="n", ylabel="trained parameters", xscale="log", yscale="log", title=f"smallest that learns, k = {k}"
        )
        axes.set_xticks(sizes, [str(n) for n in sizes])
        axes.minorticks_off()
        shares.set(xlabel="trained parameters", ylabel="share of seeds", xscale="log", title=f"learned, k = {k}")
        shares.set_ylim(-0.04, 1.04)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_smallest(axes: Axes, every: Sequence[TriedModels], index: int) -> None:
    found = [(one.n, one.smallest.parameters) for one in every if one.smallest]
    axes.plot([n for n, _ in found], [p for _, p in found], "o-", color=colour(index), label=_KINDS[index])
    missing = [(one.n, one.tried[-1].parameters) for one in every if not one.smallest]
    hollow: dict[str, Any] = {"marker": "o", "linestyle": "", "fillstyle": "none", "color": colour(index)}
    axes.plot([n for n, _ in missing], [p for _, p in missing], **hollow)


def _draw_tried(axes: Axes, every: Sequence[TriedModels], index: int) -> None:
    for one in every:
        places, shares = [model.parameters for model in one.tried], [model.share for model in one.tried]
        heights = [share.value for share in shares]
        style: dict[str, Any] = {"marker": "o", "color": colour(index), "alpha": 0.75, "capsize": 2}
        axes.errorbar(places, heights, yerr=interval_lengths(shares), **style)
        if len(one.tried) > 1:
            where: dict[str, Any] = {"xytext": (6, -3), "textcoords": "offset points", "fontsize": 8}
            axes.annotate(f"n = {one.n}", (places[0], heights[0]), **where)


table = table_of(
    TableColumn("model", lambda line: line[0].kind),
    TableColumn("n", lambda line: line[0].n),
    TableColumn("k", lambda line: line[0].k),
    TableColumn("width", lambda line: line[1].width),
    TableColumn("trained parameters", lambda line: line[1].parameters),
    TableColumn("learned", lambda line: line[1].share),
    TableColumn("best rate", lambda line: line[1].rate, "g"),
    lines=lambda rows: [(one, model) for one in map(tried_models, rows) for model in one.tried],
)


def findings(rows: Sequence[Row[Any, Any]]) -> list[Finding]:
    """Compare smallest models at the largest n, and state what a missing edge does."""
    every = [tried_models(row) for row in rows]
    largest, ks = max(one.n for one in every), sorted({one.k for one in every})

    def counts(kind: str) -> str:
        parts = []
        for k in ks:
            chosen = [one for one in every if (one.kind, one.k) == (kind, k)]
            listed = [f"{one.smallest.parameters if one.smallest else 'none'} (n = {one.n})" for one in chosen]
            parts.append(f"k = {k}: {', '.join(listed)}")
        return f"{kind}: " + "; ".join(parts)

    matched = [learned for one in every for model in one.tried if model.width == one.k for learned in model.learned]
    networks: list[Row[GrowingNetwork, GrowingNetworkNumbers]]
    networks = [row for row in rows if isinstance(row.config, GrowingNetwork)]
    edges = [row.numbers.edge_missing for row in networks if row.numbers.edge_missing is not None]
    return [
        Finding(
            "Transformers learn k-parity with O(k) parameters; FFNNs need Ω(n).",
            "Smallest count that learned in more than half of the seeds. " + ". ".join(map(counts, _KINDS)) + ".",
        ),
        Finding(
            f"Prop. 3: k neurons and {', '.join(str(parity_ffnn_parameters(k)) for k in ks)} distinct parameters "
            f"(k = {', '.join(map(str, ks))}) express k-parity.",
            f"Trained from random starts, FFNN-1 with k neurons learned {share_of_true(matched)} up to n = {largest}.",
        ),
        Finding(
            "Prop. 4: without an edge from every bit FFNNs cannot learn.",
            f"FFNN-1 of width 8k, trained without the edges of one hidden bit: exact accuracy between {min(edges):.3f} "
            f"and {max(edges):.3f}. A single neuron with all edges already has n + 3 parameters.",
        ),
    ]
