"""Faces in fractions: the simplex method against another route, and Radon's sets on every code."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from parityscope.models.faces import is_face
from parityscope.papers.exact_faces import is_exact_face, null_space, radon_support

small = st.integers(-3, 3)


@st.composite
def codes(draw, positions=6, numbers=3):
    n, r = draw(st.integers(2, positions)), draw(st.integers(1, numbers))
    return [draw(st.lists(small, min_size=r, max_size=r)) for _ in range(n)]


@given(codes(), st.data())
def test_fractions_and_rounded_numbers_agree(code, data):
    support = data.draw(st.sets(st.integers(0, len(code) - 1), min_size=1, max_size=len(code)).map(sorted))
    assert is_exact_face(code, support) == bool(is_face(torch.tensor(code).double(), support))


@given(codes())
def test_what_is_in_the_null_space_is_orthogonal_to_every_row(rows):
    columns = len(rows[0])
    basis = null_space(rows, columns)
    assert all(sum(a * b for a, b in zip(row, vector, strict=True)) == 0 for row in rows for vector in basis)
    assert columns - len(basis) == int(torch.linalg.matrix_rank(torch.tensor(rows).double()))


@given(codes(positions=8, numbers=5), st.integers(1, 4))
def test_radons_set_is_no_face(code, k):
    n, r = len(code), len(code[0])
    if r <= min(2 * k - 1, n - 2):
        support = radon_support(code, k)
        assert len(set(support)) == k
        assert not is_exact_face(code, support)
