"""Loss-after-readout as piecewise polynomials of the attention sum S, one per label.

A label y in {+1, -1} and a readout f turn a loss L into the function S -> L(y f(S)).
Here that function is a :class:`Piecewise`: between consecutive cuts it is the polynomial
``sum_r coefs[j, r] * (S - centres[j]) ** r``.

Conventions
-----------
* A sum within ``TIE`` of a joint counts as lying on it.  On a joint the right-hand polynomial,
  hence the right-hand derivative, applies (`parityscope.core.ties`).
* The predicted label is +1 if f(S) > 0 and -1 otherwise, so f(S) = 0 predicts -1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import SCORE_TIE
from parityscope.models.readouts import PiecewiseLinear
from parityscope.risk.means import BoundIs

TIE = SCORE_TIE
INF = float("inf")


@dataclass(frozen=True, eq=False)
class Piecewise:
    """Piecewise polynomial of one variable; ``cuts`` (J,), ``coefs`` (J+1, d+1), ``centres`` (J+1,).

    Sums >= cuts[j] belong to piece j+1 or later; cuts already carry the tie offset.

    >>> cuts, centres = torch.tensor([0.0], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    >>> size = Piecewise(cuts, torch.tensor([[0.0, -1.0], [0.0, 1.0]], dtype=torch.float64), centres)  # |S|
    >>> s = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    >>> size(s).tolist(), size.derivative()(s).tolist()
    ([2.0, 0.0, 3.0], [-1.0, 1.0, 1.0])
    """

    cuts: Tensor
    coefs: Tensor
    centres: Tensor

    @property
    def degree(self) -> int:
        """The largest degree of a piece."""
        return self.coefs.shape[-1] - 1

    def __call__(self, s: Tensor) -> Tensor:
        """Return the value at every s."""
        j = torch.bucketize(s, self.cuts, right=True)
        u, rows = s - self.centres[j], self.coefs[j]
        out = rows[..., -1]
        for r in range(self.degree - 1, -1, -1):
            out = out * u + rows[..., r]
        return out

    def derivative(self) -> Piecewise:
        """Return the derivative, piece by piece."""
        d = self.degree
        if d == 0:
            return replace(self, coefs=torch.zeros_like(self.coefs))
        return replace(self, coefs=self.coefs[:, 1:] * torch.arange(1.0, d + 1, dtype=torch.float64))


@dataclass(frozen=True, eq=False)
class Pieces:
    """The two piecewise polynomials (label +1, label -1).

    ``error`` bounds |polynomial - true function| on ``domain`` (0 when exact), proved or estimated;
    outside the domain nothing is promised, and the engines refuse weights whose sums can leave it.

    >>> pieces = hinge(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0))  # f(S) = 1 - S
    >>> at = torch.tensor([0.0, 0.5], dtype=torch.float64)
    >>> pieces.plus(at).tolist(), pieces.minus(at).tolist(), pieces.shifted(1.0).plus(at).tolist()
    ([0.0, 0.5], [2.0, 1.5], [1.0, 1.5])
    """

    plus: Piecewise
    minus: Piecewise
    error: float = 0.0
    domain: tuple[float, float] = (-INF, INF)
    error_is: BoundIs = "proved"

    def sides(self) -> tuple[Piecewise, Piecewise]:
        """Return both functions, label +1 first."""
        return self.plus, self.minus

    def shifted(self, by: float) -> Pieces:
        """Return the functions of S + by, so that an offset of the score is absorbed."""

        def moved(side: Piecewise) -> Piecewise:
            return replace(side, cuts=side.cuts - by, centres=side.centres - by)

        low, high = self.domain
        return replace(self, plus=moved(self.plus), minus=moved(self.minus), domain=(low - by, high - by))

    def swapped(self) -> Pieces:
        """Return the functions with the labels exchanged."""
        return replace(self, plus=self.minus, minus=self.plus)

    def check_domain(self, c: Tensor, offset: Tensor) -> None:
        """Refuse weights whose sums can leave the domain of the approximation."""
        if self.domain == (-INF, INF):
            return
        low, high = (c.clamp(max=0).sum(-1) + offset).min(), (c.clamp(min=0).sum(-1) + offset).max()
        if low < self.domain[0] - TIE or high > self.domain[1] + TIE:
            raise InvalidInput(f"scores reach [{low:.6g}, {high:.6g}], outside the fitted {self.domain}")


def assemble(parts: list[tuple[float, list[float], float]], degree: int) -> Piecewise:
    """Piecewise from (cut on its left, coefficients, centre), equal neighbours merged.

    >>> merged = assemble([(-INF, [1.0], 0.0), (2.0, [1.0], 0.0), (3.0, [0.0, 1.0], 3.0)], degree=1)
    >>> merged.cuts.tolist(), merged.coefs.tolist()
    ([3.0], [[1.0, 0.0], [0.0, 1.0]])
    """
    kept: list[tuple[float, list[float], float]] = []
    for cut, coefs, centre in parts:
        row = coefs + [0.0] * (degree + 1 - len(coefs))
        constant = not any(row[1:])
        if kept and row == kept[-1][1] and (constant or centre == kept[-1][2]):
            continue
        kept.append((cut, row, centre))
    cuts = torch.tensor([p[0] for p in kept[1:]], dtype=torch.float64)
    table = torch.tensor([p[1] for p in kept], dtype=torch.float64)
    return Piecewise(cuts, table, torch.tensor([p[2] for p in kept], dtype=torch.float64))


def _hinge_side(f: PiecewiseLinear, y: int, power: int, *, clipped: bool = True) -> Piecewise:
    parts: list[tuple[float, list[float], float]] = []
    for low, high, anchor, value, slope in f.segments():
        margin, rate = 1.0 - y * value, -y * slope  # 1 - y f = margin + rate (S - anchor)
        root = anchor - margin / rate if rate else INF
        spans = [(low, high)] if not low < root < high else [(low, root), (root, high)]
        for a, b in spans:
            centre = min(max(root, a), b) if rate else anchor  # small deviations stay exact
            centre = centre if abs(centre) < INF else anchor
            inside = centre + 1.0 if b == INF else (centre - 1.0 if a == -INF else 0.5 * (a + b))
            at = 0.0 if centre == root else margin + rate * (centre - anchor)
            if clipped and margin + rate * (inside - anchor) <= 0:
                coefs = [0.0]
            else:
                coefs = [at, rate] if power == 1 else [at * at, 2 * at * rate, rate * rate]
            parts.append((a - TIE, coefs, centre))
    return assemble(parts, power)


def hinge(f: PiecewiseLinear, power: int = 1) -> Pieces:
    """max(0, 1 - y f(S)) ** power for power 1 or 2; exact."""
    return Pieces(_hinge_side(f, 1, power), _hinge_side(f, -1, power))


def squared(f: PiecewiseLinear) -> Pieces:
    """(1 - y f(S)) ** 2; exact."""
    return Pieces(_hinge_side(f, 1, 2, clipped=False), _hinge_side(f, -1, 2, clipped=False))


def correlation(f: PiecewiseLinear) -> Pieces:
    """-y f(S), whose mean is minus the correlation of label and prediction; exact."""
    plus, minus = (
        assemble([(s.low - TIE, [-y * s.value, -y * s.slope], s.anchor) for s in f.segments()], 1) for y in (1.0, -1.0)
    )
    return Pieces(plus, minus)


def accuracy(f: PiecewiseLinear) -> Pieces:
    """1 where the predicted label (+1 iff f(S) > 0) equals y, else 0; exact."""
    parts: list[tuple[float, list[float], float]] = []

    def put(cut: float, positive: bool) -> None:
        parts.append((cut, [1.0 if positive else 0.0], 0.0))

    for low, high, anchor, value, slope in f.segments():
        root = anchor - value / slope if slope else (INF if value > 0 else -INF)
        if low <= root <= high and slope:
            put(low - TIE, slope < 0)
            put(root + TIE if slope > 0 else root - TIE, slope > 0)
        else:
            probe = 0.5 * (low + high) if abs(low + high) < INF else anchor + (1.0 if high == INF else -1.0)
            put(low - TIE, value + slope * (probe - anchor) > 0)
    ordered = [p for i, p in enumerate(parts) if i + 1 == len(parts) or p[0] < parts[i + 1][0]]
    plus = assemble(ordered, 0)
    return Pieces(plus, replace(plus, coefs=1.0 - plus.coefs))


def recentre(coefs: Tensor, shift: Tensor) -> Tensor:
    """Coefficients about centre + shift of polynomials given about centre; rows are pieces.

    >>> recentre(torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([3.0])).tolist()  # u^2 = 9 + 6(u - 3) + (u - 3)^2
    [[9.0, 6.0, 1.0]]
    """
    a = [coefs[:, r].clone() for r in range(coefs.shape[1])]
    # Horner's scheme, repeated: each round leaves one coefficient of the Taylor shift.
    for low in range(len(a) - 1):
        for r in range(len(a) - 2, low - 1, -1):
            a[r] = a[r] + shift * a[r + 1]
    return torch.stack(a, 1)


def label_noise(pieces: Pieces, rho: float) -> Pieces:
    """Labels flipped with probability rho: each side mixes with the other.

    >>> line = PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0)  # f(S) = 1 - S
    >>> label_noise(hinge(line), 0.25).plus(torch.tensor([0.0], dtype=torch.float64)).tolist()  # 3/4 * 0 + 1/4 * 2
    [0.5]
    """
    both = pieces.sides()
    cuts = torch.unique(torch.cat([s.cuts for s in both]))
    inner = torch.cat([cuts[:1] - 1, cuts, cuts[-1:] + 1]) if len(cuts) else torch.zeros(2, dtype=torch.float64)
    probes = 0.5 * (inner[1:] + inner[:-1])
    rows, centres = [], []
    for side in both:
        j = torch.bucketize(probes, side.cuts, right=True)
        rows.append(side.coefs[j])
        centres.append(side.centres[j])
    sides = []
    for own, other in ((0, 1), (1, 0)):
        moved = recentre(rows[other], centres[own] - centres[other])
        sides.append(Piecewise(cuts, (1 - rho) * rows[own] + rho * moved, centres[own]))
    return replace(pieces, plus=sides[0], minus=sides[1])
