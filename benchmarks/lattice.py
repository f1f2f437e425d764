"""How tight and how fast is the lattice engine where no other engine goes?

`parityscope bench lattice` prints, for every kind of attention and n, the seconds of one evaluation with its gradient,
and the proved bounds on both; and against split at n = 44, where both go.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from parityscope.apps.benchmarking import Timing, compare, measure
from parityscope.models import ZigZag
from parityscope.risk.engines.lattice.engine import lattice_risk
from parityscope.risk.engines.split.sums import split_mean
from parityscope.risk.means import RunMean
from parityscope.risk.pieces.pieces import Pieces, hinge

K = 3
TOLERANCE = 1e-9
SIZES = (50, 100, 200, 1000)
KINDS = ("even", "log-normal 1", "log-normal 2", "log-normal 3", "three heavy", "one-hot and dust")


def attention(kind: str, n: int) -> Tensor:
    """Return weights that add up to k; the hidden bits are the first three."""
    draw = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(1000 + n))
    if kind == "even":
        return torch.full((n,), K / n, dtype=torch.float64)
    if kind.startswith("log-normal"):
        return K * torch.softmax(float(kind.split()[1]) * draw, 0)
    heavy, rest = (0.7, 0.9) if kind == "three heavy" else (1 - 1e-3 / K, 1e-3)
    weights = rest * torch.softmax(draw, 0)
    weights[[1, n // 2, n - 2] if kind == "three heavy" else [0, 1, 2]] += heavy
    return weights


def loss() -> Pieces:
    """Return the squared hinge behind the zig-zag, H1's loss."""
    return hinge(ZigZag(K).piecewise_linear(), power=2)


def evaluate(weights: Tensor, pieces: Pieces) -> RunMean:
    """Return value and gradient by the lattice."""
    return lattice_risk(weights, torch.arange(len(weights)) < K, pieces, TOLERANCE)


def alone() -> Iterator[Timing]:
    """The lattice where nothing else goes, smallest first: the peak memory of the process is then each size's own."""
    pieces = loss()
    for n in SIZES:
        for kind in KINDS:
            weights = attention(kind, n)
            mean = evaluate(weights, pieces)
            seconds, cpu = measure(partial(evaluate, weights, pieces), 1)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            setting = {
                "n": n,
                "attention": kind,
                "proved_error": mean.error_bound,
                "proved_gradient_error": mean.gradient_bound,
                "cpu_seconds": round(cpu, 3),
                "peak_gigabytes": round(peak, 2),
            }
            yield Timing(f"lattice n={n}, {kind}", None, seconds, None, None, setting)


def against_split() -> Iterator[Timing]:
    """The lattice against the exact engine at the largest size that split does in seconds."""
    n, pieces = 44, loss()
    weights, mask, offset = attention("log-normal 1", n), torch.arange(n) < K, torch.zeros(1, dtype=torch.float64)
    exact = partial(split_mean, weights[None], offset, mask[None], pieces)
    found, true = evaluate(weights, pieces), exact()
    assert true.by_weight is not None
    setting = {
        "n": n,
        "error": abs(found.value - true.value.item()),
        "proved_error": found.error_bound,
        "gradient_error": (found.by_weight - true.by_weight[0]).abs().max().item(),
        "proved_gradient_error": found.gradient_bound,
    }
    yield compare(f"lattice n={n}", partial(evaluate, weights, pieces), exact, "split", setting, repeats=1)


def run() -> Iterator[Timing]:
    """Yield every measurement of this question."""
    yield from alone()
    yield from against_split()
