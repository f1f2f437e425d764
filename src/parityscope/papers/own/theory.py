"""How many examples one gradient at uniform attention needs to name the hidden bits: signal against noise.

The gradient at position l is a mean over N examples of y·w·s_l with signs s and a weight w that depends on Σs only. Its
expectation on the hidden bits (signal) is a Fourier coefficient of degree k − 1; every entry has variance E[w²]/N. All
k hidden entries must exceed the largest of n − k noises.
"""

from __future__ import annotations

import math

from parityscope.core.errors import InvalidInput
from parityscope.risk.majority import majority_gradient

_MARGIN = 1.3  # standard deviations; about 90 % of trials


def wide_phase(n: int, k: int) -> float:
    """Return λ = (2n/π)·arctan √((k−1)/(n−k+1)), at most n: the total weight with the strongest signal.

    At Σc = λ the signal is sin^{k−1}ε cos^{n−k+1}ε with ε = πλ/(2n). For k ≪ n this is (2/π)√((k−1)n), and k = 1 needs
    no width (λ = 1).

    >>> round(wide_phase(100, 3), 2)
    9.03
    """
    return max(1.0, 2 * n / math.pi * math.atan2(math.sqrt(k - 1), math.sqrt(n - k + 1)))


def phase_signal(n: int, k: int, width: float) -> float:
    """Return E[y·sin(πk/2 − (πλ/2n)Σs)·s_i] for a hidden bit i: sin^{k−1}ε·cos^{n−k+1}ε with ε = πλ/(2n).

    >>> round(phase_signal(n=4, k=2, width=2.0), 12)  # ε = π/4: 2^(−n/2)
    0.25
    """
    angle = math.pi * width / (2 * n)
    return math.sin(angle) ** (k - 1) * math.cos(angle) ** (n - k + 1)


def phase_variance(n: int, k: int, width: float) -> float:
    """Return E[sin²(πk/2 − (πλ/2n)Σs)], the variance of one example's entry: ½(1 − (−1)^k cos^n(πλ/n)).

    >>> round(phase_variance(n=4, k=2, width=2.0), 12)
    0.5
    """
    return (1 - (-1) ** k * math.cos(math.pi * width / n) ** n) / 2


def one_gradient_samples(n: int, k: int, r: int | None = None, *, two_neuron: bool = False) -> float:
    """Return the predicted N with which one gradient names all hidden bits in about 90 % of trials.

    N = (variance/signal²)·(√(2 log n) + 1.3)², of order n^{k−1} log n. A code of r < n random signs adds the noise of
    all n gradients to every score, a factor 1 + n/r, and its own collisions, k/r of the signal squared: below
    r ≈ 2k log n no number of examples is enough (infinite).

    >>> [round(one_gradient_samples(n, 2)) for n in (100, 200)]
    [2204, 4873]
    """
    if r is not None and r < 1:
        raise InvalidInput(f"r must be at least 1, got {r}")
    width = wide_phase(n, k)
    signal = majority_gradient(n).hidden if two_neuron else phase_signal(n, k, width)
    variance = 1.0 if two_neuron else phase_variance(n, k, width)
    height = math.sqrt(2 * math.log(n)) + _MARGIN
    spread, collisions = (1.0, 0.0) if r is None else (1 + n / r, k / r)
    room = 1 / height**2 - collisions
    return math.inf if room <= 0 else variance * spread / (signal**2 * room)
