"""Neighbouring hidden bits: how much heads overlap, and whether hard attention still computes the parity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import Share, wilson_share
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.problems import Parity
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import training
from parityscope.training.learning import LearnedRuns, train
from parityscope.training.recipes import Recipe

ID = "H1-adjacent-bits"
TITLE = "Do neighbouring bits break hard attention?"
TEXT = (
    "Three hidden bits on the circle: two at the given distance, the third opposite them, all turned around the "
    "circle from seed to seed. Left: runs that learned with soft attention. Middle: the overlap Σ_j min(γ_j, γ′_j) of "
    "the two most similar heads among those runs (1: the same attention), median and range. Right: among the runs "
    "that learned, those that still compute the parity when every head attends to its largest score only. "
    "Random-sign positions (bounded) know no neighbours and serve as control; the dotted line trains on drawn "
    "examples instead of the population."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 4, "reference": 12}
_MIDDLE = 0.25  # a head within a quarter of a step from the middle between the two bits


class DistancesNumbers(Numbers):
    """How many runs at every distance."""

    learned: tuple[int, ...]
    hard_right: tuple[int, ...]  # of those that learned
    two_in_the_middle: tuple[int, ...] | None  # of those that learned; only a circle has a middle


class Distances(Config):
    """One recipe at several distances between two hidden bits, several seeds each."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = DistancesNumbers

    label: str
    recipe: Recipe
    n: int
    distances: tuple[int, ...]
    seeds: int
    samples: int | None = None

    def run(self) -> Result:
        """Train all distances and seeds of one recipe at once."""
        distances = [distance for distance in self.distances for _ in range(self.seeds)]
        seeds = [seed for _ in self.distances for seed in range(self.seeds)]
        problems = [Parity(self.n, hidden_bits(self.n, d, s)) for d, s in zip(distances, seeds, strict=True)]
        trained = train(problems, [self.recipe], seeds, samples=self.samples)
        shape = (len(self.distances), self.seeds)
        learned = trained.learned.reshape(shape)

        def counted(runs: Tensor) -> tuple[int, ...]:
            return tuple((runs.reshape(shape) & learned).sum(-1).tolist())

        on_a_circle = self.recipe.positions in ("circle", "circle-as-coded")
        numbers = DistancesNumbers(
            learned=counted(learned),
            hard_right=counted(hard_attention_is_right(trained)),
            two_in_the_middle=counted(_heads_in_the_middle(trained, seeds, distances) >= 2) if on_a_circle else None,
        )
        return Result(numbers, {"overlap": largest_overlap(trained.attention).reshape(shape), "learned": learned})


_Row = Row[Distances, DistancesNumbers]


def _configs(n: int, n_as_coded: int, seeds: int, samples: int, **as_coded: Any) -> list[Distances]:
    def entry(label: str, recipe: str, size: int, samples: int | None = None, **changes: Any) -> Distances:
        chosen = training(recipe, size, 3, samples=samples, **changes).recipe
        # Beyond a third of the circle the two bits would come close to the third one.
        distances = tuple(range(1, size // 3 + 1))
        return Distances(label=label, recipe=chosen, n=size, distances=distances, seeds=seeds, samples=samples)

    return [
        entry(f"as coded, n = {n_as_coded}", "as-coded", n_as_coded, learning_rate=0.2, **as_coded),
        entry(f"repaired, n = {n}", "repaired", n),
        entry(f"repaired, n = {n_as_coded}, {samples} examples", "repaired", n_as_coded, samples=samples),
        entry(f"bounded, n = {n}", "bounded", n),
    ]


CONFIGS: dict[Scale, list[Distances]] = {
    "smoke": _configs(9, 6, 4, 1000, steps=150),
    "demo": _configs(20, 8, 8, 2000, steps=600),
    "reference": _configs(20, 12, 16, 2000),
}


def hidden_bits(n: int, distance: int, turn: int) -> tuple[int, ...]:
    """Return two bits at the given distance and a third one opposite their middle, turned around the circle."""
    pair = (turn % n, (turn + distance) % n)
    return tuple(sorted((*pair, (turn + distance // 2 + n // 2) % n)))


def largest_overlap(attention: Float[Tensor, "runs heads n"]) -> Float[Tensor, " runs"]:
    """Return Σ_j min(γ_j, γ′_j) of the two most similar heads of every run."""
    pairs = combinations(range(attention.shape[1]), 2)
    return torch.stack([torch.minimum(attention[:, a], attention[:, b]).sum(-1) for a, b in pairs]).amax(0)


def hard_attention_is_right(run: LearnedRuns) -> Bool[Tensor, " runs"]:
    """Say which runs compute the parity of every input when each head attends to its largest score only.

    S is then a sum of whole bits, and every readout is (−1)^S there: right on all inputs if exactly the hidden bits
    are attended by an odd number of heads, right on half of them otherwise.
    """
    attended = run.model.score_weights(hard=True).detach().round().long() % 2 == 1
    return (attended == torch.stack([problem.mask() for problem in run.problems])).all(-1)


def _heads_in_the_middle(run: LearnedRuns, turns: Sequence[int], distances: Sequence[int]) -> Tensor:
    """Return how many heads of every run point to the middle between its two near bits, for circle positions."""
    n = run.problems[0].n
    first, second = run.model.directions.detach().unbind(-1)
    # H1's circle is [sin, cos] of 2π(j+1)/n, the published code's [cos, sin] of 2πj/n.
    as_coded = run.recipe.positions == "circle-as-coded"
    angle = torch.atan2(second, first) if as_coded else torch.atan2(first, second)
    place = angle * n / (2 * math.pi) - (0 if as_coded else 1)
    middle = torch.tensor([turn + distance / 2 for turn, distance in zip(turns, distances, strict=True)])
    away = (place - middle[:, None] + n / 2) % n - n / 2
    return (away.abs() < _MIDDLE).sum(-1)


def _overlaps(row: _Row) -> list[tuple[float, float, float] | None]:
    """Return median, smallest and largest overlap of the runs that learned, per distance."""
    spans = []
    for overlap, learned in zip(row.arrays["overlap"], row.arrays["learned"], strict=True):
        kept = overlap[learned.bool()]
        spans.append((float(kept.quantile(0.5)), float(kept.min()), float(kept.max())) if len(kept) else None)
    return spans


def _shares(row: _Row) -> list[Share]:
    return [wilson_share(learned, row.config.seeds) for learned in row.numbers.learned]


def _hard(row: _Row) -> list[Share | None]:
    pairs = zip(row.numbers.hard_right, row.numbers.learned, strict=True)
    return [wilson_share(right, learned) if learned else None for right, learned in pairs]


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw share learned, overlap of heads and share that survives hard attention, against the distance."""
    figure, (left, middle, right) = new_figure(13, 4.6, 1, 3)
    for index, row in enumerate(rows):
        shift = 0.09 * (index - (len(rows) - 1) / 2)
        style = {"color": colour(index), "linestyle": ":" if row.config.samples else "-"}
        places = [distance + shift for distance in row.config.distances]
        draw_shares(left, places, _shares(row), label=row.config.label, **style)
        spans = [(place, span) for place, span in zip(places, _overlaps(row), strict=True) if span is not None]
        hard = [(place, share) for place, share in zip(places, _hard(row), strict=True) if share is not None]
        if spans:
            medians = [span[0] for _, span in spans]
            ends = ([span[0] - span[1] for _, span in spans], [span[2] - span[0] for _, span in spans])
            middle.errorbar([place for place, _ in spans], medians, yerr=ends, marker="o", capsize=3, **style)
            draw_shares(right, [place for place, _ in hard], [share for _, share in hard], **style)
    left.set(ylabel="share of seeds", title="learned with soft attention")
    middle.set(ylabel="overlap", title="two most similar heads", ylim=(-0.04, 1.04))
    right.set(ylabel="share of the runs that learned", title="correct with hard attention")
    for axes in (left, middle, right):
        axes.set_xlabel("distance between two hidden bits")
        axes.set_xticks(sorted({d for row in rows for d in row.config.distances}))
    figure.legend(loc="outside lower center", ncols=len(rows))
    return figure


class _Line(NamedTuple):
    row: _Row
    place: int  # of the distance

    @property
    def hard(self) -> Share | None:
        return _hard(self.row)[self.place]

    @property
    def overlap(self) -> float | None:
        span = _overlaps(self.row)[self.place]
        return None if span is None else span[0]

    @property
    def in_the_middle(self) -> str | None:
        middle = self.row.numbers.two_in_the_middle
        return None if middle is None else f"{middle[self.place]} of {self.row.numbers.learned[self.place]}"


table = table_of(
    TableColumn("recipe", lambda line: line.row.config.label),
    TableColumn("distance", lambda line: line.row.config.distances[line.place]),
    TableColumn("learned", lambda line: _shares(line.row)[line.place]),
    TableColumn("median overlap", lambda line: line.overlap, ".2f"),
    TableColumn("correct with hard attention", lambda line: line.hard),
    TableColumn("two heads in the middle", lambda line: line.in_the_middle),
    lines=lambda rows: [_Line(row, place) for row in rows for place in range(len(row.config.distances))],
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Set the paper's two sentences on neighbours beside the runs at distance 1 and beyond."""

    def sentence(row: _Row, middle: Sequence[int]) -> str:
        span = _overlaps(row)[0]
        overlap = "" if span is None else f", median overlap {span[0]:.2f}"
        return f"{row.config.label}: {middle[0]} of {row.numbers.learned[0]} that learned{overlap}"

    def surviving(row: _Row) -> str:
        near = f"{row.numbers.hard_right[0]} of {row.numbers.learned[0]}"
        far = f"{sum(row.numbers.hard_right[1:])} of {sum(row.numbers.learned[1:])}"
        return f"{row.config.label}: {near} for neighbours, {far} for larger distances"

    def shares(row: _Row) -> str:
        rest = wilson_share(sum(row.numbers.learned[1:]), row.config.seeds * (len(row.config.distances) - 1))
        return f"{row.config.label}: {_shares(row)[0]} for neighbours, {rest} for larger distances"

    middles = [(row, row.numbers.two_in_the_middle) for row in rows]
    circle = [sentence(row, middle) for row, middle in middles if middle is not None]
    return [
        Finding(
            "Two heads align with the middle between neighbouring bits.",
            "Two heads within a quarter of a step of the middle: " + "; ".join(circle) + ".",
        ),
        Finding(
            "Neighbouring bits make inference with hard attention impossible.",
            "Runs that learned and stay correct with hard attention: "
            + "; ".join(map(surviving, rows))
            + ". Two heads "
            "between neighbours are nearly tied, and a tie that falls well is counted as correct here.",
        ),
        Finding(
            "(The digest: the analysis needs hidden bits that are not adjacent.)",
            "Runs that learned: " + "; ".join(map(shares, rows)) + ".",
        ),
    ]
