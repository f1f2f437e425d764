"""Gradient flows on log C, stiff ones that take for ever too: batches in torch by implicit steps, single ones in numpy.

Both are here because they are each other's second route; numpy is many times faster on the small problems of figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.training.steps.log_attention import log_correlation

_MOST_STEPS = 4000


@runtime_checkable
class Flow(Protocol):
    """A flow ż = rate(z) that raises a height, with the derivative of its rate.

    >>> isinstance(HeadFlow(Parity(3, (0, 1))), Flow)
    True
    """

    def height(self, z: Tensor) -> Tensor:
        """Return what rises, one number per run."""
        ...

    def rate(self, z: Tensor) -> Tensor:
        """Return ż, one row per run."""
        ...

    def matrix(self, z: Tensor) -> Tensor:
        """Return ∂ż/∂z, one matrix per run."""
        ...


class HeadFlow:
    """The gradient flow ṡ = ∂log C/∂s of heads with free logits, c = Σ_h κ_h·softmax(s_h); all logits in one row.

    `masses` are the κ of all heads, which add up to k; None: one head.
    """

    def __init__(self, problem: Parity, masses: Sequence[float] | None = None) -> None:
        self.problem, self.law = problem, law_of(problem)
        self.masses = torch.tensor([problem.k] if masses is None else masses, dtype=torch.float64)

    def shares(self, logits: Tensor) -> Float[Tensor, "starts heads n"]:
        """Return κ_h·softmax(s_h) of every head."""
        return self.masses[:, None] * torch.softmax(logits.reshape(len(logits), len(self.masses), -1), -1)

    def weights(self, logits: Tensor) -> Float[Tensor, "starts n"]:
        """Return c, the sum over heads."""
        return self.shares(logits).sum(1)

    def height(self, logits: Tensor) -> Float[Tensor, " starts"]:
        """Return log C."""
        return log_correlation(self.weights(logits), self.law)

    def rate(self, logits: Tensor) -> Float[Tensor, "starts logits"]:
        """Return ṡ_hj = κ_h a_hj(g_j − ḡ_h) with g = ∂log C/∂c, differentiable in the logits."""
        shares = self.shares(logits)
        slope = self._slope(shares.sum(1))
        return (shares * self._centred(shares, slope)).flatten(1)

    def matrix(self, logits: Tensor) -> Float[Tensor, "starts logits logits"]:
        """Return ∂ṡ/∂s, from the slope and the curvature of log C, which is a sum over positions."""
        shares = self.shares(logits).detach()
        c = shares.sum(1).requires_grad_()
        slope = self._slope(c)
        (curvature,) = torch.autograd.grad(slope.sum(), c)
        centred = self._centred(shares, slope.detach())
        outer = shares[..., :, None] * shares[..., None, :] / self.masses[:, None, None]
        softmax = torch.diag_embed(shares) - outer  # ∂c/∂s_h
        turning = centred[..., None] * softmax - outer * centred[..., None, :]
        across = softmax.flatten(1, 2)  # (starts, heads·n, n)
        heads = range(len(self.masses))
        blocks = [torch.block_diag(*(one[h] for h in heads)) for one in turning]
        return across @ (curvature[:, :, None] * across.transpose(-1, -2)) + torch.stack(blocks)

    def _slope(self, c: Tensor) -> Tensor:
        with torch.enable_grad():
            c = c if c.requires_grad else c.detach().requires_grad_()
            (slope,) = torch.autograd.grad(log_correlation(c, self.law).sum(), c, create_graph=True)
        return slope

    def _centred(self, shares: Tensor, slope: Tensor) -> Tensor:
        slope = slope[:, None]
        return slope - (shares * slope).sum(-1, keepdim=True) / self.masses[:, None]


def rosenbrock(flow: Flow, z: Tensor, step: float | Tensor) -> tuple[Tensor, Tensor]:
    """Take one Rosenbrock step of second order; return also its difference to one of first order.

    >>> flow = HeadFlow(Parity(3, (0, 1)))
    >>> z, error = rosenbrock(flow, torch.zeros(1, 3, dtype=torch.float64), 0.1)
    >>> bool(flow.height(z) > flow.height(0 * z)), bool(error.abs().max() < 0.1)
    (True, True)
    """
    identity = torch.eye(z.shape[-1], dtype=z.dtype)
    along = torch.as_tensor(step, dtype=z.dtype).reshape(-1, 1)
    factors = torch.linalg.lu_factor(identity - _GAMMA * along[..., None] * flow.matrix(z))
    first = torch.linalg.lu_solve(*factors, flow.rate(z).detach()[..., None])[..., 0]
    turned = flow.rate(z + along * first).detach() - 2 * first
    second = torch.linalg.lu_solve(*factors, turned[..., None])[..., 0]
    return z + along * (1.5 * first + 0.5 * second), along * (first + second) / 2


class Followed(NamedTuple):
    """Where a flow is at the end, how much its height fell in any step, and the steps taken."""

    z: Float[Tensor, "runs numbers"]
    fall: float
    steps: int


def follow(
    flow: Flow,
    z: Float[Tensor, "runs numbers"],
    end: float,
    *,
    tolerance: float = 0.01,
    watch: Callable[[Tensor, Tensor], None] | None = None,
) -> Followed:
    """Follow a flow until `end`, every run with steps of its own that err by no more than the tolerance.

    A step that errs by more is taken again, shorter. `watch` sees the time and place of every run.
    """
    time, step = torch.zeros(len(z), dtype=z.dtype), torch.full((len(z),), 1e-3, dtype=z.dtype)
    height, fall, steps = flow.height(z), -math.inf, 0
    while bool((time < end).any()) and steps < _MOST_STEPS:
        step = torch.minimum(step, end - time)
        new, error = rosenbrock(flow, z, step)
        raised, size = flow.height(new), error.abs().amax(-1) / tolerance
        fell = height - raised
        good = (size <= 1) & raised.isfinite()  # a step must not leave the domain
        fall = max(fall, *fell[good & (step > 0)].tolist(), -math.inf)
        z = torch.where(good[:, None], new, z)
        time, height = time + torch.where(good, step, 0.0), torch.where(good, raised, height)
        grown = step * (0.9 / size.clamp(min=1e-9).sqrt()).clamp(0.2, 3.0)
        step = torch.where(good, grown, torch.minimum(grown, step / 2)).nan_to_num(nan=1e-9)
        steps += 1
        if watch is not None:
            watch(time, z)
    return Followed(z, fall, steps)


Floats = NDArray[np.float64]
_GAMMA = 1 - 1 / math.sqrt(2)  # makes the two stages below of second order, and L-stable


def log_gradient(c: Floats, hidden: NDArray[np.bool_]) -> Floats:
    """Return g = ∇ log C at weights c."""
    return math.pi / 2 * np.where(hidden, np.tan(math.pi / 2 * (1 - c)), -np.tan(math.pi / 2 * c))


def loss_of(c: Floats, hidden: NDArray[np.bool_]) -> float:
    """Return −log C, infinite outside its domain."""
    if ((c <= 0) & hidden).any() or (c >= 1 + hidden).any():
        return math.inf
    half = math.pi / 2 * c
    return float(0.0 - np.log(np.where(hidden, np.sin(half), np.cos(half))).sum())


def attention_of(logits: Floats) -> Floats:
    """Return the softmax of every head."""
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


def heads_flow(logits: Floats, hidden: NDArray[np.bool_], times: Floats, tolerance: float = 1e-4) -> Floats:
    """Return the logits (times, heads, n) along ṡ = ∇_s log C, c = (k/m)·Σ_h softmax(s_h).

    A Rosenbrock method of two stages: flows that rest for a long time beside a face and then leave it are stiff.
    """
    s, now, step, path = logits.copy(), 0.0, 1e-3, []
    for time in times:
        while now < time:
            h = min(step, time - now)
            tried, error = _rosenbrock(s, hidden, h)
            inside = math.isfinite(loss_of(_weights(tried, hidden), hidden))
            if inside and error <= tolerance:
                s, now = tried, now + h
            grown = 0.9 * math.sqrt(tolerance / max(error, 1e-12)) if inside else 0.2
            step = h * min(3.0, max(0.2, grown)) if h == step or error > tolerance or not inside else step
        path.append(s.copy())
    return np.stack(path)


def _weights(logits: Floats, hidden: NDArray[np.bool_]) -> Floats:
    return np.asarray(hidden.sum() * attention_of(logits).mean(0))


def _rosenbrock(s: Floats, hidden: NDArray[np.bool_], h: float) -> tuple[Floats, float]:
    """Return the logits after a step of length h, and how far they are from a step of first order."""
    slope, curvature = _derivatives(s, hidden)
    system = np.eye(s.size) - _GAMMA * h * curvature
    first = np.linalg.solve(system, slope)
    ahead = _derivatives(s + h * first.reshape(s.shape), hidden, with_curvature=False)[0]
    second = np.linalg.solve(system, ahead - 2 * first)
    change = h * (1.5 * first + 0.5 * second)
    return s + change.reshape(s.shape), float(np.abs(change - h * first).max())


def _derivatives(s: Floats, hidden: NDArray[np.bool_], *, with_curvature: bool = True) -> tuple[Floats, Floats]:
    """Return the gradient of log C in all logits, (heads·n,), and its Hessian."""
    a, (heads, n) = attention_of(s), s.shape
    share = hidden.sum() / heads
    c = share * a.sum(0)
    g = log_gradient(c, hidden)
    pull = a * (g - (a @ g)[:, None])  # (heads, n)
    if not with_curvature:
        return share * pull.ravel(), np.empty(0)
    spread = np.stack([np.diag(one) - np.outer(one, one) for one in a])  # ∂a/∂s of every head
    bend = -(g**2 + math.pi**2 / 4)  # ∂g/∂c
    blocks = share**2 * np.einsum("hij,j,gjl->higl", spread, bend, spread)
    for head in range(heads):
        mixed = np.outer(pull[head], a[head])
        blocks[head, :, head] += share * (np.diag(pull[head]) - mixed - mixed.T)
    return share * pull.ravel(), blocks.reshape(heads * n, heads * n)


def mirror_flow(scores: Floats, hidden: NDArray[np.bool_], times: Floats) -> Floats:
    """Return −log C at some times along ṡ = ∇_c log C, c = k·softmax(s), by Runge and Kutta's method."""
    k = int(hidden.sum())

    def rate(s: Floats) -> Floats:
        return log_gradient(k * attention_of(s[None])[0], hidden)

    s, now, losses = scores.copy(), 0.0, []
    for time in times:
        while now < time:
            # Nothing moves faster than ω = max c(g² + π²/4) tells.
            c = k * attention_of(s[None])[0]
            fastest = float((c * (log_gradient(c, hidden) ** 2 + math.pi**2 / 4)).max())
            h = min(0.5 / fastest, time - now)
            one = rate(s)
            two = rate(s + h / 2 * one)
            three = rate(s + h / 2 * two)
            s = s + h / 6 * (one + 2 * two + 2 * three + rate(s + h * three))
            now += h
        losses.append(loss_of(k * attention_of(s[None])[0], hidden))
    return np.array(losses)
