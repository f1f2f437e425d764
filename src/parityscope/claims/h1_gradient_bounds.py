"""H1, Lemmas 18 and 19: lower bounds on the gradients of single examples."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import grad

from parityscope import theory
from parityscope.claims.attack import maximise
from parityscope.claims.circle import (
    Circle,
    appendix_assumption,
    example_gradients,
    gradient_by_differences,
    near_peak,
    sharp_circle,
    unit_heads,
)
from parityscope.claims.contract import Check, Claim, Context, Verdict
from parityscope.problems import seeded_generator

_B = 0.01  # the smoothing b, which the text leaves open
_SEED = 0


def _score_gradient(circle: Circle, gamma: Tensor, x: Tensor, *, printed: bool) -> Tensor:
    """Return Σ_i ‖Σ_p x_p τ ∂γ_p/∂a^{(i)}‖² for every input: Lemma 18's left side (1/τ left out, as there)."""
    derivative = theory.softmax_derivative_as_printed if printed else theory.softmax_derivative
    waves = circle.model.positions.T
    parts = torch.stack([derivative(gamma, wave, 1.0) for wave in waves], dim=-1)  # (k, n, 2)
    return torch.einsum("...n,knd->...kd", x, parts).square().sum((-1, -2))


def _cut(circle: Circle, gamma: Tensor) -> Tensor:
    """Return attention with exactly nothing beyond π/4 of the peak, as the proofs treat it."""
    kept = gamma * near_peak(circle, gamma)
    return kept / kept.sum(-1, keepdim=True)


def _lemma_18(context: Context) -> Check:
    circle = sharp_circle()
    n = circle.n
    single, ones = torch.eye(n, dtype=torch.float64), torch.ones(1, n, dtype=torch.float64)
    drawn = (torch.rand(200, n, generator=seeded_generator(_SEED, "data")) < 0.5).double()
    inputs = torch.cat([single, ones, drawn])
    starts = unit_heads(context.at(smoke=10, laptop=100), circle.k, torch.Generator().manual_seed(_SEED))

    def smallest(heads: Tensor, *, cut: bool, printed: bool) -> Tensor:
        """Return the smallest ratio of the left side to the bound over inputs that some head sees."""
        gamma = circle.attention(heads)
        near = near_peak(circle, gamma)
        gamma = _cut(circle, gamma) if cut else gamma
        c2 = gamma[near].min() / circle.tau
        seen = (inputs @ gamma.sum(-2)) > 0
        left = _score_gradient(circle, gamma, inputs, printed=printed)
        return left[seen].min() / theory.score_gradient_bound(n, circle.tau, float(c2.detach()))

    def attack(*, cut: bool, printed: bool) -> tuple[float, Any]:
        def objective(heads: Tensor, index: Tensor) -> Tensor:
            ratios = torch.stack([smallest(one, cut=cut, printed=printed) for one in heads])
            return -(ratios + 1e-300).log()

        steps = context.at(smoke=3, laptop=25)
        found = maximise(objective, starts, keep=4, steps=steps, rate=0.02)
        return float(torch.tensor(-found.value).exp()), found

    ideal, found = attack(cut=True, printed=True)
    real, far = attack(cut=False, printed=True)
    gamma = _cut(circle, circle.attention(starts[0]))
    true_at_ones = float(_score_gradient(circle, gamma, ones, printed=False))
    # Second route to the same zero: S = Σ_j c_j does not move when every bit is 1.
    slope = grad(lambda heads: circle.attention(heads).sum())(starts[0])
    evidence = {
        "as_printed_and_cut_smallest_ratio": ideal,
        "as_printed_with_real_softmax_smallest_ratio": real,
        "true_gradient_at_all_ones": true_at_ones,
        "true_gradient_at_all_ones_by_autograd": float(slope.norm()),
        "counterexample": {
            "n": n,
            "k": circle.k,
            "tau": circle.tau,
            "heads": far.point.tolist(),
            "x": "one bit far off",
        },
        "assumption": appendix_assumption(circle, starts[0]),
        "inputs_per_evaluation": len(inputs),
        **found.evaluations(),
    }
    verdict: Verdict = "fails" if ideal < 1 else "holds" if real >= 1 and true_at_ones > 1e-12 else "holds in part"
    return Check(
        verdict,
        f"{ideal:.2g} × the bound as printed; real softmax {real:.0e} ×; true gradient at x = 1: {true_at_ones:.0e}",
        evidence,
        "The left side was minimised over heads and inputs: it exceeds the bound only with the printed (wrong) "
        "derivative and attention cut to exactly 0 beyond π/4; a real softmax sees a far bit a little, and at x = 1 "
        "the true derivative is 0.",
    )


def _lemma_19(context: Context) -> Check:
    circle, support = Circle(2, 1, 1 / 2, _B), (0,)
    heads = unit_heads(1, 1, torch.Generator().manual_seed(_SEED))[0]
    x = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    y = torch.tensor([1.0, -1.0], dtype=torch.float64)
    losses = torch.stack([circle.loss(heads, one, label) for one, label in zip(x, y, strict=True)])
    gradients = example_gradients(circle, heads, x, y)
    differences = [gradient_by_differences(circle.loss, heads, x[i], y[i]) for i in (0, 1)]
    c2 = appendix_assumption(circle, heads)["c2"]
    bound = theory.loss_gradient_bound(2, 1, c2) * float(losses.sum())
    left = float(gradients.square().sum())

    # With attention cut beyond π/4 a hidden bit may go unseen: then ŷ(x) = 1 is as wrong as can be, and still at rest.
    wide = Circle(16, 1, 1 / 16, 0.0)
    gamma = _cut(wide, wide.attention(unit_heads(1, 1, torch.Generator().manual_seed(_SEED))[0]))
    unseen = (gamma[0] == 0).double()
    score = torch.stack([(unseen * gamma[0]).sum(), ((1 - unseen) * gamma[0]).sum()])
    prediction = wide.model.readout(score)
    labels = torch.tensor([-1.0, 1.0], dtype=torch.float64)  # one hidden bit among the unseen ones
    cut_losses = (1 - labels * prediction).relu().square()
    cut_gradient = _score_gradient(wide, gamma, torch.stack([unseen, 1 - unseen]), printed=False)
    evidence = {
        "counterexample": {
            "n": 2,
            "k": 1,
            "support": list(support),
            "tau": circle.tau,
            "b": _B,
            "seed": _SEED,
            "heads": heads.tolist(),
            "x": [0, 0],
            "losses": losses.tolist(),
            "squared_gradients_by_autograd": left,
            "squared_gradients_by_finite_differences": float(sum(one.square().sum() for one in differences)),
            "bound": bound,
        },
        "cut_attention": {
            "n": 16,
            "losses": cut_losses.tolist(),
            "loss_sum_printed": 2,
            "squared_score_gradients": cut_gradient.tolist(),
        },
    }
    return Check(
        "fails"
        if left < bound and evidence["counterexample"]["squared_gradients_by_finite_differences"] < bound
        else "holds",
        f"squared gradients {left:.0e} against a bound of {bound:.2g}",
        evidence,
        "v*₁ = 0 means x = 0 under softmax, and at x and its complement S cannot move, so the gradients vanish while "
        "smoothing leaves a loss; with attention cut to 0 the losses add up to 8, not 2, and the gradient is still 0.",
    )


CLAIMS = (
    Claim(
        "H1-lemma-18",
        "If v*₁ > 0, the squared derivatives of the score add up to at least 2c₂²τ²/n² over the heads.",
        _lemma_18,
        seconds=1,
    ),
    Claim(
        "H1-lemma-19",
        "If v*₁ = 0, the squared loss gradients of x and its complement add up to at least (64k²c₂²/n²)(ℓ(x) + ℓ(x̄)).",
        _lemma_19,
        seconds=1,
    ),
)
