import pytest
import torch

from parityscope import Parity, population_risk
from parityscope.models import parity_ffnn, parity_transformer


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("bias", [0.5, 0.2])
def test_the_parity_has_risk_four_times_the_noise_and_the_best_predictor_less(bias, noise):
    problem = Parity(8, (0, 3, 5), bias=bias, noise=noise)
    net = parity_ffnn(8, problem.support)
    assert float(population_risk(net, problem).value.detach()) == pytest.approx(4 * noise, abs=1e-12)
    with torch.no_grad():
        net.alpha *= 1 - 2 * noise
        net.bias *= 1 - 2 * noise
    assert float(population_risk(net, problem).value.detach()) == pytest.approx(4 * noise * (1 - noise), abs=1e-12)


def test_the_transformer_is_exact_in_the_limit_of_a_small_temperature():
    problem = Parity(10, (2, 3, 7), bias=0.3)
    with torch.no_grad():
        models = [parity_transformer(10, problem.support, temperature) for temperature in (0.1, 0.03, 0.003)]
        risks = [float(population_risk(model, problem).value) for model in models]
    assert risks[0] > risks[1] > risks[2] == pytest.approx(0, abs=1e-9)
