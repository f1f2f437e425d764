"""The finite-sample learner on tables: either sign of the label, minibatches, the same answer every time."""

import numpy as np
import pytest

from parityscope.fit.bits.encoding import encode
from parityscope.fit.solvers.attention import find
from parityscope.problems import Parity, seeded_generator


def example(n, support, count, noise=0.0):
    x, y = Parity(n, support, noise=noise).sample(count, seeded_generator(0, "data"))
    return (1 - 2 * x.numpy().T).astype(np.int8), y.numpy()


@pytest.mark.parametrize("sign", [1, -1])
def test_either_class_may_be_the_parity(sign):
    signs, y = example(60, (7, 33), 3000, noise=0.1)
    attended = next(find(signs, (sign * y).astype(np.int8), 2, seed=0))
    assert attended.scored.bits == (7, 33)
    assert attended.scored.strength == pytest.approx(sign * 0.8, abs=0.04)
    assert attended.attention.shape == (2, 60)
    assert attended.attention.sum(-1) == pytest.approx(1.0, abs=1e-5)
    assert set(attended.attention.argmax(-1)) == {7, 33}


def test_minibatches_find_it_too_and_repeat_themselves(monkeypatch):
    monkeypatch.setattr("parityscope.fit.solvers.attention._BATCH_NUMBERS", 40 * 2500)
    signs, y = example(40, (2, 19), 6000)
    runs = [next(find(signs, y, 2, seed=1)) for _ in range(2)]
    assert runs[0].scored.bits == (2, 19)
    assert (runs[0].attention == runs[1].attention).all()


def test_bits_of_one_column_share_its_weight():
    random = np.random.RandomState(1)
    X = random.randint(3, size=(3000, 8))
    table = encode(X, np.arange(3000))
    y = np.where((X[:, 1] == 1) ^ (X[:, 6] == 0), -1, 1).astype(np.int8)
    attempts = find(table.signs, y, 2, seed=0, owner=table.owner)
    best = max((attended.scored for attended in attempts), key=lambda scored: abs(scored.strength))
    assert [table.bits[i].column for i in best.bits] == [1, 6]
    assert abs(best.strength) == pytest.approx(1.0)
