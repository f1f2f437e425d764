"""The points at which the texts show that log C is not concave: above a chain’s first level, and for biased bits."""

import itertools

import numpy as np
import pytest
import torch

from parityscope.papers.own.claims.chain import first_node, node_correlation


def correlation(tokens, hidden, weights, chances):
    """Return E[y · cos π(S − (Λ − k)/2)], y the product of the hidden tokens, summed over all inputs."""
    score = (1 - tokens) / 2 @ weights - (weights.sum() - len(hidden)) / 2
    return (chances * tokens[:, hidden].prod(1) * np.cos(np.pi * score)).sum()


def test_above_the_first_level_the_middle_of_two_points_is_lower():
    bits = np.array(list(itertools.product((1.0, -1.0), repeat=4)))
    tokens = np.column_stack([bits, bits[:, 0] * bits[:, 1], bits[:, 2] * bits[:, 3]])
    ends = np.array([[0.7] * 4 + [0.9] * 2, [0.3] * 4 + [0.2] * 2])
    points = np.vstack([ends, np.sqrt(ends[0] * ends[1])])
    found = [correlation(tokens, [4, 5], point, 1 / 16) for point in points]
    by_the_tree = node_correlation(first_node(4, 4, 2), torch.from_numpy(points))
    assert found == pytest.approx(by_the_tree.tolist(), abs=1e-12)
    assert min(found[:2]) > 0.02
    assert 0 < found[2] < 0.01


@pytest.mark.parametrize(("bias", "concave"), [(0.5, False), (0.0, True)])
def test_with_biased_bits_the_logarithm_has_a_finite_limit_and_then_rises(bias, concave):
    tokens = np.array(list(itertools.product((1.0, -1.0), repeat=2)))
    chances = ((1 + bias * tokens) / 2).prod(1)

    def value(u):
        return correlation(tokens, [0], np.exp([u, -1.0]), chances)

    v = np.pi / 2 * np.exp([-3.0, -1.0])
    assert value(-3.0) == pytest.approx(np.sin(v[0]) * np.cos(v[1]) + bias**2 * np.cos(v[0]) * np.sin(v[1]), abs=1e-12)
    bend = np.diff(np.log([value(u) for u in np.linspace(-8, -1, 50)]), 2)
    assert (bend.max() < 0) == concave
