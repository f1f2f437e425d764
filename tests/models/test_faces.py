import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from parityscope import InvalidInput, is_face
from parityscope.models.faces import nearest_to_zero
from parityscope.models.positions import circle, draw_signs, harmonics, orthogonal, random_signs


def by_linear_programming(code, support):
    """Return the largest margin of scores with |q|_∞ ≤ 1: positive iff the support is a face."""
    n, r = code.shape
    inside, outside = code[list(support)], np.delete(code, list(support), axis=0)
    ones = np.ones((n, 1))
    return -linprog(
        np.r_[np.zeros(r + 1), -1.0],
        A_ub=np.hstack([outside, -ones[: len(outside)], ones[: len(outside)]]),
        b_ub=np.zeros(len(outside)),
        A_eq=np.hstack([inside, -ones[: len(inside)], 0 * ones[: len(inside)]]),
        b_eq=np.zeros(len(inside)),
        bounds=[(-1, 1)] * r + [(None, None), (0, None)],
    ).fun


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_linear_programming(seed):
    draw = torch.Generator().manual_seed(seed)
    n, r, k = (int(torch.randint(*ends, (), generator=draw)) for ends in ((5, 12), (2, 6), (1, 4)))
    gaussian = torch.randn(n, r, generator=draw, dtype=torch.float64)
    for code in (gaussian, random_signs(min(n, 2**r), r, draw), gaussian[:, [0, 1, 1]]):
        for support in itertools.islice(itertools.combinations(range(len(code)), min(k, len(code) - 1)), 12):
            assert bool(is_face(code, support)) == (by_linear_programming(code.numpy(), support) > 1e-8)


@pytest.mark.parametrize(("n", "k"), [(8, 2), (9, 3), (10, 4)])
def test_2k_harmonics_hold_every_support_and_fewer_do_not(n, k):
    supports = list(itertools.combinations(range(n), k))
    assert all(is_face(harmonics(n, k), support) for support in supports)
    assert not all(is_face(harmonics(n, k)[:, :-1], support) for support in supports)


def test_the_circle_holds_neighbours():
    held = {pair for pair in itertools.combinations(range(7), 2) if is_face(circle(7), pair)}
    assert held == {(i, i + 1) for i in range(6)} | {(0, 6)}


def test_the_direction_has_the_margin_and_no_other_has_more():
    draw = torch.Generator().manual_seed(3)
    code, support = random_signs(60, 30, draw), [3, 17]
    face = is_face(code, support)
    others = [j for j in range(60) if j not in support]
    size = (code - code[support].mean(0)).norm(dim=-1).max()

    def margin(q):
        scores = code @ (q / q.norm())
        return (scores[support].min() - scores[others].max()) / size

    assert margin(face.q).item() == pytest.approx(face.margin)
    assert (code[support] @ face.q).diff().abs().max() < 1e-12
    spanned = torch.linalg.svd(code[support].diff(dim=0), full_matrices=True).Vh[1:]
    for _ in range(200):
        tilt = spanned.T @ torch.randn(29, generator=draw, dtype=torch.float64)
        assert margin(face.q + 0.05 * tilt) <= face.margin + 1e-12


def test_a_margin_is_that_of_the_code_whatever_its_unit_and_origin():
    code = random_signs(40, 20, torch.Generator().manual_seed(1))
    assert is_face(1e6 * code + 3.0, (4, 9)).margin == pytest.approx(is_face(code, (4, 9)).margin, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-310, 1e-200, 1e-20, 1e-15, 1e-14, 1.0, 1e300])
def test_what_is_no_face_is_none_in_any_unit(unit):
    """Codes 0, 1, 11 and B the first two: far below 1 they were once taken for equal."""
    face = is_face(unit * torch.tensor([[0.0], [1.0], [11.0]], dtype=torch.float64), (0, 1))
    assert not face
    assert face.decided
    assert is_face(unit * circle(9), (3, 4)).margin == pytest.approx(is_face(circle(9), (3, 4)).margin, rel=1e-3)


@pytest.mark.parametrize("shift", [1e3, 1e8])
def test_codes_far_from_0_are_told_apart_as_well(shift):
    square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    assert is_face(square + shift, (0, 1)).margin == pytest.approx(is_face(square, (0, 1)).margin, rel=1e-9)
    assert not is_face(square + shift, (0, 2))


def test_scores_on_B_are_equal_to_well_below_the_margin():
    for n, k in ((200, 4), (500, 3), (700, 3)):
        face, support = is_face(harmonics(n, k), range(0, 2 * k, 2)), list(range(0, 2 * k, 2))
        scores = harmonics(n, k) @ face.q
        assert face
        others = [j for j in range(n) if j not in support]
        assert scores[support].max() - scores[support].min() < (scores[support].min() - scores[others].max()) / 8


@pytest.mark.parametrize(("n", "k"), [(200, 5), (1000, 5), (100, 10), (200, 10)])
def test_a_face_that_rounding_hides_is_neither_shown_nor_excluded(n, k):
    """All of them are faces, by a theorem; the margin is below what doubles tell."""
    face = is_face(harmonics(n, k), range(0, 2 * k, 2))
    assert not face
    assert not face.decided
    assert 0 < face.at_most < 1e-13
    assert face.sentence().startswith("no face of the code, or one of margin ")


def test_what_is_clearly_no_face_is_decided():
    draw = torch.Generator().manual_seed(5)
    gaussians = [is_face(torch.randn(30, 3, generator=draw, dtype=torch.float64), (0, 1, 2)) for _ in range(20)]
    clear = [is_face(circle(12), (2, 5)), is_face(harmonics(9, 2), (0, 3, 6)), is_face(harmonics(300, 2), (1, 90, 200))]
    for face in [*gaussians, *clear]:
        assert face.decided
    assert not any(clear)
    assert clear[0].sentence() == "no face of the code"


def test_what_a_rounded_code_might_undo_is_not_decided():
    """A corner between two others is no face, but a little push makes it one."""
    row = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, -1.0]], dtype=torch.float64)
    assert not is_face(row, (1,))
    assert not is_face(row, (1,)).decided
    pushed = row + torch.tensor([[0.0, 0.0], [0.0, 1e-12], [0.0, 0.0], [0.0, 0.0]])
    assert is_face(pushed, (1,))


@pytest.mark.parametrize(
    "code", [np.eye(3), np.eye(3).tolist(), torch.eye(3, requires_grad=True), np.eye(3, dtype=int)]
)
@pytest.mark.parametrize("support", [(0, 2), np.array([0, 2]), torch.tensor([0, 2]), range(0, 3, 2)])
def test_arrays_lists_and_trained_codes_are_codes(code, support):
    assert is_face(code, support).margin == is_face(torch.eye(3), (0, 2)).margin > 0


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ([[0.0, math.nan], [1.0, 1.0]], r"finite numbers, got \[0.0, nan\] at position 0: replace"),
        (torch.tensor([[0.0], [math.inf]]), r"finite numbers, got \[inf\] at position 1: replace"),
        ([[1.0, 2.0], [3.0]], "a tensor or an array of numbers"),
        ([["a"]], "a tensor or an array of numbers"),
        (torch.eye(2) * 1j, "complex numbers of shape"),
        (torch.ones(3), "one row of numbers per position"),
    ],
)
def test_bad_codes_are_named_with_the_fix(code, said):
    with pytest.raises(InvalidInput, match=said):
        is_face(code, (0,))


def test_margins_of_harmonics_are_told_from_nothing_far_down():
    assert 1e-13 < is_face(harmonics(1000, 3), (10, 14, 18)).margin < 1e-12
    assert is_face(harmonics(1000, 3)[:, :-1], (100, 400, 700)).margin == 0.0


def test_signs_of_one_byte_and_all_positions_at_once():
    signs = draw_signs(20, 12, torch.Generator().manual_seed(0))
    assert is_face(signs, (1, 2)).margin == is_face(signs.double() / 12**0.5, (1, 2)).margin
    assert is_face(orthogonal(3), (0, 1, 2))


@pytest.mark.parametrize("support", [(), (1, 1), (0, 9), (-1, 2), np.array([0.5, 1.0]), np.array(["1"]), "01", 3])
def test_bad_supports_are_named(support):
    with pytest.raises(InvalidInput, match="a support is some different positions from 0 to 8"):
        is_face(circle(9), support)


def test_a_code_per_run_is_refused():
    with pytest.raises(InvalidInput, match="one row of numbers per position"):
        is_face(torch.zeros(2, 5, 3), (0,))


def test_the_nearest_point_of_many_is_optimal():
    draw = np.random.default_rng(0)
    for _ in range(50):
        points = draw.normal(size=(20, 4)) + draw.normal(size=4)
        direction, distance = nearest_to_zero(points)
        if distance > 1e-9:
            assert (points @ direction).min() >= distance * (1 - 1e-8)


@pytest.mark.parametrize(("n", "k"), [(3, 1), (9, 1), (5, 2), (10, 2), (7, 3), (10, 3), (9, 4), (11, 4)])
def test_margins_of_harmonics_lie_between_what_is_proved(n, k):
    code = harmonics(n, k)

    def margin(support):  # of a q of length 1, not relative to the size of the code
        return is_face(code, support).margin * float((code - code[list(support)].mean(0)).norm(dim=1).max())

    every = [margin((0, *others)) for others in itertools.combinations(range(1, n), k - 1)]  # all up to a rotation
    assert min(every) >= (k / (math.e * n)) ** (2 * k)
    assert margin(tuple(range(0, 2 * k, 2))) <= 2.02 * (math.pi * k / n) ** (2 * k)
