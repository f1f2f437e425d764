"""Stochastic descent: fresh examples at every step against the full batch, plain and with Adam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure
from pydantic import Field

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.measures import found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.papers.cells import share_of
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import draw_problems
from parityscope.records import Config, Numbers, Result, Row
from parityscope.training.learning import LEARNED_ACCURACY, learn

ID = "H1-sgd"
TITLE = "Full batch against stochastic descent"
TEXT = (
    "Every step sees a batch of fresh examples, none of them twice, or the whole population (full batch, whose "
    "gradient contains the hidden bits). Left: seeds that learned, against the batch size. Middle: the step at "
    "which they first classified more than 99 % of all inputs right and named the support, median and range. Right: "
    "the examples seen until then. The recipe's loss and start stay; the optimiser is plain gradient descent or "
    "Adam as named. As coded has k = 2, because with k = 3 it learns too few seeds even with the full batch. All "
    "methods get the same number of steps, fewer below paper scale than the 2000 of the published code (for those see "
    "H1-success)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 9, "reference": 38, "paper": 400}
_RECORD_EVERY = 10


class CellNumbers(Numbers):
    """TODO."""


class Cell(Config):
    """One recipe and optimiser at one batch size; no batch means the population."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = CellNumbers

    label: str
    recipe: str
    n: int
    k: int
    seeds: int
    batch: int | None
    overrides: Mapping[str, Any] = Field(default_factory=dict)

    def run(self) -> Result:
        """Train all seeds of one cell and note when each first had learned."""
        seeds = range(self.seeds)
        problems = draw_problems(self.n, self.k, seeds)
        supports = torch.tensor([problem.support for problem in problems])
        learned_at = torch.full((self.seeds,), -1)

        def note(step: int, model: ParityTransformer) -> None:
            with torch.no_grad():
                named = (found_support(model.score_weights(), self.k) == supports).all(-1) & (learned_at < 0)
                if bool(named.any()):
                    right = measured_accuracy(model, problems).value > LEARNED_ACCURACY
                    learned_at[named & right] = step

        trained = learn(
            problems,
            self.recipe,
            seeds,
            batch=self.batch,
            on_record=note,
            record_every=_RECORD_EVERY,
            **self.overrides,
        )
        learned = trained.learned
        steps = torch.where(learned_at >= 0, learned_at, trained.steps)[learned]
        return Result(
            {
                "learned": int(learned.sum()),
                "ever_learned": int(((learned_at >= 0) | learned).sum()),
                "recovered": int(trained.recovered.sum()),
                "learning_rate": float(trained.recipe.learning_rate),
                "learned_at": sorted(steps.tolist()),
            }
        )


_ADAM, _PLAIN = {"optimiser": "adam"}, {"optimiser": "gradient-descent"}
# The bounded readouts descend on the hinge in both modes, so that only the examples differ. A hinge risk below 0.01
# proves an accuracy above 0.99.
_HINGE = {"loss": "hinge", "stop_risk": 0.008, "patience": None}
_METHODS: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("as coded, Adam", "as-coded", 2, {**_ADAM, "learning_rate": 0.2}),
    ("repaired, Adam", "repaired", 3, {**_HINGE, **_ADAM, "learning_rate": 0.1}),
    ("repaired, plain", "repaired", 3, {**_HINGE, **_PLAIN, "learning_rate": 10.0}),
    ("bounded, Adam", "bounded", 3, {**_HINGE, **_ADAM, "learning_rate": 0.02}),
    ("bounded, plain", "bounded", 3, {**_HINGE, **_PLAIN, "learning_rate": 10.0}),
)


def _configs(n: int, seeds: int, batches: Sequence[int | None], steps: int) -> list[Cell]:
    return [
        Cell(
            label=f"{label}, k = {k}",
            recipe=recipe,
            n=n,
            k=k,
            seeds=seeds,
            batch=batch,
            overrides={**overrides, "steps": steps},
        )
        for label, recipe, k, overrides in _METHODS
        for batch in batches
    ]


_Row = Row[Cell, CellNumbers]

CONFIGS: dict[Scale, list[Cell]] = {
    "smoke": _configs(6, 4, (32, None), 80),
    "demo": _configs(12, 8, (32, None), 300),
    "reference": _configs(12, 16, (32, 256, None), 600),
    "paper": _configs(16, 64, (16, 64, 256, 1024, 4096, None), 4000),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw share, steps and examples against the batch size; the full batch stands at the right."""
    figure, (left, middle, right) = new_figure(13.5, 4.8, 1, 3)
    labels = list(dict.fromkeys(row.config.label for row in rows))
    batches = sorted({row.config.batch for row in rows if row.config.batch})
    places: dict[int | None, int] = {**{batch: place for place, batch in enumerate(batches)}, None: len(batches)}
    for index, label in enumerate(labels):
        chosen = [row for row in rows if row.config.label == label]
        shift = 0.07 * (index - (len(labels) - 1) / 2)
        style = {"color": colour(index), "linestyle": "--" if "plain" in label else "-"}
        where = [places[row.config.batch] + shift for row in chosen]
        draw_shares(left, where, [share_of([row]) for row in chosen], label=label, **style)
        timed = [(place, row) for place, row in zip(where, chosen, strict=True) if row.numbers.learned_at]
        _draw_spans(middle, [(place, row.numbers.learned_at) for place, row in timed], style)
        fresh = [(place, row) for place, row in timed if row.config.batch]
        spans = [(place, [t * row.config.batch for t in row.numbers.learned_at]) for place, row in fresh]
        _draw_spans(right, spans, style)
    left.set(ylabel="share of seeds", title="learned")
    middle.set(ylabel="step", yscale="log", title="first step at which a run had learned")
    right.set(ylabel="examples", yscale="log", title="examples seen until then")
    for axes in (left, middle, right):
        axes.set_xlabel("examples per step")
        axes.set_xticks(list(places.values()), [str(batch) if batch else "all" for batch in places])
        axes.set_xlim(-0.4, len(batches) + (-0.6 if axes is right else 0.4))
    figure.legend(loc="outside lower center", ncols=len(labels))
    return figure


def _draw_spans(axes: Any, spans: Sequence[tuple[float, Sequence[int]]], style: Mapping[str, Any]) -> None:
    if spans:
        medians = [median(values) for _, values in spans]
        below = [middle - min(values) for middle, (_, values) in zip(medians, spans, strict=True)]
        above = [max(values) - middle for middle, (_, values) in zip(medians, spans, strict=True)]
        axes.errorbar([place for place, _ in spans], medians, yerr=(below, above), marker="o", capsize=3, **style)


def table(rows: Sequence[_Row]) -> Table:
    """Return every cell."""
    header = ["recipe", "rate", "batch", "learned", "support named", "learned at step (median)", "examples (median)"]

    def line(row: _Row) -> list[str]:
        batch, times = row.config.batch, row.numbers.learned_at
        return [
            row.config.label,
            f"{row.numbers.learning_rate:g}",
            str(batch) if batch else "population",
            str(share_of([row])),
            str(row.numbers.recovered),
            f"{median(times):.0f}" if times else "–",
            f"{median(times) * batch:.0f}" if times and batch else "–",
        ]

    return Table(header, [line(row) for row in rows])


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare fresh batches with the full batch, and count examples."""
    labels = list(dict.fromkeys(row.config.label for row in rows))

    def compared(label: str) -> str:
        chosen = [row for row in rows if row.config.label == label]
        parts = [
            f"{row.numbers.learned} of {row.config.seeds} "
            + (f"at batch {row.config.batch}" if row.config.batch else "with the full batch")
            for row in chosen
        ]
        return f"{label}: " + ", ".join(parts)

    best = [row for row in rows if row.config.batch and row.numbers.learned == row.config.seeds]
    fewest = min(best, key=lambda row: median(row.numbers.learned_at) * row.config.batch, default=None)
    examples = (
        "No method learned every seed from fresh examples."
        if fewest is None
        else f"Fewest examples with every seed learned: {fewest.config.label} at batch {fewest.config.batch}, "
        f"{median(fewest.numbers.learned_at) * fewest.config.batch:.0f} in the median, of "
        f"2^{fewest.config.n} = {2**fewest.config.n} different inputs."
    )
    return [
        Finding(
            "The proof needs full-batch gradient descent on the expected risk.",
            "Seeds that learned: " + "; ".join(map(compared, labels)) + ".",
        ),
        Finding("(The digest: does parameter efficiency persist under stochastic descent?)", examples),
    ]
