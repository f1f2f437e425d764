"""The gradient by hand against autograd, in every phase of the training and with a hinge that bends."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parityscope.papers.w import block_gradient
from parityscope.papers.w.block_gradient import hinge_gradient, right_way
from parityscope.papers.w.cot_block import CotBlock
from parityscope.problems.sequences import HeldOut, ParitySequences

PHASES = ("start", "after one step", "attending", "one-hot")


def block_in(phase, n, k, seed, *, size=1.0):
    """Return a block as it is in a phase of the training, with weights so large that some hinges bend."""
    draw = torch.Generator().manual_seed(seed)
    block = CotBlock.at_start(n, k, 24, 5, size, draw)
    with torch.no_grad():
        if phase != "start":
            block.W[:, block.d :] = size * torch.randn(10, 24, generator=draw, dtype=torch.float64)
        if phase in ("attending", "one-hot"):
            block.A.copy_((30 if phase == "one-hot" else 1) * torch.randn(24, 24, generator=draw, dtype=torch.float64))
    return block


def by_autograd(block, task, bits):
    block.zero_grad()
    tokens = task.tokens(bits)
    outputs = block(tokens)
    torch.relu(1 + (1 - 2 * task.targets(tokens)) * outputs).sum(1).mean().backward()
    zero = torch.zeros_like(block.A)
    return (
        float(outputs.detach().abs().max()),
        zero if block.A.grad is None else block.A.grad.clone(),
        block.W.grad.clone(),
    )


@pytest.mark.parametrize("phase", PHASES)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 7), k=st.integers(1, 3), count=st.integers(1, 40))
def test_it_is_what_autograd_says(phase, seed, n, k, count):
    task = ParitySequences(n, tuple(range(n - k, n)))
    bits = torch.randint(2, (count, n), generator=torch.Generator().manual_seed(seed))
    block = block_in(phase, n, k, seed)
    largest, A, W = by_autograd(block, task, bits)
    assert hinge_gradient(block, task, bits) == pytest.approx(largest, rel=1e-12)
    assert torch.allclose(block.A.grad, A, atol=1e-12)
    assert torch.allclose(block.W.grad, W, atol=1e-12)


@pytest.mark.parametrize("phase", PHASES[1:])
def test_sequences_whose_hinges_have_all_bent_count_for_nothing(phase):
    task = ParitySequences(4, (1, 2))
    every = torch.cartesian_prod(*[torch.arange(2)] * 4)
    for seed in range(20):
        block = block_in(phase, 4, 2, seed, size=100.0)
        bent = (right_way(block, task, every)[0] > 1).all(1)
        if bent.any() and not bent.all():
            break
    hinge_gradient(block, task, every[bent])
    assert not block.W.grad.any()
    assert not block.A.grad.any()
    hinge_gradient(block, task, every[~bent])
    assert block.W.grad.any()


@pytest.mark.parametrize("phase", PHASES)
def test_chunks_do_not_change_it(phase, monkeypatch):
    task = ParitySequences(6, (0, 3))
    bits = HeldOut(6, 4, 0).draw(50, torch.Generator().manual_seed(0))
    found = []
    for chunk in (7, 1000):
        monkeypatch.setattr(block_gradient, "_CHUNK", chunk)
        block = block_in(phase, 6, 2, 3)
        hinge_gradient(block, task, bits)
        found.append((block.A.grad, block.W.grad))
    assert all(torch.allclose(one, other, atol=1e-13) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("phase", PHASES)
def test_outputs_and_attention_are_the_blocks_own(phase):
    task = ParitySequences(6, (5, 1, 3))
    bits = HeldOut(6, 4, 0).draw(50, torch.Generator().manual_seed(0))
    block = block_in(phase, 6, 3, 1)
    outputs, attention = right_way(block, task, bits)
    tokens = task.tokens(bits)
    assert torch.allclose(outputs, block(tokens) * (2 * task.targets(tokens) - 1), atol=1e-12)
    secret = block.attention(tokens)[:, torch.arange(3), [5, 1, 3]]
    assert torch.allclose(attention, secret, atol=1e-15)
