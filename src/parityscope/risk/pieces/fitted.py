"""Any readout as piecewise polynomials, through its `forward` alone: the error is estimated at points in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from parityscope.core.errors import InvalidInput
from parityscope.models.readouts import Readout
from parityscope.risk.engines.subsets import Floats
from parityscope.risk.losses import named_loss
from parityscope.risk.pieces.agreement import values_at_some_scores
from parityscope.risk.pieces.pieces import TIE, Pieces, Piecewise, assemble, label_noise
from parityscope.risk.pieces.smooth import sign_changes

_OfScore = Callable[[Floats], Floats]
_PROBED_DEGREE = 8
_PROBES = 40  # points of an interval at which a fit is compared with the function
_SAFETY = 2.0  # times the largest difference seen
_NARROW = 1e-11  # an interval around a kink or a jump is not halved below this
_MOST = 4096  # intervals per label
_FITS: WeakKeyDictionary[nn.Module, dict[object, Pieces]] = WeakKeyDictionary()


def fitted_pieces(readout: Readout, loss: str, noise: float, reach: tuple[float, float], tolerance: float) -> Pieces:
    """Return loss(y f(S)) for both labels as polynomials on intervals, halved until the estimated error is small.

    A fit is kept as long as the readout lives and its values stay what they were.

    >>> class Soft(Readout):
    ...     def forward(self, S):
    ...         return torch.tanh(2 * S - 1)
    >>> readout, at = Soft(), torch.tensor([0.3], dtype=torch.float64)
    >>> pieces = fitted_pieces(readout, "logistic", 0.0, (0, 1), 1e-9)
    >>> truth = named_loss("logistic").of_margin(readout(at))
    >>> bool((pieces.plus(at) - truth).abs() <= pieces.error), pieces.error < 1e-9, pieces.error_is
    (True, True, 'estimated')
    """

    def values(S: Floats) -> Floats:
        with torch.no_grad():
            found = readout(torch.from_numpy(S)).numpy()
        if found.shape != S.shape or not np.isfinite(found).all():
            raise InvalidInput(
                f"forward of {type(readout).__name__} must return a finite number for every score from {reach[0]:g} to"
                f" {reach[1]:g}"
            )
        return found

    mine = _FITS.setdefault(readout, {})
    key = (loss, noise, reach, tolerance, values_at_some_scores(readout, reach))
    if key not in mine:
        mine[key] = _probed_fit(values, loss, noise, reach, tolerance)
    return mine[key]


def _probed_fit(f: _OfScore, loss: str, noise: float, reach: tuple[float, float], tolerance: float) -> Pieces:
    chosen, sides, worst = named_loss(loss), [], 0.0
    for y in (1, -1):

        def of_score(S: Floats, y: int = y) -> Floats:
            return chosen.of_margin(torch.from_numpy(y * f(S))).numpy()

        def room(S: Floats, y: int = y) -> Floats:
            return 1 - y * f(S)

        marks = sign_changes(room, *reach) if loss.endswith("hinge") else []
        side, error = _probed_side(of_score, [reach[0], *marks, reach[1]], tolerance)
        sides.append(side)
        worst = max(worst, error)
    pieces = Pieces(sides[0], sides[1], worst, reach, "estimated")
    return label_noise(pieces, noise) if noise else pieces


def _probed_side(f: _OfScore, marks: list[float], tolerance: float) -> tuple[Piecewise, float]:
    """Return one label's function between the marks, and its estimated error."""
    todo = np.array([(a, b) for a, b in pairwise(marks) if b - a > _NARROW])
    rows: list[tuple[float, list[float], float]] = []
    worst = 0.0
    to_coefficients, nodes, probes = _matrices()
    while len(todo):
        middle, half = todo.mean(1, keepdims=True), (todo[:, 1:] - todo[:, :1]) / 2
        coefs = f(middle + half * nodes) @ to_coefficients.T
        found = np.polynomial.polynomial.polyval(probes, coefs.T)
        error = _SAFETY * np.abs(found - f(middle + half * probes)).max(1)
        done = (error <= tolerance) | (half[:, 0] <= _NARROW) | (len(rows) + 2 * len(todo) > _MOST)
        for row, a, m, h in zip(coefs[done], todo[done, 0], middle[done, 0], half[done, 0], strict=True):
            rows.append((float(a) - TIE, list(row / h ** np.arange(len(row))), float(m)))
        worst = max([worst, *error[done]])
        m, left, right = middle[~done, 0], todo[~done, 0], todo[~done, 1]
        todo = np.concatenate([np.stack([left, m], 1), np.stack([m, right], 1)])
    return assemble(sorted(rows), _PROBED_DEGREE), float(worst)


@cache
def _matrices() -> tuple[Floats, Floats, Floats]:
    """Return values at Chebyshev nodes -> coefficients of powers, the nodes, and points in between."""
    count = _PROBED_DEGREE + 1
    angles = np.pi * (np.arange(count) + 0.5) / count
    orders = np.arange(count)[:, None]
    chebyshev = np.cos(orders * angles) * np.where(orders == 0, 1, 2) / count
    powers = np.zeros((count, count))
    for order in range(count):
        powers[: order + 1, order] = np.polynomial.chebyshev.cheb2poly([0.0] * order + [1.0])
    return powers @ chebyshev, np.cos(angles), np.cos(np.linspace(0, np.pi, _PROBES))
