import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parityscope import InvalidInput
from parityscope.papers.w import cot_block as block_gradient
from parityscope.papers.w.cot_block import (
    CotBlock,
    _teeth,
    hand_set_block,
    hinge_gradient,
    random_embeddings,
    right_way,
)
from parityscope.problems.sequences import HeldOut, ParitySequences


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def by_definition(block, tokens):
    """Definitions 3 to 6 read aloud: loops, no tables."""
    d, outputs = block.d, []
    for row in tokens.tolist():
        X = torch.stack([block.embeddings[i, b] for i, b in enumerate(row[: len(block.embeddings)])], 1)  # (d, T)
        line = []
        for i in range(block.n, X.shape[1]):
            weights = torch.softmax(X[:, : i + 1].T @ block.A @ X[:, i], 0)
            mixed = X[:, : i + 1] @ weights
            line.append(block.h @ torch.relu(block.W @ torch.cat((X[:, i], mixed))))
        outputs.append(torch.stack(line))
    assert block.W.shape[1] == 2 * d
    return torch.stack(outputs)


def random_block():
    block = CotBlock.at_start(6, 3, 32, 5, 0.7, generator())
    with torch.no_grad():
        block.A.copy_(torch.randn(32, 32, generator=generator(1), dtype=torch.float64))
        block.W.copy_(torch.randn(10, 64, generator=generator(2), dtype=torch.float64))
    return block


def test_the_tables_compute_the_definitions():
    block, task = random_block(), ParitySequences(6, (4, 0, 2))
    tokens = task.tokens(torch.randint(2, (20, 6), generator=generator(3)))
    assert torch.allclose(block(tokens), by_definition(block, tokens), atol=1e-12)


def test_gradients_are_those_of_the_definitions():
    task = ParitySequences(6, (4, 0, 2))
    tokens = task.tokens(torch.randint(2, (8, 6), generator=generator(3)))
    grads = []
    for compute in (lambda block: block(tokens), lambda block: by_definition(block, tokens)):
        block = random_block()
        compute(block).pow(2).sum().backward()
        grads.append((block.A.grad, block.W.grad))
    for ours, theirs in zip(*grads, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_the_start_is_assumption_1():
    block = CotBlock.at_start(6, 3, 4096, 5, 0.7, generator())
    assert not block.A.any()
    assert not block.W[:, 4096:].any()
    assert block.h.tolist() == [0.1] * 5 + [-0.1] * 5
    # ⟨W_r, e_{i,b}⟩ ≈ ν_{r,i,b} = ±ε, off by the overlap of random corners.
    assert (block.start_signs().abs() - 0.7).abs().max() < 6 * 0.7 * math.sqrt(6 / 4096)
    tokens = torch.zeros(1, 9, dtype=torch.int64)
    assert torch.allclose(block.attention(tokens)[0, 1, :8], torch.full((8,), 1 / 8).double())


def test_embeddings_are_corners():
    e = random_embeddings(5, 64, generator())
    assert set(e.unique().tolist()) == {-0.125, 0.125}


@pytest.mark.parametrize("k", range(1, 9))
def test_the_teeth_alternate(k):
    a, h = _teeth(k + 1)
    values = [float(h @ torch.relu(a + 2 * s)) for s in range(k + 1)]
    assert values == [(-1.0) ** (s + 1) for s in range(k + 1)]


@pytest.mark.parametrize("secret", [(0,), (1, 4), (0, 2, 3), (0, 1, 2, 3, 4, 5)])
def test_hand_set_weights_compute_parity_on_every_input(secret):
    block = hand_set_block(6, secret, 512, generator(len(secret))).block
    bits = torch.tensor(list(itertools.product((0, 1), repeat=6)))
    tokens = ParitySequences(6, secret, chain_of_thought=False).tokens(bits)
    output = block(tokens)[:, 0]
    assert torch.equal(output > 0, tokens[:, -1] == 1)
    assert (output.abs() - 1).abs().max() < 1e-6
    assert torch.allclose(output[:5, None], by_definition(block, tokens[:5, :7])[:, :1], atol=1e-9)


def test_the_dual_vectors_are_those_of_lemmas_2_and_3():
    hand_set = hand_set_block(8, (1, 4, 6), 128, generator())
    assert torch.allclose(hand_set.M @ hand_set.U, torch.tensor([0.0, 1.0] * 3).double(), atol=1e-12)
    assert torch.allclose(hand_set.M @ hand_set.V, torch.ones(6).double(), atol=1e-12)
    with pytest.raises(InvalidInput, match="2k = 6"):
        hand_set_block(8, (1, 4, 6), 5, generator())


def test_quantised_weights_lie_on_a_grid():
    rounded = random_block().quantised(4)
    assert len(rounded.W.unique()) <= 15
    assert (rounded.W - random_block().W).abs().max() <= random_block().W.abs().max() / 14 + 1e-12
    with pytest.raises(InvalidInput, match="at least 2 bits"):
        random_block().quantised(1)


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
