"""The recipe `as-coded` against H1's published code written again from its description, step by step."""

import itertools
import runpy
from pathlib import Path

import pytest
import torch

from parityscope import Parity, learn
from parityscope.core.statistics import wilson_share
from parityscope.problems import draw_examples, draw_problems, seeded_generator

PUBLISHED = runpy.run_path(str(Path(__file__).with_name("h1_published_code.py")))
SEEDS, STEPS = range(1000, 1004), 60
TOLERANCE = 1e-9  # rounding, which sixty steps of Adam may magnify


def ours(problem, **options):
    """Return the parameters of every step, before the first too, and the risks that descended."""
    recorded = []
    run = learn(
        problem,
        "as-coded",
        SEEDS,
        steps=STEPS,
        record_every=1,
        on_record=lambda step, model: recorded.append(model.directions.detach().clone()),
        **options,
    )
    return run, torch.stack(recorded)


def theirs(n, k, start, bits, target):
    losses, entries = [], []
    model = PUBLISHED["PublishedModel"](n, k, start)

    def note(loss):
        losses.append(loss)
        entries.append(model.entries.detach().clone())

    PUBLISHED["trained"](model, bits, target, STEPS, 0.1, note)
    return torch.stack(losses), torch.stack(entries)


@pytest.mark.parametrize(("n", "support"), [(8, (1, 4)), (10, (0, 3, 7)), (9, (2, 3, 5, 8))])
def test_every_step_on_the_population_is_that_of_the_published_code(n, support):
    run, recorded = ours(Parity(n, support))
    bits = torch.tensor(list(itertools.product((0, 1), repeat=n)))
    target = bits[:, list(support)].sum(-1) % 2
    losses, entries = theirs(n, len(support), recorded[0], bits, target)
    assert (recorded[:STEPS] - entries).abs().max() < TOLERANCE
    assert (run.history_risk[:STEPS] - losses).abs().max() < TOLERANCE
    assert losses[0].sub(losses[-1]).abs().min() > 1e-3  # something was trained


def test_every_step_on_drawn_examples_is_that_of_the_published_code():
    problem, samples = Parity(10, (0, 3, 7)), 600
    run, recorded = ours(problem, samples=samples)
    bits, labels = draw_examples([problem] * len(SEEDS), samples, [seeded_generator(seed, "data") for seed in SEEDS])
    losses, entries = theirs(10, 3, recorded[0], bits, (1 - labels.long()) // 2)
    assert (recorded[:STEPS] - entries).abs().max() < TOLERANCE
    assert (run.history_risk[:STEPS] - losses).abs().max() < TOLERANCE


@pytest.mark.long
@pytest.mark.parametrize(("n", "k"), [(12, 2), (12, 3)])
def test_as_many_seeds_learn_as_with_the_published_code_its_data_and_its_measure(n, k):
    """Starts, supports and examples are each one's own; how many of 32 seeds learn is compared by intervals of 95 %."""
    published = int((PUBLISHED["accuracies"](n, k, range(1000, 1032)) > 0.99).sum())
    seeds, samples = range(2000, 2032), int(0.75 * int(0.8 * 2**n))
    run = learn(draw_problems(n, k, seeds), "as-coded", seeds, samples=samples)
    here, there = wilson_share(int((run.accuracy > 0.99).sum()), 32), wilson_share(published, 32)
    assert here.low <= there.high
    assert there.low <= here.high
