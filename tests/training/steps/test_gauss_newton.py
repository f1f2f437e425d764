import pytest

from parityscope import InvalidInput, draw_problems, learn


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
