import pytest
import torch

from parityscope.models import GPT
from parityscope.problems import seeded_generator
from parityscope.problems.sequences import ParitySequences
from parityscope.training import decoder_measures
from parityscope.training.decoder_measures import by_token_stood_on, free_running, teacher_forced


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
    assert model.asked == decoder_measures._GLANCE_TOKENS // 4
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
