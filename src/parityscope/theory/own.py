"""How many examples one gradient at uniform attention needs to name the hidden bits: signal against noise.

The gradient at position l is a mean over N examples of y·w·s_l with signs s and a weight w that depends on Σs only. Its
expectation on the hidden bits (signal) is a Fourier coefficient of degree k − 1; every entry has variance E[w²]/N. All
k hidden entries must exceed the largest of n − k noises.
"""

from __future__ import annotations

import math

from parityscope.core.errors import InvalidInput
from parityscope.theory.h2 import majority_gradient

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


def path_samples(n: int, k: int, failure: float = 0.1, noise: float = 0.0) -> float:
    """Return an N from which n paths of attention name B but for a probability of `failure`: a theorem.

    Beside m named hidden bits the gradient has mean σ_m on the others and at most 0 elsewhere, and beside a set that is
    not hidden it has mean 0. With N ≥ (8/σ_m²)·log(kn·C(n, m)/failure) Hoeffding keeps every entry, of all sets of
    1 ≤ m < k positions, on its side of σ_m/2; then every hidden set comes before every other.

    >>> [round(path_samples(n, 3)) for n in (25, 50, 100)]  # n log n
    [5028, 11839, 27014]
    """
    needed = [math.log(n / failure)] if k == 1 else []
    for m in range(1, k):
        width = wide_phase(n - m, k - m) if k - m > 1 else 0.0
        sets = k * n * math.comb(n, m) / failure
        needed.append(math.log(sets) / phase_signal(n - m, k - m, width) ** 2)
    return 8 * max(needed) / (1 - 2 * noise) ** 2


def face_numbers(n: int, k: int, *, harmonic: bool = False) -> int:
    """Return how many numbers make k of n positions a face of the code: 2k harmonics, or ⌈2k log n⌉ at random.

    2k harmonics do it for every set of k, and fewer numbers never do (n − 1 of them, a simplex, where that is less).
    Random numbers do it for a given set with probability close to 1.

    >>> face_numbers(1000, 10), face_numbers(1000, 10, harmonic=True), face_numbers(7, 5, harmonic=True)
    (139, 20, 6)
    """
    if harmonic:
        return 2 * max(1, min(k, n // 2))
    return max(1, math.ceil(2 * k * math.log(n)))


def harmonic_margins(n: int, k: int) -> tuple[float, float]:
    """Return bounds on the worst margin that 2k harmonics give k of n positions (n > 2k), in units of `is_face`.

    *From below, for every B:* −Π_{b∈B}(1 − cos(θ − θ_b)) is a score. At most two members of B are at each distance
    from a position, so elsewhere it is below −Π_{i≤k}(1 − cos(2π⌈i/2⌉/n)); its q has |q|² ≤ 2·mean Π(1 − cos)² ≤
    2·C(4k, 2k)/4^k by Hölder; and two codes are never further apart than 2√k.

    *From above, for B = {1, 3, …, 2k−1}:* the 2k-th difference Σ_i (−1)^i C(2k, i)·s_i of scores at 0 … 2k is at most
    −2^{2k−1}·margin, and at least −|q|·√Σ_{l≤k} (2 sin(πl/n))^{4k}; some code is √k away from the middle of B.

    >>> low, high = harmonic_margins(100, 2)
    >>> f"{low:.1e} {high:.1e}"
    '4.7e-07 2.2e-05'
    """
    if n <= 2 * k:
        raise InvalidInput(f"2k harmonics are needed for n > 2k only, got n = {n}, k = {k}")
    nearest = math.prod(1 - math.cos(2 * math.pi * ((i + 1) // 2) / n) for i in range(1, k + 1))
    low = nearest / math.sqrt(2 * math.comb(4 * k, 2 * k) / 4**k) / (2 * math.sqrt(k))
    waves = math.sqrt(sum((2 * math.sin(math.pi * wave / n)) ** (4 * k) for wave in range(1, k + 1)))
    return low, waves / 2 ** (2 * k - 1) / math.sqrt(k)


def ascent_bound(n: int, total: float, length: float, margin: float) -> float:
    """Return what −log C of one exponential head does not exceed after gradient steps that add up to T, T ≥ 4.

    [1.4 + (|q*|² + 1)·log²(nT)/(8m²)]/T from uniform attention, with Armijo's test, for a certificate q* of level 1
    (⟨p_b, q*⟩ = 1 on B), length |q*| and margin m ≤ 1. Infinite where nothing is proved.

    >>> round(ascent_bound(100, 1000.0, 2.0, 0.5), 3), ascent_bound(100, 3.0, 2.0, 0.5)
    (0.333, inf)
    """
    if total < 4 or not 0 < margin <= 1:
        return math.inf
    return (1.4 + (length**2 + 1) * math.log(n * total) ** 2 / (8 * margin**2)) / total


def certified_loss(k: int, mass: float | None = None) -> float:
    """Return the −log C below which every single input is classified right, for weights c that add up to Λ (k if None).

    With δ = 1_B − c, Σ_j |δ_j| = 2·Σ_B δ⁺ + Λ − k ≤ 2√k·|δ|₂ + Λ − k, and −log C ≥ (π²/8)|δ|₂². No input is wrong once
    Σ_j |δ_j| < 1, so π²(1 − (Λ−k))²/(32k) is enough while Λ < k + 1.

    >>> round(certified_loss(10), 4), round(certified_loss(10, 10.5), 4), certified_loss(10, 11.0)
    (0.0308, 0.0077, 0.0)
    """
    excess = 0.0 if mass is None else mass - k
    return math.pi**2 * max(0.0, 1 - excess) ** 2 / (32 * k)
