"""Half-trained attention at large n: a few heavy positions are enumerated, the diffuse rest is spectral.

For each of the 2^h patterns of the heavy bits the score of the rest is shifted and its label perhaps flipped; the rest
alone is diffuse, so its characteristic function decays and its window is narrow. Means and bounds average.
"""

from __future__ import annotations

import torch
from torch import Tensor

from parityscope.core.engine_cards import CARDS
from parityscope.problems import bits_of
from parityscope.risk.engine import Job, OnPieces, one_by_one
from parityscope.risk.pieces import Pieces
from parityscope.risk.runs import Mean, RunMean
from parityscope.risk.spectral import BUDGET, spectral_risk

_MOST_HEAVY = 8
# Seconds, fitted by benchmarks/engine_costs.py: a run, and a frequency at a position.
_RUN, _ENTRY = 0.02, 7e-8
_EVERY_FREQUENCY = 160
_DIFFUSE = 0.2  # of their mean: what light weights may differ by on average for frequencies to die out soon
_PATIENCE = 120.0  # seconds a run may take
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
    """Return E[L(y f(S))], its gradient (n,) and a bound on the value's error, for one run.

    For f(S) = 1 − S and 0 ≤ S ≤ 2 the hinge never clips, and a hidden bit of weight 0.8 leaves a risk of 1 − 0.8/2.

    >>> from parityscope.models.piecewise_linear import PiecewiseLinear
    >>> from parityscope.risk.pieces import hinge
    >>> line = hinge(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0))
    >>> c = torch.linspace(0.001, 0.003, 501, dtype=torch.float64)
    >>> c[7] = 0.8
    >>> mean = hybrid_risk(c, torch.arange(501) == 7, line, 1e-9)
    >>> round(mean.value, 9), mean.error_bound < 1e-9
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
    slopes = c.new_tensor([result.by_offset for result in results])
    grad = torch.empty_like(c)
    grad[light] = torch.stack([result.by_weight for result in results]).mean(0)
    grad[heavy] = slopes @ patterns / len(patterns)
    return RunMean(
        sum(result.value for result in results) / len(results),
        grad,
        float(slopes.mean()),
        sum(result.error_bound for result in results) / len(results),
        pieces.error_is,
    )


def _diffuse(c: Tensor) -> bool:
    """Say whether the weights are nearly equal, but for the few heavy ones."""
    light = torch.ones_like(c, dtype=torch.bool)
    light[heavy_positions(c)] = False
    mean = c[light].mean()
    return bool((c[light] - mean).abs().mean() <= _DIFFUSE * mean.abs())


class Spectral(OnPieces):
    """A Fourier series of the loss, for every pattern of the few heavy positions.

    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk.law import law_of
    >>> from parityscope.risk.losses import named_loss
    >>> small, large = (
    ...     Job(ParityTransformer(n, 3, temperature=9.0), law_of(Parity(n, (0, 1, 2))), named_loss("hinge"))
    ...     for n in (40, 1000)
    ... )
    >>> Spectral().cost(large) < Spectral().cost(small)  # where attention is diffuse, few frequencies matter
    True
    """

    card = CARDS["spectral"]
    foresees = False  # what it reaches depends on the weights

    def limit(self, job: Job) -> str | None:
        """Every pattern of the heavy positions has a budget of its own, which uneven attention spends."""
        seconds = self._seconds(job)
        return None if seconds <= _PATIENCE else f"would take {seconds / 60:.0f} minutes for attention this uneven"

    def cost(self, job: Job) -> float:
        """Return the seconds of one run, times the runs."""
        return self.fit_seconds(job) + job.count * self._seconds(job)

    def _seconds(self, job: Job) -> float:
        """Up to n of about 160 no frequency can be skipped and the budget is spent; beyond, fewer and fewer matter."""
        weights = job.runs.tensors[0]
        share = min(1.0, (_EVERY_FREQUENCY / job.n) ** 2) if all(map(_diffuse, weights)) else 1.0
        patterns = 2 ** max(len(heavy_positions(c)) for c in weights)
        return patterns * (_RUN + _ENTRY * BUDGET * share)

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run."""
        return one_by_one(job, lambda c, mask, pieces: hybrid_risk(c, mask, pieces, job.tolerance / 2))
