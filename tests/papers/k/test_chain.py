"""The tree, the model and its trainings, each against a second route: enumeration, autograd, counting, an engine."""

import math

import pytest
import torch

from parityscope import InvalidInput, Parity, population_risk
from parityscope.models import Cosine, ParityTransformer
from parityscope.models.positions import orthogonal
from parityscope.papers.k import training
from parityscope.papers.k.chain import COSINE, LINKS, QUADRATIC, ChainTransformer, Link, ParityTree
from parityscope.papers.k.population import counted_gradient, node_moments, uniform_gradient, visible_roots
from parityscope.papers.k.training import (
    RATES,
    VARIANTS,
    experiment,
    experiment_rate,
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


@pytest.mark.parametrize("support", [(0,), (0, 1, 2), (0, 1, 2, 3, 4, 5)])
def test_a_tree_needs_a_power_of_two(support):
    with pytest.raises(InvalidInput, match="k = 2, 4, 8"):
        ParityTree(Parity(6, support))


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
    # What is left out of K's link is 32/(πl)³ at every further odd l; Σ 1/l³ over all odd l is 7ζ(3)/8.
    further = 7 * 1.2020569031595942 / 8 - sum(1 / one**3 for one in link.frequencies)
    left = 32 / math.pi**3 * further if link is QUADRATIC else 0.0
    assert left <= link.tail <= 1.01 * left


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


@pytest.mark.parametrize("block", [False, True])
def test_a_chain_is_generated_token_by_token(block):
    tree, model = TREES[1], model_of(TREES[1], QUADRATIC, block=block)
    tokens = x = every_chain(tree)[:, : tree.d]
    for scores in model.attention():
        tokens = torch.cat([tokens, QUADRATIC.value(tokens @ scores[: tokens.shape[1]])[:, None]], -1)
    assert torch.allclose(model(x), tokens[:, tree.d :], atol=1e-12)


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


@pytest.mark.parametrize("link", LINKS.values(), ids=lambda link: link.name)
def test_for_a_pair_the_certified_error_is_the_largest_one(link):
    """Some input has all of it for K's link, and for −cos πt, which bends less than its curvature says, nearly all."""
    tree, tried = ParityTree(Parity(6, (1, 4))), 0
    chain = every_chain(tree)
    for seed in range(20):
        model = model_of(tree, link, block=False, spread=0.5, seed=seed)
        with torch.no_grad():
            model.weights += 4 * tree.is_child()
            error = float((model(chain[:, : tree.d])[:, -1] - chain[:, -1]).abs().max())
        if error < 0.3:
            tried += 1
            assert error <= model.certified_error() * (1 + 1e-12)
            assert model.certified_error() < error * (1 + (1e-9 if link is QUADRATIC else 0.1))
    assert tried > 5


def test_streamed_gradients_are_those_of_the_first_examples(monkeypatch):
    monkeypatch.setattr(training, "_BLOCK", 100)
    tree, generator = TREES[0], seeded_generator(3, "data")
    x = torch.cat([tree.draw(rows, generator) for rows in (50, 100, 80)])
    for count, found in zip((50, 230), streamed_gradients(tree, (50, 230), 3, QUADRATIC), strict=True):
        expected = summed_gradient(tree, tree.chain(x[:count]), QUADRATIC, block=False) / count
        assert torch.allclose(found, expected, atol=1e-7)


def test_one_step_from_enough_examples_is_right_on_all_inputs():
    tree = ParityTree.random(64, 8, seed=0)
    few, many = (
        fresh_answers(stepped(tree, QUADRATIC, -one_step_rate(tree, QUADRATIC) * gradient), 0)
        for gradient in streamed_gradients(tree, [256, 32_768], 0, QUADRATIC)
    )
    assert few.accuracy < 0.7
    assert few.largest_error >= 1  # as far as that a wrong answer is
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


def test_a_pairs_only_step_is_the_rounded_gradient_of_all_examples(monkeypatch):
    monkeypatch.setattr(training, "_BLOCK", 10)
    pair = ParityTree.random(16, 2, seed=0)
    x = pair.draw(25, seeded_generator(7, "data"))
    gradient = summed_gradient(pair, pair.chain(x), QUADRATIC, block=True) / 25
    expected = (-rounded_rate(pair, QUADRATIC) * gradient).round().float()
    assert len(expected.unique()) > 3
    assert bool((learn_end_to_end(pair, 25, 7).weights == expected).all())


def test_one_step_needs_no_block_mask_and_learning_by_levels_has_it():
    tree = ParityTree.random(16, 4, seed=1)
    assert not stepped(tree, QUADRATIC, torch.zeros(3, 19, dtype=torch.float64)).block
    assert learn_end_to_end(tree, 16, 1).block
    assert learn_log_correlation(tree, 16, 1, COSINE).block


@pytest.mark.parametrize("forced", [True, False])
def test_a_first_step_goes_along_the_correlations_gradient_and_is_as_long_as_said(monkeypatch, forced):
    monkeypatch.setattr(training, "_LOG_STEPS", 0)
    tree = ParityTree.random(16, 4, seed=1)
    x = tree.draw(64, seeded_generator(1, "data"))
    model, true = learn_log_correlation(tree, 64, 1, COSINE, forced=forced), tree.chain(x)
    for level in (1, 2):
        nodes, end = tree.nodes(level), tree.ends[level - 1]
        below = model(x).detach()[:, : end - 16]
        seen = true if forced else torch.cat([x, below, true[:, end:]], -1)
        step = -summed_gradient(tree, seen, COSINE, block=True, correlation=True)[nodes, :end].float()
        expected = (math.log(19) - 1) * step / step.topk(2, -1).values.mean(-1, keepdim=True)
        assert torch.allclose(model.weights[nodes, :end], expected, atol=1e-5)


def test_only_a_chain_that_is_forced_needs_no_generating(monkeypatch):
    def forward(model, x, *, levels):
        raise AssertionError("generated")

    tree = ParityTree.random(16, 4, seed=1)
    monkeypatch.setattr(ChainTransformer, "forward", forward)
    learn_log_correlation(tree, 64, 1, COSINE)
    with pytest.raises(AssertionError, match="generated"):
        learn_log_correlation(tree, 64, 1, COSINE, forced=False)


def test_rates_keep_weights_away_from_half_integers():
    """No rate that adds between 2.25 and 2.75 times log M to the top node's children keeps them further away."""
    tree = ParityTree.random(64, 8, seed=0)
    gains = -uniform_gradient(tree, QUADRATIC, block=True)[tree.is_child()]
    top = -uniform_gradient(tree, QUADRATIC, block=True)[-1, list(tree.children[-1])].mean()

    def worst(rates):
        weights = rates[:, None] * gains
        return (weights - weights.round()).abs().amax(1)

    rate = torch.tensor([rounded_rate(tree, QUADRATIC)], dtype=torch.float64)
    assert 2.25 - 1e-9 <= float(rate * top) / math.log(70) <= 2.75 + 1e-9
    every = torch.linspace(2.25, 2.75, 1001, dtype=torch.float64) * math.log(70) / top
    assert float(worst(rate)) < float(worst(every).min()) + 0.01 < 0.3


def test_the_filter_opens_with_the_level_below():
    tree = ParityTree.random(64, 8, seed=0)
    model, u = ChainTransformer(tree, QUADRATIC, block=True), tree.draw(64, torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert filter_passes(model, u, 1.5) == [True, False, False]
        assert filter_passes(model, u, 1.0) == [True, False, True]  # a filtered node is 0, at distance 1 from −1
        model.weights[:3] += 30.0 * tree.is_child()[:3]
        assert filter_passes(model, u, 1.5) == [True, False, False]  # the fourth node is still near −1
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


def test_rates_are_the_papers_and_grow_with_the_inverse_of_the_populations_first_step():
    assert RATES == {8: 15.0, 16: 50.0, 32: 100.0}  # K, Appendix D
    found = [experiment_rate(ParityTree.random(d, k, seed=0)) for d, k in ((64, 16), (128, 16), (32, 4))]
    assert found == pytest.approx([50.0, 200.0, 2.5])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("scores", [0.45, 0.35])
def test_a_step_is_that_of_the_methods_loss(monkeypatch, variant, scores):
    """Two levels, and children of the lower one with scores on either side of 0.4, by autograd on all examples."""
    monkeypatch.setattr(training, "_BLOCK", 64)
    tree = ParityTree(Parity(6, (0, 2, 3, 5)))
    others = math.log(scores / (1 - 2 * scores) * 4)  # of the six bits that a node of the lower level sees two have it
    model = ChainTransformer(tree, QUADRATIC, block=True, dtype=torch.float64)
    with torch.no_grad():
        model.weights[:2] += others * tree.is_child()[:2]
    x = tree.draw(100, seeded_generator(0, "data"), torch.float64)
    true = tree.chain(x)[:, tree.d :]
    closed = variant == "CoT + self-consistency" and scores < 0.4
    made = model(x, levels=1 if closed else 2)
    answer = (made[:, -1] - true[:, -1]).square().mean() / 2
    chain = ((model.forced(tree.chain(x)) if "forcing" in variant else made) - true).square().sum(1).mean() / 6
    loss = {"direct": answer, "CoT + self-consistency": chain + (0 if closed else 0.1) * answer}.get(variant, chain)
    expected = (
        model.weights.detach() - 7 * (0.01 if variant == "direct" else 1) * torch.autograd.grad(loss, model.weights)[0]
    )
    curves = experiment(variant, model, x, 7.0, 1)
    assert torch.allclose(model.weights, expected, atol=1e-12)
    assert (curves.chain_loss, curves.answer_loss) == ([pytest.approx(chain.item())], [pytest.approx(answer.item())])
    assert curves.opened == [None if closed else 0]


def test_a_level_opens_with_all_nodes_below_it_and_stays_counted_from_there():
    tree = ParityTree(Parity(9, (0, 1, 2, 4, 5, 6, 7, 8)))
    model = ChainTransformer(tree, QUADRATIC, block=True)
    x = tree.draw(50, seeded_generator(0, "data"))
    for nodes, opened in ((3, [None, None]), (4, [0, None]), (6, [0, 0]), (7, [0, 0])):
        with torch.no_grad():
            model.weights.zero_()
            model.weights[:nodes] += 30.0 * tree.is_child()[:nodes]
        assert experiment("CoT + self-consistency", model, x, 0.0, 2).opened == opened
