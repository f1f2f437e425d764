"""The project's own: H1's circle with the bounded readout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Between, Clause, at_least, below
from parityscope.papers.own.again import risk_of_descent
from parityscope.papers.own.domain import NEARLY_ALL, rows_of, share_of
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs.training import Training, training
from parityscope.training.learning import train


class DescentRateNumbers(Numbers):
    """The risk of every seed after a quarter, a half and all of the steps."""

    quarter: tuple[float, ...]
    half: tuple[float, ...]
    end: tuple[float, ...]


class DescentRate(Config):
    """A training whose risk is looked at as the time doubles."""

    ROWS: ClassVar[str] = "P-descent-rate"
    NUMBERS: ClassVar[type[Numbers]] = DescentRateNumbers

    training: Training

    def run(self) -> Result:
        """Train to the end, and keep three risks."""
        config = self.training
        steps = int(config.recipe.steps)
        trained = train(config.problems(), [config.recipe], config.seeds, record_every=steps // 4)
        kept = dict(zip(trained.history_steps.tolist(), trained.history_risk.tolist(), strict=True))
        return Result(
            DescentRateNumbers(
                quarter=tuple(kept[steps // 4]), half=tuple(kept[steps // 2]), end=tuple(trained.risk.tolist())
            )
        )


_NEAR, _SHARP = (f"share of seeds that learn from {start}" for start in ("near-uniform heads", "H1's own sharp heads"))
_RATE = "fall of log risk as the time doubles, over that of the doubling before"
_CIRCLE_CLAUSES = (
    Clause("from near-uniform heads", _NEAR, at_least(0.8), NEARLY_ALL),
    Clause("from H1's own sharp heads", _SHARP, at_least(0.8), NEARLY_ALL),
    Clause(
        "by plain descent the risk falls at a linear rate, as in Theorem 5",
        _RATE,
        at_least(1.8),
        "2 for a linear rate, 1 for 1/t; range over seeds",
        refuted_if=below(1.5),
    ),
)


def _circle_trainings(context: Context) -> tuple[list[Training], list[Training], DescentRate]:
    """Return trainings from near-uniform heads, from H1's radius 1 at temperature 1/n, and by plain descent."""
    sizes = ((12, 2),) if context.scale == "smoke" else ((12, 3), (16, 4))
    near = [training("repaired", n, k, seeds=range(16)) for n, k in sizes]
    sharp = [training("repaired", n, k, seeds=range(16), start_radius=float(n)) for n, k in sizes[:1]]
    plain: dict[str, Any] = {"optimiser": "gradient-descent", "learning_rate": 2.0, "stop_risk": None, "steps": 800}
    return near, sharp, DescentRate(training=training("repaired", 8, 2, seeds=range(8), **plain))


def _circle_needs(context: Context) -> list[Config]:
    near, sharp, descent = _circle_trainings(context)
    return [*near, *sharp, descent]


def _circle(context: Context) -> Measurement:
    """Train H1's own model with the bounded readout."""
    near, sharp, descent = _circle_trainings(context)
    shares = [
        share_of([flag for row in rows_of(context, trainings) for flag in row.numbers.learned])
        for trainings in (near, sharp)
    ]
    row: Row[DescentRate, DescentRateNumbers] = context.row(descent)
    config, numbers = row.config.training, row.numbers
    risks = list(zip(numbers.quarter, numbers.half, numbers.end, strict=True))
    ratios = [math.log(half / end) / math.log(quarter / half) for quarter, half, end in risks]
    return Measurement(
        {_NEAR: shares[0], _SHARP: shares[1], _RATE: Between(min(ratios), max(ratios))},
        f"{shares[0].successes + shares[1].successes} of {shares[0].trials + shares[1].trials} seeds learn with 2k"
        f" numbers; plain descent falls like 1/t^{math.log2(risks[0][1] / risks[0][2]):.2f}",
        f"{shares[0].trials} near-uniform and {shares[1].trials} sharp starts, {len(ratios)} seeds of plain descent",
        {
            "sizes": [[one.n, one.k] for one in near],
            "learned": [share._asdict() for share in shares],
            "plain_descent": {"n": config.n, "k": config.k, "steps": config.recipe.steps, "ratios": ratios},
        },
        "H1's circle, k heads, 2k numbers, bounded readout, normalised steps on −log C; and plain gradient descent,"
        " whose risk falls like 1/t and not at a linear rate. Measured and not proved for k heads;"
        " docs/explanation/repaired-circle.md has all sizes.",
        {
            _RATE: {
                "n": config.n,
                "support": list(config.problems()[0].support),
                "seed": config.seeds[0],
                "start_radius": config.recipe.start_radius,
                "learning_rate": config.recipe.learning_rate,
                "steps": config.recipe.steps,
                "value": ratios[0],
            }
        },
    )


def _rate_again(point: Mapping[str, Any]) -> Again:
    settings = {name: point[name] for name in ("n", "support", "seed", "start_radius", "learning_rate")}
    quarter, half, end = risk_of_descent(**settings, marks=[point["steps"] // part for part in (4, 2, 1)])
    again = math.log(half / end) / math.log(quarter / half)
    return Again(again, "descent in numpy, gradients summed over all inputs")


CLAIMS = (
    Claim(
        "P-theorem-5-circle",
        "Theorem 5 of H1, repaired: with the bounded readout the circle's 2k numbers learn, at a linear rate.",
        _CIRCLE_CLAUSES,
        _circle,
        "docs: explanation/repaired-circle",
        seconds=2,
        needs=_circle_needs,
        replay={_RATE: _rate_again},
    ),
)
