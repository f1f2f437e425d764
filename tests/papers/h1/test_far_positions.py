from fractions import Fraction

import pytest
import torch

from parityscope import InvalidInput, Parity, ParityTransformer, population_risk
from parityscope.models.positions import circle
from parityscope.papers.h1.circle import SMOOTHING, Circle
from parityscope.papers.h1.enclosures import Boxes, prove
from parityscope.papers.h1.far_positions import NearEnclosure, perched


def heads_at(n, places, length):
    return length * circle(n)[list(places)]


def inside(x, intervals):
    return bool(((intervals.low <= x) & (x <= intervals.high)).all())


@pytest.mark.parametrize("off", [0.0, 0.01])
def test_near_bits_enclose_what_all_inputs_say(off):
    """At n = 16 all 2^16 inputs can be visited: risk, gradient and Hessian lie in the intervals of 14 near bits."""
    n, places, support = 16, (0, 8), (4, 12)
    enclosure = NearEnclosure(n, support, Fraction(1, n), Fraction(str(SMOOTHING)), places)
    own = torch.tensor([off, 2.6, -off, 2.6 + off], dtype=torch.float64)  # in the heads' frames
    turned = []
    for place, (across, along) in zip(places, own.reshape(2, 2).tolist(), strict=True):
        sine, cosine = circle(n)[place].tolist()
        # (0, 1) of the frame is the place's direction, (1, 0) a quarter turn on.
        turned.append(([cosine, -sine], [sine, cosine], across, along))
    frame = torch.block_diag(*(torch.tensor([right, up], dtype=torch.float64) for right, up, *_ in turned))
    heads = (own @ frame).reshape(2, 2)
    boxes = Boxes.cubes(own[None], 1e-9)
    known = Circle(n, 2, 1 / n, SMOOTHING)
    risk = known.risk(heads, support)
    gradient = known.risk_gradient(heads[None], support).flatten() @ frame.T
    assert inside(risk, enclosure.risk(boxes))
    assert inside(gradient, enclosure.gradient(boxes)[0])
    step = 1e-5

    def slope(at):
        return known.risk_gradient((at @ frame).reshape(1, 2, 2), support).flatten() @ frame.T

    moves = step * torch.eye(4, dtype=torch.float64)
    hessian = torch.stack([(slope(own + move) - slope(own - move)) / (2 * step) for move in moves])
    wide = enclosure.hessian(Boxes.cubes(own[None], 2e-5))[0]
    assert inside(hessian, wide)
    width = (enclosure.hessian(boxes).high - enclosure.hessian(boxes).low).max()
    assert width < 1e-3 * hessian.abs().max()


@pytest.mark.parametrize("n", [60, 100, 200])
def test_strict_minima_persist_where_nobody_enumerates(n):
    """A box with one stationary point, a strict minimum of risk 1.78; the engines see the same risk there."""
    places, support = (5, 5 + n // 3), (0, n // 2)
    found = perched(n, support, places)
    assert found.proved
    assert found.basin.least_curvature > 0
    assert 1.78 < found.risk.low < found.risk.high < 1.7805
    heads = heads_at(n, places, found.length)
    model = ParityTransformer(n, 2, temperature=1 / n, smoothing=SMOOTHING, directions=heads)
    risk = population_risk(model, Parity(n, support))
    assert found.risk.low - risk.error_bound <= risk.value <= found.risk.high + risk.error_bound
    (gradient,) = torch.autograd.grad(risk.value, model.parameters())
    assert gradient.norm() < 1e-9


def test_what_a_hidden_bit_next_to_a_head_is_does_not_matter_while_the_other_is_far():
    near, neither = perched(100, (5, 50), (5, 38)), perched(100, (0, 50), (5, 38))
    assert near.proved
    assert neither.proved
    assert torch.allclose(near.risk.low, neither.risk.low, atol=1e-12)


def test_heads_that_see_all_hidden_bits_are_refused():
    with pytest.raises(InvalidInput, match=r"one of the hidden bits \(5, 38\) has to be far from all heads"):
        perched(100, (5, 38), (5, 38))


def test_positions_that_are_not_far_are_refused():
    enclosure = NearEnclosure(60, (0, 30), Fraction(1, 60), Fraction(str(SMOOTHING)), (5, 25))
    wide = torch.tensor([[0.0, 1.0, 0.0, 1.0]], dtype=torch.float64)  # heads of H1's length see a fifth of the circle
    with pytest.raises(InvalidInput, match="positions called far have more than 1e-14 of the attention"):
        enclosure.gradient(Boxes.cubes(wide, 0.0))


def test_a_point_beside_the_minimum_is_not_proved():
    found = perched(60, (0, 30), (5, 25))
    boxes = found.basin.boxes
    beside = Boxes(boxes.centre * 1.01, boxes.basis, boxes.half)
    assert not bool(prove(found.enclosure, beside).proved)


def test_with_relu_the_certified_slope_along_the_common_length_changes_its_sign():
    """Kinks leave no Hessian, but a gradient whose error is proved."""
    slopes = []
    for length in (15.0, 15.5):
        heads = heads_at(100, (5, 38), length)
        model = ParityTransformer(100, 2, temperature=0.01, smoothing=0.0, directions=heads)
        risk = population_risk(model, Parity(100, (0, 50)), gradient_tolerance=1e-9)
        (gradient,) = torch.autograd.grad(risk.value, model.parameters())
        slope = float((gradient.reshape(2, 2) * heads).sum() / length)
        # No weight moves by more than its share times the largest difference of codes over τ, 2n.
        assert abs(slope) > 1e3 * float(risk.gradient_bound) * 2 * 2 * 100
        slopes.append(slope)
    assert slopes[0] < 0 < slopes[1]
