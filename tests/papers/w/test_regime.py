import math

import pytest

from parityscope.papers.w.regime import assumption_2, lemma_5_items, lemma_10_overlap


def test_assumption_2_in_plain_numbers():
    n, delta, epsilon = 50_000, 0.2, 0.3
    at = assumption_2(math.log(n), delta, epsilon, power=4.0)
    L = math.log(n / delta)
    k = n / L**4
    B = 1.28e7 / epsilon**2 * n * L**20
    assert math.exp(at.k) == pytest.approx(k)
    assert math.exp(at.d) == pytest.approx(k * L**1.1)
    assert math.exp(at.B) == pytest.approx(B)
    assert math.exp(at.early_rate) == pytest.approx(2 * k * epsilon * math.sqrt(B) / (100 * L))
    assert math.exp(at.last_rate) == pytest.approx(4 * k * epsilon / 3)


def test_the_items_of_lemma_5_in_plain_numbers():
    n, delta, epsilon = 50_000, 0.2, 0.3
    at = assumption_2(math.log(n), delta, epsilon)
    k, d, m, B = (math.exp(x) for x in (at.k, at.d, at.m, at.B))
    early, last = math.exp(at.early_rate), math.exp(at.last_rate)
    plain = {
        "1 d/n": d / n,
        "1 B/nk": B / (n * k),
        "2": math.sqrt(2 * k / d * math.log(B * m * n / delta)),
        "3a": math.sqrt(k * math.log(300 * m * n * B / delta)) / math.sqrt(B),
        "3b": math.sqrt(2 * k * math.log(400 * m * n / delta)) / math.sqrt(d),
        "3c": math.sqrt(2 * n * k * math.log(300 * m * n * B / delta)) / math.sqrt(B * d),
        "4 first": early / (3 * m * epsilon * math.sqrt(B) / (80 * math.sqrt(math.log(300 * n * B / delta)))),
        "4 second": early / (m * n * epsilon / 120),
        "5": math.log(300 * m * n * B / delta) ** 2 * n * math.sqrt(n * k) / (d * math.sqrt(B * d)),
        "6": 40 * math.log(n) / (early * early / (256 * m * n * n)),
        "7": last / early,
        "8": 2 * early / (5 * n * last),
    }
    computed = lemma_5_items(at)
    assert computed.keys() == plain.keys()
    for name, value in plain.items():
        assert math.exp(computed[name]) == pytest.approx(value), name
    overlap = math.sqrt(4 * k / d * math.log(100 * B * m / delta))
    assert math.exp(lemma_10_overlap(at)) == pytest.approx(overlap)
