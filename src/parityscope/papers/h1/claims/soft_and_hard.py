"""H1, Proposition 21: are heads that compute the parity with soft attention also right with hard attention?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import torch

from parityscope.models import ParityTransformer
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_most, shown
from parityscope.problems import Parity

_TAU = 2e-3
_APART = ((8, (0, 2)), (8, (1, 4)), (8, (2, 6)), (6, (0, 2, 4)))
_ENDS = (8, (0, 7))  # |i − j| = 7, and neighbours on the circle


class _Visited(NamedTuple):
    """The heads on a grid of angles that have soft risk 0, and the worst of them with hard attention."""

    heads: int
    solved: int
    hard_risk: float | None  # none where no heads have soft risk 0
    positions: list[float]  # where the worst heads point, in positions from 0

    def evidence(self, n: int, support: tuple[int, ...]) -> dict[str, Any]:
        """Return it with its size, for the evidence."""
        return {"n": n, "support": list(support), "tau": _TAU, **self._asdict()}


def _visit(n: int, support: tuple[int, ...], per_position: int) -> _Visited:
    """Visit all heads on a grid of angles, midpoints between positions included."""
    k = len(support)
    angles = 2 * torch.pi * torch.arange(n * per_position, dtype=torch.float64) / (n * per_position)
    wheel = torch.stack([angles.sin(), angles.cos()], dim=-1)
    index = torch.combinations(torch.arange(len(angles)), k, with_replacement=True)  # heads are interchangeable
    x, y = next(Parity(n, support).enumerate())
    solved, worst, positions = 0, None, list[float]()
    for some in index.split(2048):
        model = ParityTransformer(n, k, temperature=_TAU, directions=wheel[some])
        with torch.no_grad():
            soft, hard = ((1 - y * model(x, hard=hard)).relu().square().mean(-1) for hard in (False, True))
        right = soft < 1e-6
        solved += int(right.sum())
        lost = torch.where(right, hard, -1.0)
        if float(lost.max()) > (-1 if worst is None else worst):
            worst = float(lost.max())
            positions = ((some[int(lost.argmax())].double() / per_position - 1) % n).tolist()
    return _Visited(len(index), solved, worst, positions)


def _largest(visited: Sequence[_Visited]) -> float | None:
    risks = [one.hard_risk for one in visited if one.hard_risk is not None]
    return max(risks) if len(risks) == len(visited) else None


_AWAY, _ALL = (
    "largest hard risk of heads with soft risk 0, no neighbours on the circle",
    "the same, first and last included",
)
_EXACT = "the proposition's 0; rounding"
_CLAUSES = (
    Clause("where no two hidden bits are neighbours on the circle", _AWAY, at_most(1e-9), _EXACT),
    Clause("where |i − j| > 1, as printed", _ALL, at_most(1e-9), _EXACT),
)


def _proposition_21(context: Context) -> Measurement:
    per_position = context.at(smoke=2, reference=4)
    apart = [_visit(n, support, min(per_position, 4) if len(support) > 2 else per_position) for n, support in _APART]
    ends = _visit(*_ENDS, per_position)
    away, anywhere = _largest(apart), _largest([*apart, ends])
    return Measurement(
        {_AWAY: away, _ALL: anywhere},
        f"hard risk {shown(away)} if no hidden bits are neighbours; {shown(anywhere)} for the first and last position",
        f"all {sum(one.heads for one in (*apart, ends)):,} sets of heads on grids of angles, all inputs",
        {"no_neighbours": [one.evidence(n, support) for one, (n, support) in zip(apart, _APART, strict=True)]},
        "Every pair or triple of head angles on a fine grid was visited: where the soft risk is 0 the hard risk is 0 "
        "if no hidden bits are neighbours on the circle; positions 1 and n are, and |i − j| > 1 forgets it.",
        {_ALL: ends.evidence(*_ENDS) if ends.hard_risk else None},
    )


def _zig_zag(score: Fraction, k: int) -> Fraction:
    """Return ŷ of Eq. (2) without smoothing."""
    neurons = ((-1) ** i * (8 * i - 4) * max(Fraction(0), score + Fraction(1, 2) - i) for i in range(1, k + 1))
    return sum(neurons, Fraction(1))


def _hard_risk_again(point: Mapping[str, Any]) -> Again:
    """Compute both risks in the limit τ → 0, in fractions: a head between two positions is shared, or takes one.

    Which one it takes is left to how ties are broken, the same for all heads; the smaller risk counts.
    """
    n, support = point["n"], point["support"]
    pairs = [(int(at) % n, (int(at) + (at % 1 == 0.5)) % n) for at in point["positions"]]

    def risk(attended: list[tuple[int, int]]) -> Fraction:
        losses = []
        for bits in product((0, 1), repeat=n):
            score = Fraction(sum(bits[a] + bits[b] for a, b in attended), 2)
            label = (-1) ** sum(bits[j] for j in support)
            losses.append(max(Fraction(0), 1 - label * _zig_zag(score, len(support))) ** 2)
        return sum(losses, Fraction(0)) / len(losses)

    soft, hard = risk(pairs), min(risk([(a, a) for a, _ in pairs]), risk([(b, b) for _, b in pairs]))
    return Again(float(hard), "fractions, in the limit", float(hard) if soft == 0 else math.nan)


CLAIMS = (
    Claim(
        "H1-proposition-21",
        "As τ → 0, if |i − j| > 1 for all hidden bits i ≠ j, heads with soft risk 0 have hard risk 0.",
        _CLAUSES,
        _proposition_21,
        "Appendix B, Proposition 21",
        seconds=1,
        replay={_ALL: _hard_risk_again},
    ),
)
