"""The project's own: closed forms of the bounded readout, geometry of log C (docs/explanation/bounded-readout.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import grad

from parityscope.models import Cosine
from parityscope.papers.attack import Attack, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least, at_most
from parityscope.papers.own.again import largest_loss_by_inputs, log_c_by_inputs, risk_by_inputs, risk_by_products
from parityscope.papers.own.domain import (
    BOUNDED,
    BOUNDED_PROOF,
    PLAIN,
    SEED,
    ascend,
    attention_or_ideal,
    bounded_score,
    draws,
    in_domain,
    place,
)
from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.risk.engines.closed_form import closed_form_mean
from parityscope.risk.losses import Loss, named_loss
from parityscope.training.steps.log_attention import log_correlation

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


_DOMAINS = (Parity(3, (1,)), Parity(4, (0, 2)), Parity(8, (1, 4, 6)), Parity(12, (3, 8, 11)))
_GAIN = "smallest gain of log C at a midpoint over ‖a − b‖²"
_DEPTH = "smallest −log C over ‖c − 1_B‖²"
_LEAST_GAIN = math.pi**2 / 32
_CURVED = "every second derivative is at most −π²/4; rounding"
_CONCAVITY_CLAUSES = (
    Clause("log C is concave on D", _GAIN, at_least(_LEAST_GAIN - 1e-9), _CURVED),
    Clause("its only maximum is C = 1 at 1_B", _DEPTH, at_least(4 * _LEAST_GAIN - 1e-9), _CURVED),
)
_APART = 1e-3  # squared distance below which rounding would be divided by nearly nothing


def _height(problem: Parity) -> Callable[[Tensor], Tensor]:
    law = law_of(problem)
    return lambda c: log_correlation(c, law)


def _concavity(context: Context) -> Measurement:
    """Attack midpoint concavity on D, and the maximum."""
    gains, depths = [], []
    for problem in _DOMAINS:
        height = _height(problem)

        def gain(points: Tensor, height: Any = height, problem: Parity = problem) -> Tensor:
            a, b = (in_domain(half, problem) for half in points.chunk(2, -1))
            apart = (a - b).square().sum(-1)
            rise = height((a + b) / 2) - (height(a) + height(b)) / 2
            return torch.where(apart > _APART, -rise / apart, torch.nan)

        def depth(points: Tensor, height: Any = height, problem: Parity = problem) -> Tensor:
            c = in_domain(points, problem)
            apart = (c - problem.mask().double()).square().sum(-1)
            return torch.where(apart > _APART, height(c) / apart, torch.nan)

        gains.append((ascend(gain, draws(context, 2 * problem.n + 2), context), problem))
        depths.append(ascend(depth, draws(context, problem.n + 1), context))
    attack, problem = max(gains, key=_value)
    least_gain, least_depth = -attack.value, -max(one.value for one in depths)
    ends = [in_domain(half[None], problem)[0] for half in attack.point.chunk(2, -1)]
    return Measurement(
        {_GAIN: least_gain, _DEPTH: least_depth},
        f"smallest gain of a midpoint {least_gain:.4f}·‖a−b‖² (bound π²/32 = {_LEAST_GAIN:.4f})",
        tried_by([*(one for one, _ in gains), *depths]),
        {"seed": SEED, "bound_on_the_gain": _LEAST_GAIN, "bound_on_the_depth": 4 * _LEAST_GAIN},
        "log C at midpoints of pairs of D, and at points of D against its value 0 at 1_B; draws, then ascent on the"
        " violation inside D, at n = 3, 4, 8 and 12.",
        {_GAIN: place(problem, torch.stack(ends))},
    )


def _gain_again(point: Mapping[str, Any]) -> Again:
    """Sum over all inputs at both ends and in the middle."""
    (a, b), support = point["weights"], point["support"]
    middle = [(x + y) / 2 for x, y in zip(a, b, strict=True)]
    rise = log_c_by_inputs(middle, support) - (log_c_by_inputs(a, support) + log_c_by_inputs(b, support)) / 2
    return Again(rise / sum((x - y) ** 2 for x, y in zip(a, b, strict=True)), PLAIN)


_ON, _OFF = "smallest slope over 1 − c_j on B", "smallest slope over −c_j off B"
_SIGNS_CLAUSES = (
    Clause("hidden weights are raised below 1 and lowered above", _ON, above(0), "the sign; the bound is π²/4"),
    Clause("no other weight is raised", _OFF, above(0), "the sign; the bound is π²/4"),
)


def _slopes(points: Tensor, problem: Parity, chosen: Bool[Tensor, " n"]) -> Float[Tensor, "batch n"]:
    """Return the slope towards 1_B per distance from it, at the chosen positions that are not there."""
    c, height = in_domain(points, problem), _height(problem)
    slope = grad(lambda weights: height(weights).sum())(c)
    towards = problem.mask().double() - c
    apart = chosen & (towards.abs() > 1e-6)
    return torch.where(apart, slope / torch.where(apart, towards, 1.0), torch.inf)


def _gradient_signs(context: Context) -> Measurement:
    """Attack the signs of ∂log C/∂c_j."""
    found: dict[str, list[tuple[Attack, Parity]]] = {_ON: [], _OFF: []}
    for problem, quantity in product(_DOMAINS, (_ON, _OFF)):
        chosen = problem.mask() if quantity == _ON else ~problem.mask()

        def violation(points: Tensor, problem: Parity = problem, chosen: Tensor = chosen) -> Tensor:
            return -_slopes(points, problem, chosen).amin(-1)

        found[quantity].append((ascend(violation, draws(context, problem.n + 1), context), problem))
    worst = {quantity: max(attacks, key=_value) for quantity, attacks in found.items()}
    least = {quantity: -attack.value for quantity, (attack, _) in worst.items()}
    points = {}
    for quantity, (attack, problem) in worst.items():
        chosen, point = problem.mask() if quantity == _ON else ~problem.mask(), attack.point[None]
        position = int(_slopes(point, problem, chosen)[0].argmin())
        points[quantity] = {**place(problem, in_domain(point, problem)[0]), "position": position}
    return Measurement(
        least,
        f"slope towards 1_B at least {min(least.values()):.4f} per distance (π²/4 = {math.pi**2 / 4:.4f})",
        tried_by([attack for attacks in found.values() for attack, _ in attacks]),
        {"seed": SEED, "smallest_slope_per_distance": least, "bound": math.pi**2 / 4},
        "(π/2)cot(πc/2) on B, positive below 1; −(π/2)tan(πc/2) off B, never positive; by automatic differentiation at"
        " draws and by ascent on the violation inside D.",
        points,
    )


def _slope_again(point: Mapping[str, Any]) -> Again:
    """Take differences of sums over all inputs."""
    weights, support, j, step = point["weights"], point["support"], point["position"], 1e-6
    up, down = ([*weights[:j], weights[j] + move, *weights[j + 1 :]] for move in (step, -step))
    slope = (log_c_by_inputs(up, support) - log_c_by_inputs(down, support)) / (2 * step)
    return Again(slope / ((j in support) - weights[j]), PLAIN)


CLAIMS = (
    Claim(
        "P-closed-form",
        "Risks of ŷ = cos(πS) are sums of products over positions.",
        _CLOSED_FORM_CLAUSES,
        _closed_form,
        f"{BOUNDED}, 1",
        proof=BOUNDED_PROOF,
        replay=dict.fromkeys((_HINGE, _SQUARED), _risk_again),
    ),
    Claim(
        "P-worst-loss",
        "While Σ|c − 1_B| ≤ 2, the loss on the worst of all inputs is 1 − cos(πΣ|c − 1_B|/2).",
        _WORST_LOSS_CLAUSES,
        _worst_loss,
        f"{BOUNDED}, 2",
        proof=BOUNDED_PROOF,
        replay={_DISTANCE: _largest_loss_again},
    ),
    Claim(
        "P-concavity",
        "log C is strictly concave on D, which contains uniform attention; its only maximum is C = 1 at 1_B.",
        _CONCAVITY_CLAUSES,
        _concavity,
        f"{BOUNDED}, 3",
        seconds=2,
        proof=BOUNDED_PROOF,
        replay={_GAIN: _gain_again},
    ),
    Claim(
        "P-gradient-signs",
        "On D the gradient of log C raises hidden weights below 1 and no other.",
        _SIGNS_CLAUSES,
        _gradient_signs,
        f"{BOUNDED}, 4",
        seconds=2,
        proof=BOUNDED_PROOF,
        replay=dict.fromkeys((_ON, _OFF), _slope_again),
    ),
)
