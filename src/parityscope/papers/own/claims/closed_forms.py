"""The project's own: closed forms of the bounded readout (docs/explanation/bounded-readout.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models import Cosine
from parityscope.papers.attack import Attack, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_most
from parityscope.papers.own.again import largest_loss_by_inputs, risk_by_inputs, risk_by_products
from parityscope.papers.own.domain import (
    BOUNDED,
    BOUNDED_PROOF,
    PLAIN,
    SEED,
    ascend,
    attention_or_ideal,
    bounded_score,
    draws,
    place,
)
from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.risk.engines.closed_form import closed_form_mean
from parityscope.risk.losses import Loss, named_loss

_WRONG = 1e-9
_ROUNDING = "rounding of sums over up to 2^8 inputs"


@cache
def _inputs(problem: Parity) -> tuple[Tensor, Tensor]:
    """Return all inputs and labels."""
    x, y = next(problem.enumerate())
    return x.double(), y.double()


def _losses(problem: Parity, c: Float[Tensor, "batch n"], loss: Loss) -> Float[Tensor, "batch inputs"]:
    """Return the mean loss over label noise, input by input."""
    x, y = _inputs(problem)
    margin = y * torch.cos(math.pi * (c @ x.T))
    return (1 - problem.noise) * loss.of_margin(margin) + problem.noise * loss.of_margin(-margin)


_PROBLEMS = (
    Parity(3, (1,)),
    Parity(5, (0, 3), noise=0.2),
    Parity(6, (1, 2, 5), bias=0.3),
    Parity(8, (0, 2, 4, 7), bias=0.3, noise=0.2),
)
_HINGE, _SQUARED = (
    f"largest distance of the {loss} risk from its sum over all inputs" for loss in ("hinge", "squared hinge")
)
_CLOSED_FORM_CLAUSES = tuple(
    Clause(f"the {loss} risk is a sum of products", quantity, at_most(1e-12), _ROUNDING, refuted_if=above(_WRONG))
    for loss, quantity in (("hinge", _HINGE), ("squared-hinge", _SQUARED))
)


def _closed_form(context: Context) -> Measurement:
    """Compare the products with a sum over all inputs, for any real weights."""
    found: dict[str, list[tuple[Attack, Parity]]] = {_HINGE: [], _SQUARED: []}
    for problem, (quantity, name) in product(_PROBLEMS, ((_HINGE, "hinge"), (_SQUARED, "squared-hinge"))):
        ones = _inputs(problem)[0].sum(-1)
        weight = problem.bias**ones * (1 - problem.bias) ** (problem.n - ones)

        def distance(c: Tensor, problem: Parity = problem, name: str = name, weight: Tensor = weight) -> Tensor:
            ours = closed_form_mean(bounded_score(c), law_of(problem), named_loss(name))
            return (ours - (weight * _losses(problem, c, named_loss(name))).sum(-1)).abs()

        found[quantity].append((ascend(distance, draws(context, problem.n), context), problem))
    worst = {quantity: max(attacks, key=_value) for quantity, attacks in found.items()}
    measured = {quantity: attack.value for quantity, (attack, _) in worst.items()}
    return Measurement(
        measured,
        f"largest difference {max(measured.values()):.1e}",
        tried_by([attack for attacks in found.values() for attack, _ in attacks]),
        {"problems": len(_PROBLEMS), "seed": SEED, "largest_distance": max(measured.values())},
        "Hinge and squared-hinge risks as products, against sums over all inputs: real weights, biased bits and label"
        " noise, by draws and by ascent on the difference.",
        {
            quantity: {**place(problem, attack.point), "power": 2 if quantity == _SQUARED else 1}
            for quantity, (attack, problem) in worst.items()
        },
    )


def _value(found: tuple[Attack, Parity]) -> float:
    return found[0].value


def _risk_again(point: Mapping[str, Any]) -> Again:
    at = [point[name] for name in ("weights", "support", "bias", "noise", "power")]
    return Again(abs(risk_by_products(*at) - risk_by_inputs(*at)), PLAIN)


_DISTANCE = "largest distance of the formula from the largest loss over all inputs"
_WORST_LOSS_CLAUSES = (Clause("on the worst input", _DISTANCE, at_most(1e-12), _ROUNDING, refuted_if=above(_WRONG)),)


def _worst_loss(context: Context) -> Measurement:
    """Compare the certificate with the largest loss over all inputs."""
    found = []
    for problem in (Parity(4, (1,)), Parity(6, (0, 3)), Parity(8, (1, 2, 5, 6))):

        def distance(points: Tensor, problem: Parity = problem) -> Tensor:
            c = attention_or_ideal(points, problem)
            apart = (c - problem.mask().double()).abs().sum(-1)
            formula = Cosine().worst_loss(apart, torch.tensor(problem.k))
            assert formula is not None
            largest = _losses(problem, c, named_loss("hinge")).amax(-1)
            return torch.where(apart <= 2, (formula - largest).abs(), torch.nan)

        found.append((ascend(distance, draws(context, problem.n + 1), context), problem))
    attack, problem = max(found, key=_value)
    return Measurement(
        {_DISTANCE: attack.value},
        f"largest difference {attack.value:.1e}",
        f"{tried_by([one for one, _ in found])}, all inputs each",
        {"seed": SEED, "largest_distance": attack.value},
        "1 − cos(πΔ/2) with Δ = Σ|c − 1_B| ≤ 2 against the largest hinge loss over all inputs, by draws and by ascent"
        " on the difference.",
        {_DISTANCE: place(problem, attention_or_ideal(attack.point[None], problem)[0])},
    )


def _largest_loss_again(point: Mapping[str, Any]) -> Again:
    weights, support = point["weights"], point["support"]
    apart = sum(abs(weight - (place in support)) for place, weight in enumerate(weights))
    return Again(abs(1 - math.cos(math.pi * apart / 2) - largest_loss_by_inputs(weights, support)), PLAIN)


CLAIMS = (
    Claim(
        "P-closed-form",
        "Risks of ŷ = cos(πS) are sums of products over positions.",
        _CLOSED_FORM_CLAUSES,
        _closed_form,
        f"{BOUNDED}, 1",
        seconds=1,
        proof=BOUNDED_PROOF,
        replay=dict.fromkeys((_HINGE, _SQUARED), _risk_again),
    ),
    Claim(
        "P-worst-loss",
        "While Σ|c − 1_B| ≤ 2, the loss on the worst of all inputs is 1 − cos(πΣ|c − 1_B|/2).",
        _WORST_LOSS_CLAUSES,
        _worst_loss,
        f"{BOUNDED}, 2",
        seconds=1,
        proof=BOUNDED_PROOF,
        replay={_DISTANCE: _largest_loss_again},
    ),
)
