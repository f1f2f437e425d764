import torch

from parityscope.papers.w.block_gradient import hinge_gradient
from parityscope.papers.w.block_steps import ThreeSteps, examine, take_three_steps
from parityscope.papers.w.cot_block import CotBlock
from parityscope.problems.sequences import HeldOut, ParitySequences

SMALL = ThreeSteps(n=12, k=2, d=1024, m=128, epsilon=1.0, early_rate=5, last_rate=4, batch=8192, held_out=256)


def test_three_steps_learn_every_token_and_find_the_secret():
    taught = take_three_steps(SMALL)
    assert taught.token_accuracy == taught.sequence_accuracy == 1.0
    assert taught.margin > 0
    assert taught.secret_attention.min() > 0.99


def test_the_first_step_leaves_attention_alone():
    """Lemma 8: W's half that reads attention starts at zero, so A has no gradient."""
    taught = take_three_steps(ThreeSteps(n=8, k=2, d=64, m=16, batch=512, held_out=64))
    assert not taught.blocks[1].A.any()
    assert taught.blocks[2].A.any()


def test_the_gradient_is_that_of_the_mean_loss_over_the_whole_batch():
    task = ParitySequences(8, (1, 5))
    bits = HeldOut(8, 16, 0).draw(9000, torch.Generator().manual_seed(0))  # more than two chunks
    block = CotBlock.at_start(8, 2, 32, 4, 0.5, torch.Generator().manual_seed(1))
    hinge_gradient(block, task, bits)
    chunked = block.W.grad.clone()
    block.zero_grad()
    tokens = task.tokens(bits)
    torch.relu(1 + (1 - 2 * task.targets(tokens)) * block(tokens)).sum(1).mean().backward()
    assert torch.allclose(chunked, block.W.grad, atol=1e-14)


def test_an_untrained_block_is_at_chance():
    taught = take_three_steps(ThreeSteps(n=8, k=2, d=64, m=16, batch=512, held_out=64))
    right, whole, attention, margin = examine(taught.blocks[0], taught.task, HeldOut(8, 64, 0).bits)
    assert 0.2 < right < 0.8
    assert whole < 0.8
    assert margin < 0
    assert torch.allclose(attention, 1 / torch.tensor([9.0, 10.0]))  # uniform
