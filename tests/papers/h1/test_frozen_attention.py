import pytest
import torch

from parityscope.papers.h1.figures.frozen_attention import (
    CONFIGS,
    FrozenHardHeads,
    FrozenSoftHeads,
    LearnedHeads,
    least_attended,
    table,
)
from parityscope.papers.h1.frozen_hard_attention import hard_attention_cells, worst_support
from parityscope.records import Row
from parityscope.runs import training
from parityscope.theory import fixed_attention_bound, fixed_hard_attention_bound
from parityscope.training.build import build_model


def first(kind, **fields):
    """Return the first smoke config of a class with some values."""
    of_class = [one for one in CONFIGS["smoke"] if isinstance(one, kind)]
    return next(one for one in of_class if all(getattr(one, name) == value for name, value in fields.items()))


def test_least_attended_bits_have_the_smallest_weights():
    heads = build_model(training("as-written", 12, 3).recipe, 12, 3, range(5))
    for row, bits in zip(heads.score_weights().detach(), least_attended(heads), strict=True):
        others = [j for j in range(12) if j not in bits]
        assert row[list(bits)].max() <= row[others].min()


def test_frozen_heads_are_at_the_papers_temperature():
    config = first(FrozenSoftHeads)
    assert config.recipe.temperature == 1 / config.n


@pytest.mark.parametrize("least_attended_bits", [True, False])
def test_behind_frozen_heads_the_bound_at_the_trained_norms_holds(least_attended_bits):
    config = first(FrozenSoftHeads, least_attended_bits=least_attended_bits)
    numbers = config.run().numbers
    assert len(numbers.risk) == config.seeds
    assert numbers.norms == [a * b for a, b in zip(numbers.alpha, numbers.beta, strict=True)]
    columns = (numbers.risk, numbers.bound, numbers.alpha, numbers.beta)
    for risk, bound, alpha, beta in zip(*columns, strict=True):
        assert bound == fixed_attention_bound(config.n, 3, alpha, beta)
        assert risk > bound
    if least_attended_bits:
        assert min(numbers.risk) > 0.5


def test_another_rate_never_makes_a_seed_worse():
    config = first(FrozenSoftHeads, least_attended_bits=False)
    alone = [config.model_copy(update={"rates": (rate,)}).run().numbers.risk for rate in config.rates]
    best = [min(risks) for risks in zip(*alone, strict=True)]
    assert config.run().numbers.risk == pytest.approx(best, rel=1e-9)


def test_behind_hard_heads_the_worst_bits_are_no_better_than_random_ones():
    config = first(FrozenHardHeads)
    numbers = config.run().numbers
    assert numbers.bound == (fixed_hard_attention_bound(config.n, 3),) * config.seeds
    columns = (numbers.bound, numbers.risk, numbers.risk_of_random_bits)
    assert all(bound <= worst + 1e-12 and drawn <= worst + 1e-12 for bound, worst, drawn in zip(*columns, strict=True))
    assert (numbers.accuracy, numbers.norms) == (None, None)


def test_corollary_20_holds_for_random_hard_heads():
    generator = torch.Generator().manual_seed(0)
    for n in (5, 9, 14):
        for _ in range(20):
            scores = torch.randn(2, n, 2, generator=generator)
            assert worst_support(hard_attention_cells(scores), 2).risk >= fixed_hard_attention_bound(n, 2) - 1e-12


def test_learned_heads_are_those_of_the_training_in_another_loss():
    config = first(LearnedHeads)
    numbers, own = config.run().numbers, config.training.run().numbers
    assert numbers.accuracy == own.accuracy
    hinge = torch.tensor(own.risk)
    # For |ŷ| ≤ 1: (E[1 − yŷ])² ≤ E(1 − yŷ)² ≤ 2·E[1 − yŷ].
    assert (hinge.square() <= torch.tensor(numbers.risk) + 1e-6).all()
    assert (torch.tensor(numbers.risk) <= 2 * hinge + 1e-6).all()


def test_what_a_kind_does_not_have_is_a_dash():
    configs = [first(LearnedHeads), first(FrozenHardHeads)]
    learned, hard = table([Row.of(config, config.run()) for config in configs]).rows
    assert learned[0] == "learned, population"
    assert learned[-2:] == ["–", "–"]
    assert hard[5:7] == ["–", "–"]
    assert hard[-1] == f"{fixed_hard_attention_bound(configs[1].n, 3):.4f}"
