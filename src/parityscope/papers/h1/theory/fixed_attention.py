"""H1's bounds for frozen attention: n bits, m heads, and the norms ‖α‖, ‖β‖ of the classification head."""

from __future__ import annotations

import math

from parityscope.core.errors import InvalidInput


def fixed_attention_bound(n: int, m: int, alpha_norm: float, beta_norm: float) -> float:
    """Return Theorem 11's lower bound on the risk of frozen soft attention.

    (1 − 2m/2^⌈(n−1)/5m⌉)(1 − ‖α‖‖β‖·5m²/n)², where both factors are read with a positive part: the first is
    negative for small n, and the square grows again once the norm term passes 1, where the proof says nothing.

    >>> round(fixed_attention_bound(n=1000, m=3, alpha_norm=1.0, beta_norm=1.0), 6)
    0.912025
    """
    margin = max(0.0, 1 - fixed_attention_norm_term(n, m, alpha_norm, beta_norm))
    return max(0.0, fixed_attention_share(n, m)) * margin**2


def fixed_attention_bound_as_printed(n: int, m: int, alpha_norm: float, beta_norm: float) -> float:
    """Return Theorem 11's bound without a positive part: it grows with the norms once their term has passed 1.

    >>> fixed_attention_bound_as_printed(n=10, m=1, alpha_norm=8.0, beta_norm=1.0)
    4.5
    """
    return fixed_attention_share(n, m) * (1 - fixed_attention_norm_term(n, m, alpha_norm, beta_norm)) ** 2


def fixed_attention_norm_term(n: int, m: int, alpha_norm: float, beta_norm: float) -> float:
    """Return ‖α‖‖β‖·5m²/n of Theorem 11's second factor: how far a flipped bit may move the prediction.

    >>> fixed_attention_norm_term(n=1000, m=3, alpha_norm=1.0, beta_norm=2.0)
    0.09
    """
    return alpha_norm * beta_norm * 5 * m**2 / n


def fixed_attention_share(n: int, m: int) -> float:
    """Return Theorem 11's first factor as printed, 1 − 2m/2^⌈(n−1)/5m⌉; it may be negative.

    >>> fixed_attention_share(7, 1), fixed_attention_share(32, 3) > 0 > fixed_attention_share(31, 3)
    (0.5, True)
    """
    _check(n, m)
    return 1 - 2 * m * 2.0 ** -math.ceil((n - 1) / (5 * m))


def fixed_attention_share_of_proof(n: int, m: int) -> float:
    """Return the first factor that the proof's own count gives, 1 − 2m·2^{4⌈n/5m⌉ − ⌈(n−1)/m⌉}: weaker than printed.

    >>> fixed_attention_share_of_proof(20, 1), fixed_attention_share(20, 1)
    (0.75, 0.875)
    """
    _check(n, m)
    return 1 - 2 * m * 2.0 ** (4 * math.ceil(n / (5 * m)) - math.ceil((n - 1) / m))


def counted_fixed_attention_share(n: int, m: int) -> float:
    """Return the first factor with the proof's set X′ counted exactly instead of estimated.

    X′ wants at least n/5m maximisers among each head's first ⌈(n−1)/m⌉ − 1 positions; a binomial sum for one head, and
    a union bound over the m heads.

    >>> counted_fixed_attention_share(7, 1)
    0.8125
    """
    _check(n, m)
    seen = math.ceil((n - 1) / m) - 1
    few = sum(math.comb(seen, i) for i in range(min(seen + 1, math.ceil(n / (5 * m)))))
    return 1 - m * few / 2**seen


def fixed_hard_attention_bound(n: int, m: int) -> float:
    """Return Corollary 20's lower bound on the risk behind frozen hard attention, 1 − 2m/2^⌈(n−1)/m⌉.

    >>> fixed_hard_attention_bound(12, 2)
    0.9375
    """
    _check(n, m)
    return 1 - 2 * m * 2.0 ** -math.ceil((n - 1) / m)


def hard_attention_counting_bound(n: int, m: int) -> float:
    """Return our own bound behind m frozen hard heads, 1 − 2m/n: useful for every m = o(n).

    What a hard head attends to tells less than two bits on average, so that some bit is told with probability at most
    2m/n; `docs/explanation/hard-attention.md` has the proof.

    >>> hard_attention_counting_bound(100, 5)
    0.9
    """
    _check(n, m)
    return max(0.0, 1 - 2 * m / n)


def fixed_attention_limit(head_exponent: float, norm_exponent: float) -> float:
    """Return the limit of Theorem 11's bound for m = n^a heads and ‖α‖‖β‖ = n^b (Remark 12).

    The second factor tends to 1 exactly when 2a + b < 1, Remark 12's condition m²‖α‖‖β‖ = o(n). The first needs
    a < 1 as well, which the remark forgets: tiny norms allow any number of heads.

    >>> fixed_attention_limit(0, 0.9), fixed_attention_limit(0.4, 0.3), fixed_attention_limit(1.0, -3.0)
    (1.0, 0.0, 0.0)
    """
    return float(head_exponent < 1 and 2 * head_exponent + norm_exponent < 1)


def _check(n: int, m: int) -> None:
    if n < 1 or m < 1:
        raise InvalidInput(f"n and m must be at least 1, got n = {n}, m = {m}")
