"""Other people's models: what they say about themselves is checked, converted, or refused in one sentence."""

import copy
import math

import pytest
import torch

from additive_model import AdditiveModel
from parityscope import (
    Cosine,
    InvalidInput,
    Parity,
    PiecewiseLinear,
    Readout,
    Triangle,
    ZigZag,
    population_accuracy,
    population_risk,
)
from parityscope.models import Wave

WEIGHTS = 0.97 * torch.linspace(0.05, 0.35, 10, dtype=torch.float64).sqrt() - 0.15  # no score on a kink
PROBLEM = Parity(10, (1, 7))


def described(**answers):
    """A triangle that says something else about itself."""
    methods = {name: (lambda self, *range_, answer=answer: answer) for name, answer in answers.items()}
    return type("Described", (Triangle,), methods)(2)


@pytest.mark.parametrize(
    ("readout", "loss"),
    [
        (described(piecewise_linear=PiecewiseLinear((0.0, 1.5), (1.0, -1.0), 0.0, 2.0)), "hinge"),
        (described(cosine_series=(Wave(1.0, 1.0),)), "hinge"),
        (described(piecewise_linear=None, analytic=ZigZag(2, 0.1).analytic()), "squared-hinge"),
    ],
    ids=["piecewise_linear", "cosine_series", "analytic"],
)
def test_a_readout_that_is_not_what_it_says_is_refused(readout, loss):
    with pytest.raises(InvalidInput, match=r"^\w+\(\) of Described differs from its forward by .* at S = .*: name "):
        population_risk(AdditiveModel(WEIGHTS, readout), PROBLEM, loss=loss, engine=_engine(readout))


def _engine(readout):
    return "closed-form" if readout.cosine_series() else "split"


def test_a_wrong_sign_is_refused_too():
    readout = described(sign_equivalent=PiecewiseLinear((0.0,), (1.0,), 0.0, -1.0))
    with pytest.raises(InvalidInput, match="the sign of sign_equivalent"):
        population_accuracy(AdditiveModel(WEIGHTS, readout), PROBLEM)


def test_bounded_must_be_true():
    loud = type("Loud", (Cosine,), {"forward": lambda self, S: 2 * (torch.pi * S).cos()})()
    loud.cosine_series = lambda: (Wave(1.0, 2.0),)
    with pytest.raises(InvalidInput, match="Loud says it is bounded, but"):
        population_risk(AdditiveModel(WEIGHTS, loud), PROBLEM, loss="hinge")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (((1.0, 0.0), (0.0, 1.0), 0.0, 0.0), "knots must ascend, got 1 before 0"),
        (((0.0, 1.0), (0.0,), 0.0, 0.0), "one value per knot, got 2 and 1"),
        (((0.0,), (float("nan"),), 0.0, 0.0), "values of a piecewise-linear function must be finite, got nan"),
        ((("a",), (1.0,), 0.0, 0.0), "knots of a piecewise-linear function must be numbers"),
        (((0.0,), (1.0,), 0.0, 0.0, -1.0), "must be 0 or more, got -1"),
    ],
)
def test_knots_are_validated(arguments, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        PiecewiseLinear(*arguments)


def test_lists_and_tensors_become_tuples():
    made = PiecewiseLinear(torch.tensor([0.0, 1.0]), [1, -1], 0, 2)
    assert made == PiecewiseLinear((0.0, 1.0), (1.0, -1.0), 0.0, 2.0)
    assert hash(made) == hash(PiecewiseLinear((0.0, 1.0), (1.0, -1.0), 0.0, 2.0))


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic", "log-correlation"])
def test_an_approximation_counts_its_error(loss):
    coarse = PiecewiseLinear(*((t := torch.linspace(0, 3, 61)).tolist(), (torch.pi * t).cos().tolist()), 0.0, 0.0, 5e-3)
    readout = type("Coarse", (Readout,), {"forward": lambda self, S: (torch.pi * S).cos()})()
    readout.piecewise_linear = lambda: coarse
    model = AdditiveModel(WEIGHTS, readout)
    ours, plain = (population_risk(model, PROBLEM, loss=loss, engine=engine) for engine in ("split", "enumerate"))
    assert (ours.value - plain.value).abs() <= ours.error_bound + plain.error_bound
    assert 1e-3 < ours.error_bound < 1


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic", "log-correlation"])
@pytest.mark.parametrize("function", [torch.tanh, torch.erf, torch.sin, lambda z: z.abs() - 1])
def test_any_readout_is_fitted_with_its_error_in_the_bound(function, loss):
    readout = type("Own", (Readout,), {"forward": lambda self, S: function(2 - 3 * S)})()
    model = AdditiveModel(WEIGHTS, readout)
    ours, plain = (population_risk(model, PROBLEM, loss=loss, engine=engine) for engine in ("split", "enumerate"))
    assert (ours.value - plain.value).abs() <= ours.error_bound + plain.error_bound
    assert ours.bound_is == "estimated"
    assert ours.error_bound < 1e-7
    gradients = [torch.autograd.grad(risk.value, model.weights)[0] for risk in (ours, plain)]
    assert torch.allclose(*gradients, atol=1e-5 * (1 + plain.value.exp().item()))


def test_single_precision_is_converted_and_a_wrong_size_refused():
    single = AdditiveModel(WEIGHTS.float(), ZigZag(2), torch.zeros((), dtype=torch.float32))
    risk = population_risk(single, PROBLEM)
    risk.value.backward()
    double = population_risk(AdditiveModel(WEIGHTS.float().double(), ZigZag(2)), PROBLEM)
    assert torch.equal(risk.value, double.value)
    assert single.weights.grad.dtype == torch.float32
    with pytest.raises(InvalidInput, match="the model has 10 weights and the problem 12 bits"):
        population_risk(single, Parity(12, (1, 7)))
    with pytest.raises(InvalidInput, match="the model does not take a batch of 12 bits: "):
        population_risk(torch.nn.Sequential(torch.nn.Linear(10, 1)), Parity(12, (1, 7)))


class _Forgetful(AdditiveModel):
    """Its `forward` adds an offset that its score does not name."""

    def forward(self, x):
        return self.readout(x.double() @ self.weights + self.offset + 0.5)


@pytest.mark.parametrize("engine", ["auto", "split", "enumerate"])
def test_a_score_that_is_not_the_one_behind_forward_is_refused(engine):
    with pytest.raises(InvalidInput, match="forward of _Forgetful is not its readout of its additive score: they diff"):
        population_risk(_Forgetful(WEIGHTS, ZigZag(2)), PROBLEM, engine=engine)


def test_a_readout_is_looked_at_again_when_its_values_change():
    class Shifted(Triangle):
        shift = 0.0

        def forward(self, S):
            return super().forward(S + self.shift)

    readout = Shifted(2)
    population_risk(AdditiveModel(WEIGHTS, readout), PROBLEM, loss="hinge", engine="split")
    readout.shift = 0.3
    with pytest.raises(InvalidInput, match=r"piecewise_linear\(\) of Shifted differs from its forward"):
        population_risk(AdditiveModel(WEIGHTS, readout), PROBLEM, loss="hinge", engine="split")


class _Steep(Readout):
    def forward(self, S):
        return torch.tanh(100 * (0.5 - S))  # exactly ±1 in double precision over most of the range


class _Clamped(Readout):
    def forward(self, S):
        return (1.5 * torch.cos(torch.pi * S)).clamp(-1, 1)


@pytest.mark.parametrize("readout", [_Steep(), pytest.param(_Clamped(), marks=pytest.mark.slow)], ids=["tanh", "clamp"])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_readouts_that_saturate_get_fitted_pieces(readout, loss):
    fitted, truth = (
        population_risk(AdditiveModel(WEIGHTS, readout), PROBLEM, loss=loss, engine=engine)
        for engine in ("lattice", "enumerate")
    )
    assert abs(fitted.value - truth.value) <= fitted.error_bound + truth.error_bound
    large = population_risk(AdditiveModel(WEIGHTS.repeat(3)[:28] / 2.5, readout), Parity(28, (1, 7)), loss=loss)
    assert large.error_bound <= 1e-9


@pytest.mark.parametrize("engine", ["enumerate", "split"])
def test_the_logistic_loss_is_right_where_margins_are_large(engine):
    """log(1 + e^−20.1) = e^−20.1 to sixteen digits: half of the labels lose that, the others 20.1 more."""
    flat = PiecewiseLinear((0.0,), (20.1,), 0.0, 0.0)
    loud = type("Loud", (Readout,), {"forward": lambda self, S: 20.1 + 0 * S, "piecewise_linear": lambda self: flat})()
    risk = population_risk(AdditiveModel(WEIGHTS, loud), PROBLEM, loss="logistic", engine=engine)
    assert risk.value.item() == pytest.approx(20.1 / 2 + math.exp(-20.1), abs=float(risk.error_bound))
    assert float(risk.error_bound) < 1e-9


def test_what_goes_through_a_forward_in_single_precision_is_an_estimate_that_covers_it():
    torch.manual_seed(0)
    single = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1), torch.nn.Flatten(0))
    wide = copy.deepcopy(single).double()

    class Fed(torch.nn.Module):
        def __init__(self, network, dtype):
            super().__init__()
            self.network, self.dtype = network, dtype

        def forward(self, x):
            return 5 * self.network(x.to(self.dtype))

    rough, fine = (
        population_risk(Fed(net, dtype), PROBLEM) for net, dtype in ((single, torch.float32), (wide, torch.float64))
    )
    assert rough.bound_is == fine.bound_is == "estimated"
    assert 0 < abs(rough.value - fine.value) <= rough.error_bound
    assert fine.error_bound < 1e-11


def test_weights_that_are_no_numbers_have_no_bound():
    risk = population_risk(AdditiveModel(WEIGHTS * torch.nan, ZigZag(2)), PROBLEM)
    assert risk.value.isnan()
    assert risk.error_bound.isinf()


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (lambda: population_risk(AdditiveModel(WEIGHTS, ZigZag(2)), PROBLEM, tolerance=-1.0), "must be a positive"),
        (lambda: population_risk(AdditiveModel(WEIGHTS, ZigZag(2)), PROBLEM, tolerance=float("nan")), "got nan"),
        (
            lambda: population_risk(AdditiveModel(WEIGHTS, described(piecewise_linear=([0.0], [1.0]))), PROBLEM),
            "piecewise_linear.. of Described must return a parityscope.PiecewiseLinear or None",
        ),
        (
            lambda: population_risk(AdditiveModel(WEIGHTS, _Frozen()), PROBLEM, engine="enumerate"),
            "forward of _Frozen has no derivative",
        ),
        (
            lambda: population_risk(AdditiveModel(WEIGHTS, _Single()), PROBLEM, engine="enumerate"),
            "forward of _Single loses digits",
        ),
        (lambda: population_accuracy(AdditiveModel(WEIGHTS.repeat(4), _Steep()), Parity(40, (1,))), "sign_equivalent"),
    ],
    ids=["negative tolerance", "nan tolerance", "tuple", "no derivative", "single precision", "unknown signs"],
)
def test_what_cannot_be_used_is_one_sentence(question, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        question()


class _Frozen(Readout):
    def forward(self, S):
        return torch.cos(torch.pi * S.detach())


class _Single(Readout):
    def forward(self, S):
        return torch.cos(torch.pi * S.float())


def test_a_score_may_be_a_plain_tuple():
    class Plain(AdditiveModel):
        def additive_score(self):
            return tuple(super().additive_score())

    risks = [population_risk(kind(WEIGHTS, ZigZag(2)), PROBLEM).value for kind in (Plain, AdditiveModel)]
    assert risks[0] == risks[1]
