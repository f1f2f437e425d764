import itertools

import pytest
import torch

from parityscope import InvalidInput
from parityscope.problems import Parity, seeded_generator
from parityscope.problems.sequences import HeldOut, ParitySequences, draw_secret

BITS = torch.tensor(list(itertools.product((0, 1), repeat=6)))


def by_hand(bits, secret, chain, gap):
    """The sequence as Definitions 1 and 2 read, token by token."""
    tokens = [*bits, *([0] if gap else [])]
    total = 0
    for i in secret:
        total ^= bits[i]
        if chain:
            tokens.append(total)
    return tokens if chain else [*tokens, total]


@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize("form", ["text", "code"])
@pytest.mark.parametrize("secret", [(0, 2, 5), (3,), (0, 1, 2, 3, 4, 5)])
def test_tokens_are_those_of_the_definitions(secret, form, chain):
    task = ParitySequences(6, secret, chain, form)
    gap = chain or form == "text"
    expected = [by_hand(row, secret, chain, gap) for row in BITS.tolist()]
    assert task.tokens(BITS).tolist() == expected
    assert task.length == len(expected[0])


def test_the_chain_visits_the_secret_in_any_order_and_ends_at_the_parity():
    for secret in itertools.permutations((1, 3, 4)):
        tokens = ParitySequences(6, secret).tokens(BITS)
        assert tokens.tolist() == [by_hand(row, secret, True, True) for row in BITS.tolist()]
        assert torch.equal(1 - 2 * tokens[:, -1], Parity(6, (1, 3, 4)).label(BITS).long())
    assert ParitySequences.of(Parity(6, (1, 3, 4)), order=(2, 0, 1)).secret == (4, 1, 3)


def test_labels_of_each_format():
    chain, code = ParitySequences(6, (0, 2, 5)), ParitySequences(6, (0, 2, 5), format="code")
    tokens = chain.tokens(BITS)
    assert torch.equal(chain.targets(tokens), BITS[:, [0, 2, 5]].cumsum(1) % 2)
    assert torch.equal(code.targets(tokens)[:, 1:], chain.targets(tokens))
    assert not code.targets(tokens)[:, 0].any()  # the code also predicts the 0
    for form in ("text", "code"):
        answer = ParitySequences(6, (0, 2, 5), False, form)
        assert torch.equal(answer.targets(answer.tokens(BITS))[:, 0], chain.targets(tokens)[:, -1])
        assert len(answer.label_positions) == 1


def test_what_is_not_a_format_is_refused():
    with pytest.raises(InvalidInput, match="ascending"):
        ParitySequences(6, (3, 1), format="code")
    with pytest.raises(InvalidInput, match="out of range"):
        ParitySequences(6, (1, 6))
    with pytest.raises(InvalidInput, match="permutation"):
        ParitySequences.of(Parity(6, (1, 3)), order=(0, 0))


@pytest.mark.parametrize("n", [5, 12, 62, 63, 100])
def test_what_is_held_out_is_never_drawn(n):
    held_out = HeldOut(n, count=min(500, 2 ** (n - 1)), seed=3)
    rows = {tuple(row) for row in held_out.bits.tolist()}
    assert len(rows) == len(held_out.bits)  # distinct
    assert bool(held_out.contains(held_out.bits).all())
    drawn = held_out.draw(4000, seeded_generator(0, "data"))
    assert not rows & {tuple(row) for row in drawn.tolist()}


def test_draws_are_uniform_over_the_rest():
    held_out = HeldOut(4, count=6, seed=0)
    drawn = held_out.draw(20_000, seeded_generator(1, "data"))
    counts = torch.bincount(held_out.fingerprint(drawn), minlength=16)
    allowed = torch.ones(16, dtype=torch.bool)
    allowed[held_out.fingerprint(held_out.bits)] = False
    assert not counts[~allowed].any()
    # Each of the ten others is binomial with mean 2000 and standard deviation 42.
    assert (counts[allowed] - 2000).abs().max() < 6 * 42


def test_too_large_a_held_out_set_is_refused():
    with pytest.raises(InvalidInput, match="1 to 8 of the 2\\^4 inputs, got 9"):
        HeldOut(4, count=9, seed=0)


def test_secrets_belong_to_their_seed():
    assert draw_secret(20, 6, 1) == draw_secret(20, 6, 1) != draw_secret(20, 6, 2)
