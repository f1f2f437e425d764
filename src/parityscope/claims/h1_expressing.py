"""H1, Section 3: how many parameters express k-parity, and how many an FFNN needs to learn it."""

from __future__ import annotations

from itertools import combinations

import torch

from parityscope.claims.contract import Check, Claim, Context
from parityscope.models import parity_ffnn
from parityscope.problems import Parity
from parityscope.risk import population_risk
from parityscope.theory import parity_ffnn_parameters


def _proposition_3_ffnn(context: Context) -> Check:
    """Visit every input for every support of every size."""
    n = context.at(smoke=6, laptop=9, paper=12)
    worst, supports = 0.0, 0
    for k in range(1, n + 1):
        for support in combinations(range(n), k):
            worst = max(worst, float(population_risk(parity_ffnn(n, support), Parity(n, support)).value.detach()))
            supports += 1
    net = parity_ffnn(n, range(3))
    # One input weight shared by all edges, and then biases, output weights and the output bias.
    distinct = sum(len(torch.unique(p.detach()[p.detach() != 0])) for p in (net.beta, net.hidden_bias, net.alpha))
    counted = distinct + net.bias.numel()
    holds = worst == 0 and counted == parity_ffnn_parameters(3)
    return Check(
        "holds" if holds else "fails",
        f"risk {worst:g} for all {supports} supports",
        {"n": n, "supports": supports, "inputs": 2**n, "largest_risk": worst, "distinct_at_k_3": counted},
        f"h_B was evaluated on all 2^{n} inputs for every support of every size; its distinct numbers were counted.",
    )


CLAIMS = (
    Claim(
        "H1-proposition-3-ffnn",
        "FFNNs with one hidden layer of exactly k neurons and 2k + 2 distinct parameters express k-parity.",
        _proposition_3_ffnn,
        seconds=3,
    ),
)
