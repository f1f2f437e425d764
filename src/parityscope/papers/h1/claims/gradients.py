"""H1, Lemma 17: do the gradients of single examples never pull apart?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least, below
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

_OPPOSED = -1e-6  # far beyond rounding: the gradients are of size 1
_SHARP_BITS = (5, 40)


def _products(gradients: Tensor) -> Tensor:
    """Return the inner products of all pairs of examples, per head: (k, examples, examples)."""
    per_head = gradients.transpose(0, 1)
    return per_head @ per_head.transpose(-1, -2)


def _worst_pair(circle: Circle, support: tuple[int, ...], heads: Tensor, x: Tensor) -> dict[str, Any]:
    """Return the pair of examples whose gradients oppose each other most in some head."""
    y = 1 - 2 * (x[:, list(support)].sum(-1) % 2)
    products = _products(example_gradients(circle, heads, x, y))
    head, *pair = (int(i) for i in torch.unravel_index(products.argmin(), products.shape))
    return {
        **circle.setting(support),
        "heads": heads.tolist(),
        "head": head,
        "x": [x[one].int().tolist() for one in pair],
        "value": float(products.min()),
        "share_of_opposed_pairs": float((products < -1e-9).double().mean()),
    }


def _smallest_case(context: Context) -> dict[str, Any]:
    """Search n and k upwards for a pair of opposed examples; return the last pair where there is none."""
    found: dict[str, Any] = {}
    for n in range(2, 6):
        for k in range(1, n + 1):
            circle, support = Circle(n, k, 1 / n, SMOOTHING), tuple(range(k))
            x, _ = circle.all_inputs(support)
            starts = unit_heads(context.at(smoke=3, reference=10), k, torch.Generator().manual_seed(SEED))
            for start, heads in enumerate(starts):
                found = {"seed": SEED, "start": start, **_worst_pair(circle, support, heads, x)}
                if found["value"] < _OPPOSED:
                    return found
    return found


def _under_the_assumption(context: Context) -> dict[str, Any]:
    """Return the most opposed pair of drawn inputs where attention is as the appendix assumes, with that measured."""
    circle, draws = sharp_circle(), 200
    x = (torch.rand(draws, circle.n, generator=seeded_generator(SEED, "data")) < 0.5).double()
    starts = unit_heads(context.at(smoke=1, reference=4), circle.k, torch.Generator().manual_seed(SEED))
    found = [(_worst_pair(circle, _SHARP_BITS, heads, x), appendix_assumption(circle, heads)) for heads in starts]
    pair, assumption = min(found, key=lambda one: float(one[0]["value"]))
    return {"seed": SEED, **pair, "assumption": assumption}


_ANY, _ASSUMED = "smallest product of two gradients", "smallest product under the appendix's assumption"
_SOURCE = "the lemma's 0; 1e-6 is beyond rounding"
_CLAUSES = (
    Clause(
        "for attention as the appendix assumes it before the lemma", _ASSUMED, at_least(0), _SOURCE, below(_OPPOSED)
    ),
    Clause("for any heads on the unit circle at τ = 1/n", _ANY, at_least(0), _SOURCE, below(_OPPOSED)),
)


def _lemma_17(context: Context) -> Measurement:
    smallest, assumed = _smallest_case(context), _under_the_assumption(context)
    eight, support = Circle(8, 2, 1 / 8, 0.001), (1, 4)
    x, _ = eight.all_inputs(support)
    starts = unit_heads(context.at(smoke=3, reference=20), 2, torch.Generator().manual_seed(SEED))
    shares = [_worst_pair(eight, support, heads, x)["share_of_opposed_pairs"] for heads in starts]
    return Measurement(
        {_ANY: smallest["value"], _ASSUMED: assumed["value"]},
        f"up to {max(shares):.0%} of pairs oppose each other at n = 8; smallest case n = {smallest['n']}",
        f"all pairs of inputs for {len(starts)} heads at n = 8, 200 drawn inputs at n = {assumed['n']}",
        {"share_of_opposed_pairs_n_8_k_2": {"largest": max(shares), "mean": sum(shares) / len(shares)}},
        "The loss gradients of all pairs of inputs were multiplied, per head, with n and k searched upwards; again "
        "under the appendix's assumption on attention, at n = 64 with drawn inputs.",
        {_ANY: smallest, _ASSUMED: assumed},
    )


def _product_again(pair: Mapping[str, Any]) -> Again:
    circle = Circle(pair["n"], pair["k"], pair["tau"], pair["b"])
    heads = torch.tensor(pair["heads"], dtype=torch.float64)
    first, second = (
        gradient_by_differences(circle.loss, heads, x, (-1.0) ** x[pair["support"]].sum())[pair["head"]]
        for x in torch.tensor(pair["x"], dtype=torch.float64)
    )
    return Again(float(first @ second), "finite differences of both losses")


CLAIMS = (
    Claim(
        "H1-lemma-17",
        "The loss gradients of two examples never oppose each other: their product over a head is ≥ 0.",
        _CLAUSES,
        _lemma_17,
        "Appendix A, Lemma 17",
        seconds=1,
        replay=dict.fromkeys((_ANY, _ASSUMED), _product_again),
    ),
)
