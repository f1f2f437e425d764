import ctypes
import math

import pytest
import torch
from torch.nn import functional

from parityscope import InvalidInput
from parityscope.models import GPT
from parityscope.problems import seeded_generator
from parityscope.problems.sequences import HeldOut, ParitySequences
from parityscope.training import decoders
from parityscope.training.checkpoint import checkpoints_in
from parityscope.training.decoders import (
    DecoderSettings,
    _Batches,
    _DecoderState,
    by_token_stood_on,
    free_running,
    teacher_forced,
    train_decoder,
)

SMALL = {"n": 8, "k": 3, "width": 16, "batch": 32, "held_out": 32, "learning_rate": 3e-3, "evaluate_every": 4}


def same_run(first, second):
    assert first.history.step == second.history.step
    assert first.history.accuracy == second.history.accuracy
    assert first.history.loss == second.history.loss
    assert first.free_running == second.free_running
    assert torch.equal(first.attention, second.attention)
    for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("changes", [{}, {"pool": 100}, {"dropout": 0.1, "layers": 2, "heads": 2}])
def test_stopping_anywhere_and_going_on_equals_never_stopping(tmp_path, changes):
    config = DecoderSettings(**{**SMALL, **changes}, steps=30)
    straight = train_decoder(config)
    place = tmp_path / "training.safetensors"

    class Killed(Exception):
        pass

    def kill(step, _):
        if step == 16:
            raise Killed

    with pytest.raises(Killed):
        train_decoder(config, checkpoint=place, checkpoint_seconds=0, on_evaluation=kill)
    assert place.exists()
    resumed_at = []
    resumed = train_decoder(config, checkpoint=place, on_evaluation=lambda step, _: resumed_at.append(step))
    assert resumed_at[0] == 16
    same_run(straight, resumed)


def test_the_checkpoint_folder_is_used(tmp_path):
    config = DecoderSettings(**SMALL, steps=6)
    with checkpoints_in(tmp_path):
        first = train_decoder(config, checkpoint_seconds=0)
        assert len(list(tmp_path.iterdir())) == 1
        evaluations = []
        second = train_decoder(config, on_evaluation=lambda step, _: evaluations.append(step))
    assert evaluations == []  # nothing was left to do
    same_run(first, second)


def test_batches_depend_on_seed_and_step_only():
    config = DecoderSettings(**SMALL, steps=10)
    held_out = HeldOut(8, 32, 0)
    first, second = _Batches(config, held_out), _Batches(config, held_out)
    later = second.at(7)
    for step in range(8):
        x = first.at(step)
    assert torch.equal(x, later)
    assert not torch.equal(first.at(6), later)


def test_a_pool_is_seen_once_per_epoch():
    config = DecoderSettings(**SMALL, steps=10, pool=96)
    batches = _Batches(config, HeldOut(8, 32, 0))
    rows = [sorted(map(tuple, torch.cat([batches.at(3 * epoch + i) for i in range(3)]).tolist())) for epoch in (0, 1)]
    assert rows[0] == rows[1] == sorted(map(tuple, batches.pool.tolist()))
    assert not torch.equal(batches.at(0), batches.at(3))  # in another order


def test_perfect_teacher_forcing_means_perfect_generation():
    """By induction: every generated token equals the true one as long as the past does."""
    run = train_decoder(DecoderSettings(n=20, k=6, width=64, batch=256, held_out=128, learning_rate=1e-3, steps=600))
    assert run.accuracy == run.free_running == 1.0
    assert run.samples_to(0.99) <= run.samples_to(1.0) == run.history.step[-1] * 256
    assert run.secret_attention().shape == (1, 1, 6)


def test_training_goes_on_for_the_extra_steps():
    config = DecoderSettings(n=6, k=1, width=32, batch=64, held_out=16, learning_rate=3e-3, steps=300)
    run = train_decoder(config)
    longer = train_decoder(config.model_copy(update={"extra_steps": 15}))
    assert run.history.step[-1] == run.history.crossing(1.0)
    assert longer.history.step[-1] == run.history.step[-1] + 15


def test_the_rate_falls_linearly_to_zero():
    config = DecoderSettings(**{**SMALL, "learning_rate": 1.0}, steps=4)
    assert [config.rate_at(step) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]
    assert config.model_copy(update={"decay": False}).rate_at(3) == 1.0


def test_labels_that_are_skipped_carry_no_loss_and_are_not_judged():
    config = DecoderSettings(**SMALL, steps=8, skip_labels=1)
    state = _DecoderState(config, None, 1e9)
    tokens = state.task.tokens(state.batches.at(0))
    logits = state.model(tokens, state.task.label_positions)
    targets = state.task.targets(tokens)
    state.take_step()
    wanted = functional.cross_entropy(logits[:, 1:].flatten(0, 1), targets[:, 1:].flatten())
    assert float(state.losses[0]) == pytest.approx(wanted.item(), rel=1e-5)
    assert train_decoder(config).accuracy * 32 * 2 % 1 == 0  # of two labels for each of 32 inputs
    with pytest.raises(InvalidInput, match="must leave one of 3 labels, got 3"):
        train_decoder(DecoderSettings(**SMALL, steps=8, skip_labels=3))


def test_a_wider_start_is_gpt2s_times_the_gain():
    usual, wide = (_DecoderState(DecoderSettings(**SMALL, steps=8, start_gain=gain), None, 1e9) for gain in (1, 3))
    for (name, first), second in zip(usual.model.named_parameters(), wide.model.parameters(), strict=True):
        inside = name.startswith("h.") and "ln_" not in name
        assert torch.allclose(second, first * 3 if inside else first, rtol=1e-6), name


@pytest.mark.long
@pytest.mark.parametrize("k", [2, 3, 4])
def test_eight_heads_and_a_wider_start_learn_short_chains_on_every_seed(k):
    for seed in range(5):
        usual = {"heads": 8, "start_gain": 2.37, "learning_rate": 1e-3, "decay": False, "batch": 256, "held_out": 512}
        assert train_decoder(DecoderSettings(n=20, k=k, seed=seed, steps=600, **usual)).accuracy == 1.0


@pytest.mark.long
def test_one_head_copies_and_does_not_look_where_it_would_have_to_negate():
    """The plateau: without the first link, which asks for copying only, the same decoder learns."""
    usual = {"n": 20, "k": 2, "learning_rate": 5e-4, "decay": False, "batch": 256, "held_out": 512, "steps": 400}
    stuck = [train_decoder(DecoderSettings(**usual, seed=seed)) for seed in range(3)]
    assert sum(run.accuracy < 0.95 for run in stuck) >= 2
    for run in stuck:
        if run.accuracy < 0.95:
            right, attention = run.history.by_token[-1].tolist()
            assert max(right) == 1
            assert min(right) < 0.7
            assert min(attention) < 0.02 < max(attention)
    freed = [train_decoder(DecoderSettings(**usual, seed=seed, skip_labels=1)) for seed in range(3)]
    assert sum(run.accuracy == 1 for run in freed) >= 2


@pytest.mark.long
@pytest.mark.parametrize("k", [6, 12])
def test_chain_of_thought_learns_within_100_000_samples_and_its_absence_does_not(k):
    settings = {"n": 20, "k": k, "batch": 256, "learning_rate": 5e-4, "steps": 390}
    for seed in range(3):
        run = train_decoder(DecoderSettings(**settings, seed=seed))
        assert run.accuracy == run.free_running == 1.0
        assert run.samples_to(1.0) < 100_000
        assert run.cpu_seconds < 80
        without = train_decoder(DecoderSettings(**settings, seed=seed, chain_of_thought=False))
        assert max(without.history.accuracy) < 0.5 + 6 * 0.5 / math.sqrt(2048)


@pytest.mark.long
def test_with_four_heads_one_looks_at_the_secret_bits():
    options = {"n": 40, "k": 20, "heads": 4, "learning_rate": 5e-4, "batch": 256, "decay": False, "stop": False}
    run = train_decoder(DecoderSettings(**options, steps=800, evaluate_every=100, held_out=512))
    assert run.accuracy > 0.999
    assert float(run.secret_attention().amax((0, 1)).mean()) >= 0.8


def decoder(task, seed=0):
    """A decoder far from its start, so that attention and answers differ from token to token."""
    model = GPT(task.length, 2, 2, 16, generator=seeded_generator(seed, "start"))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.4)
    return model


def drawn(task, count=200):
    return task.tokens(torch.randint(2, (count, task.n), generator=torch.Generator().manual_seed(1)))


class Fixed(GPT):
    """Answers every question from the true next tokens, wrong at some of them."""

    def __init__(self, wrong):
        torch.nn.Module.__init__(self)
        self.wrong, self.asked = wrong, 0

    def forward(self, tokens, positions):
        rows = slice(self.asked, self.asked + len(tokens))
        self.asked += len(tokens)
        answers = tokens[:, positions + 1] ^ self.wrong[rows][:, : len(positions)]
        return torch.nn.functional.one_hot(answers, 2).float()


@pytest.mark.parametrize("wrong_row", [None, 100, 1999])
def test_one_wrong_token_anywhere_is_seen(wrong_row):
    """Accuracy 1 means all tokens: a glance is no excuse."""
    task = ParitySequences(12, (1, 4, 7, 9))
    tokens = drawn(task, 2000)
    wrong = torch.zeros(2000, 4, dtype=torch.int64)
    if wrong_row is not None:
        wrong[wrong_row, 2] = 1
    model = Fixed(wrong)
    found = teacher_forced(model, task.label_positions, tokens)
    assert found == 1 - wrong.double().mean().item()
    assert model.asked == 2000


def test_a_decoder_that_guesses_is_only_glanced_at():
    task = ParitySequences(12, (1, 4, 7, 9))
    tokens = drawn(task, 2000)
    wrong = torch.randint(2, (2000, 4), generator=torch.Generator().manual_seed(2))
    model = Fixed(wrong)
    found = teacher_forced(model, task.label_positions, tokens)
    assert model.asked == decoders._GLANCE_TOKENS // 4
    assert found == 1 - wrong[: model.asked].double().mean().item()


def test_shares_by_token_are_those_of_a_loop():
    task = ParitySequences(6, (4, 0, 3))
    model, tokens = decoder(task), drawn(task)
    maps = model.attention(tokens[:, :-1]).detach()
    found = by_token_stood_on(model, task, tokens, maps)
    answers = model.plain_logits(tokens[:, :-1]).argmax(-1)
    for token in (0, 1):
        right, links = [], []
        for link in (1, 2):
            position = task.n + link
            rows = [row for row in range(len(tokens)) if tokens[row, position] == token]
            right += [bool(answers[row, position] == tokens[row, position + 1]) for row in rows]
            heads = maps[rows][..., position, task.secret[link]].mean(0)
            links.append(float(heads.max()))
        assert float(found[0, token]) == pytest.approx(sum(right) / len(right), abs=1e-6)
        assert float(found[1, token]) == pytest.approx(sum(links) / len(links), abs=1e-6)


def test_a_chain_that_never_stands_on_a_one_gives_zero_there():
    task = ParitySequences(4, (0, 2))
    tokens = task.tokens(torch.zeros(3, 4, dtype=torch.int64))
    model = decoder(task)
    assert by_token_stood_on(model, task, tokens, model.attention(tokens[:, :-1]))[:, 1].tolist() == [0, 0]


def test_free_running_feeds_the_chain_back():
    task = ParitySequences(6, (4, 0, 3))
    model, tokens = decoder(task, seed=3), drawn(task)
    right = 0
    for row in tokens:
        own = row[: task.prompt_length]
        for _ in range(task.k):
            own = torch.cat((own, model.plain_logits(own[None])[0, -1].argmax()[None]))
        right += int(own[-1] == row[-1])
    assert free_running(model, task, tokens) == pytest.approx(right / len(tokens))


def test_thresholds_are_set_where_there_is_glibc(monkeypatch):
    calls = []

    class Library:
        def mallopt(self, name, value):
            calls.append((name, value))
            return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    assert decoders.keep_freed_memory()
    assert calls == [(-1, 2**30), (-3, 2**25)]  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h


def test_other_c_libraries_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not decoders.keep_freed_memory()
