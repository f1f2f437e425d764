"""What every readout must keep of what it says about itself; one that a recipe can name is tested by being named."""

from typing import get_args

import torch

from additive_model import AdditiveModel
from parityscope.problems import Parity
from parityscope.risk import law_of, population_accuracy, population_risk
from parityscope.risk.worst_case import worst_loss
from parityscope.training.build import build_model
from parityscope.training.recipes import RECIPES, Recipe

# Every name that a recipe's field takes.
NAMED_READOUTS = get_args(get_args(Recipe.model_fields["readout"].annotation)[0])


def named_readout(name, k, **settings):
    """Return the readout that a recipe gets by name."""
    recipe = RECIPES["bounded"].overridden(readout=name, heads=1, **settings).resolved(max(4, k), k)
    return build_model(recipe, max(4, k), k, [0]).readout


def check_named_readout(name):
    """Hold a readout that has a name against everything, and at the integers, where its sign is the parity."""
    for k in (1, 2, 3, 6):
        integers = torch.arange(k + 1, dtype=torch.float64)
        assert torch.allclose(named_readout(name, k)(integers), (-1.0) ** integers, atol=1e-12)
    check_readout(named_readout(name, 3), 3)
    check_readout(named_readout(name, 3, smoothing=0.1), 3)


def check_readout(readout, k):
    """Hold every answer of a readout for k hidden bits against its own `forward`, and engines against enumeration."""
    S = torch.linspace(-0.4, k + 0.4, 1801, dtype=torch.float64)
    S = S[((4 * S).round() - 4 * S).abs() > 0.01]  # off the kinks, where a slope has two sides
    inside = S[(S >= 0) & (k >= S)]
    value = readout(S)
    _check_elementwise(readout, S)
    _check_slope(readout, S)
    assert not readout.bounded or readout(inside).abs().max() <= 1 + 1e-12
    if (waves := readout.cosine_series()) is not None:
        series = sum(wave.size * (wave.frequency * torch.pi * S).cos() for wave in waves)
        assert torch.allclose(series, value, atol=1e-12)
    if (linear := readout.piecewise_linear()) is not None:
        assert torch.allclose(linear(S), value, atol=1e-11)
    if (smooth := readout.analytic()) is not None:
        assert torch.allclose(torch.from_numpy(smooth(S.numpy() + 0j).real), value, atol=1e-10)
        assert hash(smooth) == hash(readout.analytic())
    if (signs := readout.sign_equivalent(-1.0, k + 1.0)) is not None:
        assert torch.equal(signs(S) > 0, value > 0)
    for seed in range(3):
        _check_engines(readout, k, seed)


def _check_elementwise(readout, S):
    value = readout(S)
    assert value.dtype == S.dtype
    assert bool(value.isfinite().all())
    assert torch.equal(readout(S[:6].reshape(2, 3)), value[:6].reshape(2, 3))
    assert torch.equal(readout(S[5]), value[5])
    assert torch.allclose(readout(S.float()).double(), value, atol=1e-3)
    assert not list(readout.parameters()), "a readout is frozen"


def _check_slope(readout, S):
    value, slope = readout.value_and_slope(S)
    step = 1e-6
    assert torch.allclose(value, readout(S), atol=1e-13)
    assert torch.allclose(slope, (readout(S + step) - readout(S - step)) / (2 * step), atol=1e-4)


def _check_engines(readout, k, seed):
    """Whatever engine `auto` takes, and the certificate, agree with a visit to all inputs."""
    generator = torch.Generator().manual_seed(seed)
    n, problem = 9, Parity(9, tuple(range(k)))
    mix = torch.tensor([0.05, 0.5, 0.9], dtype=torch.float64)[seed]
    weights = mix * problem.mask() + (1 - mix) * k * torch.rand(n, generator=generator, dtype=torch.float64).softmax(0)
    model = AdditiveModel(weights, readout)
    for loss in ("hinge", "squared-hinge", "squared-mean-hinge", "log-correlation"):
        ours, plain = (population_risk(model, problem, loss=loss, engine=engine) for engine in ("auto", "enumerate"))
        if torch.isinf(plain.value):
            assert torch.isinf(ours.value) or ours.value > 20
            continue
        assert (ours.value - plain.value).abs() <= ours.error_bound + plain.error_bound
        gradients = [torch.autograd.grad(risk.value, model.weights)[0] for risk in (ours, plain)]
        assert torch.allclose(*gradients, atol=1e-6 * (1 + plain.value.exp().item() * (loss == "log-correlation")))
    right = population_accuracy(model, problem).value
    assert torch.isclose(right, population_accuracy(model, problem, engine="enumerate").value, atol=1e-12)
    score = model.additive_score()
    worst = worst_loss(score, law_of(problem))
    if worst is not None:
        x, y = (torch.cat(parts) for parts in zip(*problem.enumerate(), strict=True))
        losses = (1 - y * model(x)).relu()
        assert losses.max().item() <= worst.item() + 1e-9
        assert worst == 2 or torch.isclose(losses.max(), worst, atol=1e-9)
