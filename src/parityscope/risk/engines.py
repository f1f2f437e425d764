"""The engines that work on piecewise polynomials of the score, and which of them to take."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.threads import single_threaded
from parityscope.risk import split
from parityscope.risk.grouped import LIMIT, count_vectors, grouped_risk
from parityscope.risk.hybrid import hybrid_risk
from parityscope.risk.pieces import Pieces
from parityscope.risk.runs import Mean, RunMean, Runs

_SPLIT_AT_ONCE = 36  # bits that the split engine does in a fraction of a second
_MERGE = 1e-13  # weights this close, relative to the largest, count as equal


def evaluate_pieces(runs: Runs, pieces: Pieces, bias: float, engine: str, tolerance: float) -> tuple[Mean, str]:
    """Return the mean by the named engine, or by the cheapest whose estimated error meets the tolerance; and its name.

    For f(S) = 1 − S and weights that add up to at most 2, the hinge never clips: the risk is 1 + E[yS] = 1 − c_i/2.

    >>> from parityscope.models import AdditiveScore, Triangle
    >>> from parityscope.models.piecewise_linear import PiecewiseLinear
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> from parityscope.risk.pieces import hinge
    >>> line = hinge(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0))
    >>> score = AdditiveScore(torch.full((100,), 0.02, dtype=torch.float64), torch.zeros(()), Triangle(1))
    >>> mean, engine = evaluate_pieces(Runs.of(score, law_of(Parity(100, (7,)))), line, 0.5, "auto", 1e-9)
    >>> round(mean.value.item(), 12), engine
    (0.99, 'grouped')
    """
    if engine == "split":
        return _split(runs, pieces, bias), "split"
    if engine in ("spectral", "grouped") and bias != 0.5:
        raise InvalidInput(f"the {engine} engine needs uniform bits, got bias {bias}: use engine='split'")
    if engine == "grouped":
        return _one_by_one(runs, pieces, _grouped), "grouped"
    if engine == "spectral":
        return _one_by_one(runs, pieces, _spectral(tolerance)), "spectral"
    return _cheapest(runs, pieces, bias, tolerance)


def _cheapest(runs: Runs, pieces: Pieces, bias: float, tolerance: float) -> tuple[Mean, str]:
    n, k = runs.mask.shape[1], int(runs.mask.sum(1).max())
    if bias == 0.5 and n > _SPLIT_AT_ONCE:
        if all(count_vectors(w, m, _MERGE) <= LIMIT for w, _, m in zip(*runs.tensors, strict=True)):
            return _one_by_one(runs, pieces, _grouped), "grouped"
        if not split.fits(n, k):
            mean = _one_by_one(runs, pieces, _spectral(tolerance))
            reached = float(torch.as_tensor(mean.error_bound).max())
            if reached > tolerance:
                raise InvalidInput(
                    f"no exact engine fits: split needs about {split.required_bytes(n, k):.0e} bytes at n = {n}, and"
                    f" spectral proves an error of {reached:.0e}, not {tolerance:.0e}, for attention this uneven;"
                    " accept a larger tolerance or use estimated_risk"
                )
            return mean, "spectral"
    return _split(runs, pieces, bias), "split"


def _split(runs: Runs, pieces: Pieces, bias: float) -> Mean:
    weights, offset, mask = runs.tensors
    return split.split_mean(weights, offset, mask, pieces, bias=bias, want_gradient=runs.want_gradient)


def _grouped(weights: Tensor, mask: Tensor, pieces: Pieces) -> RunMean:
    return grouped_risk(weights, mask, pieces, _MERGE)


def _spectral(tolerance: float) -> Callable[[Tensor, Tensor, Pieces], RunMean]:
    def evaluate(weights: Tensor, mask: Tensor, pieces: Pieces) -> RunMean:
        return hybrid_risk(weights, mask, pieces, tolerance / 2)

    return evaluate


def _one_by_one(runs: Runs, pieces: Pieces, evaluate: Callable[[Tensor, Tensor, Pieces], RunMean]) -> Mean:
    """Evaluate run by run; an offset of the score shifts the pieces instead."""
    weights, offset, mask = runs.tensors
    with single_threaded(), torch.no_grad():
        results = [
            evaluate(w, m, pieces.shifted(o) if o else pieces)
            for w, o, m in zip(weights, offset.tolist(), mask, strict=True)
        ]
    return Mean(
        weights.new_tensor([result.value for result in results]),
        torch.stack([result.grad for result in results]),
        weights.new_tensor([result.mean_slope for result in results]),
        weights.new_tensor([result.value_bound for result in results]),
    )
