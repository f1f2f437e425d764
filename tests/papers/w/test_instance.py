import itertools

import torch

from parityscope.papers.w.instance import (
    dual_embeddings,
    expected_alpha,
    instance,
    statistics,
    with_one_hot_attention,
)
from parityscope.problems.sequences import ParitySequences


def test_statistics_are_those_of_table_1_counted_one_by_one():
    task = ParitySequences(4, (2, 0))
    tokens = task.tokens(torch.randint(2, (30, 4), generator=torch.Generator().manual_seed(0)))
    counted = statistics(task, tokens)
    for link, j, b1, b2 in itertools.product(range(2), range(6), (0, 1), (0, 1)):
        i = 4 + link
        total = sum((-1) ** row[i + 1] * (row[j] == b1 and row[i] == b2) for row in tokens.tolist() if j <= i)
        assert counted.alpha[link, j, b1, b2] == total
        assert counted.delta[link, b2] == sum((-1) ** row[i + 1] * (row[i] == b2) for row in tokens.tolist())


def test_expected_alpha_is_the_mean_over_every_input():
    made = instance(n=6, k=3, d=64, m=4)
    mean = made.statistics.alpha[torch.arange(3), list(made.task.secret)] / made.statistics.count
    assert torch.allclose(mean, expected_alpha(made.task))


def test_duals_pick_one_embedding_and_attention_can_be_set_one_hot():
    made = instance(n=6, k=2, d=256, m=8, batch=50)
    flat = made.block.embeddings.flatten(0, 1)
    assert torch.allclose(dual_embeddings(made.block).flatten(0, 1) @ flat.T, torch.eye(16).double(), atol=1e-10)
    attention = with_one_hot_attention(made).attention(made.tokens)
    assert attention[:, torch.arange(2), list(made.task.secret)].min() > 1 - 1e-12
