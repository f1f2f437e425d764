"""Stochastic descent: fresh examples at every step against the full batch, plain and with Adam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Any

from matplotlib.figure import Figure

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import median
from parityscope.papers.cells import ShownTraining, TrainingRow, by_label, of_learned
from parityscope.papers.figure import Column, Finding, Scale, table_of
from parityscope.runs import training

ID = "H1-sgd"
TITLE = "Full batch against stochastic descent"
TEXT = (
    "Every step sees a batch of fresh examples, none of them twice, or the whole population (full batch, whose "
    "gradient contains the hidden bits). Left: seeds that learned, against the batch size. Middle: the step at "
    "which they first classified more than 99 % of all inputs right and named the support, median and range. Right: "
    "the examples seen until then. The recipe's loss and start stay; the optimiser is plain gradient descent or "
    "Adam as named. As coded has k = 2, because with k = 3 it learns too few seeds even with the full batch. All "
    "methods get the same number of steps, fewer than the 2000 of the published code (for those see "
    "H1-success)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 9, "reference": 38}

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


def _configs(n: int, seeds: int, batches: Sequence[int | None], steps: int) -> list[ShownTraining]:
    asked: dict[str, Any] = {"seeds": range(seeds), "watch": ("learned",), "steps": steps}
    return [
        ShownTraining(label=f"{label}, k = {k}", training=training(recipe, n, k, batch=batch, **asked, **changes))
        for label, recipe, k, changes in _METHODS
        for batch in batches
    ]


CONFIGS: dict[Scale, list[ShownTraining]] = {
    "smoke": _configs(6, 4, (32, None), 80),
    "demo": _configs(12, 8, (32, None), 300),
    "reference": _configs(12, 16, (32, 256, None), 600),
}


def plot(rows: Sequence[TrainingRow]) -> Figure:
    """Draw share, steps and examples against the batch size; the full batch stands at the right."""
    figure, (left, middle, right) = new_figure(13.5, 4.8, 1, 3)
    labelled = by_label(rows)
    batches = sorted({row.config.training.batch for row in rows if row.config.training.batch})
    places: dict[int | None, int] = {**{batch: place for place, batch in enumerate(batches)}, None: len(batches)}
    for index, (label, chosen) in enumerate(labelled.items()):
        shift = 0.07 * (index - (len(labelled) - 1) / 2)
        style = {"color": colour(index), "linestyle": "--" if "plain" in label else "-"}
        where = [places[row.config.training.batch] + shift for row in chosen]
        draw_shares(left, where, [row.numbers.share for row in chosen], label=label, **style)
        timed = [(place, row) for place, row in zip(where, chosen, strict=True) if any(row.numbers.learned)]
        _draw_spans(middle, [(place, _learned_at(row)) for place, row in timed], style)
        _draw_spans(right, [(place, _examples(row)) for place, row in timed if row.config.training.batch], style)
    left.set(ylabel="share of seeds", title="learned")
    middle.set(ylabel="step", yscale="log", title="first step at which a run had learned")
    right.set(ylabel="examples", yscale="log", title="examples seen until then")
    for axes in (left, middle, right):
        axes.set_xlabel("examples per step")
        axes.set_xticks(list(places.values()), [str(batch) if batch else "all" for batch in places])
        axes.set_xlim(-0.4, len(batches) + (-0.6 if axes is right else 0.4))
    figure.legend(loc="outside lower center", ncols=len(labelled))
    return figure


def _learned_at(row: TrainingRow) -> list[int]:
    """Return the step at which each seed that learned had done so for the first time."""
    assert row.numbers.learned_at is not None  # it was watched
    noted = [last if at is None else at for at, last in zip(row.numbers.learned_at, row.numbers.steps, strict=True)]
    return of_learned(row.numbers, noted)


def _examples(row: TrainingRow) -> list[int]:
    """Return how many examples it had seen by then."""
    return [step * (row.config.training.batch or 0) for step in _learned_at(row)]


def _draw_spans(axes: Any, spans: Sequence[tuple[float, Sequence[int]]], style: Mapping[str, Any]) -> None:
    if spans:
        medians = [median(values) for _, values in spans]
        below = [middle - min(values) for middle, (_, values) in zip(medians, spans, strict=True)]
        above = [max(values) - middle for middle, (_, values) in zip(medians, spans, strict=True)]
        axes.errorbar([place for place, _ in spans], medians, yerr=(below, above), marker="o", capsize=3, **style)


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


table = table_of(
    Column("recipe", lambda row: row.config.label),
    Column("rate", lambda row: row.config.training.recipe.learning_rate, "g"),
    Column("batch", lambda row: row.config.training.batch or "population"),
    Column("learned", lambda row: row.numbers.share),
    Column("support named", lambda row: sum(row.numbers.recovered)),
    Column("learned at step (median)", lambda row: _median(_learned_at(row)), ".0f"),
    Column("examples (median)", lambda row: _median(_examples(row) if row.config.training.batch else []), ".0f"),
)


def findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Compare fresh batches with the full batch, and count examples."""

    def compared(label: str, chosen: Sequence[TrainingRow]) -> str:
        parts = [
            f"{sum(row.numbers.learned)} of {len(row.numbers.learned)} "
            + (f"at batch {row.config.training.batch}" if row.config.training.batch else "with the full batch")
            for row in chosen
        ]
        return f"{label}: " + ", ".join(parts)

    best = [row for row in rows if row.config.training.batch and all(row.numbers.learned)]
    fewest = min(best, key=lambda row: median(_examples(row)), default=None)
    if fewest is None:
        examples = "No method learned every seed from fresh examples."
    else:
        n, batch = fewest.config.training.n, fewest.config.training.batch
        examples = (
            f"Fewest examples with every seed learned: {fewest.config.label} at batch {batch}, "
            f"{median(_examples(fewest)):.0f} in the median, of 2^{n} = {2**n} different inputs."
        )
    return [
        Finding(
            "The proof needs full-batch gradient descent on the expected risk.",
            "Seeds that learned: " + "; ".join(starmap(compared, by_label(rows).items())) + ".",
        ),
        Finding("(The digest: does parameter efficiency persist under stochastic descent?)", examples),
    ]
