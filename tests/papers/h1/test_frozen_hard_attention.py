from collections import defaultdict
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parityscope import InvalidInput, Parity, ParityTransformer
from parityscope.papers.h1.frozen_hard_attention import (
    exact_bayes_risk,
    hard_attention_cells,
    token_scores,
    worst_support,
)


def random_heads(n, m, seed, *, see_bits):
    """Frozen heads with the full matrix A; their scores depend on the bits when `see_bits`."""
    generator = torch.Generator().manual_seed(seed)
    model = ParityTransformer(n, 2, heads=m, full_matrix=True, generator=generator)
    if see_bits:
        with torch.no_grad():
            model.matrix[..., 0, :2] = torch.randn(m, 2, generator=generator, dtype=torch.float64)
    return model


def listed_bayes_risk(model, problem):
    """E[4η(1−η)] by visiting every input and counting labels per tuple of attended tokens."""
    seen = defaultdict(lambda: [0.0, 0.0])
    for x, y in problem.enumerate():
        attended = model.attention(x, hard=True).argmax(-1)  # (inputs, heads)
        bits = x.gather(1, attended)
        ones = x.sum(-1).double()
        probability = problem.bias**ones * (1 - problem.bias) ** (problem.n - ones)
        for where, what, label, p in zip(
            attended.tolist(), bits.tolist(), y.tolist(), probability.tolist(), strict=True
        ):
            cell = seen[tuple(where), tuple(what)]
            cell[label > 0] += p * (1 - problem.noise)
            cell[label < 0] += p * problem.noise
    return sum(4 * minus * plus / (minus + plus) for minus, plus in seen.values())


@given(st.integers(2, 8), st.integers(1, 3), st.integers(0, 10_000), st.booleans())
def test_it_is_the_bayes_risk_counted_over_every_input(n, m, seed, see_bits):
    model = random_heads(n, m, seed, see_bits=see_bits)
    problem = Parity.random(n, 1 + seed % n, torch.Generator().manual_seed(seed))
    cells = hard_attention_cells(token_scores(model))
    assert exact_bayes_risk(cells, problem) == pytest.approx(listed_bayes_risk(model, problem), abs=1e-12)


@given(st.integers(2, 7), st.integers(0, 10_000), st.sampled_from([0.2, 0.5, 0.7]), st.sampled_from([0.0, 0.15]))
def test_biased_bits_and_noisy_labels_too(n, seed, bias, noise):
    model = random_heads(n, 2, seed, see_bits=True)
    problem = Parity.random(n, 1 + seed % n, torch.Generator().manual_seed(seed), bias=bias, noise=noise)
    cells = hard_attention_cells(token_scores(model), bias)
    assert cells.probability.sum().item() == pytest.approx(1, abs=1e-12)
    assert exact_bayes_risk(cells, problem) == pytest.approx(listed_bayes_risk(model, problem), abs=1e-12)


@settings(max_examples=12)
@given(st.integers(3, 8), st.integers(0, 1000))
def test_the_worst_support_is_the_worst_of_all(n, seed):
    cells = hard_attention_cells(token_scores(random_heads(n, 2, seed, see_bits=True)))
    k = 1 + seed % n
    risks = {B: exact_bayes_risk(cells, Parity(n, B)) for B in combinations(range(n), k)}
    worst = worst_support(cells, k)
    assert worst.risk == pytest.approx(max(risks.values()), abs=1e-12)
    assert risks[worst.support] == pytest.approx(worst.risk, abs=1e-12)


def test_heads_that_see_positions_only_tell_their_m_bits_and_nothing_else():
    model = ParityTransformer(12, 3, generator=torch.Generator().manual_seed(0))
    attended = set(model.attention(hard=True).argmax(-1).tolist())
    cells = hard_attention_cells(token_scores(model))
    for j in range(12):
        assert exact_bayes_risk(cells, Parity(12, (j,))) == (0.0 if j in attended else 1.0)


def test_equal_scores_go_to_the_first_position_as_in_the_model():
    model = ParityTransformer(5, 1, directions=torch.zeros(1, 2, dtype=torch.float64))
    assert model.attention(hard=True).argmax(-1).tolist() == [0]
    cells = hard_attention_cells(token_scores(model))
    assert exact_bayes_risk(cells, Parity(5, (0,))) == 0.0
    assert worst_support(cells, 1).risk == 1.0


def test_too_many_cells_and_wrong_laws_are_refused(monkeypatch):
    scores = torch.randn(3, 20, 2, generator=torch.Generator().manual_seed(0))
    with pytest.raises(InvalidInput, match=r"the cells are for bits with bias 0\.5, the problem has 0\.3"):
        exact_bayes_risk(hard_attention_cells(scores[:1]), Parity(20, (0,), bias=0.3))
    monkeypatch.setattr("parityscope.papers.h1.frozen_hard_attention._MOST_NUMBERS", 100)
    with pytest.raises(InvalidInput, match="take fewer heads or bits"):
        hard_attention_cells(scores)
