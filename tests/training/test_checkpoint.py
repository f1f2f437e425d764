import pytest
import torch

from parityscope import RECIPES, InvalidInput, draw_problems, learn
from parityscope.records.tensors import read_tensors, write_tensors
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
    state = TrainingState.of(Keeper(path, {"a": 1}, resumed, optimiser).stored(), 40)
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


def saved(path):
    _, model, _, optimiser = build(1)
    Keeper(path, {}, model, optimiser).save(TrainingState.fresh(3).tensors())
    return model, optimiser


def test_no_bit_of_a_checkpoint_can_flip_unnoticed(tmp_path):
    path = tmp_path / "state.safetensors"
    model, optimiser = saved(path)
    content = path.read_bytes()
    padding = content.index(b"}", content.rindex(b"data_offsets")) + 2  # spaces up to the tensors mean nothing
    first = 8 + int.from_bytes(content[:8], "little")
    for place in [*range(8, padding, 7), *range(first, len(content), 11)]:
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        with pytest.raises(InvalidInput, match="is not a readable checkpoint"):
            Keeper(path, {}, model, optimiser).stored()


def test_nothing_is_broadcast_or_converted(tmp_path):
    path = tmp_path / "state.safetensors"
    _, optimiser = saved(path)
    for recipe, name in ((RECIPES["as-coded"], "shape"), (RECIPES["bounded"], "shape")):
        other = build_model(recipe.resolved(12, 3), 12, 3, range(1))
        before = [p.clone() for p in other.parameters()]
        with pytest.raises(InvalidInput, match=name):
            Keeper(path, {}, other, optimiser).stored()
        assert all(torch.equal(p, old) for p, old in zip(other.parameters(), before, strict=True))


@pytest.mark.parametrize("name", ["finished_at", "best_risk", "step"])
def test_a_state_of_another_number_of_runs_is_refused(tmp_path, name):
    path = tmp_path / "state.safetensors"
    model, optimiser = saved(path)
    like = {**TrainingState.fresh(3).tensors(), name: torch.zeros(2)}
    with pytest.raises(InvalidInput, match=f"state.{name} is"):
        Keeper(path, {}, model, optimiser).stored(like)


def test_a_state_that_contradicts_itself_is_refused():
    for name, wrong in (("finished_at", 9), ("best_step", 9), ("step", -5), ("step", 9), ("history_steps", 3)):
        tensors = TrainingState.fresh(3).tensors()
        tensors[name] = torch.tensor([wrong]) if name == "history_steps" else torch.full_like(tensors[name], wrong)
        with pytest.raises(InvalidInput, match="contradicts itself"):
            TrainingState.of(tensors, 8)


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        ("bounded", {}),
        ("as-coded", {}),
        ("mirror", {}),
        ("concave", {"optimiser": "lbfgs"}),
        ("concave", {"optimiser": "armijo"}),
    ],
)
def test_an_optimiser_of_other_shapes_or_types_is_refused(tmp_path, recipe, changes):
    path = tmp_path / "state.safetensors"
    settings = {"steps": 3, "checkpoint": path, **changes}
    problems = draw_problems(10, 2, range(2))
    first = learn(problems, recipe, range(2), **settings)
    stored, config = read_tensors(path)
    moments = [name for name in stored if name.startswith("optimiser.")]
    assert moments
    for name in moments:
        wrong = {"type": stored[name].to(torch.complex64), "shape": torch.stack([stored[name]] * 2), "name": None}
        for what, tensor in wrong.items():
            changed = {key: value for key, value in stored.items() if key != name or what != "name"}
            changed.update({name: tensor} if what != "name" else {f"{name}s": stored[name]})
            write_tensors(path, changed, config)
            with pytest.raises(InvalidInput, match="optimiser"):
                learn(problems, recipe, range(2), resume=True, **settings)
    write_tensors(path, stored, config)
    again = learn(problems, recipe, range(2), resume=True, **settings)
    assert torch.equal(again.attention, first.attention)


def test_seconds_before_an_interruption_count(tmp_path):
    path = tmp_path / "state.safetensors"
    _, model, _, optimiser = build(1)
    keeper = Keeper(path, {}, model, optimiser)
    keeper.started -= 1000
    keeper.save(TrainingState.fresh(3).tensors())
    resumed = Keeper(path, {}, model, optimiser)
    resumed.stored()
    assert 1000 <= resumed.spent() < 1100
