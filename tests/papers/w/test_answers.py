"""Signal and offset of an answer: they make up the outputs, and the closed forms say how large they are."""

import math

import pytest
import torch

from parityscope.papers.w.answers import answers_of, expected_answers, imbalance, weakest_answer
from parityscope.papers.w.block_gradient import right_way
from parityscope.papers.w.block_steps import ThreeSteps, take_three_steps
from parityscope.papers.w.instance import statistics

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
