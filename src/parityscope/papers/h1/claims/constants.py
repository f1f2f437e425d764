"""H1, Lemmas 7 and 14 to 16: the constants behind Theorem 5's learning rate, attacked over heads, inputs and b."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import vmap

from parityscope import theory
from parityscope.papers.attack import Attack, maximise, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_most
from parityscope.papers.h1.circle import SEED, SMOOTHING, Circle, gradient_by_differences, unit_heads


class _Setting(NamedTuple):
    """What the constants depend on."""

    n: int
    k: int
    tau: float
    b: float


# Small n is where single inputs weigh most; τ from 1 to 1/n, b from nearly ReLU to 1.
_SETTINGS = (
    _Setting(4, 1, 1.0, 0.01),
    _Setting(4, 1, 0.25, 1e-4),
    _Setting(6, 2, 1 / 6, 0.01),
    _Setting(6, 3, 1 / 6, 1.0),
    _Setting(8, 3, 1 / 8, 0.01),
)
# The lemmas ask only for b > 0, and ŷ itself grows like √b.
_LARGE_B = _Setting(4, 1, 1.0, 1e8)


class _Bound(NamedTuple):
    """A map of the heads, its Jacobian for a batch of heads and inputs, and the Lipschitz constant a lemma gives it."""

    what: str
    value: Callable[[Circle, Tensor, Tensor], Tensor]
    jacobian: Callable[[Circle, Tensor, Tensor], Tensor]
    constant: Callable[[Circle], float]

    def ratio(self, circle: Circle, heads: Tensor, x: Tensor) -> Tensor:
        """Return how much of the constant is used up at each pair of heads and input."""
        return torch.linalg.matrix_norm(self.jacobian(circle, heads, x), 2) / self.constant(circle)

    def ratio_by_differences(self, circle: Circle, heads: Tensor, x: Tensor) -> float:
        """Return the ratio at one point again, from finite differences of the map."""
        slopes = gradient_by_differences(lambda moved: self.value(circle, moved, x), heads, step=1e-4)
        return float(torch.linalg.matrix_norm(slopes.flatten(0, 1), 2)) / self.constant(circle)


def _first_bits(circle: Circle) -> tuple[int, ...]:
    return tuple(range(circle.k))


def _product_jacobian(circle: Circle, heads: Tensor, x: Tensor) -> Tensor:
    gradient = circle.gradient(heads, x)
    value = vmap(circle.prediction)(heads, x)[:, None, None]
    # The Jacobian of ŷ·∇ŷ is ŷ·H + ∇ŷ ∇ŷᵀ.
    return value * circle.second_derivatives(heads, x) + gradient[:, :, None] * gradient[:, None, :]


_PREDICTION = _Bound(
    "The norm of ∇ŷ",
    lambda circle, heads, x: circle.prediction(heads, x)[None],
    lambda circle, heads, x: circle.gradient(heads, x)[:, None],
    lambda circle: theory.lipschitz_of_prediction(circle.k, circle.tau),
)
_GRADIENT = _Bound(
    "The norm of ŷ's Hessian",
    lambda circle, heads, x: circle.gradient(heads[None], x[None])[0],
    lambda circle, heads, x: circle.second_derivatives(heads, x),
    lambda circle: theory.smoothness_of_prediction(circle.k, circle.tau, circle.b),
)
_PRODUCT = _Bound(
    "The norm of the Jacobian of ŷ·∇ŷ",
    lambda circle, heads, x: circle.prediction(heads, x) * circle.gradient(heads[None], x[None])[0],
    _product_jacobian,
    lambda circle: theory.lipschitz_of_prediction_times_gradient(circle.k, circle.tau, circle.b),
)
_RISK_GRADIENT = _Bound(  # of the population with B = {0 … k−1}, so the single input plays no part
    "The norm of the risk's Hessian",
    lambda circle, heads, x: circle.risk_gradient(heads[None], _first_bits(circle))[0].flatten(),
    lambda circle, heads, x: circle.risk_second_derivatives(heads, _first_bits(circle)),
    lambda circle: theory.smoothness_of_risk(circle.k, circle.tau, circle.b),
)


def _attack(bound: _Bound, setting: _Setting, context: Context) -> tuple[Attack, Tensor]:
    """Return the largest ratio to the bound over heads and inputs, and the input where it was found."""
    circle = Circle(*setting)
    generator = torch.Generator().manual_seed(SEED)
    count = context.at(smoke=40, reference=200)
    # Radii over several orders: sharp, soft and nearly uniform attention.
    radii = torch.exp(1.5 * torch.randn(count, circle.k, 1, generator=generator, dtype=torch.float64))
    heads = unit_heads(count, circle.k, generator) * radii
    x = (torch.rand(count, circle.n, generator=generator) < 0.5).double()
    steps = context.at(smoke=5, reference=30)
    found = maximise(lambda points, index: bound.ratio(circle, points, x[index]), heads, keep=8, steps=steps)
    return found, x[found.index]


_MODERATE, _LARGE = "largest ratio to the constant for b ≤ 1", "largest ratio to the constant at b = 1e8"
_CLAUSES = (
    Clause("for b ≤ 1", _MODERATE, at_most(1), "the lemma's own constant"),
    Clause("for every b > 0, as the lemma says", _LARGE, at_most(1), "the lemma's own constant"),
)


def _measure_bound(bound: _Bound, context: Context) -> Measurement:
    """Attack a bound that should hold for every b > 0."""
    settings = _SETTINGS[: context.at(smoke=2, reference=len(_SETTINGS))]
    found = [(setting, _attack(bound, setting, context)[0]) for setting in settings]
    large, x = _attack(bound, _LARGE_B, context)
    worst, at = max((attack.value, setting) for setting, attack in found)
    bits = {"support": list(range(_LARGE_B.k)), "x": [int(bit) for bit in x]}
    return Measurement(
        {_MODERATE: worst, _LARGE: large.value},
        f"{worst:.1g} × the constant for b ≤ 1, {large.value:.2g} × at b = 1e8",
        tried_by([large, *(attack for _, attack in found)]),
        {"settings": [list(setting) for setting in settings], "largest_at": at._asdict(), "seed": SEED},
        f"{bound.what} was maximised over heads and inputs, by draws and by ascent, against the printed constant; the "
        "proof takes |ŷ| ≤ 4k³, which large b breaks.",
        {_LARGE: {**_LARGE_B._asdict(), **bits, "heads": large.point.tolist()}},
    )


def _bound_claim(claim_id: str, statement: str, bound: _Bound, where: str) -> Claim:
    """Return the claim that a map of the heads has a Lipschitz constant."""

    def measure(context: Context) -> Measurement:
        return _measure_bound(bound, context)

    def again(point: Mapping[str, Any]) -> Again:
        circle = Circle(*(point[name] for name in _Setting._fields))
        heads, x = (torch.tensor(point[name], dtype=torch.float64) for name in ("heads", "x"))
        return Again(bound.ratio_by_differences(circle, heads, x), "finite differences")

    return Claim(claim_id, statement, _CLAUSES, measure, where, seconds=2, replay={_LARGE: again})


_PRINTED, _MEANT = "largest distance of the printed derivative from autograd", "of the one with the sign corrected"
_DERIVATIVE_CLAUSES = (
    Clause("∂γ as printed", _PRINTED, at_most(1e-9), "rounding of sums of five terms", above(1e-6)),
    Clause("∂γ with the sign corrected", _MEANT, at_most(1e-9), "rounding of sums of five terms", corrected=True),
)


def _printed_derivative(context: Context) -> Measurement:
    """Compare both derivatives of the softmax with autograd, entry by entry."""
    circle = Circle(5, 1, 1 / 5, 0.01)
    heads = unit_heads(context.at(smoke=10, reference=200), 1, torch.Generator().manual_seed(SEED))
    positions = circle.model.positions
    exact = vmap(torch.func.jacrev(circle.attention))(heads)[:, 0, :, 0]  # (batch, n, 2)
    gamma = circle.attention(heads)[:, 0]
    printed, corrected = (
        torch.stack([derivative(gamma, positions[:, axis], circle.tau) for axis in (0, 1)], dim=-1)
        for derivative in (theory.softmax_derivative_as_printed, theory.softmax_derivative)
    )
    wrong, right = (float((one - exact).abs().max()) for one in (printed, corrected))
    head = heads[int((printed - exact).abs().flatten(1).amax(-1).argmax())]
    step = 1e-6 * torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    differences = (circle.attention(head + step) - circle.attention(head - step))[0] / 2e-6
    by_formula = theory.softmax_derivative(circle.attention(head)[0], positions[:, 0], circle.tau)
    return Measurement(
        {_PRINTED: wrong, _MEANT: right},
        f"off by {wrong:.2g}; corrected sign: {right:.0e}",
        f"{len(heads)} heads",
        {"corrected_minus_finite_differences": float((by_formula - differences).abs().max())},
        "∂γ/∂a13 and ∂γ/∂a14, as printed and with the sign corrected, were compared with autograd and differences.",
        {_PRINTED: {"n": 5, "tau": circle.tau, "heads": head.tolist()}},
    )


def _derivative_again(point: Mapping[str, Any]) -> Again:
    """Compare the printed derivative with differences of the softmax instead of autograd."""
    circle = Circle(point["n"], 1, point["tau"], SMOOTHING)
    heads = torch.tensor(point["heads"], dtype=torch.float64)
    slopes = gradient_by_differences(lambda moved: circle.attention(moved)[0], heads)  # (1, 2, n)
    again = max(
        float((theory.softmax_derivative_as_printed(circle.attention(heads)[0], wave, circle.tau) - slope).abs().max())
        for wave, slope in zip(circle.model.positions.T, slopes[0], strict=True)
    )
    return Again(again, "differences of the softmax")


CLAIMS = (
    _bound_claim(
        "H1-lemma-7", "The risk is max{2l₁C, 2(l₂ + B)}-smooth in the heads.", _RISK_GRADIENT, "Section 4.1, Lemma 7"
    ),
    _bound_claim(
        "H1-lemma-14", "ŷ is 2k(20/τ² + 32k²/(τ²√b))-smooth in the heads (Lemma 6).", _GRADIENT, "Appendix, Lemma 14"
    ),
    Claim(
        "H1-lemma-14-derivative",
        "∂γ_p/∂a13 = (1/τ)[γ_p(1 − γ_p) sin_p + Σ_{j≠p} γ_p γ_j sin_j], and likewise for a14 (proof of Lemma 14).",
        _DERIVATIVE_CLAUSES,
        _printed_derivative,
        "Appendix, proof of Lemma 14",
        corrected="∂γ_p/∂a13 = (1/τ)[γ_p(1 − γ_p) sin_p − Σ_{j≠p} γ_p γ_j sin_j], and likewise for a14.",
        replay={_PRINTED: _derivative_again},
    ),
    _bound_claim("H1-lemma-15", "ŷ is (8k²/τ)√(2k)-Lipschitz in the heads.", _PREDICTION, "Appendix, Lemma 15"),
    _bound_claim(
        "H1-lemma-16",
        "ŷ·∇ŷ is √(2k)(4k³(20/τ² + 32k²/(τ²√b)) + (8k²/τ)²)-Lipschitz in the heads.",
        _PRODUCT,
        "Appendix, Lemma 16",
    ),
)
