import torch

from parityscope.papers.h1.figures.frozen_attention import CONFIGS, frozen_heads, least_attended, run
from parityscope.risk.frozen_hard_attention import hard_attention_cells, worst_support
from parityscope.theory import fixed_attention_bound, fixed_hard_attention_bound


def test_least_attended_bits_have_the_smallest_weights():
    heads = frozen_heads(12, range(5))
    for row, bits in zip(heads.score_weights().detach(), least_attended(heads), strict=True):
        others = [j for j in range(12) if j not in bits]
        assert row[list(bits)].max() <= row[others].min()


def test_behind_frozen_heads_the_bound_at_the_trained_norms_holds():
    config = next(c for c in CONFIGS["smoke"] if c.kind == "frozen soft, least attended bits")
    numbers = run(config).numbers
    assert len(numbers["risk"]) == config.seeds
    columns = (numbers[name] for name in ("risk", "bound", "alpha", "beta"))
    for risk, bound, alpha, beta in zip(*columns, strict=True):
        assert bound == fixed_attention_bound(config.n, 3, alpha, beta)
        assert risk > max(0.5, bound)


def test_corollary_20_holds_for_random_hard_heads():
    generator = torch.Generator().manual_seed(0)
    for n in (5, 9, 14):
        for _ in range(20):
            scores = torch.randn(2, n, 2, generator=generator)
            assert worst_support(hard_attention_cells(scores), 2).risk >= fixed_hard_attention_bound(n, 2) - 1e-12
