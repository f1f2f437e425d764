"""Strict minima of H1's risk at sizes that nobody enumerates: each head sits on one position and sees a few around it.

At such heads all but a few *near* positions have next to no attention together, so that intervals over the near bits
alone enclose the risk's derivatives over all 2^n inputs. docs/explanation/why-it-fails.md says what is proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import ZigZag
from parityscope.papers.h1.circle import SMOOTHING
from parityscope.papers.h1.enclosures import Basins, Boxes, Enclosure, Intervals, prove
from parityscope.problems import bits_of

_FAR = 1e-14  # attention that all others may have together
_STEEPEST = 600.0  # differences of scores beyond which a weight is only known to be below e^-600
_NEWTON_STEPS = 12
_BEGUN = 0.146  # of n: about how long these heads are
_WIDTHS = (1e-5, 3e-6, 1e-6, 3e-7, 1e-7)  # of a box, in lengths of the heads


@dataclass(frozen=True)
class NearEnclosure(Enclosure):
    """The squared-hinge risk in intervals where all positions but the near ones have an attention of at most `_FAR`.

    What the far bits are moves the score by something between 0 and that much. A hidden bit is among them, and so given
    the near bits the label is a fair coin: each near input counts with either label. A derivative by a far weight is at
    most the mean of the modulus of the same derivative by the score.

    Parameters
    ----------
    places : tuple of int
        The position (from 0) that each head sits on. A head's two numbers are counted in a frame turned by it, in which
        (0, 1) points there.
    reach : int
        How many positions on either side of a place are near, so that their bits are visited. Not all hidden ones may
        be among them.
    """

    places: tuple[int, ...] = ()
    reach: int = 3

    def __post_init__(self) -> None:
        if set(self.support) <= set(self.near):
            raise InvalidInput(f"one of the hidden bits {self.support} has to be far from all heads")

    @property
    def near(self) -> tuple[int, ...]:
        """The near positions."""
        around = range(-self.reach, self.reach + 1)
        return tuple(sorted({(place + by) % self.n for place in self.places for by in around}))

    def hessian(self, boxes: Boxes) -> Intervals:
        """Return the Hessian on boxes, (batch, 2k, 2k)."""
        gamma, moved, slopes, active, slope, bend = self._losses(boxes)
        squared = slope.square()
        on = Intervals(torch.where(active.low > 0, squared.low, 0.0), torch.where(active.high > 0, squared.high, 0.0))
        each = on + active * bend
        bits = self._inputs[:, self._near]
        pairs = (bits[:, :, None] * bits[:, None, :]).flatten(1)
        most = self._mean_modulus(each)[:, None, None].expand(-1, self.n, self.n)
        second = Intervals(-most, most.clone())
        near = torch.meshgrid(self._near, self._near, indexing="ij")
        found = (each.over(pairs) * (2 / len(bits))).shaped(-1, len(self.near), len(self.near))
        second.low[:, near[0], near[1]], second.high[:, near[0], near[1]] = found.low, found.high
        whole = slopes.times(second).times(Intervals(slopes.low.mT, slopes.high.mT))
        # As in an enclosure: Σ_j f_j ∂²γ_j of each head, f = ∂L/∂c.
        first = self._by_weight(active, slope)
        spread = gamma * (first[:, None] - (gamma * first[:, None]).sum(-1)[..., None])
        own = (spread[..., None, None] * (moved[..., :, None] * moved[..., None, :])).sum(2)
        for head in range(len(self.support)):
            at = (slice(None), slice(2 * head, 2 * head + 2), slice(2 * head, 2 * head + 2))
            block = whole[at] + own[:, head]
            whole.low[at], whole.high[at] = block.low, block.high
        return whole

    def risk(self, boxes: Boxes) -> Intervals:
        """Return the risk on boxes, (batch,)."""
        return self._losses(boxes)[3].square().sum(-1) * (1 / len(self._inputs))

    @cached_property
    def _near(self) -> Tensor:
        return torch.tensor(self.near)

    @cached_property
    def _codes(self) -> Intervals:
        """p_j/τ in every head's own frame, (k, n, 2)."""
        codes, index = super()._codes, torch.arange(self.n)
        turned = torch.stack([(index - place - 1) % self.n for place in self.places])  # codes begin with position 1
        return codes[turned]

    @cached_property
    def _inputs(self) -> Tensor:
        """All near inputs, each twice: with either label."""
        bits = torch.tensor(list(product((0.0, 1.0), repeat=len(self.near))), dtype=torch.float64)
        inputs = torch.zeros(2 * len(bits), self.n, dtype=torch.float64)
        inputs[:, self._near] = bits.repeat(2, 1)
        return inputs

    @cached_property
    def _labels(self) -> Tensor:
        return torch.tensor([1.0, -1.0], dtype=torch.float64).repeat_interleave(len(self._inputs) // 2)

    def _attention(self, heads: Intervals) -> Intervals:
        """Return γ_j = 1/Σ_i e^{s_i − s_j}, (batch, k, n); terms beyond the range of doubles are cut."""
        apart = self._codes[:, None] - self._codes[:, :, None]  # (k, own, other, 2)
        scores = heads[:, :, None, None, 0] * apart[..., 0] + heads[:, :, None, None, 1] * apart[..., 1]
        total = Intervals(scores.low.clamp(max=_STEEPEST), scores.high.clamp(max=_STEEPEST)).exp().sum(-1)
        found = Intervals(total.low.clamp(min=1.0), total.high).inverse()  # e^0 is one of the terms
        # Where a term was cut from above, the weight may be as small as 0.
        return Intervals(torch.where(scores.high.amax(-1) > _STEEPEST, 0.0, found.low), found.high)

    def _losses(self, boxes: Boxes) -> tuple[Intervals, ...]:
        found = super()._losses(boxes)
        far = torch.ones(self.n, dtype=torch.bool)
        far[self._near] = False
        if bool((found[0].high[..., far].sum((-1, -2)) > _FAR / 2).any()):  # far above the rounding of this sum
            raise InvalidInput(f"positions called far have more than {_FAR:g} of the attention")
        return found

    def _readout(self, score: Intervals) -> tuple[Intervals, Intervals, Intervals]:
        """Return ŷ, ŷ′, ŷ″ wherever the far bits may move the score."""
        return super()._readout(score + Intervals(torch.zeros_like(score.low), torch.full_like(score.low, _FAR)))

    def _by_weight(self, active: Intervals, slope: Intervals) -> Intervals:
        """Return ∂L/∂c, (batch, n)."""
        each = active * slope
        most = self._mean_modulus(each)[:, None].expand(-1, self.n)
        first = Intervals(-most, most.clone())
        found = each.over(self._inputs[:, self._near]) * (2 / len(self._inputs))
        first.low[:, self._near], first.high[:, self._near] = found.low, found.high
        return first

    def _mean_modulus(self, each: Intervals) -> Tensor:
        """Bound the mean over inputs of twice the modulus, (batch,)."""
        most = each.largest[:, None]
        return (Intervals.exact(most).sum(-1) * (2 / most.shape[-1])).high[:, 0]


@dataclass(frozen=True)
class Perched:
    """Two heads that sit on one position each, and a box around them on which the risk is proved to be strictly convex.

    Parameters
    ----------
    enclosure : NearEnclosure
        Which risk, at τ = 1/n.
    length : float
        Of either head: at τ = 1/(n·length) heads of length 1, as H1's starts are, have the same attention.
    basin : Basins
        The box, the least curvature in it (0 where nothing is proved), and the fastest rate at which descent from any
        of its points stays in it and converges.
    risk : Intervals
        The risk on the box.
    """

    enclosure: NearEnclosure
    length: float
    basin: Basins
    risk: Intervals

    @property
    def proved(self) -> bool:
        """Whether the box holds exactly one stationary point, a strict minimum."""
        return bool(self.basin.proved)


def perched(n: int, support: tuple[int, ...], places: tuple[int, int]) -> Perched:
    """Prove a strict minimum of two heads' risk where they sit on these places (from 0), at τ = 1/n and b = 0.01.

    >>> found = perched(60, (0, 30), (5, 25))
    >>> found.proved, round(float(found.risk.low), 3), round(found.length, 3)
    (True, 1.78, 8.765)
    """
    enclosure = NearEnclosure(n, support, Fraction(1, n), Fraction(str(SMOOTHING)), places)
    heads, hessian = _at_rest(n, enclosure.reach)
    values, basis = torch.linalg.eigh(hessian)
    shape = (values[0] / values).sqrt() * heads[1]
    for wide in _WIDTHS:
        boxes = Boxes(heads[None], basis[None], wide * shape[None])
        if bool((found := prove(enclosure, boxes)).proved):
            break
    return Perched(enclosure, float(heads[1]), found, enclosure.risk(boxes))


def _at_rest(n: int, reach: int) -> tuple[Tensor, Tensor]:
    """Return about where the gradient vanishes, in the heads' own frames, and the Hessian there, by Newton's steps.

    The risk is that of the near bits alone, in double precision: where it is proved, intervals look again.
    """
    turn = 2 * math.pi / n * torch.arange(-reach, reach + 1, dtype=torch.float64)
    codes, bits = n * torch.stack([turn.sin(), turn.cos()], -1), bits_of(torch.arange(2 ** len(turn)), len(turn))
    readout = ZigZag(2, SMOOTHING)

    def risk(flat: Tensor) -> Tensor:
        scores = torch.softmax(flat.reshape(2, 2) @ codes.T, -1) @ bits.double().T
        predicted = readout(scores[0][:, None] + scores[1])
        return ((1 - predicted).relu().square() + (1 + predicted).relu().square()).mean() / 2

    heads = torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=torch.float64) * _BEGUN * n
    for _ in range(_NEWTON_STEPS):
        hessian = torch.autograd.functional.hessian(risk, heads)
        heads = heads - torch.linalg.solve(hessian, torch.autograd.functional.jacobian(risk, heads))
    return heads, torch.autograd.functional.hessian(risk, heads)
