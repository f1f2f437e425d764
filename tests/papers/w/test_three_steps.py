import math

import pytest
import torch

from parityscope.papers.w.cot_block import CotBlock, hinge_gradient, right_way
from parityscope.papers.w.instance import statistics
from parityscope.papers.w.three_steps import (
    ThreeSteps,
    answers_of,
    examine,
    expected_answers,
    imbalance,
    take_three_steps,
    weakest_answer,
)
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


QUIET = ThreeSteps(n=12, k=3, d=1024, m=256, epsilon=5.0, batch=8192, held_out=256)


@pytest.fixture(scope="module")
def run():
    return take_three_steps(QUIET)


def test_signal_and_offset_make_up_every_output_where_attention_is_one_hot(run):
    """Independent route: the trained block with attention set to the secret by hand."""
    answers, block, task = answers_of(run), run.blocks[-1], run.task
    bits = torch.randint(2, (64, 12), generator=torch.Generator().manual_seed(0))
    tokens = task.tokens(bits)
    own = torch.stack([block.embeddings[12 + i, tokens[:, 12 + i]] for i in range(3)], 1)
    attended = torch.stack([block.embeddings[s, tokens[:, s]] for s in task.secret], 1)
    outputs = torch.relu(torch.cat((own, attended), -1) @ block.W.T) @ block.h / QUIET.epsilon
    here, secret = tokens[:, 12:15], tokens[:, list(task.secret)]
    links = torch.arange(3)
    sign = (2 * (here ^ secret) - 1).double()
    wanted = answers.offset[links, here] + sign * answers.signal[links, here]
    assert torch.allclose(outputs.double(), wanted, atol=1e-4)


def test_closed_forms_say_what_was_measured(run):
    answers, expected = answers_of(run), expected_answers(QUIET)
    assert answers.signal[1:].mean() == pytest.approx(expected.signal, rel=0.15)
    assert (answers.offset - answers.start - answers.drift)[1:].abs().max() < expected.spread
    assert answers.offset[1:].abs().max() < 5 * expected.spread


def test_the_offset_at_the_start_counts_neurons():
    """ε(N₊ − N₋)/2m with orthogonal embeddings; here they nearly are."""
    run = take_three_steps(ThreeSteps(n=6, k=2, d=2048, m=32, epsilon=2.0, batch=4, held_out=8))
    active = run.blocks[0].start_signs() > 0
    counts = active[:32].sum(0) - active[32:].sum(0)
    assert torch.allclose(answers_of(run).start, counts.double() / 64, atol=0.05)


def test_imbalance_is_the_delta_of_table_1(run):
    bits = torch.randint(2, (100, 12), generator=torch.Generator().manual_seed(1))
    assert torch.equal(imbalance(run, bits), statistics(run.task, run.task.tokens(bits)).delta)


def test_the_spread_falls_with_width_batch_and_small_early_rates():
    base = expected_answers(ThreeSteps()).spread
    for better in ({"m": 2048}, {"batch": 10**6}, {"early_rate": 0.1}):
        assert expected_answers(ThreeSteps(**better)).spread < base
    alone = expected_answers(ThreeSteps(m=10**9, early_rate=0.5)).spread
    assert alone == pytest.approx(0.5 * 20 / (4 * math.sqrt(16384)), rel=1e-3)


def test_the_weakest_answer_is_after_the_first_link_and_right(run):
    weakest = weakest_answer(run)
    assert weakest.link > 1
    assert weakest.right == run.perfect
    assert weakest.signal - abs(weakest.offset) == pytest.approx(run.margin / QUIET.epsilon, abs=0.02)


def test_the_closed_form_of_the_first_link_says_when_the_hinge_bends(run):
    """T at the first link before the third step, in the batch, lies within its spread; never past 1 here."""
    expected = expected_answers(QUIET)
    before = right_way(run.blocks[2], run.task, torch.randint(2, (200, 12), generator=torch.Generator().manual_seed(2)))
    first = before[0][:, 0].abs().double() / QUIET.epsilon
    assert (first - expected.first).abs().max() < 5 * expected.first_spread
    bold = ThreeSteps(epsilon=20.0)
    assert expected_answers(bold).chance_of_a_bend(bold.epsilon) > 0.5
    assert expected.chance_of_a_bend(QUIET.epsilon) < 0.1
