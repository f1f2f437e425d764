import json
import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from parityscope import InvalidInput, Parity, ParityTransformer, ZigZag, draw_problems, learn, population_risk
from parityscope.models import AdditiveScore, Cosine, Triangle
from parityscope.problems import draw_examples, seeded_generator
from parityscope.risk import law_of
from parityscope.risk.engines.closed_form import exact_correlation
from parityscope.risk.losses import named_loss
from parityscope.training.sources import Source, online_objective, population_objective, sample_objective, widened_score
from parityscope.training.steps.log_attention import log_correlation

FRESH = range(1000, 1008)


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("source", [{}, {"samples": 800}])
def test_every_k_is_found_without_being_told(k, source):
    run = learn(draw_problems(16, k, FRESH[:4], noise=0.1), "concave", FRESH[:4], k_at_most=6, **source)
    assert run.evidence.k.tolist() == [k] * 4
    assert run.learned.all()
    assert run.found.shape == (4, 6)
    assert (run.evidence.chance < 1e-6).all()
    json.dumps(run.to_json(), allow_nan=False)


def test_the_phase_tells_k_mod_4_before_anything_is_learned():
    seen = []
    for k in range(1, 7):
        run = learn(draw_problems(16, k, FRESH), "concave", FRESH, k_at_most=6, steps=0)
        seen.append({phase % 4 for phase in run.evidence.k.tolist()})
    assert seen == [{k % 4} for k in range(1, 7)]


def test_being_told_changes_nothing_but_the_size_of_the_head():
    problems = draw_problems(20, 3, FRESH)
    told = learn(problems, "concave", FRESH, numbers_per_head=30)
    untold = learn(problems, "concave", FRESH, numbers_per_head=30, k_at_most=5)
    assert torch.allclose(told.model.score_weights(), untold.model.score_weights(), atol=0.1)
    assert told.evidence is None
    assert untold.evidence.sentences() == ("k = 3",) * 8


def test_an_unknown_k_needs_a_trained_mass_and_room():
    problem = Parity(12, (1, 5, 6))
    for recipe, source in (("bounded", {}), ("mirror", {}), ("concave", {"batch": 8})):
        with pytest.raises(InvalidInput, match="an unknown k needs a trained mass"):
            learn(problem, recipe, k_at_most=4, **source)
    with pytest.raises(InvalidInput, match="k_at_most must be at least that, got 2"):
        learn(problem, "concave", k_at_most=2)


def test_a_wrong_name_proves_nothing():
    run = learn(Parity(30, (1, 5, 6)), "concave", samples=5)
    assert not run.recovered.any()
    assert run.certificate is None
    assert run.proved == ("",)


def test_fresh_examples_still_train_concave():
    run = learn(Parity(8, (1, 5)), "concave", batch=200)
    assert run.recovered.all()


def test_a_source_is_one_thing():
    with pytest.raises(InvalidInput, match="not both"):
        Source(10, 10).check(None)


def inside_the_domain(n, k, generator):
    """Random weights with 0 < c < 2 on B, 0 ≤ c < 1 elsewhere (Σc need not be k for log C itself)."""
    problem = Parity.random(n, k, generator)
    c = torch.rand(n, generator=generator, dtype=torch.float64) * (1 + problem.mask().double()) * 0.98 + 1e-3
    return problem, c


@given(st.integers(2, 12), st.integers(0, 1000))
def test_inside_the_domain_it_is_the_logarithm_of_the_correlation(n, seed):
    problem, c = inside_the_domain(n, 1 + seed % n, torch.Generator().manual_seed(seed))
    c = c * problem.k / c.sum()  # attention weights add up to k; the closed form then has no phase factor
    law = law_of(problem)
    assume(bool((c < 1 + problem.mask().double()).all()))
    C = exact_correlation(AdditiveScore(c, torch.zeros(()), Cosine()), law)
    assert log_correlation(c, law).item() == pytest.approx(math.log(C.item()), rel=1e-9, abs=1e-12)


@given(st.integers(2, 12), st.integers(0, 1000))
def test_it_is_concave_on_the_domain_with_the_stated_signs(n, seed):
    problem, c = inside_the_domain(n, 1 + seed % n, torch.Generator().manual_seed(seed))
    law = law_of(problem)
    c = c.requires_grad_()
    (gradient,) = torch.autograd.grad(log_correlation(c, law), c, create_graph=True)
    mask = problem.mask()
    half = math.pi / 2 * c.detach()
    expected = torch.where(mask, math.pi / 2 / half.tan(), -math.pi / 2 * half.tan())
    assert torch.allclose(gradient, expected, rtol=1e-9, atol=1e-12)
    (curvature,) = torch.autograd.grad(gradient.sum(), c)
    assert (curvature < 0).all()  # the Hessian is diagonal


def test_biased_bits_keep_the_maximum_at_the_support():
    problem = Parity(8, (1, 4, 6), bias=0.3)
    law, best = law_of(problem), problem.mask().double()
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        c = 3 * torch.softmax(2 * torch.randn(8, generator=generator, dtype=torch.float64), 0)
        assert log_correlation(c, law) < log_correlation(best, law) + 1e-12


def test_piled_heads_do_not_pull_together():
    law = law_of(Parity(3, (0, 1)))
    c = torch.tensor([1 / 3, 1 / 3, 4 / 3], dtype=torch.float64, requires_grad=True)  # C = −1/8
    assert exact_correlation(AdditiveScore(c.detach(), torch.zeros(()), Cosine()), law).item() == pytest.approx(-1 / 8)
    (gradient,) = torch.autograd.grad(log_correlation(c, law), c)
    assert gradient[2].item() == pytest.approx(-math.pi / 2)
    assert (gradient[:2] > 0).all()


@given(st.integers(3, 10), st.integers(0, 1000))
def test_widening_the_phase_keeps_the_product_formula(n, seed):
    generator = torch.Generator().manual_seed(seed)
    k = 2 + seed % (n - 1)
    problem = Parity.random(n, min(k, n), generator)
    directions = 0.3 * torch.randn(problem.k, 2, dtype=torch.float64, generator=generator)
    model = ParityTransformer(n, problem.k, temperature=1.0, readout=Cosine(), directions=directions)
    score = widened_score(model)
    width = score.weights.sum().item()
    assert width >= problem.k - 1e-12
    mask = problem.mask()
    product = (math.pi / 2 * score.weights[mask]).sin().prod() * (math.pi / 2 * score.weights[~mask]).cos().prod()
    listed = 0.0
    for x, y in problem.enumerate():
        phase = math.pi * (x.double() @ score.weights - width / 2) + math.pi * problem.k / 2
        listed += (y * phase.cos()).sum().item()
    assert listed / 2**n == pytest.approx(product.item(), abs=1e-12)


@pytest.mark.parametrize("readout", [Cosine(), ZigZag(3), ZigZag(3, 0.1)])
@pytest.mark.parametrize("loss", ["hinge", "squared-mean-hinge", "logistic"])
def test_the_sample_objective_is_plain_autograd_on_the_examples(readout, loss):
    generator = torch.Generator().manual_seed(0)
    problems = draw_problems(9, 3, range(4), noise=0.2)
    x, y = draw_examples(problems, 9000, [generator] * 4)  # more than one chunk
    directions = torch.randn(4, 3, 2, dtype=torch.float64, generator=generator)
    model = ParityTransformer(9, 3, temperature=0.5, readout=readout, directions=directions)
    ours = sample_objective(model, x, y, loss, wide_phase=False)().objective
    chosen = named_loss(loss)
    theirs = chosen.of_mean(chosen.of_margin(y * model(x)).mean(-1))
    assert torch.allclose(ours, theirs, rtol=1e-12)
    (gradient,) = torch.autograd.grad(ours.sum(), model.parameters())
    (expected,) = torch.autograd.grad(theirs.sum(), model.parameters())
    assert torch.allclose(gradient, expected, atol=1e-12)


def test_gradient_is_the_normalised_gradient_of_the_hinge_risk():
    start = torch.randn(1, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = ParityTransformer(20, 3, temperature=1.0, readout=Cosine(), directions=start)
    problem = Parity(20, (3, 9, 16))
    value = population_objective(model, [problem], "log-correlation")()
    (ours,) = torch.autograd.grad(value.objective.sum(), model.parameters())
    risk = population_risk(model, [problem], loss="hinge").value
    (theirs,) = torch.autograd.grad(risk.sum(), model.parameters())
    assert torch.allclose(ours, theirs / (1 - risk.detach()), rtol=1e-9)


def test_log_correlation_is_for_bounded_readouts():
    with pytest.raises(InvalidInput, match="log-correlation needs a bounded readout"):
        population_objective(ParityTransformer(6, 2), [Parity(6, (0, 1))], "log-correlation")
    problem, directions = Parity(9, (1, 4, 6)), torch.zeros(1, 3, 2, dtype=torch.float64)
    model = ParityTransformer(9, 3, temperature=1.0, readout=Triangle(3), directions=directions)
    value, risk = population_objective(model, [problem], "log-correlation")()
    hinge = population_risk(model, [problem], loss="hinge").value
    assert torch.allclose(risk, hinge.detach())
    assert torch.allclose(value, -(1 - hinge).log())


def test_a_wide_phase_is_the_cosines():
    model = ParityTransformer(9, 3, readout=Triangle(3))
    with pytest.raises(InvalidInput, match="set wide_phase=False for another readout"):
        widened_score(model)


def test_the_online_objective_is_the_sample_objective_on_the_data_stream():
    problems, seeds = draw_problems(9, 3, range(4), noise=0.1), range(4)
    directions = torch.randn(4, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = ParityTransformer(9, 3, temperature=0.5, readout=Cosine(), directions=directions)
    objective = online_objective(model, problems, seeds, 50, "hinge", wide_phase=False)
    generators = [seeded_generator(seed, "data") for seed in seeds]
    watched = 1.0
    for _ in range(3):
        x, y = draw_examples(problems, 50, generators)
        expected = sample_objective(model, x, y, "hinge", wide_phase=False)().objective
        evaluation = objective()
        assert torch.allclose(evaluation.objective, expected, rtol=1e-12)
        watched = watched + 50 / 1024 * (expected - watched)
        assert torch.allclose(evaluation.risk, watched, rtol=1e-12)


def test_the_watched_risk_of_fresh_examples_estimates_the_population_risk():
    problem = Parity(8, (1, 4, 6))
    directions = torch.randn(1, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    model = ParityTransformer(8, 3, temperature=0.5, readout=Cosine(), directions=directions)
    objective = online_objective(model, [problem], [0], 256, "hinge", wide_phase=False)
    for _ in range(200):
        risk = objective().risk
    # About 2·1024 examples count, each with |1 − yŷ| ≤ 2.
    assert risk.item() == pytest.approx(population_risk(model, [problem], loss="hinge").value.item(), abs=0.1)
