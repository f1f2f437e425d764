from itertools import combinations
from statistics import mean

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parityscope.language_models.measures import MEASURES, REDUCTIONS, expected_minimum, reduced

NAN = float("nan")


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=8), st.integers(1, 9))
def test_the_expected_minimum_is_the_mean_over_all_subsets(values, draws):
    found = expected_minimum(torch.tensor(values, dtype=torch.float64), draws).item()
    brute = mean(min(subset) for subset in combinations(values, min(draws, len(values))))
    assert found == pytest.approx(brute, abs=1e-12)


def test_nan_positions_are_never_drawn():
    values = torch.tensor([[0.3, NAN, 0.1, 0.2], [NAN, NAN, NAN, 0.7], [NAN] * 4], dtype=torch.float64)
    found = expected_minimum(values, 2)
    assert found[:2].tolist() == pytest.approx([(0.1 + 0.1 + 0.2) / 3, 0.7])
    assert found[2].isnan()


def test_many_positions_do_not_overflow():
    values = torch.linspace(0, 1, 5001, dtype=torch.float64)
    # The smallest of m uniform values among 0/N … N/N has mean (N + 2)/(m + 1) − 1 over N.
    assert expected_minimum(values, 9).item() == pytest.approx((5002 / 10 - 1) / 5000, rel=1e-9)


def test_reductions_by_hand():
    entropies = torch.tensor([[[NAN, 0.5, 0.1, 0.9, 0.4, 0.8]]], dtype=torch.float64)
    found = dict(zip(REDUCTIONS, reduced(entropies, prompt=3, count=2).flatten().tolist(), strict=True))
    assert found == pytest.approx(
        {
            "min (Eq. 1)": 0.1,
            "mean": (0.5 + 0.1 + 0.9 + 0.4 + 0.8) / 5,
            "suffix min": 0.4,
            "suffix min, count-matched": (0.4 + 0.4 + 0.8) / 3,
            "suffix mean": (0.9 + 0.4 + 0.8) / 3,
        }
    )


def test_measures_have_names_of_their_own():
    assert len({str(measure) for measure in MEASURES}) == len(MEASURES) == 2 * len(REDUCTIONS)
