"""Our Adam and gradient descent against torch's: the same operations, so the same numbers."""

import pytest
import torch

from parityscope.training.steps.first_order import Adam, GradientDescent

BETAS = (0.8, 0.95)


def trained(make, dtype, steps=30, optimiser_state=None):
    start = torch.linspace(-2, 2, 12, dtype=dtype).reshape(2, 3, 2)
    parameters = [torch.nn.Parameter(start.clone()), torch.nn.Parameter(start[:, 0].clone())]
    optimiser = make(parameters)
    if optimiser_state is not None:
        optimiser.load_state_dict(optimiser_state)
    for _ in range(steps):
        optimiser.zero_grad()
        sum((p.sin().square() + 0.1 * p).sum() for p in parameters).backward()
        optimiser.step()
    return parameters, optimiser


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda p: Adam(p, 0.05, BETAS), lambda p: torch.optim.Adam(p, 0.05, BETAS)),
        (lambda p: GradientDescent(p, 0.05), lambda p: torch.optim.SGD(p, 0.05)),
    ],
    ids=["adam", "gradient descent"],
)
def test_steps_are_those_of_torch(ours, theirs, dtype):
    tolerance = 50 * torch.finfo(dtype).eps
    for mine, other in zip(trained(ours, dtype)[0], trained(theirs, dtype)[0], strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)


def test_a_state_that_torch_stored_is_taken_over():
    _, theirs = trained(lambda p: torch.optim.Adam(p, 0.05, BETAS), torch.float64)
    stored = theirs.state_dict()
    _, ours = trained(lambda p: Adam(p, 0.05, BETAS), torch.float64)
    assert {i: set(one) for i, one in ours.state_dict()["state"].items()} == {
        i: set(one) for i, one in stored["state"].items()
    }
    _, resumed = trained(lambda p: Adam(p, 0.05, BETAS), torch.float64, steps=1, optimiser_state=stored)
    assert resumed.state_dict()["state"][0]["step"] == 31


def test_a_parameter_without_a_gradient_stays():
    used, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimiser = Adam([used, unused], 0.1)
    used.sum().backward()
    optimiser.step()
    assert unused.tolist() == [1.0, 1.0]
    assert (used < 1).all()
