"""H1, Lemmas 8 and 17: is the gradient never small, and do single examples never pull apart?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from parityscope import theory
from parityscope.papers.attack import maximise
from parityscope.papers.claim import Check, Claim, Context
from parityscope.papers.h1.circle import (
    SEED,
    SMOOTHING,
    Circle,
    appendix_assumption,
    example_gradients,
    gradient_by_differences,
    sharp_circle,
    unit_heads,
)
from parityscope.problems import seeded_generator


def _slope(circle: Circle, heads: Tensor, support: tuple[int, ...]) -> dict[str, Any]:
    """Return one point with its risk, and the length of the risk's gradient by two routes."""
    return {
        **circle.setting(support),
        "heads": heads.tolist(),
        "risk": float(circle.risk(heads, support)),
        "gradient_by_autograd": float(circle.risk_gradient(heads[None], support).norm()),
        "gradient_by_finite_differences": float(gradient_by_differences(circle.risk, heads, support).norm()),
    }


def _flattest_sharp_point(context: Context) -> dict[str, Any]:
    """Search sharp attention, by ascent from H1's starts, for a high risk with a gradient far below Lemma 8's bound."""
    circle, support = Circle(6, 2, 1 / 6, SMOOTHING), (0, 1)
    mu = theory.pl_constant(6, 2)

    def violation(heads: Tensor, index: Tensor) -> Tensor:
        risk = vmap(lambda one: circle.risk(one, support))(heads)
        slope = circle.risk_gradient(heads, support).flatten(1).square().sum(-1) / 2
        # Only points that are far from learned count against the lemma.
        return torch.where(risk > 0.5, (mu * risk).log() - slope.clamp(min=1e-300).log(), -torch.inf)

    starts = unit_heads(context.at(smoke=64, reference=400), 2, torch.Generator().manual_seed(SEED))
    found = maximise(violation, starts, keep=16, steps=context.at(smoke=40, reference=300), rate=0.01)
    return {
        **_slope(circle, found.point, support),
        "mu_of_the_proof": mu,
        "log_violation": found.value,
        **found.evaluations(),
    }


def _lemma_8(context: Context) -> Check:
    """Show a point with gradient exactly 0, and one with sharp attention and a gradient far below the bound."""
    flat = _slope(Circle(4, 2, 1 / 4, SMOOTHING), torch.zeros(2, 2, dtype=torch.float64), (0, 2))
    largest = max(flat["gradient_by_autograd"], flat["gradient_by_finite_differences"])
    return Check(
        "fails" if flat["risk"] > 0.5 and largest < 1e-9 else "holds",
        f"gradient {flat['gradient_by_autograd']:.0e} where the risk is {flat['risk']:.2f}",
        {"counterexample": flat, "sharp_attention": _flattest_sharp_point(context)},
        "At A = 0 every position scores alike, and for a support spread evenly on the circle symmetry cancels the "
        "gradient, so no μ > 0 works; ascent also finds such points with sharp attention.",
    )


def _opposed(gradients: Tensor) -> Tensor:
    """Return the inner products of all pairs of examples, per head: (k, examples, examples)."""
    per_head = gradients.transpose(0, 1)
    return per_head @ per_head.transpose(-1, -2)


def _smallest_opposed_pair(context: Context) -> dict[str, Any]:
    """Search n and k upwards for a pair of examples whose gradients oppose each other in some head."""
    for n in range(2, 9):
        for k in range(1, n + 1):
            circle, support = Circle(n, k, 1 / n, SMOOTHING), tuple(range(k))
            x, y = circle.all_inputs(support)
            starts = unit_heads(context.at(smoke=3, reference=10), k, torch.Generator().manual_seed(SEED))
            for start, heads in enumerate(starts):
                products = _opposed(example_gradients(circle, heads, x, y))
                if float(products.min()) < -1e-6:
                    head, first, second = (int(i) for i in torch.unravel_index(products.argmin(), products.shape))
                    pair = [
                        gradient_by_differences(circle.loss, heads, x[one], y[one])[head] for one in (first, second)
                    ]
                    return {
                        **circle.setting(support),
                        "seed": SEED,
                        "start": start,
                        "heads": heads.tolist(),
                        "head": head,
                        "x": [x[one].int().tolist() for one in (first, second)],
                        "product_by_autograd": float(products.min()),
                        "product_by_finite_differences": float(pair[0] @ pair[1]),
                    }
    return {}


def _lemma_17(context: Context) -> Check:
    smallest = _smallest_opposed_pair(context)
    eight, support = Circle(8, 2, 1 / 8, 0.001), (1, 4)
    x, y = eight.all_inputs(support)
    starts = unit_heads(context.at(smoke=3, reference=20), 2, torch.Generator().manual_seed(SEED))
    shares = [float((_opposed(example_gradients(eight, heads, x, y)) < -1e-9).double().mean()) for heads in starts]

    sharp, hidden = sharp_circle(), (5, 40)
    heads = unit_heads(1, 2, torch.Generator().manual_seed(SEED))[0]
    drawn = (torch.rand(200, sharp.n, generator=seeded_generator(SEED, "data")) < 0.5).double()
    labels = 1 - 2 * (drawn[:, list(hidden)].sum(-1) % 2)
    products = _opposed(example_gradients(sharp, heads, drawn, labels))
    with_assumption = float((products < -1e-9).double().mean())
    evidence = {
        "counterexample": smallest,
        "share_of_opposed_pairs_n_8_k_2": {"largest": max(shares), "mean": sum(shares) / len(shares)},
        "under_the_appendix_assumption": {
            **appendix_assumption(sharp, heads),
            "n": sharp.n,
            "opposed_pairs": with_assumption,
        },
    }
    confirmed = bool(smallest) and smallest["product_by_finite_differences"] < 0
    return Check(
        "fails" if confirmed else "holds",
        f"up to {max(shares):.0%} of pairs oppose each other at n = 8; smallest case n = {smallest.get('n')}",
        evidence,
        "The loss gradients of all pairs of inputs were multiplied, per head, with n and k searched upwards; again "
        "under the appendix's assumption on attention, at n = 64 with drawn inputs.",
    )


CLAIMS = (
    Claim(
        "H1-lemma-8",
        "The risk satisfies the PL condition ½‖∇L‖² ≥ μL with μ = min{64μ₁, μ₂}/2^{n+1} > 0.",
        _lemma_8,
        seconds=2,
        figure="H1-why-it-fails",
    ),
    Claim(
        "H1-lemma-17",
        "The loss gradients of two examples never oppose each other: their product over a head is ≥ 0.",
        _lemma_17,
        seconds=1,
    ),
)
