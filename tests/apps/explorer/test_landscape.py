"""The landscape is the risk itself, and the gradient's two parts add up to its gradient."""

import math

import pytest
import torch

from parityscope.apps.explorer.landscape import LandscapeSettings, landscape
from parityscope.models import ParityTransformer
from parityscope.problems import Parity
from parityscope.risk import population_risk
from parityscope.training.build import build_model


def model_at(settings, directions):
    recipe, problem = settings.resolved(), settings.problem()
    built = build_model(recipe, problem.n, problem.k, [settings.seed])
    return ParityTransformer(
        problem.n,
        problem.k,
        temperature=built.temperature,
        positions=built.positions,
        readout=built.readout,
        directions=directions,
    )


@pytest.mark.parametrize("recipe", ["as-written", "as-coded", "repaired"])
def test_parts_add_up_to_the_gradient_and_to_its_turns(recipe):
    settings = LandscapeSettings(n=8, k=2, recipe=recipe, steps=4, at=1.0, side=8, learning_rate=0.01)
    answer = landscape(settings)
    heads = torch.tensor(answer["heads"], dtype=torch.float64)
    model = model_at(settings, heads)
    value = population_risk(model, settings.problem(), loss=answer["loss"]).value
    assert answer["risks"][-1] == pytest.approx(float(value.detach()), rel=1e-4)
    gradient = torch.autograd.grad(value, list(model.parameters()))[0]
    parts = torch.tensor(answer["dependent"]) + torch.tensor(answer["free"])
    torch.testing.assert_close(parts.double(), -gradient, rtol=2e-3, atol=1e-6)  # heads are sent with five decimals
    turns = torch.tensor(answer["turn_dependent"]) + torch.tensor(answer["turn_free"])
    angle = torch.atan2(heads[:, 1], heads[:, 0]).requires_grad_()
    length = heads.norm(dim=-1, keepdim=True)
    turned = model_at(settings, heads)
    del turned._directions  # replaced by a function of the angles
    turned._directions = length * torch.stack([angle.cos(), angle.sin()], -1)
    value = population_risk(turned, settings.problem(), loss=answer["loss"]).value
    torch.testing.assert_close(turns.double(), -torch.autograd.grad(value, angle)[0], rtol=2e-3, atol=1e-6)


def test_the_free_part_is_the_same_for_every_support():
    answers = [
        landscape(LandscapeSettings(n=8, k=None, support=support, steps=0, side=8, recipe="as-written"))
        for support in ((0, 3), (2, 7))
    ]
    torch.testing.assert_close(torch.tensor(answers[0]["free"]), torch.tensor(answers[1]["free"]), rtol=1e-6, atol=1e-9)
    assert answers[0]["dependent"] != answers[1]["dependent"]


def test_every_point_of_the_grid_is_the_risk_there():
    settings = LandscapeSettings(n=9, k=3, recipe="as-coded", first=2, second=0, steps=6, at=0.5, side=8)
    answer = landscape(settings)
    heads = torch.tensor(answer["heads"], dtype=torch.float64)
    for row, column in ((0, 0), (3, 6), (7, 1)):
        moved = heads.clone()
        for head, place in ((2, column), (0, row)):
            turn = math.radians(answer["angles"][place])
            moved[head] = heads[head].norm() * torch.tensor([math.cos(turn), math.sin(turn)], dtype=torch.float64)
        risk = population_risk(model_at(settings, moved), Parity(9, tuple(answer["support"])), loss=answer["loss"])
        assert answer["risk"][row][column] == pytest.approx(float(risk.value.detach()), abs=1e-4)


@pytest.mark.parametrize("recipe", ["as-written", "as-coded"])
def test_the_snippet_gives_the_parts_and_the_landscape_that_are_drawn(recipe):
    asked = LandscapeSettings(n=8, k=2, recipe=recipe, steps=3, at=1.0, side=8, first=1, second=0, learning_rate=0.01)
    answer = landscape(asked)
    names: dict = {}
    exec(answer["snippet"].replace("print", "shown = "), names)
    for part in ("dependent", "free"):
        torch.testing.assert_close(-names[part].reshape(2, 2), torch.tensor(answer[part], dtype=torch.float64))
    torch.testing.assert_close(torch.tensor(names["risk"]), torch.tensor(answer["risk"]), atol=1e-6, rtol=0)
