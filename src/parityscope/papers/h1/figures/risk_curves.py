"""Risk during training for every recipe, with the bound c^t of Theorem 5 drawn in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import median
from parityscope.papers.cells import ShownTraining, TrainingRow
from parityscope.papers.figure import Column, Finding, Scale, table_of
from parityscope.runs import training
from parityscope.theory import theorem_5_decrement

ID = "H1-risk-curves"
TITLE = "Risk during training, and what Theorem 5 promises"
TEXT = (
    "The risk each recipe descends on (squared hinge as written, squared mean hinge as coded, hinge for the bounded "
    "readouts), one line per seed. The dashed line is Theorem 5's bound c^t times the first risk, with c = 1 − ημ "
    "from the proof's own constants at their most favourable: it is flat, because η and μ together are "
    "astronomically small. As written, the risk does not move at that rate; at a rate of 0.04/k² it falls, to strict "
    "minima (H1-where-it-ends) and plateaus."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 6, "reference": 17}


_PROVED = "as written, Theorem 5's rate"


def _configs(
    n: int, k: int, seeds: int, *, written: Mapping[str, Any] = {}, coded: Mapping[str, Any] = {}, **changes: Any
) -> list[ShownTraining]:
    recipes: list[tuple[str, str, Mapping[str, Any]]] = [
        (_PROVED, "as-written", {"learning_rate": "theorem-5", **written}),
        ("as written, rate 0.04/k²", "as-written", written),
        ("as coded", "as-coded", coded),
        ("repaired", "repaired", {}),
        ("bounded", "bounded", {}),
    ]
    kept: dict[str, Any] = {"seeds": range(seeds), "watch": ("risk",), "record_every": 2}
    return [
        ShownTraining(label=label, training=training(recipe, n, k, **kept, **own, **changes))
        for label, recipe, own in recipes
    ]


CONFIGS: dict[Scale, list[ShownTraining]] = {
    "smoke": _configs(8, 2, 3, steps=100),
    "demo": _configs(12, 3, 8, written={"steps": 60}, coded={"steps": 1000}),
    "reference": _configs(12, 3, 16),
}


def plot(rows: Sequence[TrainingRow]) -> Figure:
    """Draw one panel per recipe, all on the same risk axis."""
    figure, panels = new_figure(3.0 * len(rows) + 0.6, 3.8, 1, len(rows), sharey=True)
    for axes, row in zip(panels, rows, strict=True):
        steps, risk = row.arrays["steps"], row.arrays["risk"].clamp(min=1e-3)
        axes.plot(steps.numpy(), risk.numpy(), color=colour(0), alpha=0.45, linewidth=1.1)
        if row.config.label == _PROVED:
            # log c = log(1 − decrement); the line is flat to every digit, not approximated as flat.
            bound = _first_risk(row) * (steps * math.log1p(-_decrement(row))).exp()
            axes.plot(steps.numpy(), bound.numpy(), "--", color=colour(1), linewidth=2)
            axes.text(0.5, 0.78, "$c^t$ of Theorem 5", color=colour(1), ha="center", transform=axes.transAxes)
        share = row.numbers.share
        axes.set_title(f"{row.config.label}\n{share.successes} of {share.trials} learned", fontsize=10.5)
        axes.set(xlabel="step", yscale="log")
    panels[0].set_ylabel("risk")
    return figure


def _first_risk(row: TrainingRow) -> float:
    return float(row.arrays["risk"][0].mean())


def _last_risk(row: TrainingRow) -> float:
    return median(row.arrays["risk"][-1].tolist())


def _decrement(row: TrainingRow) -> float:
    """Return 1 − c of Theorem 5."""
    trained = row.config.training
    return theorem_5_decrement(trained.n, trained.k, float(trained.recipe.temperature), trained.recipe.smoothing)


table = table_of(
    Column("recipe", lambda row: row.config.label),
    Column("loss", lambda row: row.config.training.recipe.loss),
    Column("learned", lambda row: row.numbers.share),
    Column("mean first risk", _first_risk, ".4f"),
    Column("median last risk", _last_risk, ".4f"),
    Column("1 − c of Theorem 5", lambda row: _decrement(row) if row.config.label == _PROVED else None, ".1e"),
)


def findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Compare the promised with the measured first risk and rate."""
    written = next(row for row in rows if row.config.label == _PROVED)
    return [
        Finding(
            "“The loss at initialization is 1.”",
            f"Mean risk at the paper's own start: {_first_risk(written):.2f}.",
        ),
        Finding(
            "Theorem 5: the risk falls at least like c^t for some c below 1.",
            f"After the recipe's steps at the proof's learning rate the median risk is {_last_risk(written):.2f}; the "
            f"proof's own c differs from 1 by {_decrement(written):.1e}.",
        ),
    ]
