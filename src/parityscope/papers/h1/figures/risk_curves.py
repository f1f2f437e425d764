"""Risk during training for every recipe, with the bound c^t of Theorem 5 drawn in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from matplotlib.figure import Figure
from pydantic import Field

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.cells import share_of
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import draw_problems
from parityscope.records import Config, Numbers, Result, Row
from parityscope.theory import theorem_5_decrement
from parityscope.training.learning import learn

ID = "H1-risk-curves"
TITLE = "Risk during training, and what Theorem 5 promises"
TEXT = (
    "The risk each recipe descends on (squared hinge as written, squared mean hinge as coded, hinge for the bounded "
    "readouts), one line per seed. The dashed line is Theorem 5's bound c^t times the first risk, with c = 1 − ημ "
    "from the proof's own constants at their most favourable: it is flat, because η and μ together are "
    "astronomically small. As written, the risk does not move at that rate; at a rate of 0.1 it falls to a plateau "
    "that does not depend on the hidden bits."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 6, "reference": 17, "paper": 300}


class CurvesNumbers(Numbers):
    """TODO."""


class Curves(Config):
    """One recipe at one size."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = CurvesNumbers

    label: str
    recipe: str
    n: int
    k: int
    seeds: int
    overrides: Mapping[str, Any] = Field(default_factory=dict)

    def run(self) -> Result:
        """Train all seeds and keep their risk curves."""
        seeds = range(self.seeds)
        run = learn(draw_problems(self.n, self.k, seeds), self.recipe, seeds, record_every=2, **self.overrides)
        numbers: dict[str, Any] = {
            "learned": int(run.learned.sum()),
            "first_risk": run.history_risk[0].mean().item(),
            "last_risk_median": run.history_risk[-1].median().item(),
            "loss": run.recipe.loss,
        }
        if self.recipe == "as-written" and "learning_rate" not in self.overrides:
            temperature, smoothing = float(run.recipe.temperature), run.recipe.smoothing
            numbers["decrement"] = theorem_5_decrement(self.n, self.k, temperature, smoothing)
        return Result(numbers, {"steps": run.history_steps, "risk": run.history_risk})


def _configs(
    n: int, k: int, seeds: int, *, written: Mapping[str, Any] = {}, coded: Mapping[str, Any] = {}, **overrides: Any
) -> list[Curves]:
    recipes: list[tuple[str, str, Mapping[str, Any]]] = [
        ("as written, Theorem 5's rate", "as-written", written),
        ("as written, rate 0.1", "as-written", {"learning_rate": 0.1, **written}),
        ("as coded", "as-coded", coded),
        ("repaired", "repaired", {}),
        ("bounded", "bounded", {}),
    ]
    return [
        Curves(label=label, recipe=recipe, n=n, k=k, seeds=seeds, overrides={**own, **overrides})
        for label, recipe, own in recipes
    ]


_Row = Row[Curves, CurvesNumbers]

CONFIGS: dict[Scale, list[Curves]] = {
    "smoke": _configs(8, 2, 3, steps=100),
    "demo": _configs(12, 3, 8, written={"steps": 60}, coded={"steps": 1000}),
    "reference": _configs(12, 3, 16),
    "paper": _configs(16, 3, 32),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw one panel per recipe, all on the same risk axis."""
    figure, panels = new_figure(3.0 * len(rows) + 0.6, 3.8, 1, len(rows), sharey=True)
    for axes, row in zip(panels, rows, strict=True):
        steps, risk = row.arrays["steps"], row.arrays["risk"].clamp(min=1e-3)
        axes.plot(steps.numpy(), risk.numpy(), color=colour(0), alpha=0.45, linewidth=1.1)
        if "decrement" in row.numbers:
            # log c = log(1 − decrement); the line is flat to every digit, not approximated as flat.
            bound = row.numbers.first_risk * (steps * math.log1p(-row.numbers.decrement)).exp()
            axes.plot(steps.numpy(), bound.numpy(), "--", color=colour(1), linewidth=2)
            axes.text(0.5, 0.78, "$c^t$ of Theorem 5", color=colour(1), ha="center", transform=axes.transAxes)
        share = share_of([row])
        axes.set_title(f"{row.config.label}\n{share.successes} of {share.trials} learned", fontsize=10.5)
        axes.set(xlabel="step", yscale="log")
    panels[0].set_ylabel("risk")
    return figure


def table(rows: Sequence[_Row]) -> Table:
    """Return first and last risk of every recipe."""
    header = ["recipe", "loss", "learned", "mean first risk", "median last risk", "1 − c of Theorem 5"]
    return Table(
        header,
        [
            [
                row.config.label,
                row.numbers.loss,
                str(share_of([row])),
                f"{row.numbers.first_risk:.4f}",
                f"{row.numbers.last_risk_median:.4f}",
                _decrement(row),
            ]
            for row in rows
        ],
    )


def _decrement(row: _Row) -> str:
    return f"{row.numbers.decrement:.1e}" if "decrement" in row.numbers else "–"


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare the promised with the measured first risk and rate."""
    written = next(row for row in rows if row.config.recipe == "as-written")
    return [
        Finding(
            "“The loss at initialization is 1.”",
            f"Mean risk at the paper's own start: {written.numbers.first_risk:.2f}.",
        ),
        Finding(
            "Theorem 5: the risk falls at least like c^t for some c below 1.",
            f"After the recipe's steps at the proof's learning rate the median risk is "
            f"{written.numbers.last_risk_median:.2f}; the proof's own c differs from 1 by {_decrement(written)}.",
        ),
    ]
