"""`parityscope chain`: with the chain it is learned, at once it is not, and what is printed is what was measured."""

import io
import json

import pytest
import torch
from rich.console import Console

from parityscope import InvalidInput
from parityscope.apps.chain_of_thought import looks, on_the_secret, settings_of, train_pair
from parityscope.apps.terminal.tables import show_chains

STEPS, BATCH, SECRET = 150, 256, (1, 5, 7, 8, 15, 19)


@pytest.fixture(scope="module")
def pair():
    return train_pair(settings_of(20, secret=SECRET, batch=BATCH, steps=STEPS))


def test_the_chain_is_learned_and_the_answer_at_once_is_not(pair):
    told = pair.to_json()
    assert told["secret"] == list(SECRET)
    assert told["chain"]["answers_right"] == 1.0
    assert told["chain"]["examples_until_all_right"] <= told["at_once"]["examples"] == STEPS * BATCH
    assert told["at_once"]["examples_until_all_right"] is None
    assert told["at_once"]["answers_right"] < 0.75
    assert told["chain"]["entropy"]["after"] < 0.7 < told["chain"]["entropy"]["before"]


def test_both_trainings_differ_in_the_chain_alone(pair):
    chain, at_once = (run.config.model_dump() for run in (pair.chain, pair.at_once))
    assert {name for name in chain if chain[name] != at_once[name]} == {"chain_of_thought"}


def test_every_link_looks_at_its_own_bit(pair):
    rows = looks(pair.chain)
    torch.testing.assert_close(rows.sum(-1), torch.ones(6))
    assert rows[:, :20].argmax(-1).tolist() == list(SECRET)
    assert on_the_secret(pair.chain) == pytest.approx(pair.chain.secret_attention()[0].amax(0).tolist())


def test_of_several_heads_the_one_that_looks_at_what_a_token_needs_is_shown():
    pair = train_pair(settings_of(6, 2, layers=2, heads=2, width=16, batch=16, steps=2))
    first, second = pair.chain.task.secret
    maps = pair.chain.attention.flatten(0, 1)
    assert on_the_secret(pair.chain) == [float(maps[:, 6, first].max()), float(maps[:, 7, second].max())]
    shares = pair.at_once.attention.flatten(0, 1)[:, 6, [first, second]].sum(-1)
    assert sum(on_the_secret(pair.at_once)) == pytest.approx(float(shares.max()))


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 4])
def test_short_chains_are_learned_by_the_settings_that_the_command_has(k):
    """W's one head stays on a plateau there."""
    assert train_pair(settings_of(20, k, steps=200)).to_json()["chain"]["answers_right"] > 0.99


def test_the_terminal_shows_both(pair):
    console = Console(file=io.StringIO(), width=80)
    show_chains(console, [pair])
    lines = console.file.getvalue().splitlines()
    assert [line.split("  ")[0] for line in lines[:8]] == ["hidden", *(f"link {link}" for link in range(6)), "at once"]
    (with_chain,) = (line for line in lines if "  chain  " in line)
    assert f"{pair.chain.samples_to(1.0):,}" in with_chain
    assert any(f"not in {STEPS * BATCH:,}" in line for line in lines)


def test_the_command_prints_json(said):
    arguments = ["chain", "--n", "6", "--k", "2", "--width", "16", "--batch", "16", "--steps", "3", "--runs", "2"]
    code, lines, _ = said(*arguments, "--json", "--quiet")
    assert code == 0
    told = json.loads("".join(lines))
    assert (told["n"], told["k"], [run["seed"] for run in told["runs"]]) == (6, 2, [0, 1])
    assert told["decoder"]["steps"] == 3
    assert len(told["runs"][0]["chain"]["attention"]) == 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"n": 4, "k": 5}, "k must lie between 1 and n = 4, got 5"),
        ({"n": 4, "secret": (1, 7)}, "position 7 is out of range"),
        ({"n": 4, "k": 3, "secret": (1, 2)}, "k = 3 disagrees with the secret, which has 2 positions"),
        ({"n": 4, "k": 2, "learning_rate": -1.0}, "learning_rate = -1.0"),
    ],
)
def test_bad_settings_are_one_sentence(given, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        settings_of(**given)
