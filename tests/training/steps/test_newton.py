import pytest
import torch

from parityscope import InvalidInput, Parity, draw_problems, is_face, learn
from parityscope.training.build import build_model
from parityscope.training.recipes import RECIPES
from parityscope.training.steps.log_attention import log_value
from parityscope.training.steps.newton import independent_columns, newton_direction, pivoted_least_squares

FRESH = range(1000, 1032)


@pytest.mark.parametrize(("n", "k"), [(12, 4), (20, 5), (40, 3), (100, 2)])
def test_2k_harmonics_learn_every_seed(n, k):
    run = learn(draw_problems(n, k, FRESH), "concave", FRESH, positions="harmonics")
    assert run.success.successes == 32
    assert run.model.trained_parameters() == 2 * k + 1
    assert run.steps.max() <= 60


@pytest.mark.parametrize(("n", "k"), [(20, 3), (100, 5), (8, 7), (5, 5), (2, 1)])
def test_random_signs_learn_every_seed(n, k):
    seeds = FRESH[:8]
    run = learn(draw_problems(n, k, seeds), "concave", seeds)
    assert run.success.successes == 8
    assert run.steps.max() <= 12
    assert run.accuracy_kind == "exact"


def test_ten_bits_of_a_thousand_take_eight_steps():
    run = learn(draw_problems(1000, 10, FRESH[:1]), "concave", FRESH[:1])
    assert run.learned.all()
    assert run.steps.max() <= 10
    assert run.model.trained_parameters() == 140


def test_every_start_will_do():
    for radius in (1.0, 30.0):
        run = learn(draw_problems(20, 3, FRESH[:4]), "concave", FRESH[:4], start_radius=radius)
        assert run.learned.all()


def test_compact_signs_are_the_same_code(monkeypatch):
    problems = draw_problems(30, 3, FRESH[:3])
    plain = learn(problems, "concave", FRESH[:3])
    monkeypatch.setattr("parityscope.training.build._COMPACT_ABOVE", 0)
    compact = learn(problems, "concave", FRESH[:3])
    assert compact.model.positions.dtype == torch.int8
    assert torch.allclose(plain.attention, compact.attention, atol=1e-9)


def test_a_batch_that_no_cache_holds_keeps_its_codes_as_bytes():
    recipe = RECIPES["mirror"].resolved(9000, 6)
    one, many = (build_model(recipe, 9000, 6, range(count)).positions for count in (1, 32))
    assert many.dtype == torch.int8
    assert many.nbytes < 8 * one.nbytes  # 32 runs as they are would take 32 times as much
    assert torch.equal(many[:1].double(), one.sign())


def test_c_never_falls():
    run = learn(draw_problems(40, 5, FRESH[:3]), "concave", FRESH[:3], positions="harmonics", record_every=1)
    assert (run.history_risk.diff(dim=0) <= 1e-12).all()


def test_what_is_no_face_is_not_learned_and_stops_by_itself():
    seeds = FRESH[:12]
    problems = draw_problems(12, 3, seeds)
    run = learn(problems, "concave", seeds, positions="harmonics", numbers_per_head=4)
    faces = [bool(is_face(run.model.positions, problem.support)) for problem in problems]
    assert 0 < sum(faces) < len(faces)
    assert (run.risk < 0.004).tolist() == faces
    assert run.steps.max() < 1000


def test_rounding_is_not_taken_for_progress_where_b_is_no_face():
    """With six numbers these supports are no faces: u falls for ever, and −log C must not pass below what is proved."""
    seeds = (1054, 1114, 1125, 1404, 1484, 1615, 1627, 1697)
    problems = draw_problems(20, 3, seeds)
    run = learn(problems, "concave", seeds, numbers_per_head=6)
    loss = -log_value(run.model.score_weights().detach(), torch.stack([problem.mask() for problem in problems]))
    assert (run.certificate.at_least > 0).all()
    assert (loss >= run.certificate.at_least * (1 - 1e-9)).all()


def test_faces_are_learned_where_columns_depend_on_each_other():
    """Ten columns of twelve signs are often dependent."""
    problems = draw_problems(12, 2, FRESH)
    run = learn(problems, "concave", FRESH, numbers_per_head=10)
    faces = [bool(is_face(code, problem.support)) for code, problem in zip(run.model.positions, problems, strict=True)]
    assert (run.risk < 0.004).tolist() == faces


def test_of_dependent_columns_enough_are_kept():
    draw = torch.Generator().manual_seed(2)
    some = torch.randn(9, 4, generator=draw, dtype=torch.float64)
    matrix = torch.cat([some, some @ torch.randn(4, 3, generator=draw, dtype=torch.float64)], dim=1)[
        :, [4, 0, 5, 1, 6, 2, 3]
    ]
    kept = independent_columns(matrix)
    assert len(kept) == 4
    assert torch.linalg.matrix_rank(matrix[:, kept]) == 4
    assert independent_columns(some) == [0, 1, 2, 3]
    assert len(independent_columns(some[:3])) == 3


def test_directions_solve_the_normal_equations_badly_scaled_ones_too():
    draw = torch.Generator().manual_seed(0)
    code = torch.randn(2, 30, 4, generator=draw, dtype=torch.float64)
    slope = torch.randn(2, 30, generator=draw, dtype=torch.float64)
    for spread in (0, 20):
        curvature = 10.0 ** (-spread * torch.rand(2, 30, generator=draw, dtype=torch.float64))
        direction = newton_direction(code, slope * curvature, curvature)
        for run in range(2):
            lifted = torch.cat([code[run], torch.ones(30, 1, dtype=torch.float64)], -1)
            left = slope[run] * curvature[run] - curvature[run] * (lifted @ direction[run])
            assert (left @ lifted).abs().max() < 1e-12 * (left.abs() @ lifted.abs()).max() + 1e-13


def test_rows_of_all_sizes_keep_their_digits():
    """Ten stiff rows say four numbers, the soft ones the other three: 20 digits apart, and all are found."""
    draw = torch.Generator().manual_seed(1)
    wanted = torch.randn(7, generator=draw, dtype=torch.float64)
    rows = torch.randint(-9, 10, (13, 7), generator=draw).double()
    rows[:10, 4:] = 0.0
    rows[10:] *= 2.0**-66
    found = pivoted_least_squares(rows, rows @ wanted)
    assert torch.allclose(found, wanted, rtol=1e-9)


def test_it_needs_one_head_with_a_trained_scale_and_no_fresh_examples():
    problem = Parity(12, (1, 5))
    for wrong in ({"mass": "k"}, {"readout": "triangle"}):
        with pytest.raises(InvalidInput, match="newton steps need one head with a trained scale"):
            learn(problem, "concave", **wrong)
    with pytest.raises(InvalidInput, match="set heads=1"):
        learn(problem, "concave", heads=2)
    with pytest.raises(InvalidInput, match="newton steps need the population or samples"):
        learn(problem, "concave", batch=100, optimiser="newton")
    with pytest.raises(InvalidInput, match="wide_phase has a mass of its own"):
        learn(problem, "concave", batch=100, mass="trained")


@pytest.mark.parametrize(("n", "k"), [(100, 3), (100, 7), (100, 10), (1000, 5), (1000, 10)])
def test_a_few_steps_of_one_head_learn_every_k(n, k):
    run = learn(draw_problems(n, k, range(8)), "one-step", range(8))
    assert run.success.successes == 8
    assert run.steps.max() <= 3
    assert run.recipe.heads == 1


@pytest.mark.parametrize(("n", "k"), [(5, 5), (3, 1), (9, 4), (20, 10)])
def test_small_and_dense_problems_too(n, k):
    assert learn(draw_problems(n, k, range(8)), "one-step", range(8)).success.successes == 8


def test_biased_bits_and_noisy_labels():
    problems = draw_problems(60, 4, range(4), bias=0.3, noise=0.2)
    assert learn(problems, "one-step", range(4)).recovered.all()


def test_it_needs_one_head_and_the_population():
    problems = draw_problems(20, 3, range(2))
    with pytest.raises(InvalidInput, match="need one head"):
        learn(problems, "one-step", range(2), heads=3)
    with pytest.raises(InvalidInput, match="need the population"):
        learn(problems, "one-step", range(2), batch=100, optimiser="gauss-newton", loss="hinge")
