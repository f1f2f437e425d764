"""Three phase diagrams: where each recipe learns, over temperature × rate, n × k, and heads × label noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.cells import ShownTraining, TrainingRow, by_label, share_of
from parityscope.papers.figure import Finding, ResultTable, Scale
from parityscope.papers.phase_diagram import draw_phases
from parityscope.runs import training


class Axis(NamedTuple):
    """An axis of a diagram: its name, and where on it a training stands."""

    name: str
    place: Callable[[TrainingRow], float]


@dataclass
class _PhaseDiagram:
    """A figure of heat maps, one per label of its rows: the share of seeds that learned over two settings.

    >>> from parityscope.records import Row
    >>> shown = [one for one in FIGURES[1].CONFIGS["smoke"] if one.training.samples is None]
    >>> rows = [Row(one, one.training.run().numbers) for one in shown]
    >>> FIGURES[1].table(rows).rows[0]
    ['bounded, population', '3', '4/4 (51%–100%)', '4/4 (51%–100%)']
    >>> FIGURES[1].plot(rows).axes[0].get_title()
    'bounded, population (4 seeds)'
    """

    ID: str
    TITLE: str
    TEXT: str
    COST: Mapping[Scale, float]
    CONFIGS: Mapping[Scale, Sequence[ShownTraining]]
    x: Axis
    y: Axis
    columns: int
    findings: Callable[[Sequence[TrainingRow]], Sequence[Finding]]

    def plot(self, rows: Sequence[TrainingRow]) -> Figure:
        """Draw a heat map per panel: the share of seeds that learned, with counts.

        The solid contour is where half of the seeds learn. Between the dashed ones Wilson's 95 % interval contains one
        half: there the seeds do not decide.
        """
        panels = by_label(rows)
        x_values, y_values = (sorted({axis.place(row) for row in rows}) for axis in (self.x, self.y))
        height = math.ceil(len(panels) / self.columns)
        width = max(2.7, 0.6 + 0.42 * len(x_values))  # a panel's title needs room also above a few columns
        size = (1.4 + self.columns * width, height * (1.1 + 0.36 * len(y_values)))
        figure, grid = new_figure(*size, height, self.columns, squeeze=False, sharex=True, sharey=True)
        places = list(grid.flat)
        images = []
        for axes, (name, chosen) in zip(places, panels.items(), strict=False):
            points = {(self.x.place(row), self.y.place(row)): row.numbers.share for row in chosen}
            images.append(draw_phases(axes, points, x_values, y_values))
            seeds = "–".join(str(count) for count in sorted({share.trials for share in points.values()}))
            axes.set_title(f"{name} ({seeds} seeds)", fontsize=10)
        for axes in places[len(panels) :]:
            axes.set_visible(False)
        for axes in grid[:, 0]:
            axes.set(ylabel=self.y.name, yticks=range(len(y_values)), yticklabels=[f"{value:g}" for value in y_values])
        for index, axes in enumerate(places[: len(panels)]):
            axes.set(xticks=range(len(x_values)))
            axes.set_xticklabels([f"{value:g}" for value in x_values], fontsize=8)
            lowest = index + self.columns >= len(panels)
            axes.tick_params(length=0, labelbottom=lowest)
            axes.set_xlabel(self.x.name if lowest else "")
        figure.colorbar(images[0], ax=grid, label="share of seeds that learned", pad=0.01)
        return figure

    def table(self, rows: Sequence[TrainingRow]) -> ResultTable:
        """Return every point as learned/seeds with its 95 % interval: a line per panel and y, a column per x."""
        x_values = sorted({self.x.place(row) for row in rows})
        lines = []
        for name, chosen in by_label(rows).items():
            points = {(self.x.place(row), self.y.place(row)): str(row.numbers.share) for row in chosen}
            for up in sorted({up for _, up in points}, reverse=True):
                lines.append([name, f"{up:g}", *(points.get((across, up), "–") for across in x_values)])
        return ResultTable(["panel", f"{self.y.name} ╲ {self.x.name}", *(f"{across:g}" for across in x_values)], lines)


def counted(rows: Sequence[TrainingRow]) -> str:
    """Return how many seeds of a panel learned, at how many points all of them did, and at how many none."""
    every, none = (sum(row.numbers.share.value == value for row in rows) for value in (1, 0))
    return f"{share_of(rows)} seeds; all of them in {every} of {len(rows)} cells, none in {none}"


def _listed(panels: Mapping[str, Sequence[TrainingRow]], said: Callable[[Sequence[TrainingRow]], str]) -> str:
    return "; ".join(f"{name}: {said(panel)}" for name, panel in panels.items() if panel)


def _shown(label: str, recipe: str, n: int, k: int, seeds: int, **asked: Any) -> ShownTraining:
    return ShownTraining(label=label, training=training(recipe, n, k, seeds=range(seeds), **asked))


def _source(samples: int | None) -> str:
    return "population" if samples is None else f"{samples} examples"


_BETWEEN = (
    "The solid line is where half of the seeds learn; between the dashed lines Wilson's 95 % interval contains one "
    "half."
)
_Grid = tuple[Iterable[float], Iterable[float]]
_RATE_N, _NOISE_N, _THREE = 10, 12, 3  # bits of the first and of the last diagram, and their hidden bits
_RATE = Axis("learning rate", lambda row: float(row.config.training.recipe.learning_rate))
_TEMPERATURE = Axis("temperature τ", lambda row: float(row.config.training.recipe.temperature))
_BITS = Axis("bits n", lambda row: row.config.training.n)
_HIDDEN_BITS = Axis("hidden bits k", lambda row: row.config.training.k)
_NOISE = Axis("probability that a label is flipped", lambda row: row.config.training.noise)
_HEADS = Axis("heads m", lambda row: row.config.training.recipe.heads or _THREE)


def _over_rates(recipe: str, grid: _Grid, seeds: int, steps: int, samples: int | None = None) -> list[ShownTraining]:
    label = f"{recipe}, {_source(samples)}, {steps} steps"
    asked: dict[str, Any] = {"samples": samples, "steps": steps}
    return [
        _shown(label, recipe, _RATE_N, _THREE, seeds, temperature=temperature, learning_rate=rate, **asked)
        for temperature, rate in product(*grid)
    ]


def _rate_findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Say how large the region is in which each recipe learns."""
    sharp = by_label(row for row in rows if _TEMPERATURE.place(row) == 1 / _RATE_N)
    return [
        Finding(
            "H1, Theorem 5 needs a temperature of order 1/n and a rate below an explicit bound.",
            f"Over the grid: {_listed(by_label(rows), counted)}.",
        ),
        Finding(
            "At τ = 1/n attention is sharp from the start.",
            f"Over all rates at τ = {1 / _RATE_N:g}: {_listed(sharp, lambda some: str(share_of(some)))}.",
        ),
    ]


def _over_sizes(
    recipe: str, sizes: tuple[Sequence[int], Sequence[int]], seeds: int, samples: int | None
) -> list[ShownTraining]:
    label = f"{recipe}, {_source(samples)}"
    return [_shown(label, recipe, n, k, seeds, samples=samples) for k in sizes[1] for n in sizes[0]]


def _size_findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Set optimisation beside data."""
    found = _listed(by_label(rows), counted)
    return [Finding("(Not in the papers: where optimisation ends and where data end.)", f"{found}.")]


def _over_noise(
    recipe: str, heads: Sequence[int], noises: Sequence[float], seeds: int, samples: int = 500
) -> list[ShownTraining]:
    label = f"{recipe}, {_source(samples)}"
    return [
        _shown(label, recipe, _NOISE_N, _THREE, seeds, samples=samples, noise=noise, heads=m)
        for m in heads
        for noise in noises
    ]


def _noise_findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Compare fewer heads than hidden bits with as many and with more."""

    def by_heads(panel: Sequence[TrainingRow]) -> str:
        groups: dict[str, list[TrainingRow]] = {"m < k": [], "m = k": [], "m > k": []}
        for row in panel:
            m = _HEADS.place(row)
            groups["m < k" if m < _THREE else "m = k" if m == _THREE else "m > k"].append(row)
        return ", ".join(f"{name} {share_of(some)}" for name, some in groups.items() if some)

    clean = by_label(row for row in rows if row.config.training.noise == 0)
    return [
        Finding("H1 uses as many heads as hidden bits, m = k.", f"Without noise: {_listed(clean, by_heads)}."),
        Finding("(Not in the papers: label noise.)", f"Over all noise levels: {_listed(by_label(rows), by_heads)}."),
    ]


_RATES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_FEW_RATES = (0.1, 1.0, 10.0), (0.01, 0.1, 1.0)
_SIZES, _FEW_SIZES = ((8, 12, 16, 24, 32), (2, 3, 4, 6)), ((8, 16, 32), (2, 3, 4, 6))
_NOISES, _FEW_NOISES = ((1, 2, 3, 4, 6, 9), (0.0, 0.1, 0.2, 0.3, 0.4, 0.45)), ((1, 2, 3, 6), (0.0, 0.1, 0.2, 0.3, 0.4))

FIGURES = (
    _PhaseDiagram(
        ID="phase-temperature-rate",
        TITLE="Phase diagram: temperature × learning rate",
        TEXT="Seeds that learned (counts; colour is their share) when a recipe's softmax temperature τ and learning "
        "rate are changed and nothing else, n = 10, k = 3, each seed with its own support and start. "
        f"{_BETWEEN} Population panels speak of optimisation; the last one sees only N examples. H1's text has "
        "τ = 1/n = 0.1, its code τ = n/4 = 2.5.",
        COST={"smoke": 1, "demo": 8, "reference": 18},
        CONFIGS={
            "smoke": [*_over_rates("repaired", _FEW_RATES, 4, 150), *_over_rates("bounded", _FEW_RATES, 4, 150)],
            "demo": [
                *_over_rates("as-written", _RATES, 2, 50),
                *_over_rates("as-coded", _RATES, 4, 400),
                *_over_rates("repaired", _RATES, 8, 400),
                *_over_rates("bounded", _RATES, 8, 400),
                *_over_rates("bounded", _RATES, 4, 250, 500),
            ],
            "reference": [
                *_over_rates("as-written", _RATES, 4, 100),
                *_over_rates("as-coded", _RATES, 8, 600),
                *_over_rates("repaired", _RATES, 16, 500),
                *_over_rates("bounded", _RATES, 16, 500),
                *_over_rates("bounded", _RATES, 8, 250, 500),
            ],
        },
        x=_RATE,
        y=_TEMPERATURE,
        columns=3,
        findings=_rate_findings,
    ),
    _PhaseDiagram(
        ID="phase-n-k",
        TITLE="Phase diagram: n × k",
        TEXT="Seeds that learned (counts; colour is their share) over the number n of bits and k of hidden bits. From "
        "the population, whose gradient contains the hidden bits, learning is a matter of optimisation; from N "
        "examples the signal of a diffuse start falls like n^(−k/2) and a boundary appears. "
        f"{_BETWEEN} H1's own two recipes over n and k are in the success table: their cost doubles with every second "
        "bit.",
        COST={"smoke": 1, "demo": 18, "reference": 30},
        CONFIGS={
            "smoke": [
                *_over_sizes("bounded", ((8, 16), (2, 3)), 4, None),
                *_over_sizes("bounded", ((8, 16), (2, 3)), 4, 200),
            ],
            "demo": [
                *_over_sizes("repaired", _FEW_SIZES, 8, None),
                *_over_sizes("bounded", _FEW_SIZES, 8, None),
                *_over_sizes("bounded", _FEW_SIZES, 6, 300),
                *_over_sizes("bounded", _FEW_SIZES, 4, 1000),
            ],
            "reference": [
                *_over_sizes("repaired", _SIZES, 16, None),
                *_over_sizes("bounded", _SIZES, 16, None),
                *_over_sizes("bounded", _SIZES, 12, 300),
                *_over_sizes("bounded", _SIZES, 8, 1000),
            ],
        },
        x=_BITS,
        y=_HIDDEN_BITS,
        columns=2,
        findings=_size_findings,
    ),
    _PhaseDiagram(
        ID="phase-heads-noise",
        TITLE="Phase diagram: heads × label noise",
        TEXT="Seeds that learned from N examples (counts; colour is their share) over the number m of attention heads "
        "and the probability that a label is flipped, n = 12, k = 3. Accuracy is that against the true parity. Noise p "
        "shrinks the correlation with the label by 1 − 2p, so it acts like fewer examples, (1 − 2p)²N; in the "
        f"population it changes nothing but a constant factor. {_BETWEEN}",
        COST={"smoke": 1, "demo": 6, "reference": 18},
        CONFIGS={
            "smoke": _over_noise("bounded", (1, 3), (0.0, 0.2, 0.4), 4, 300),
            "demo": [*_over_noise("repaired", *_FEW_NOISES, 6), *_over_noise("bounded", *_FEW_NOISES, 6)],
            "reference": [*_over_noise("repaired", *_NOISES, 12), *_over_noise("bounded", *_NOISES, 12)],
        },
        x=_NOISE,
        y=_HEADS,
        columns=2,
        findings=_noise_findings,
    ),
)
