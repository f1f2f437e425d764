import math

import pytest
import torch

from parityscope import Cosine, InvalidInput, Parity, ParityTransformer, draw_problems, population_accuracy
from parityscope.core.statistics import wilson_share
from parityscope.measures import attention_entropy, found_support, measured_accuracy
from parityscope.models.positions import orthogonal


def one_hot_model(n, supports, strength, readout=None):
    directions = torch.zeros(len(supports), len(supports[0]), n, dtype=torch.float64)
    for run, support in enumerate(supports):
        for head, position in enumerate(support):
            directions[run, head, position] = strength
    return ParityTransformer(
        n,
        len(supports[0]),
        temperature=1.0,
        positions=orthogonal(n),
        directions=directions,
        readout=readout or Cosine(),
    )


def test_a_certificate_makes_accuracy_exact_at_any_n():
    problem = Parity(200, (3, 77, 150))
    accuracy = measured_accuracy(one_hot_model(200, [problem.support], 12.0), [problem])
    assert accuracy.kind == "exact"
    assert accuracy.value.tolist() == [1.0]


def shaken(model):
    """Make all weights different, so that no engine counts them in groups."""
    with torch.no_grad():
        for numbers in model.parameters():
            generator = torch.Generator().manual_seed(0)
            numbers.add_(0.1 * torch.randn(numbers.shape, dtype=numbers.dtype, generator=generator))
    return model


def test_without_a_certificate_small_n_is_enumerated_and_large_n_bounded():
    problems = draw_problems(12, 3, range(2))
    model = one_hot_model(12, [p.support for p in problems], 2.0)
    accuracy = measured_accuracy(model, problems)
    assert accuracy.kind == "exact"
    assert torch.allclose(accuracy.value, population_accuracy(model, problems).value)
    large = Parity(60, (1, 30))
    uneven = shaken(one_hot_model(60, [large.support], 4.5))
    bound = measured_accuracy(uneven, [large])
    assert bound.kind == "lower bound"
    x, y = large.sample(50_000, torch.Generator().manual_seed(0))
    sampled = ((uneven(x)[0] > 0) == (y > 0)).double().mean().item()
    assert bound.value.item() <= sampled + 5 * 0.5 / 50_000**0.5


@pytest.mark.parametrize(("runs", "kind"), [(1, "lower bound"), (17, "estimate")])
def test_other_readouts_at_large_n_have_a_proved_lower_bound_or_an_estimate(runs, kind):
    problems = [Parity(60, (1, 30))] * runs
    model = one_hot_model(60, [p.support for p in problems], 20.0, ParityTransformer(60, 2).readout)
    assert measured_accuracy(model, problems).kind == "exact"  # equal weights are counted in groups, at any n
    accuracy = measured_accuracy(shaken(model), problems)
    assert accuracy.kind == kind
    assert accuracy.value.tolist() == pytest.approx([1.0] * runs, abs=1e-3)


def test_a_zig_zag_is_counted_exactly_at_forty_bits():
    problem = Parity(40, (1, 30))
    accuracy = measured_accuracy(
        one_hot_model(40, [problem.support], 20.0, ParityTransformer(40, 2).readout), [problem]
    )
    assert (accuracy.kind, accuracy.value.item()) == ("exact", 1.0)


def test_found_support_is_sorted_and_per_run():
    weights = torch.tensor([[0.0, 0.9, 0.1, 1.0], [1.0, 0.0, 0.2, 0.1]])
    assert found_support(weights, 2).tolist() == [[1, 3], [0, 2]]


@pytest.mark.parametrize(("successes", "low", "high"), [(0, 0.0, 0.107), (16, 0.336, 0.664), (32, 0.893, 1.0)])
def test_wilson_interval_against_published_values(successes, low, high):
    share = wilson_share(successes, 32)
    assert (share.low, share.high) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


def test_impossible_shares_are_refused():
    with pytest.raises(InvalidInput, match="got 3 of 2"):
        wilson_share(3, 2)


def test_attention_entropy_by_hand():
    # Row 2 is even (1), row 3 is a half and two quarters (1.5 bits of log2 3), row 4 is sharp (0).
    rows = [[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 2, 1 / 4, 1 / 4, 0], [0, 0, 1, 0]]
    weights = torch.tensor(rows, dtype=torch.float64)
    assert attention_entropy(weights).item() == 0
    assert attention_entropy(weights[:3, :3]).item() == pytest.approx(1.5 / math.log2(3))
    assert attention_entropy(weights[:2, :2]).item() == pytest.approx(1)
    stacked = attention_entropy(torch.stack([weights[:3, :3], torch.eye(3, dtype=torch.float64)]).expand(5, 2, 3, 3))
    assert stacked.shape == (5, 2)
    assert stacked[4].tolist() == pytest.approx([1.5 / math.log2(3), 0])


def test_entropy_of_known_maps():
    uniform = torch.tril(torch.ones(5, 5)) / torch.arange(1, 6)[:, None]
    assert torch.allclose(attention_entropy(uniform), torch.ones(()))
    one_hot = uniform.clone()
    one_hot[3] = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0])
    two = uniform.clone()
    two[4] = torch.tensor([0.5, 0.5, 0.0, 0.0, 0.0])
    expected = torch.tensor([0.0, math.log(2) / math.log(5)])
    assert torch.allclose(attention_entropy(torch.stack((one_hot, two))), expected)


def test_entropy_is_that_of_the_definition_position_by_position():
    maps = torch.tril(torch.rand(3, 2, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    maps = maps / maps.sum(-1, keepdim=True)
    for a in range(3):
        for b in range(2):
            ratios = [
                -sum(p * math.log(p) for p in maps[a, b, i].tolist() if p > 0) / math.log(i + 1) for i in range(1, 6)
            ]
            assert abs(attention_entropy(maps)[a, b].item() - min(ratios)) < 1e-12


def test_attention_entropy_needs_two_tokens():
    with pytest.raises(InvalidInput, match="at least 2 tokens, got 1"):
        attention_entropy(torch.ones(1, 1))
