"""The project's own: the attention gradient on free logits, with rates that do not contain n."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from mpmath.ctx_iv import MPIntervalContext
from torch import Tensor

from parityscope.models import Cosine, ParityTransformer
from parityscope.models.positions import orthogonal
from parityscope.papers.attack import Attack, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_most
from parityscope.papers.own.again import mirror_descent
from parityscope.papers.own.domain import SEED, ascend, draws, in_domain
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOF
from parityscope.papers.own.flow import follow
from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.training.steps.log_attention import log_attention, log_value
from parityscope.training.steps.mirror import AttentionGradient

_FLOWS = (Parity(6, (1, 4)), Parity(9, (0, 3, 4, 8)), Parity(40, (2, 7, 30)))
_DIVERGENCE = "largest t·KL(U_B‖a), any start in D"
_LOSS = "largest −log C over 2k/t², any start in D"
_UNIFORM = "largest −log C over k·log(n/k)/(2t), uniform start"
_SQUARED = "largest y² over k⟨1_B − c, g⟩, y = −Σ_B log c_b"
_BOUND = "largest −log C over ½⟨1_B − c, g⟩"
_CERTIFIED = "largest log²c over (1 − c)·f(1 − c), by intervals"
_STEPS = "largest −log C over its certificate k·log(n/k)/(2Ση), any step"
_THEOREM = "the theorem's constant"
_CLAUSES = (
    Clause("KL(U_B‖a) ≤ 1/t", _DIVERGENCE, at_most(1), _THEOREM),
    Clause("−log C ≤ 2k/t²", _LOSS, at_most(1), _THEOREM),
    Clause("−log C ≤ k·log(n/k)/(2t) from uniform attention", _UNIFORM, at_most(1), _THEOREM),
    Clause("y² ≤ k⟨1_B − c, g⟩ on D", _SQUARED, at_most(1), "a step of the proof"),
    Clause("because log²c ≤ (1 − c)·f(1 − c)", _CERTIFIED, at_most(1), "a step of the proof, certified"),
    Clause("−log C ≤ ½⟨1_B − c, g⟩ on D", _BOUND, at_most(1 + 1e-9), "a step of the proof; rounding"),
    Clause("−log C ≤ k·log(n/k)/(2Ση) at every step that was tested", _STEPS, at_most(1), _THEOREM),
)


class _MirrorFlow:
    """The flow ṡ = g of one head's free logits, g = ∂log C/∂c at c = k·softmax(s).

    >>> flow = _MirrorFlow(Parity(3, (0, 1)))
    >>> [round(rate, 2) for rate in flow.rate(torch.zeros(1, 3, dtype=torch.float64))[0].tolist()]
    [0.91, 0.91, -2.72]
    """

    def __init__(self, problem: Parity) -> None:
        self.k, self.hidden = problem.k, problem.mask()

    def weights(self, logits: Tensor) -> Float[Tensor, "starts n"]:
        """Return c."""
        return self.k * torch.softmax(logits, -1)

    def height(self, logits: Tensor) -> Float[Tensor, " starts"]:
        """Return log C."""
        return log_value(self.weights(logits), self.hidden)

    def rate(self, logits: Tensor) -> Float[Tensor, "starts n"]:
        """Return g."""
        return log_attention(self.weights(logits), self.hidden).gradient

    def matrix(self, logits: Tensor) -> Float[Tensor, "starts n n"]:
        """Return ∂g/∂s; the derivative of g_j by c_j is −(g_j² + π²/4)."""
        c = self.weights(logits)
        bend = -(self.rate(logits).square() + math.pi**2 / 4)
        return bend[..., None] * (torch.diag_embed(c) - c[..., None] * c[..., None, :] / self.k)


def _followed(problem: Parity, context: Context) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the largest ratios along flows from uniform attention and from random places of D, and where."""
    flow, k = _MirrorFlow(problem), problem.k
    drawn = in_domain(draws(context, problem.n + 1), problem)
    drawn = drawn[~drawn.isnan().any(-1)][: context.at(smoke=4, reference=16)]
    starts = torch.cat([torch.full((1, problem.n), k / problem.n, dtype=torch.float64), drawn])
    largest, place = {_DIVERGENCE: 0.0, _LOSS: 0.0, _UNIFORM: 0.0}, dict[str, Any]()

    def watch(time: Tensor, logits: Tensor) -> None:
        divergence = -(flow.weights(logits).log() * flow.hidden).sum(-1) / k
        loss = -flow.height(logits)
        ratios = {_DIVERGENCE: time * divergence, _LOSS: loss * time.square() / (2 * k)}
        ratios[_UNIFORM] = (2 * loss * time / (k * math.log(problem.n / k)))[:1]
        for name, values in ratios.items():
            if float(values.max()) > largest[name]:
                largest[name], worst = float(values.max()), int(values.argmax())
                if name == _DIVERGENCE:
                    at = {"weights": starts[worst].tolist(), "support": list(problem.support)}
                    place.update(at, time=float(time[worst]), value=largest[name], seed=SEED)

    follow(flow, starts.log(), context.at(smoke=1000, demo=1000, reference=100_000), watch=watch)
    return largest, place


def _attacked(problem: Parity, context: Context) -> dict[str, Attack]:
    """Attack the two inequalities of the proof on D."""
    hidden, ideal = problem.mask(), problem.mask().double()

    def ratio(points: Tensor, *, squared: bool) -> Tensor:
        c = in_domain(points, problem)
        at = log_attention(c, hidden)
        falls = ((ideal - c) * at.gradient).sum(-1)
        y = -(c.log() * hidden).sum(-1)
        return torch.where(
            falls.abs() > 1e-4, (y.square() / problem.k if squared else -2 * at.value) / falls, torch.nan
        )

    starts = draws(context, problem.n + 1)
    return {
        _SQUARED: ascend(lambda points: ratio(points, squared=True), starts, context),
        _BOUND: ascend(lambda points: ratio(points, squared=False), starts, context),
    }


def squared_log_over_slope(c: Any, arithmetic: Any) -> Any:
    """Return log²c/((1 − c)·f(1 − c)), f(z) = (π/2)·tan(πz/2)."""
    slope = arithmetic.pi / 2 * arithmetic.tan(arithmetic.pi * (1 - c) / 2)
    return arithmetic.log(c) ** 2 / ((1 - c) * slope)


def _certified_ratio(pieces: int = 400) -> float:
    """Return an upper bound of that ratio on (0, 1): by intervals, and by two lines near the ends."""
    intervals = MPIntervalContext()
    low, high = math.log(0.01), math.log(0.95)
    edges = [math.exp(low + (high - low) * i / pieces) for i in range(pieces + 1)]
    middle = max(float(squared_log_over_slope(intervals.mpf([a, b]), intervals).b) for a, b in pairwise(edges))
    # f(1 − c) ≥ (1 − c)/c, so below 0.01 it is at most c·log²c/(1 − c)²; near 1, f(z) ≥ (π²/4)z and log²c ≤ (1 − c)²/c.
    return max(middle, 0.01 * math.log(0.01) ** 2 / 0.99**2, 4 / math.pi**2 / 0.95)


def _stepped(problem: Parity, heads: int, context: Context) -> float:
    """Return the largest ratio of −log C to its certificate along tested steps, from uniform attention and others."""
    generator = torch.Generator().manual_seed(SEED)
    start = torch.randn(context.at(smoke=3, reference=8), heads, problem.n, generator=generator, dtype=torch.float64)
    start[0] = 0
    law = law_of([problem] * len(start))
    model = ParityTransformer(
        problem.n, problem.k, heads, 1.0, positions=orthogonal(problem.n), directions=start, readout=Cosine()
    )
    rule, largest = AttentionGradient(model, law), 0.0
    for _ in range(context.at(smoke=40, demo=80, reference=400)):
        rule.step()
        loss = -log_value(model.score_weights().detach(), law.mask)
        largest = max(largest, float((loss / rule.certificate().at_most).nan_to_num(posinf=0.0).max()))
    return largest


def _mirror_rate(context: Context) -> Measurement:
    """Follow flows and tested steps, and attack every step of the proof."""
    measured, attacks, place = dict[str, float](), list[Attack](), dict[str, Any]()
    for problem in _FLOWS:
        along, where = _followed(problem, context)
        attacked = _attacked(problem, context)
        attacks += attacked.values()
        place = max(place, where, key=lambda one: one.get("value", 0.0))
        for name, value in {**along, **{name: one.value for name, one in attacked.items()}}.items():
            measured[name] = max(measured.get(name, -math.inf), value)
    measured[_CERTIFIED] = _certified_ratio()
    measured[_STEPS] = max(_stepped(problem, heads, context) for problem in _FLOWS[:2] for heads in (1, 3))
    return Measurement(
        measured,
        f"t·KL ≤ {measured[_DIVERGENCE]:.3f}, −log C ≤ {measured[_LOSS]:.3f}·2k/t², and ≤ {measured[_STEPS]:.3f} of its"
        " certificate at every step",
        f"flows from uniform attention and random places of D at n = 6, 9, 40; {tried_by(attacks)}",
        {"seed": SEED, "measured": measured},
        "The flow ṡ = g by implicit steps, its largest ratios to the three bounds at any time; the inequalities of the"
        " proof by draws and ascent, one of them by interval arithmetic; explicit steps of one and three heads beside"
        " their certificate.",
        {_DIVERGENCE: place},
    )


def _divergence_again(point: Mapping[str, Any]) -> Again:
    """Follow the flow again by small explicit steps in plain Python, up to t = 100."""
    time, again, _ = mirror_descent(point["weights"], point["support"], share=0.1, until=min(point["time"], 100.0))
    return Again(time * again, "small explicit steps in plain Python")


CLAIMS = (
    Claim(
        "P-mirror-rate",
        "One head with free logits moved by the attention gradient, ṡ = g, has KL(U_B‖a) ≤ 1/t and −log C ≤ 2k/t² from"
        " every start in D, and −log C ≤ k·log(n/k)/(2t) from uniform attention; tested steps have −log C ≤"
        " k·log(n/k)/(2Ση).",
        _CLAUSES,
        _mirror_rate,
        f"{CONCAVE}, rates without n",
        seconds=2,
        proof=CONCAVE_PROOF,
        replay={_DIVERGENCE: _divergence_again},
    ),
)
