"""H2 (our reading): what a feed-forward network needs for the same problem."""

from __future__ import annotations

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.attack import Attack, maximise, tried_by
from parityscope.papers.claim import Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least
from parityscope.problems import Parity

_BITS, _WIDTH, _SEED = 7, 4, 0
_HIDDEN = (0, 1)  # the network sees neither or one of them; which positions they are does not matter


@cache
def _all_inputs() -> tuple[Tensor, Tensor]:
    x, y = next(Parity(_BITS, _HIDDEN).enumerate())
    return x.double(), y.double()


def network_risk(numbers: Float[Tensor, "batch numbers"], seen: Float[Tensor, " n"]) -> Float[Tensor, " batch"]:
    """Return the hinge risk over all inputs of ReLU networks with one hidden layer that see some of the bits."""
    x, y = _all_inputs()
    beta, hidden_bias, alpha, bias = numbers.split([_WIDTH * _BITS, _WIDTH, _WIDTH, 1], dim=-1)
    z = (x * seen) @ beta.reshape(-1, _WIDTH, _BITS).mT + hidden_bias[:, None]
    return (1 - y * ((z.relu() @ alpha[..., None]).squeeze(-1) + bias)).relu().mean(-1)


def _least_risk(seen: Tensor, context: Context) -> Attack:
    """Minimise the risk over networks that see some of the bits; the value is minus that risk."""
    generator = torch.Generator().manual_seed(_SEED)
    count = context.at(smoke=40, reference=200)
    starts = torch.randn(count, _WIDTH * (_BITS + 2) + 1, generator=generator, dtype=torch.float64)
    steps = context.at(smoke=40, reference=150)
    return maximise(lambda points, index: -network_risk(points, seen), starts, keep=16, steps=steps)


_UNSEEN = "least hinge risk of a network without an edge from one of the pair"
_CLAUSES = (
    Clause("an edge from every bit is needed", _UNSEEN, at_least(1 - 1e-9), "the label is a fair coin; rounding"),
)


def _ffnn(context: Context) -> Measurement:
    """Optimise networks that miss a bit."""
    seen = torch.ones(_BITS, dtype=torch.float64)
    control = _least_risk(seen, context)
    seen[_HIDDEN[0]] = 0.0
    unseen = _least_risk(seen, context)
    return Measurement(
        {_UNSEEN: -unseen.value},
        f"a bit without an edge: risk ≥ {-unseen.value:.4f}; with every edge {-control.value:.2g} is reached",
        f"{tried_by([unseen])} on networks without an edge",
        {
            "bits_of_the_attacked_network": _BITS,
            "seed": _SEED,
            "least_risk_with_an_ignored_bit": -unseen.value,
            "least_risk_with_all_bits_seen": -control.value,
        },
        "Given the other bits the label of a pair with an unseen bit is a fair coin, so an edge from every bit is "
        "needed, and d edges are Ω(d) parameters.",
    )


CLAIMS = (
    Claim(
        "H2-ffnn",
        "Feed-forward networks need an edge from every bit, Ω(d) parameters, for this problem.",
        _CLAUSES,
        _ffnn,
        "Abstract (our reading)",
        seconds=2,
        printed="the fundamental Ω(d) parameter bottleneck inherent to FFNNs for this problem",
        hypotheses="y = −x_i* x_j* for some unknown i*, j* ∈ [d].",
        ours="d = 7, four ReLU neurons, hinge loss; one parameter per edge. (Edges may be tied: H2's own model, as we "
        "read it, is a network of two ReLUs with d edges each that come from 2⌈log² d⌉ trained numbers. That is a "
        "remark on counting and refutes nothing.)",
    ),
)
