"""Half-trained attention at large n: a few heavy positions are enumerated, the diffuse rest is spectral.

For each of the 2^h patterns of the heavy bits the score of the rest is shifted and its label perhaps flipped; the rest
alone is diffuse, so its characteristic function decays and its window is narrow. Means and estimated errors average.
"""

from __future__ import annotations

import torch
from torch import Tensor

from parityscope.problems import bits_of
from parityscope.risk.pieces import Pieces
from parityscope.risk.runs import RunMean
from parityscope.risk.spectral import spectral_risk

_MOST_HEAVY = 8
_HEAVY = 3.0  # times the root mean square of the weights not heavier than it


def heavy_positions(c: Tensor) -> Tensor:
    """Return the few positions whose weight stands out from the rest, heaviest first; none when too many do.

    >>> heavy_positions(torch.tensor([0.01] * 50 + [0.7] + [0.01] * 50, dtype=torch.float64)).tolist()
    [50]
    """
    order = c.abs().argsort(descending=True)
    sizes = c.abs()[order]
    for h in range(min(_MOST_HEAVY + 1, len(c) - 1)):
        if sizes[h] <= _HEAVY * sizes[h:].square().mean().sqrt():
            return order[:h]
    return order[:0]


def hybrid_risk(c: Tensor, mask: Tensor, pieces: Pieces, tolerance: float) -> RunMean:
    """Return E[L(y f(S))], its gradient (n,) and an estimated error, for one run.

    For f(S) = 1 − S and 0 ≤ S ≤ 2 the hinge never clips, and a hidden bit of weight 0.8 leaves a risk of 1 − 0.8/2.

    >>> from parityscope.models.piecewise_linear import PiecewiseLinear
    >>> from parityscope.risk.pieces import hinge
    >>> line = hinge(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0))
    >>> c = torch.linspace(0.001, 0.003, 501, dtype=torch.float64)
    >>> c[7] = 0.8
    >>> mean = hybrid_risk(c, torch.arange(501) == 7, line, 1e-9)
    >>> round(mean.value, 9), mean.value_bound < 1e-9
    (0.6, True)
    """
    heavy = heavy_positions(c)
    light = torch.ones_like(mask)
    light[heavy] = False
    patterns = bits_of(torch.arange(2 ** len(heavy)), len(heavy)).to(c.dtype)
    shifts, odd = patterns @ c[heavy], (patterns @ mask[heavy].to(c.dtype)) % 2 == 1
    results = []
    for shift, flipped in zip(shifts.tolist(), odd.tolist(), strict=True):
        moved = pieces.shifted(shift).swapped() if flipped else pieces.shifted(shift)
        results.append(spectral_risk(c[light], mask[light], moved, tol=tolerance))
    slopes = c.new_tensor([result.mean_slope for result in results])
    grad = torch.empty_like(c)
    grad[light] = torch.stack([result.grad for result in results]).mean(0)
    grad[heavy] = slopes @ patterns / len(patterns)
    return RunMean(
        sum(result.value for result in results) / len(results),
        grad,
        float(slopes.mean()),
        sum(result.value_bound for result in results) / len(results),
    )
