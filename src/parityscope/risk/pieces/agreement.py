"""Whether what a model says about itself is true: its score, and its readout against its own `forward`.

A readout is looked at once for each range of scores, each function it names and the values it has, so that a training
pays little. The project's own models and readouts are compared by its tests, and pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.models.additive import AdditiveScore, additive_score
from parityscope.models.readouts import Analytic, PiecewiseLinear, Readout

_POINTS = 257  # random scores
_INPUTS = 32  # random ones
_OWN = "parityscope."  # where models and readouts are defined that tests of the project compare
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
    if not weights.dtype == offset.dtype == torch.float64:
        weights, offset = weights.double(), offset.double()
    score = AdditiveScore(weights, offset, score.readout)
    if not _is_own(score.readout) and score.readout(torch.zeros(1, dtype=torch.float64)).dtype != torch.float64:
        name = type(score.readout).__name__
        raise InvalidInput(f"forward of {name} loses digits of double scores: compute in the type of its argument")
    if not _is_own(model):
        _compare(model, score)
    return score


def _is_own(part: nn.Module) -> bool:
    return type(part).__module__.startswith(_OWN)


def _compare(model: nn.Module, score: AdditiveScore) -> None:
    """Refuse a score that is not the one behind the model's own `forward`, at random inputs."""
    n = score.weights.shape[-1]
    x = torch.randint(2, (_INPUTS, n), generator=torch.Generator().manual_seed(n), dtype=torch.uint8)
    with torch.no_grad():
        try:
            predicted = model(x)
        except (NotImplementedError, RuntimeError):  # it has none, or takes other inputs: the score is all there is
            return
        S = (x.double() @ score.weights.unsqueeze(-1)).squeeze(-1) + score.offset.unsqueeze(-1)
        meant = score.readout(S)
        rounding = 1e4 * torch.finfo(predicted.dtype).eps * (1 + meant.abs().max())
        if predicted.shape[-1:] != (_INPUTS,) or bool((predicted - meant).abs().max() > rounding):
            raise InvalidInput(
                f"forward of {type(model).__name__} is not its readout of its additive score: they differ by up to"
                f" {float((predicted - meant).abs().max()):.2g}; name the weights and the offset that forward uses"
            )


def values_at_some_scores(readout: Readout, reach: tuple[float, float]) -> bytes:
    """Return what `forward` makes of irregular scores of a range: a readout whose values change is another one.

    >>> from parityscope.models import Triangle
    >>> values_at_some_scores(Triangle(2), (0, 2)) == values_at_some_scores(Triangle(1), (0, 2))
    False
    """
    low, high = reach
    steps = torch.arange(33, dtype=torch.float64) * 0.6180339887498949
    with torch.no_grad():
        found = readout(low + (high - low) * steps.frac())
    return found.detach().numpy().tobytes()


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

    key = (waves, reach, _state_of(score.readout, reach))
    if key in _SEEN.setdefault(score.readout, set()):
        return
    _check(score.readout, "cosine_series()", waves, series, reach, "name the waves of the same function")
    if score.readout.bounded and bool(series(_scores((0.0, max(1.0, reach[1])), ())).abs().max() > 1 + _ROUNDING):
        name = type(score.readout).__name__
        raise InvalidInput(
            f"{name} says it is bounded, but |ŷ| exceeds 1 between 0 and {reach[1]:g}: say bounded = False"
        )
    _SEEN[score.readout].add(key)


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
    seen, state = _SEEN.setdefault(readout, set()), (what, key, reach, _state_of(readout, reach))
    if state in seen:
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
    seen.add(state)


def _state_of(readout: Readout, reach: tuple[float, float]) -> bytes:
    """Return what tells a readout from itself with other attributes; the project's own have none that change."""
    return b"" if _is_own(readout) else values_at_some_scores(readout, reach)


def _scores(reach: tuple[float, float], knots: tuple[float, ...]) -> Tensor:
    """Return random scores of the range, the knots in it, and the middles between them."""
    low, high = reach
    random = torch.rand(_POINTS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    marks = torch.tensor([low, *(knot for knot in knots if low < knot < high), high], dtype=torch.float64)
    return torch.cat([low + (high - low) * random, marks, (marks[1:] + marks[:-1]) / 2])
