"""Parts of a user's own, through `learn` and through the row of a training."""

import importlib
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
import torch

import own_parts
from parityscope import RECIPES, Cosine, InvalidInput, ParityTransformer, Triangle, draw_problems, learn
from parityscope.problems import seeded_generator
from parityscope.records import Store, code
from parityscope.runs import InProcess, Processes, Training, load_spec, run_sweep, training
from parityscope.training import checkpoint
from parityscope.training.build import build_model
from parityscope.training.descent import make_optimiser, step_scale
from parityscope.training.parts import OwnPart
from parityscope.training.recipes import Recipe
from parityscope.training.sources import population_objective

SEEDS = range(4)
PROBLEMS = draw_problems(12, 3, SEEDS)
*ALL_BUT_LAST, LAST = map(repr, get_args(get_args(Recipe.model_fields["readout"].annotation)[0]))
READOUTS = f"{', '.join(ALL_BUT_LAST)} or {LAST}"
OWN = {
    "code": {"positions": own_parts.gaussian},
    "code with an argument": {"positions": partial(own_parts.gaussian), "numbers_per_head": 30},
    "readout": {"readout": own_parts.Steep(0.1)},
    "readout by k": {"readout": Triangle},
    "readout that says nothing": {"readout": own_parts.Silent()},
    "optimiser": {"optimiser": own_parts.slow_adam},
    "optimiser of torch": {"optimiser": partial(torch.optim.Adam, lr=0.05)},
    "decaying rate": {"schedule": own_parts.decay},
    "decaying rate with a setting": {"schedule": own_parts.Decay(100)},
}


@pytest.mark.parametrize("own", OWN.values(), ids=list(OWN))
def test_a_part_trains_and_its_row_is_that_of_learn(own):
    run = learn(PROBLEMS[:2], seeds=SEEDS[:2], **own)
    assert run.learned.all()
    (field, _), *_ = own.items()
    told = run.to_json()["settings"][field]
    assert told == getattr(run.recipe, field).record()
    assert len(told["source"]) == 16
    config = training("bounded", 12, 3, seeds=SEEDS[:2], **own)
    again = Training.model_validate_json(config.model_dump_json())
    assert (again, again.key, again.code()) == (config, config.key, config.code())
    assert again.run().numbers.risk == tuple(run.risk.tolist())


def test_a_part_is_that_of_its_run_alone_or_in_a_batch():
    own = {"positions": own_parts.gaussian, "readout": own_parts.Steep(), "schedule": own_parts.decay}
    together = learn(PROBLEMS, seeds=SEEDS, steps=60, **own)
    alone = learn([PROBLEMS[2]], seeds=[2], steps=60, **own)
    assert torch.allclose(alone.attention[0], together.attention[2], atol=1e-9, rtol=0)
    packed = Training.run_batch([training("bounded", 12, 3, seeds=[seed], steps=60, **own) for seed in SEEDS])
    assert packed[2].numbers.risk[0] == pytest.approx(alone.risk.item(), abs=1e-9)


def test_a_code_is_drawn_from_the_seeds_stream_of_positions():
    recipe = RECIPES["bounded"].overridden(positions=own_parts.gaussian, numbers_per_head=9).resolved(20, 3)
    model = build_model(recipe, 20, 3, [5])
    assert torch.equal(model.positions[0], own_parts.gaussian(20, 9, seeded_generator(5, "positions")))


def test_the_same_function_in_two_words_trains_alike():
    said, silent = (learn(PROBLEMS, seeds=SEEDS, readout=r, steps=50) for r in (own_parts.Steep(), own_parts.Silent()))
    assert (said.engine, silent.engine) == ("closed-form", "enumerate")
    assert torch.allclose(said.attention, silent.attention, atol=1e-9)


def test_an_optimiser_of_ones_own_is_the_one_it_stands_for():
    ours = learn(PROBLEMS, seeds=SEEDS, steps=40, learning_rate=0.04)
    own = learn(PROBLEMS, seeds=SEEDS, steps=40, optimiser=own_parts.slow_adam)
    assert own.recipe.learning_rate == 1.0
    assert torch.allclose(ours.attention, own.attention, atol=1e-9)
    half = learn(PROBLEMS, seeds=SEEDS, steps=40, optimiser=own_parts.slow_adam, learning_rate=0.5)
    assert torch.allclose(half.attention, learn(PROBLEMS, seeds=SEEDS, steps=40, learning_rate=0.02).attention)


def test_a_schedule_multiplies_the_rate_of_every_step():
    recipe = RECIPES["bounded"].overridden(optimiser="gradient-descent", learning_rate=0.3, schedule=own_parts.decay)
    run = learn(PROBLEMS[:1], recipe, [0], steps=7)
    model = build_model(recipe.overridden(steps=7).resolved(12, 3), 12, 3, [0])
    for step in range(7):
        value = population_objective(model, PROBLEMS[:1], "log-correlation")().objective
        (gradient,) = torch.autograd.grad(value.sum(), model.parameters())
        with torch.no_grad():
            model.directions.sub_(0.3 * own_parts.decay(step) * gradient)
    assert torch.allclose(run.model.directions, model.directions, atol=1e-12)


def test_a_linear_schedule_ends_at_zero():
    scale = step_scale([RECIPES["bounded"].overridden(schedule="linear", steps=10)])
    assert [scale(step) for step in (0, 5, 10)] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("own", [{"schedule": own_parts.decay}, {"optimiser": own_parts.slow_adam}])
def test_a_training_with_a_part_goes_on_from_its_checkpoint(own, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS_BETWEEN", -1.0)  # after every step
    whole = learn(PROBLEMS, seeds=SEEDS, steps=20, **own)

    def interrupt(progress):
        if progress.step == 9:
            raise KeyboardInterrupt

    options = {"seeds": SEEDS, "steps": 20, "checkpoint": tmp_path / "run.safetensors", **own}
    with pytest.raises(KeyboardInterrupt):
        learn(PROBLEMS, **options, on_progress=interrupt)
    assert torch.equal(learn(PROBLEMS, **options, resume=True).attention, whole.attention)


def test_a_ready_model_is_trained_from_where_it_is_and_stays_there():
    model = ParityTransformer(12, 3, temperature=0.8, readout=Cosine(), generator=torch.Generator().manual_seed(1))
    before = model.directions.detach().clone()
    run = learn(PROBLEMS, seeds=SEEDS, model=model)
    assert torch.equal(model.directions, before)
    assert run.learned.all()
    assert run.recipe.temperature == 0.8
    settings = run.to_json()["settings"]
    assert settings["positions"] == {"part": "a ready model", "source": "not addressable"}
    assert (settings["heads"], settings["numbers_per_head"], settings["start_radius"]) == (3, 2, 1.0)
    measured = learn(PROBLEMS, seeds=SEEDS, model=run.model, steps=0)
    assert torch.equal(measured.risk, run.risk)


def test_a_ready_model_may_have_a_temperature_per_run():
    model = ParityTransformer(
        12,
        3,
        temperature=torch.tensor([1.0, 0.5], dtype=torch.float64),
        readout=Cosine(),
        directions=torch.randn(2, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)),
    )
    run = learn(PROBLEMS[:2], seeds=range(2), model=model, steps=3)
    assert [recipe.temperature for recipe in run.recipes] == [1.0, 0.5]


def wrong_shape(n, r, generator):
    return torch.zeros(n, r + 1)


class Trained(own_parts.Silent):
    def __init__(self):
        super().__init__()
        self.width = torch.nn.Parameter(torch.ones(()))


def no_optimiser(parameters):
    return "steps"


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ({"positions": wrong_shape}, r"must return a tensor of shape \(n, r\) = \(12, 32\), got shape \(12, 33\)"),
        ({"positions": lambda n, r, generator: 0}, "got a int"),
        ({"readout": lambda k: k}, "must be a Readout, or return one for k = 3"),
        ({"readout": Trained()}, "a readout is frozen"),
        ({"optimiser": no_optimiser}, "made a str: an optimiser has zero_grad, step"),
        ({"readout": "sinus"}, f"recipe field readout = 'sinus': input should be {READOUTS}"),
        ({"readout": own_parts.Steep(), "samples": 50}, "set wide_phase=False for another readout"),
        ({"loss": "log-correlation", "samples": 50}, "log-correlation needs the population"),
        ({"model": ParityTransformer(11, 3)}, "the model is for n = 11, k = 3, the problem has n = 12, k = 3"),
        ({"model": ParityTransformer(12, 3), "temperature": 2.0}, "a ready model has its own temperature"),
        ({"model": ParityTransformer(12, 3, full_matrix=True)}, "the full matrix A is more than its directions"),
        (
            {"model": ParityTransformer(12, 3, directions=torch.ones(3, 3, 2).double())},
            "one run per seed, 4, or no run",
        ),
        ({"schedule": lambda step: 1.0, "checkpoint": Path("x")}, "is not addressable"),
    ],
)
def test_what_a_part_cannot_be_is_one_sentence(own, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        learn(PROBLEMS, seeds=SEEDS, **own)


def test_no_optimiser_stands_in_for_another():
    recipe = RECIPES["bounded"].overridden(optimiser="gauss-newton").resolved(8, 2)
    with pytest.raises(InvalidInput, match="'gauss-newton' is no optimiser of first order: these are adam"):
        make_optimiser(torch.nn.Linear(2, 1), recipe)


def test_a_row_needs_an_address():
    with pytest.raises(InvalidInput, match=r"positions = .*lambda> is not addressable, so its results could not be"):
        training("bounded", 12, 3, positions=lambda n, r, generator: torch.zeros(n, r))
    recipe = RECIPES["bounded"].overridden(schedule=lambda step: 1.0).resolved(12, 3)
    with pytest.raises(ValueError, match="is not addressable"):
        Training(n=12, k=3, recipe=recipe)


@pytest.fixture
def key_of(tmp_path, monkeypatch):
    """Return the key of a training whose parts are in a file, given edits of that file."""
    monkeypatch.syspath_prepend(tmp_path)

    def key(name, *edits):
        text = Path(own_parts.__file__).read_text()
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        # A module of its own each time, since the source is read once per process.
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.syspath_prepend(folder)
        (folder / "my_parts.py").write_text(text)
        sys.modules.pop("my_parts", None)
        mine = importlib.import_module("my_parts")
        for cached in (code.code_of, code.reached, code._text_of, code._leads_to, code._source_of):
            cached.cache_clear()
        return training("bounded", 12, 3, positions=mine.gaussian, readout=mine.Steep(0.1)).key

    yield key
    sys.modules.pop("my_parts", None)


@pytest.mark.slow
def test_an_edit_of_a_part_or_of_what_it_uses_makes_the_row_stale_and_no_other_edit(key_of):
    first = key_of("first")
    assert key_of("same") == first
    assert key_of("schedule", ("step / 50", "step / 60")) == first
    assert key_of("code", ("generator=generator, dtype", "dtype")) != first
    assert key_of("helper", ("1 / math.sqrt(r)", "2 / math.sqrt(r)")) != first
    assert key_of("readout", ("(3 * math.pi * S)", "(5 * math.pi * S)")) != first
    assert key_of("default", ("w=0.125", "w=0.12")) != first  # the class's text, though the object says w = 0.1


SPEC = """
import torch
from own_parts import Steep
from parityscope.runs import training

def gaussian(n, r, generator):
    return torch.randn(n, r, generator=generator, dtype=torch.float64) / r**0.5

CONFIGS = [training("bounded", 10, 2, seeds=[seed], positions=gaussian, readout=Steep(0.1)) for seed in range({seeds})]
"""


def test_a_sweep_runs_the_parts_of_its_spec_and_finds_their_rows_again(tmp_path):
    path, store = tmp_path / "spec.py", Store(tmp_path / "store")
    for seeds, run_now in ((2, 2), (3, 1)):  # a longer list is another text, with the same parts in it
        path.write_text(SPEC.format(seeds=seeds))
        assert run_sweep(load_spec(path), store, InProcess()).run_now == run_now
    path.write_text(SPEC.format(seeds=3).replace("/ r**0.5", "/ (2 * r) ** 0.5"))
    summary = run_sweep(load_spec(path), store, InProcess())
    assert (summary.run_now, summary.failed) == (3, 0)
    assert len(store.rows("training")) == 6
    rows = store.rows_of(Training)
    assert len(rows) == 6
    assert all(part.loaded for row in rows for _, part in row.config.recipe.own_parts())  # both texts are, here


@pytest.mark.slow
def test_a_sweep_on_processes_finds_the_parts_of_its_spec(tmp_path):
    path, store = tmp_path / "spec.py", Store(tmp_path / "store")
    path.write_text(SPEC.format(seeds=3))
    summary = run_sweep(load_spec(path), store, Processes(2))
    assert (summary.done, summary.failed) == (3, 0)


READER = """
import sys
from pathlib import Path
from parityscope.records import Store
from parityscope.runs import Training, load_spec
store = Store(Path(sys.argv[1]))
print([str(part) for row in store.rows_of(Training) for _, part in row.config.recipe.own_parts()])
load_spec(Path(sys.argv[2]))
print([str(part) for row in store.rows_of(Training) for _, part in row.config.recipe.own_parts()])
"""


def test_rows_made_with_a_spec_s_parts_come_back_without_the_spec(tmp_path):
    path, store = tmp_path / "spec.py", Store(tmp_path / "store")
    path.write_text(
        SPEC.format(seeds=1).replace("from own_parts import Steep", "from parityscope import Cosine as Steep")
    )
    path.write_text(path.read_text().replace("Steep(0.1)", "Steep()"))
    run_sweep(load_spec(path), store, InProcess())
    command = [sys.executable, "-c", READER, str(store.path), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "['parityscope_spec:gaussian (not loaded)', 'parityscope.models.readouts:Cosine']",
        "['parityscope_spec:gaussian', 'parityscope.models.readouts:Cosine']",
    ]


def test_a_row_whose_part_is_gone_can_be_read():
    config = training("bounded", 12, 3, positions=own_parts.gaussian)
    fields = config.model_dump(mode="json")
    fields["recipe"]["positions"]["source"] = "0" * 16
    old = Training.model_validate(fields)
    assert old.key != config.key
    with pytest.raises(InvalidInput, match="own_parts:gaussian cannot be found again"):
        old.run()


def test_changes_for_examples_may_be_parts():
    changes = {"optimiser": own_parts.slow_adam, "loss": "hinge", "wide_phase": True}
    recipe = RECIPES["bounded"].overridden(on_samples=changes)
    assert recipe.on_samples["optimiser"] == OwnPart.of(own_parts.slow_adam)
    run = learn(PROBLEMS, recipe, SEEDS, samples=600, steps=60)
    assert run.recipe.optimiser == OwnPart.of(own_parts.slow_adam)
    assert run.recipe.learning_rate == 1.0
    told = run.to_json()["settings"]["on_samples"]["optimiser"]
    assert told == OwnPart.of(own_parts.slow_adam).record()
