import pytest
import torch

from parityscope import RECIPES, InvalidInput, draw_problems
from parityscope.training.build import build_model
from parityscope.training.checkpoint import Keeper
from parityscope.training.descent import TrainingState, descend, make_optimiser
from parityscope.training.sources import population_objective

PROBLEMS = draw_problems(10, 2, range(3))


def build(steps, name="as-coded"):
    recipe = RECIPES[name].overridden(steps=steps).resolved(10, 2)
    model = build_model(recipe, 10, 2, range(3))
    return recipe, model, population_objective(model, PROBLEMS, recipe.loss), make_optimiser(model, recipe)


@pytest.mark.parametrize("name", ["as-coded", "bounded", "as-written"])
def test_stopping_and_going_on_equals_never_stopping(tmp_path, name):
    recipe, straight, objective, optimiser = build(40, name)
    expected = descend(straight, objective, recipe, TrainingState.fresh(3), optimiser)
    half, model, objective, optimiser = build(17, name)
    state = descend(model, objective, half, TrainingState.fresh(3), optimiser)
    state.finished_at.fill_(-1)  # the shorter recipe ended here; the longer one goes on
    path = tmp_path / "state.safetensors"
    Keeper(path, {"a": 1}, model, optimiser).save(state.tensors())
    recipe, resumed, objective, optimiser = build(40, name)
    state = TrainingState.of(Keeper(path, {"a": 1}, resumed, optimiser).stored())
    descend(resumed, objective, recipe, state, optimiser)
    assert torch.equal(straight.directions, resumed.directions)
    assert torch.equal(expected.finished_at, state.finished_at)


def test_another_config_is_refused_and_named(tmp_path):
    _, model, _, optimiser = build(1)
    path = tmp_path / "state.safetensors"
    Keeper(path, {"n": 10, "k": 2}, model, optimiser).save(TrainingState.fresh(3).tensors())
    with pytest.raises(InvalidInput, match=r"belongs to another run \(differs in n\)"):
        Keeper(path, {"n": 11, "k": 2}, model, optimiser).stored()


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x10" * 64])
def test_a_damaged_checkpoint_is_a_sentence_and_stays_on_disk(tmp_path, content):
    path = tmp_path / "state.safetensors"
    path.write_bytes(content)
    _, model, _, optimiser = build(1)
    with pytest.raises(InvalidInput, match="is not a readable checkpoint"):
        Keeper(path, {}, model, optimiser).stored()
    assert path.read_bytes() == content
