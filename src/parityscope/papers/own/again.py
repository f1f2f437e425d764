"""The bounded readout input by input: a second route for replays, which shares draws with the first but no formula."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from parityscope.models.transformer import unit_directions
from parityscope.problems import seeded_generator


def _labelled_inputs(c: Sequence[float], support: Sequence[int]) -> Iterator[tuple[int, float, int]]:
    """Yield the label, the score S and the number of ones of every input."""
    for bits in product((0, 1), repeat=len(c)):
        score = sum(weight * bit for weight, bit in zip(c, bits, strict=True))
        yield (-1) ** sum(bits[j] for j in support), score, sum(bits)


def risk_by_inputs(c: Sequence[float], support: Sequence[int], bias: float, noise: float, power: int) -> float:
    """Return E[(1 − yŷ)^power] over all inputs and flipped labels; power 1 is the hinge, 2 its square.

    >>> risk_by_inputs([1.0, 0.0], [0], bias=0.5, noise=0.25, power=1)  # the right answer, one label in four wrong
    0.5
    """
    total = 0.0
    for label, score, ones in _labelled_inputs(c, support):
        margin = label * math.cos(math.pi * score)
        mean = (1 - noise) * (1 - margin) ** power + noise * (1 + margin) ** power
        total += bias**ones * (1 - bias) ** (len(c) - ones) * mean
    return total


def risk_by_products(c: Sequence[float], support: Sequence[int], bias: float, noise: float, power: int) -> float:
    """Return the same from E[y e^{iπS}] and E[e^{2πiS}], each a product over positions.

    >>> round(risk_by_products([1.0, 0.0], [0], bias=0.5, noise=0.25, power=1), 12)
    0.5
    """
    signed, doubled = complex(1), complex(1)
    for position, weight in enumerate(c):
        sign = -1 if position in support else 1
        signed *= 1 - bias + sign * bias * cmath.exp(1j * math.pi * weight)
        doubled *= 1 - bias + bias * cmath.exp(2j * math.pi * weight)
    hinge = 1 - (1 - 2 * noise) * signed.real
    return hinge if power == 1 else 2 * hinge - 1 + (1 + doubled.real) / 2


def largest_loss_by_inputs(c: Sequence[float], support: Sequence[int]) -> float:
    """Return the largest hinge loss of any input.

    >>> round(largest_loss_by_inputs([0.5, 0.5], [0]), 12)
    1.0
    """
    return max(1 - label * math.cos(math.pi * score) for label, score, _ in _labelled_inputs(c, support))


def log_c_by_inputs(c: Sequence[float], support: Sequence[int]) -> float:
    """Return log |E[y e^{iπS}]|, which is log C where the weights add up to k.

    >>> round(log_c_by_inputs([0.5, 0.5], [0]), 9) == round(math.log(0.5), 9)
    True
    """
    total = sum(label * cmath.exp(1j * math.pi * score) for label, score, _ in _labelled_inputs(c, support))
    return math.log(abs(total) / 2 ** len(c))


def risk_of_descent(
    n: int, support: Sequence[int], seed: int, start_radius: float, learning_rate: float, marks: Sequence[int]
) -> list[float]:
    """Return the risk 1 − C of plain descent on −log C after some numbers of steps: H1's circle, one head per bit.

    The start is the seed's own; C and its slope are sums over all inputs.

    >>> first, second = risk_of_descent(6, [0, 3], seed=0, start_radius=0.1, learning_rate=1.0, marks=[1, 200])
    >>> second < first / 10
    True
    """
    k, angles = len(support), 2 * np.pi * np.arange(1, n + 1) / n
    circle = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    heads = start_radius * unit_directions(k, 2, seeded_generator(seed, "start")).numpy()
    inputs = np.array(list(product((0.0, 1.0), repeat=n)))
    labels = np.prod(1 - 2 * inputs[:, list(support)], axis=1)
    found = []
    for step in range(max(marks) + 1):
        raised = np.exp(heads @ circle.T)
        attention = raised / raised.sum(axis=1, keepdims=True)
        score = inputs @ attention.sum(axis=0)
        correlation = float(np.mean(labels * np.cos(np.pi * score)))
        if step in marks:
            found.append(1 - correlation)
        slope = -np.pi * (labels * np.sin(np.pi * score)) @ inputs / len(inputs) / correlation  # of log C, by weight
        by_score = attention * (slope - (attention * slope).sum(axis=1, keepdims=True))
        heads = heads + learning_rate * by_score @ circle
    return found


def named_share(n: int, k: int, examples: int, trials: int, seed: int) -> float:
    """Return the share of trials in which one widened gradient from fresh examples names the last k of n bits.

    >>> named_share(10, 2, examples=1000, trials=5, seed=0)
    1.0
    """
    generator = np.random.default_rng(seed)
    phase = math.atan2(math.sqrt(k - 1), math.sqrt(n - k + 1))
    named = 0
    for _ in range(trials):
        signs = generator.choice(np.array([-1, 1], dtype=np.int8), size=(examples, n))
        weight = signs[:, -k:].prod(axis=1) * np.sin(np.pi * k / 2 - phase * signs.sum(axis=1))
        gradient = weight @ signs
        named += int(gradient[:-k].max() < gradient[-k:].min())
    return named / trials


def path_gradient_by_inputs(c: Sequence[float], support: Sequence[int], position: int) -> float:
    """Return 2/π times the slope of E[y·cos(π(S − (Λ − k)/2))] in one weight, k the number of hidden bits.

    >>> round(path_gradient_by_inputs([1.0, 0.0], [0, 1], 1), 12)
    1.0
    """
    turn, total = (sum(c) - len(support)) / 2, 0.0
    for bits in product((0, 1), repeat=len(c)):
        score = sum(weight * bit for weight, bit in zip(c, bits, strict=True))
        label = (-1) ** sum(bits[j] for j in support)
        total -= label * math.sin(math.pi * (score - turn)) * (2 * bits[position] - 1)
    return total / 2 ** len(c)


def best_log_c(code: Sequence[Sequence[float]], support: Sequence[int], steps: int = 300) -> float:
    """Return the largest log C that c = exp(Pq + β) reaches from uniform attention, by Newton's steps with halving."""
    lifted = np.column_stack([np.array(code), np.ones(len(code))])
    hidden = np.isin(np.arange(len(code)), support)
    z = np.append(np.zeros(lifted.shape[1] - 1), math.log(len(support) / len(code)))

    def height(numbers: np.ndarray) -> float:
        c = np.exp(np.minimum(lifted @ numbers, 1.0))
        if (c >= 1 + hidden).any():
            return -math.inf
        return float(np.log(np.where(hidden, np.sin(np.pi / 2 * c), np.cos(np.pi / 2 * c))).sum())

    for _ in range(steps):
        v = np.pi / 2 * np.exp(lifted @ z)
        slope = np.where(hidden, v / np.tan(v), -v * np.tan(v))
        bend = np.where(hidden, (v / np.sin(v)) ** 2 - v / np.tan(v), v * np.tan(v) + (v / np.cos(v)) ** 2)
        root = np.sqrt(np.maximum(bend, 1e-12))
        way = np.linalg.lstsq(root[:, None] * lifted, slope / root, rcond=None)[0]
        lengths = [
            length for length in (4.0, 2.0, *(0.5**i for i in range(40))) if height(z + length * way) > height(z)
        ]
        if not lengths:
            break
        z = z + max(lengths, key=lambda length: height(z + length * way)) * way
    return height(z)


def mirror_descent(
    weights: Sequence[float], support: Sequence[int], *, share: float, until: float
) -> tuple[float, float, float]:
    """Return t, KL(U_B‖a) and −log C after steps s ← s + ηg, η = share/max_j c_j(g_j² + π²/4), at t = Ση."""
    k, logits, time = len(support), [math.log(one) for one in weights], 0.0
    while True:
        raised = [math.exp(s - max(logits)) for s in logits]
        c = [k * one / sum(raised) for one in raised]
        half = [math.pi / 2 * one for one in c]
        if time >= until:
            break
        g = [math.pi / 2 * (1 / math.tan(v) if j in support else -math.tan(v)) for j, v in enumerate(half)]
        step = share / max(one * (slope**2 + math.pi**2 / 4) for one, slope in zip(c, g, strict=True))
        logits, time = [s + step * slope for s, slope in zip(logits, g, strict=True)], time + step
    waves = [math.sin(v) if j in support else math.cos(v) for j, v in enumerate(half)]
    return time, -sum(math.log(c[b]) for b in support) / k, -sum(map(math.log, waves))
