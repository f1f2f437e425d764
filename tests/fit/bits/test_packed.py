"""Packed bits against plain ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parityscope.fit.bits.packed import TwoClasses, pack, unpack


@given(st.lists(st.integers(0, 150), min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 2**31))
def test_packing_is_undone_by_unpacking(lengths, bits, seed):
    yes = np.random.RandomState(seed % 2**32).rand(sum(lengths), bits) < 0.5
    words = pack(yes, lengths)
    assert len(words) == sum(-(-length // 64) for length in lengths)
    assert (unpack(words, lengths) == np.where(yes.T, -1, 1)).all()


@given(st.integers(2, 200), st.integers(1, 199), st.integers(0, 2**31))
def test_counts_strengths_and_rows_are_those_of_the_signs(rows, ups, seed):
    random = np.random.RandomState(seed % 2**32)
    signs = random.choice(np.array([-1, 1], dtype=np.int8), size=(6, rows), p=[0.3, 0.7])
    labels = random.permutation(np.where(np.arange(rows) < 1 + ups % (rows - 1), 1, -1)).astype(np.int8)
    packed = TwoClasses.from_signs(signs, labels)
    sets = np.array([[0, 1, 2], [1, 3, 5]])
    chi = np.array([np.prod(signs[list(some)], axis=0) for some in sets])
    first, second = packed.odd(sets)
    assert first.tolist() == ((chi < 0) & (labels < 0)).sum(axis=1).tolist()
    assert second.tolist() == ((chi < 0) & (labels > 0)).sum(axis=1).tolist()
    for strength, sign in zip(packed.strength(first, second), chi, strict=True):
        expected = 0.0 if abs(sign.sum()) == rows else np.corrcoef(sign, labels)[0, 1]
        assert abs(strength - expected) < 1e-12
    chosen = random.permutation(rows)[:64]
    ordered = signs[:, np.argsort(labels, kind="stable")][:, chosen]
    for word, answers in zip(packed.gathered(chosen).tolist(), ordered, strict=True):
        assert [word >> place & 1 for place in range(len(chosen))] == (answers < 0).astype(int).tolist()
