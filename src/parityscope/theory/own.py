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


def one_step_samples(n: int, k: int, failure: float = 0.1, noise: float = 0.0) -> float:
    """Return an N from which one mirror step answers all 2^n inputs correctly but for a probability of `failure`.

    A theorem: N = 2·log(2n/failure)/(r(1 − 2·noise)σ₀)² puts all entries of the gradient within r = 1/(2kH) of their
    means, relative to (1 − 2·noise)σ₀, and then logits of height H = log(4n) + 3/(2k) have ‖c − 1_B‖₁ < 1.

    >>> f"{one_step_samples(50, 3):.1e}"
    '7.4e+07'
    """
    within = 1 / (2 * k * one_step_height(n, k))
    signal = (1 - 2 * noise) * path_signal(n, k, 0)
    return 2 * math.log(2 * n / failure) / (within * signal) ** 2


def one_step_height(n: int, k: int) -> float:
    """Return H = log(4n) + 3/(2k), the largest logit of that step.

    >>> round(one_step_height(50, 3), 3)
    5.798
    """
    return math.log(4 * n) + 1.5 / k


def path_phase(n: int, k: int, m: int) -> float:
    """Return ε with tan²ε = (k − m − 1)/(n − k + 1): the strongest signal beside m selected positions.

    >>> path_phase(10, 3, 2)
    0.0
    """
    return math.atan2(math.sqrt(k - m - 1), math.sqrt(n - k + 1))


def path_signal(n: int, k: int, m: int) -> float:
    """Return σ_m = sin^{k−m−1}ε·cos^{n−k+1}ε, the gradient on the hidden bits that are left when m are selected.

    >>> path_signal(10, 2, 1)
    1.0
    """
    angle = path_phase(n, k, m)
    return math.sin(angle) ** (k - m - 1) * math.cos(angle) ** (n - k + 1)


def path_squares(n: int, k: int, m: int) -> tuple[float, float]:
    """Return the mean squares of an entry's terms beside m selected hidden bits, and of the mean of all true entries.

    With q = k − m the first is v = ½(1 − (−1)^q cos^{n−m} 2ε); terms of two true entries have the mean product
    ½(−1)^q sin² 2ε·cos^{n−m−2} 2ε.

    >>> path_squares(10, 3, 2)
    (1.0, 1.0)
    """
    left, turn = k - m, 2 * path_phase(n, k, m)
    square = (1 - (-1) ** left * math.cos(turn) ** (n - m)) / 2
    product = (-1) ** left * math.sin(turn) ** 2 * math.cos(turn) ** max(n - m - 2, 0) / 2
    return square, square / left + (1 - 1 / left) * product


def _tail(samples: float, variance: float, largest: float, excess: float) -> float:
    """Return Bernstein's bound, or Hoeffding's for terms in [−1, 1], on a mean that exceeds its expectation."""
    slack = min(2 * variance + 2 * largest * excess / 3, 2.0)
    return math.exp(-samples * excess**2 / slack) if slack > 0 else 0.0


_SHARES = tuple(share / 100 for share in range(1, 100))  # of the signal: where the threshold may be; any is a proof


def path_failure(n: int, k: int, samples: float, noise: float = 0.0) -> float:
    """Return what the probability that n paths miss B does not exceed: a theorem.

    A step from m to m + 1 positions goes wrong only if n false sets (at the last step one) reach some threshold τ, or
    beside a kept true set all q = k − m true entries stay below it, and then so does their mean. Markov's inequality
    counts the former, Bernstein's bounds each.

    >>> path_failure(50, 3, 100) > 1 > 0.1 > path_failure(50, 3, 2000)
    True
    """
    total = 0.0
    for m in range(min(1, k - 1), k):
        signal, (square, of_mean) = (1 - 2 * noise) * path_signal(n, k, m), path_squares(n, k, m)
        spread = max(0.0, of_mean - signal**2)
        false = math.comb(n, m) * (n - m) / (1 if m == k - 1 else n)
        true = math.comb(k, m) if m > 1 else 1  # at m = 1 every set is kept
        total += min(
            false * _tail(samples, square, 1.0, share * signal)
            + true * _tail(samples, spread, 1 + signal, (1 - share) * signal)
            for share in _SHARES
        )
    return total


def path_samples(n: int, k: int, failure: float = 0.1, noise: float = 0.0) -> int:
    """Return the least N at which `path_failure` is at most `failure`, to a relative 10⁻³.

    >>> [path_samples(n, 3) for n in (25, 50, 100)]  # n log n
    [810, 1766, 3784]
    """
    low, high = 0.0, 1.0
    while path_failure(n, k, high, noise) > failure:
        low, high = high, 2 * high
    while high - low > max(0.5, 1e-3 * high):
        middle = (low + high) / 2
        low, high = (low, middle) if path_failure(n, k, middle, noise) <= failure else (middle, high)
    return math.ceil(high)


def xored_samples(n: int, k: int, bias: float, failure: float = 0.1, noise: float = 0.0) -> tuple[int, int]:
    """Return how many groups of how many examples, each XORed into one, let n paths find B among biased bits.

    A theorem: a bit of a group of g has |E s| ≤ μ^g, μ = |1 − 2·bias|, so that no entry moves by more than nμ^g from
    that of fair bits, and label noise multiplies all of them by (1 − 2·noise)^g. g is the least with nμ^g ≤ σ/4, σ the
    weakest signal, and with S = (1 − 2·noise)^g·σ, 32·log(kn·C(n, m)/failure)/S² groups keep every entry on its side
    of S/2.

    >>> xored_samples(20, 3, bias=0.3), xored_samples(20, 3, bias=0.5)
    ((18736, 7), (18736, 1))
    """
    left, signal = abs(1 - 2 * bias), min(path_signal(n, k, m) for m in range(min(1, k - 1), k))
    size = 1 if left == 0 else max(1, math.ceil(math.log(4 * n / signal) / -math.log(left)))
    sets = max(math.comb(n, m) for m in range(k))
    return math.ceil(32 * math.log(k * n * sets / failure) / ((1 - 2 * noise) ** size * signal) ** 2), size


def heads_rate(n: int, k: int, heads: int = 1) -> float:
    """Return what t·(−log C) does not exceed in the limit, along the plain gradient flow of heads with free logits.

    (H/4)·max_{σ≤k} σ(1 − σ/n), and k(1 − k/n)/4 for one head, whose σ is k: a theorem, and sharp for one head and for
    k ≤ n/2, where equal heads from uniform attention attain it.

    >>> heads_rate(12, 3), heads_rate(12, 3, heads=2), heads_rate(4, 3)
    (0.5625, 1.125, 0.1875)
    """
    return heads * max(size * (n - size) for size in range(1 if heads > 1 else k, k + 1)) / (4 * n)


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

    [1.4 + (|q*|² + 1)·log²(nT)/(8m²)]/T from uniform attention, with Armijo's test of constant ½, for a certificate q*
    of level 1 (⟨p_b, q*⟩ = 1 on B), length |q*| and margin m ≤ 1. Infinite where nothing is proved.

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
