"""Gradient flows on log C with one logit per position: several heads by plain gradients, one head by the mirror rule.

Both are integrated with error control, on small problems: they show what theorems about flows say.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_GAMMA = 1 - 1 / math.sqrt(2)  # makes the two stages below of second order, and L-stable


def log_gradient(c: Floats, hidden: NDArray[np.bool_]) -> Floats:
    """Return g = ∇ log C at weights c.

    >>> log_gradient(np.array([0.5, 0.5]), np.array([True, False])).round(3).tolist()
    [1.571, -1.571]
    """
    return math.pi / 2 * np.where(hidden, np.tan(math.pi / 2 * (1 - c)), -np.tan(math.pi / 2 * c))


def loss_of(c: Floats, hidden: NDArray[np.bool_]) -> float:
    """Return −log C, infinite outside its domain.

    >>> round(loss_of(np.array([1.0, 0.0]), np.array([True, False])), 12), loss_of(np.ones(1), np.array([False]))
    (0.0, inf)
    """
    if ((c <= 0) & hidden).any() or (c >= 1 + hidden).any():
        return math.inf
    half = math.pi / 2 * c
    return float(0.0 - np.log(np.where(hidden, np.sin(half), np.cos(half))).sum())


def attention_of(logits: Floats) -> Floats:
    """Return the softmax of every head.

    >>> attention_of(np.zeros((1, 4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


def heads_flow(logits: Floats, hidden: NDArray[np.bool_], times: Floats, tolerance: float = 1e-4) -> Floats:
    """Return the logits (times, heads, n) along ṡ = ∇_s log C, c = (k/m)·Σ_h softmax(s_h).

    A Rosenbrock method of two stages: flows that rest for a long time beside a face and then leave it are stiff.

    >>> hidden = np.array([True, False])
    >>> path = heads_flow(np.zeros((1, 2)), hidden, np.array([0.0, 1e4]))
    >>> attention_of(path[-1]).round(3).tolist()  # 1 − (2π²t)^(−1/2)
    [[0.998, 0.002]]
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
    """Return −log C at some times along ṡ = ∇_c log C, c = k·softmax(s), by Runge and Kutta's method.

    >>> hidden = np.arange(50) < 2
    >>> bool((mirror_flow(np.zeros(50), hidden, np.array([1.0, 4.0])) <= 4 * 2 / np.array([1.0, 16.0])).all())
    True
    """
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
