"""What the page says of a support is what the polytope proves: a line beside all positions, or a mixture of others."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parityscope.apps.explorer.learn import read_request
from parityscope.apps.explorer.polytope import MOST_BITS, PolytopeSettings, polytope
from parityscope.core.errors import InvalidInput
from parityscope.models.positions import harmonics
from parityscope.problems import Parity
from parityscope.training.steps.log_attention import log_value


def asked(n, support, count=1):
    return polytope(PolytopeSettings(n=n, support=support, harmonics=count))


@pytest.mark.parametrize("other", range(7))
def test_on_the_circle_single_positions_and_neighbours_are_faces_and_no_other_pairs(other):
    support = tuple({0, other})
    assert asked(7, support)["face"] == (other in (0, 1, 6))


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_as_many_harmonics_as_positions_hold_them(data):
    count = data.draw(st.integers(1, 3))
    n = data.draw(st.integers(2 * count + 1, 14))
    support = data.draw(st.sets(st.integers(0, n - 1), min_size=count, max_size=count))
    answer = asked(n, tuple(support), count)
    assert answer["face"]
    assert answer["learned"]
    assert answer["parameters"] == 2 * count + 1
    scores = torch.tensor(answer["scores"]["at"])
    hidden = torch.zeros(n, dtype=torch.bool)
    hidden[list(support)] = True
    assert scores[hidden].abs().max() < 1e-6
    assert scores[~hidden].max() < 0


@pytest.mark.parametrize("count", [1, 2])
def test_nobody_is_beyond_the_line_and_b_is_on_it(count):
    support = (2, 3)
    answer = asked(10, support, count)
    points, (start, end) = torch.tensor(answer["points"]), torch.tensor(answer["line"])
    along = (end - start) / (end - start).norm()
    beyond = (points - start) @ torch.stack([along[1], -along[0]])  # to the right of the line
    assert beyond[list(support)].abs().max() < 1e-4
    others = torch.ones(10, dtype=torch.bool)
    others[list(support)] = False
    assert (beyond[others].sign() == beyond[others][0].sign()).all()


@pytest.mark.parametrize(("n", "support", "count"), [(12, (2, 5), 1), (12, (2, 5, 9), 2), (9, (0, 3, 5, 7), 2)])
def test_the_mixture_is_one_of_b_and_one_of_the_others(n, support, count):
    answer = asked(n, support, count)
    assert not answer["face"]
    others, hidden = (torch.tensor(answer["mixture"][name], dtype=torch.float64) for name in ("others", "hidden"))
    code = harmonics(n, count)
    assert others.min() >= 0
    assert others[list(support)].abs().max() == 0
    assert float(others.sum()) == pytest.approx(1, abs=1e-3)  # shares are sent with five decimals
    torch.testing.assert_close(others @ code, hidden @ code, atol=1e-3, rtol=0)


def test_what_is_reachable_bounds_training_and_any_other_numbers():
    answer = asked(12, (2, 5))
    assert answer["correlation"][-1] <= answer["reachable"] + 1e-12 < 1
    generator = torch.Generator().manual_seed(0)
    tries = 3 * torch.randn(2000, 3, generator=generator, dtype=torch.float64)
    c = (tries[:, :2] @ harmonics(12, 1).T + tries[:, 2:]).exp()
    assert float(log_value(c, Parity(12, (2, 5)).mask()).exp().max()) < answer["reachable"]


def test_the_snippet_gives_what_is_shown():
    for support in ((2, 3), (2, 5)):
        answer = asked(12, support)
        names: dict = {}
        exec(answer["snippet"].replace("print", "shown = "), names)
        assert names["face"].margin == answer["margin"]
        assert int(names["run"].steps[0]) == answer["steps"][-1]
        assert bool(names["run"].learned[0]) == answer["learned"]
        torch.testing.assert_close(torch.tensor(names["weights"]), torch.tensor(answer["weights"]), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({"n": MOST_BITS + 1}, f"n = {MOST_BITS + 1}"),
        ({"n": 6, "support": range(6)}, "hide at most 5 of 6 positions"),
        ({"n": 40, "support": range(17)}, "hides up to 16 positions, got 17"),
        ({"n": 6, "support": [2, 7]}, "7"),
        ({"harmonics": 5}, "harmonics = 5"),
        ({"recipe": "bounded"}, "there is no setting 'recipe'"),
    ],
)
def test_what_is_not_drawn_is_refused_in_a_sentence(request_, sentence):
    asked = {name: list(value) if isinstance(value, range) else value for name, value in request_.items()}
    with pytest.raises(InvalidInput, match=sentence):
        polytope(read_request(PolytopeSettings, asked))
