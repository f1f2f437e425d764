"""Whether what a model says about itself is true: its score, and its readout against its own `forward`.

A readout is looked at once for each range of scores and each function it names, so that a training pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.models.additive import AdditiveScore, additive_score
from parityscope.models.analytic import Analytic
from parityscope.models.piecewise_linear import PiecewiseLinear
from parityscope.models.readouts import Readout

_POINTS = 257  # random scores
_ROUNDING = 1e-9  # relative to the largest value: how far two ways to compute one function may lie apart
_SEEN: WeakKeyDictionary[nn.Module, set[Hashable]] = WeakKeyDictionary()


def checked_score(model: nn.Module, n: int) -> AdditiveScore | None:
    """Return the model's additive score in double precision, or None when it has none; a wrong shape is refused.

    >>> from parityscope.models import ParityTransformer
    >>> checked_score(ParityTransformer(6, 2).float(), 6).weights.dtype
    torch.float64
    >>> checked_score(ParityTransformer(6, 2), 8)
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: the model has 6 weights and the problem 8 bits: they must be as many
    """
    score = additive_score(model)
    if score is None:
        return None
    weights, offset = torch.as_tensor(score.weights), torch.as_tensor(score.offset)
    if weights.shape[-1:] != (n,):
        many = weights.shape[-1] if weights.ndim else 0
        raise InvalidInput(f"the model has {many} weights and the problem {n} bits: they must be as many")
    if not isinstance(score.readout, Readout):
        raise InvalidInput(
            f"the readout of an additive score must be a parityscope.models.Readout, got {score.readout!r}"
        )
    if weights.dtype == offset.dtype == torch.float64:
        return AdditiveScore(weights, offset, score.readout)
    return AdditiveScore(weights.double(), offset.double(), score.readout)


def check_linear(readout: Readout, linear: PiecewiseLinear, reach: tuple[float, float]) -> None:
    """Refuse a piecewise-linear function that is not the readout's own, up to the error it states.

    >>> from parityscope.models import Triangle
    >>> class Shifted(Triangle):
    ...     def piecewise_linear(self):
    ...         return PiecewiseLinear((0.25, 1.25), (1.0, -1.0), 0.0, 2.0)
    >>> readout = Shifted(2)
    >>> try:
    ...     check_linear(readout, readout.piecewise_linear(), (0, 2))
    ... except InvalidInput as error:
    ...     print(str(error).partition(" by ")[0])
    piecewise_linear() of Shifted differs from its forward
    """
    advice = "name the knots and values of the same function, or its largest error"
    _check(readout, "piecewise_linear()", linear, linear, reach, advice, linear.error)


def check_signs(readout: Readout, linear: PiecewiseLinear, reach: tuple[float, float]) -> None:
    """Refuse a function whose sign is not that of the readout.

    >>> from parityscope.models import Cosine
    >>> check_signs(Cosine(), Cosine().sign_equivalent(0, 3), (0, 3))
    """

    def signs(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda S: torch.where(linear(S).abs() > 1e-6, f(S).sign(), 0.0)

    advice = "name a function of the same sign"
    _check(readout, "the sign of sign_equivalent()", linear, signs(linear), reach, advice, of=signs)


def check_cosines(score: AdditiveScore, reach: tuple[float, float]) -> None:
    """Refuse a sum of cosines that is not the readout's own, and a readout that says it is bounded and is not.

    >>> from parityscope.models import Cosine
    >>> check_cosines(AdditiveScore(torch.ones(3), torch.zeros(()), Cosine()), (0, 3))
    """
    waves = score.readout.cosine_series()
    assert waves is not None

    def series(S: Tensor) -> Tensor:
        return torch.stack([wave.size * (wave.frequency * torch.pi * S).cos() for wave in waves]).sum(0)

    if (waves, reach) in _SEEN.setdefault(score.readout, set()):
        return
    _check(score.readout, "cosine_series()", waves, series, reach, "name the waves of the same function")
    if score.readout.bounded and bool(series(_scores((0.0, max(1.0, reach[1])), ())).abs().max() > 1 + _ROUNDING):
        name = type(score.readout).__name__
        raise InvalidInput(
            f"{name} says it is bounded, but |ŷ| exceeds 1 between 0 and {reach[1]:g}: say bounded = False"
        )
    _SEEN[score.readout].add((waves, reach))


def check_analytic(readout: Readout, smooth: Analytic, reach: tuple[float, float]) -> None:
    """Refuse an analytic function that is not the readout's own.

    >>> from parityscope.models import ZigZag
    >>> check_analytic(ZigZag(2, 0.1), ZigZag(2, 0.1).analytic(), (0, 2))
    """

    def on_the_line(S: Tensor) -> Tensor:
        return torch.from_numpy(smooth(S.numpy() + 0j).real)

    _check(readout, "analytic()", smooth, on_the_line, reach, "name the same function")


def _check(
    readout: Readout,
    what: str,
    key: Hashable,
    named: Callable[[Tensor], Tensor],
    reach: tuple[float, float],
    advice: str,
    error: float = 0.0,
    of: Callable[[Callable[[Tensor], Tensor]], Callable[[Tensor], Tensor]] = lambda f: f,
) -> None:
    """Compare a function that a readout names with its `forward`, at random scores and around the knots it names."""
    seen = _SEEN.setdefault(readout, set())
    if (what, key, reach) in seen:
        return
    with torch.no_grad():
        S = _scores(reach, key.knots if isinstance(key, PiecewiseLinear) else ())
        found = of(readout)(S)
        if found.shape != S.shape:
            raise InvalidInput(
                f"forward of {type(readout).__name__} must work elementwise: {len(S)} scores became the"
                f" shape {tuple(found.shape)}"
            )
        gap = (found - named(S)).abs() - error - _ROUNDING * (1 + found.abs().max())
        worst = int(gap.argmax())
        if not bool(gap[worst] <= 0):
            difference = float((found - named(S)).abs()[worst])
            raise InvalidInput(
                f"{what} of {type(readout).__name__} differs from its forward by {difference:.2g} at"
                f" S = {S[worst]:.4g}: {advice}"
            )
    seen.add((what, key, reach))


def _scores(reach: tuple[float, float], knots: tuple[float, ...]) -> Tensor:
    """Return random scores of the range, the knots in it, and the middles between them."""
    low, high = reach
    random = torch.rand(_POINTS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    marks = torch.tensor([low, *(knot for knot in knots if low < knot < high), high], dtype=torch.float64)
    return torch.cat([low + (high - low) * random, marks, (marks[1:] + marks[:-1]) / 2])
