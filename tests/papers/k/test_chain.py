"""The tree, the model and its trainings, each against a second route: enumeration, autograd, counting, an engine."""

import math

import pytest
import torch

from parityscope import InvalidInput, Parity, population_risk
from parityscope.models import Cosine, ParityTransformer
from parityscope.models.positions import orthogonal
from parityscope.papers.k.chain import COSINE, LINKS, QUADRATIC, ChainTransformer, Link, ParityTree
from parityscope.papers.k.population import counted_gradient, node_moments, uniform_gradient, visible_roots
from parityscope.papers.k.training import (
    RATES,
    VARIANTS,
    experiment,
    filter_passes,
    fresh_answers,
    learn_end_to_end,
    learn_log_correlation,
    one_step_rate,
    rounded_rate,
    stepped,
    streamed_gradients,
    summed_gradient,
)
from parityscope.problems import seeded_generator

TREES = [ParityTree(Parity(6, (0, 2, 3, 5))), ParityTree(Parity(9, (0, 1, 2, 4, 5, 6, 7, 8)))]
PURE = Link("−1 + 4t²", lambda t: 4 * t * t - 1, lambda t: 8 * t, 4.0, 8.0, (), (), 0.0)


def every_chain(tree):
    signs = 1 - 2 * torch.cat([x for x, _ in tree.problem.enumerate()]).double()
    return tree.chain(signs)


def model_of(tree, link, *, block, spread=1.0, seed=0):
    model = ChainTransformer(tree, link, block=block, dtype=torch.float64)
    with torch.no_grad():
        model.weights += spread * torch.randn(model.weights.shape, generator=torch.Generator().manual_seed(seed))
    return model


@pytest.mark.parametrize("tree", TREES)
def test_the_top_of_the_tree_is_the_parity(tree):
    chain = every_chain(tree)
    bits = torch.cat([x for x, _ in tree.problem.enumerate()])
    assert bool((chain[:, -1] == tree.problem.label(bits)).all())
    assert [tree.level(token) for token in range(tree.d, tree.tokens)] == sorted(
        tree.level(token) for token in range(tree.d, tree.tokens)
    )
    assert tree.ends[-1] == tree.tokens
    assert bool((tree.is_child().sum(1) == 2).all())


def test_a_tree_needs_a_power_of_two():
    with pytest.raises(InvalidInput, match="k = 2, 4, 8"):
        ParityTree(Parity(6, (0, 1, 2)))


@pytest.mark.parametrize("link", LINKS.values(), ids=lambda link: link.name)
def test_a_link_is_what_k_asks_for(link):
    t = torch.linspace(-1, 1, 2001, dtype=torch.float64).requires_grad_()
    value = link.value(t)
    (slope,) = torch.autograd.grad(value.sum(), t)
    assert torch.allclose(slope, link.slope(t), atol=1e-12)
    assert float(slope.abs().max()) == pytest.approx(link.steepest, rel=1e-4)
    ends = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    assert torch.allclose(link.value(ends), torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    assert float(link.slope(ends).abs().max()) < 1e-12
    assert float(link.value(torch.tensor(1e-3)) + 1) == pytest.approx(link.curvature * 1e-6, rel=0.1)
    waves = torch.tensor(link.frequencies, dtype=torch.float64) * math.pi * t.detach()[:, None]
    series = waves.cos() @ torch.tensor(link.sizes, dtype=torch.float64)
    assert float((series - value.detach()).abs().max()) <= link.tail + 1e-12


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("link", LINKS.values(), ids=lambda link: link.name)
def test_exact_moments_are_those_of_all_inputs(tree, block, link):
    chain, model = every_chain(tree), model_of(tree, link, block=block)
    made, attention = model.forced(chain).detach(), model.attention().detach()
    for node in range(tree.k - 1):
        found = node_moments(tree, node, attention[node], link, block=block)
        true = chain[:, tree.d + node]
        assert float(found.correlation) == pytest.approx(float((made[:, node] * true).mean()), abs=1e-12 + found.error)
        loss = float((made[:, node] - true).square().mean()) / 2
        assert float(found.loss) == pytest.approx(loss, abs=1e-12 + 2 * found.error)


def test_on_the_first_level_the_engines_know_a_node():
    """A node with −cos πt that sees only bits is one head with the bounded readout, whose risk an engine computes."""
    tree = TREES[0]
    chain = model_of(tree, COSINE, block=True)
    with torch.no_grad():
        chain.weights += tree.is_child()
    logits = chain.weights.detach()[:1, : tree.d]
    head = ParityTransformer(tree.d, 2, 1, 1.0, positions=orthogonal(tree.d), readout=Cosine(), directions=logits)
    risk = population_risk(head, Parity(tree.d, tree.children[0]), loss="log-correlation")
    moments = node_moments(tree, 0, chain.attention().detach()[0], COSINE, block=True)
    assert -math.log(float(moments.correlation)) == pytest.approx(risk.value.item(), abs=1e-9)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("link", [QUADRATIC, COSINE, PURE], ids=lambda link: link.name)
@pytest.mark.parametrize("correlation", [False, True])
def test_the_gradient_at_zero_is_exact(tree, block, link, correlation):
    chain, model = every_chain(tree), ChainTransformer(tree, link, block=block, dtype=torch.float64)
    true, made = chain[:, tree.d :], model.forced(chain)
    loss = -(made * true).mean(0).sum() if correlation else (made - true).square().mean(0).sum() / 2
    (gradient,) = torch.autograd.grad(loss, model.weights)
    assert torch.allclose(uniform_gradient(tree, link, block=block, correlation=correlation), gradient, atol=1e-14)
    summed = summed_gradient(tree, chain, link, block=block, correlation=correlation) / len(chain)
    assert torch.allclose(summed, gradient, atol=1e-14)
    if link is PURE and not correlation:
        assert torch.allclose(counted_gradient(tree, 4.0, block=block), gradient, atol=1e-14)


def test_the_count_of_trivial_parities_is_nearly_the_gradient_of_ks_link():
    tree = ParityTree.random(64, 16, seed=0)
    exact, counted = uniform_gradient(tree, QUADRATIC), counted_gradient(tree, QUADRATIC.curvature)
    assert float((exact - counted).abs().max()) < 0.01 * float(exact.abs().max())


def test_the_two_children_have_the_same_gradient_on_every_sample_but_for_fourth_order_terms():
    """(1 + x_m)x_a = x_a + x_b = (1 + x_m)x_b: what K's squared loss sees of a child, it sees of the other."""
    tree = ParityTree.random(64, 8, seed=0)
    (gradient,) = streamed_gradients(tree, [500], 0, QUADRATIC)
    (correlated,) = streamed_gradients(tree, [500], 0, QUADRATIC, correlation=True)

    def apart(one):
        pairs = one.gather(1, torch.tensor(tree.children))
        return float((pairs[:, 0] - pairs[:, 1]).abs().mean() / pairs.abs().mean())

    assert apart(gradient) < 0.3 * apart(correlated)


def test_roots_are_no_children_of_what_is_seen():
    tree = TREES[0]
    assert visible_roots(tree, 0, block=False) == list(range(6))
    assert visible_roots(tree, 1, block=False) == [1, 3, 4, 5, 6]
    assert visible_roots(tree, 2, block=True) == [1, 4, 6, 7]


@pytest.mark.parametrize("block", [False, True])
def test_a_perfect_chain_answers_every_input_and_says_so(block):
    tree = TREES[1]
    model = ChainTransformer(tree, QUADRATIC, block=block)
    chain = every_chain(tree).float()
    with torch.no_grad():
        model.weights += 30.0 * tree.is_child()
        assert float((model(chain[:, : tree.d]) - chain[:, tree.d :]).abs().max()) < 1e-5
    assert model.certified_error() < 1e-9
    assert bool((model(chain[:, : tree.d], levels=1)[:, 4:] == 0).all())


@pytest.mark.parametrize("link", LINKS.values(), ids=lambda link: link.name)
def test_no_input_has_more_than_the_certified_error(link):
    tree = TREES[1]
    chain = every_chain(tree)
    for seed in range(20):
        model = model_of(tree, link, block=False, spread=0.3, seed=seed)
        with torch.no_grad():
            model.weights += (5 + seed / 4) * tree.is_child()
            error = float((model(chain[:, : tree.d])[:, -1] - chain[:, -1]).abs().max())
        assert error <= model.certified_error() + 1e-9


def test_one_step_from_enough_examples_is_right_on_all_inputs():
    tree = ParityTree.random(64, 8, seed=0)
    few, many = (
        fresh_answers(stepped(tree, QUADRATIC, -one_step_rate(tree, QUADRATIC) * gradient), 0)
        for gradient in streamed_gradients(tree, [256, 32_768], 0, QUADRATIC)
    )
    assert few.accuracy < 0.7
    assert many.accuracy == 1
    assert many.largest_error <= many.certified_error < 1


def test_both_ways_end_to_end_learn():
    tree = ParityTree.random(64, 8, seed=1)
    assert fresh_answers(learn_log_correlation(tree, 1024, 1, COSINE), 1).accuracy == 1
    assert fresh_answers(learn_log_correlation(tree, 1024, 1, COSINE, forced=False), 1).accuracy == 1
    pair = ParityTree.random(16, 2, seed=0)
    model = learn_end_to_end(pair, 2048, 0)
    assert fresh_answers(model, 0).accuracy == 1
    assert bool((model.weights == model.weights.round()).all())


def test_rates_keep_weights_away_from_half_integers():
    tree = ParityTree.random(64, 8, seed=0)
    step = -rounded_rate(tree, QUADRATIC) * uniform_gradient(tree, QUADRATIC, block=True)
    weights = step[tree.is_child()]
    assert float((weights - weights.round()).abs().max()) < 0.3
    assert 2 * math.log(70) < float(weights.min()) < 3 * math.log(70)


def test_the_filter_opens_with_the_level_below():
    tree = ParityTree.random(64, 8, seed=0)
    model, u = ChainTransformer(tree, QUADRATIC, block=True), tree.draw(64, torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert filter_passes(model, u, 1.5) == [True, False, False]
        model.weights[tree.nodes(1)] += 30.0 * tree.is_child()[tree.nodes(1)]
        assert filter_passes(model, u, 1.5) == [True, True, False]


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_experiment_descends_on_its_own_loss(variant):
    tree = ParityTree.random(16, 8, seed=0)
    model = ChainTransformer(tree, QUADRATIC, block="forcing" not in variant and variant != "direct")
    curves = experiment(variant, model, tree.draw(500, seeded_generator(0, "data")), RATES[8] / 16, 10)
    losses = curves.answer_loss if variant == "direct" else curves.chain_loss
    assert len(losses) == 10
    assert losses[-1] < losses[0]
    assert curves.opened == ([None, None] if "consistency" in variant else [0, 0])
