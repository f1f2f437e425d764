"""What a browser may ask for is what the command line accepts, up to the caps."""

import json
import math

import pytest
import torch

from parityscope.apps.explorer.learn import LiveSettings, exact_score_density, read_request
from parityscope.core.errors import InvalidInput
from parityscope.models import AdditiveScore, Cosine
from parityscope.problems import Parity


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n": 4, "k": 5}, "k must lie between 1 and n = 4, got 5"),
        ({"n": 8, "support": [1, 1]}, "support repeats a position: 1,1"),
        ({"n": 8, "support": [1, 9]}, "support position 9 is out of range"),
        ({"n": 8, "k": 3, "support": [1, 2]}, "k = 3 disagrees with the support"),
        ({"n": 1001}, "up to n = 1000, got 1001"),
        ({"n": 10**12}, "up to n = 1000"),
        ({"n": 100, "k": 17}, "up to k = 16, got 17"),
        ({"n": 25, "recipe": "as-coded"}, "zig-zag readout trains live up to n = 24, got 25"),
        ({"recipe": "nothing"}, "unknown recipe 'nothing': choose one of bounded"),
        ({"positions": "spiral"}, "recipe field positions = 'spiral'"),
        ({"temperature": 0.0}, "temperature must be positive and finite, got 0"),
        ({"temperature": "hot"}, "temperature = 'hot'"),
        ({"learning_rate": -1}, "learning_rate must be positive and finite, got -1"),
        ({"seed": -1}, "seed = -1"),
        ({"steps": 20_001}, "at most 20000 steps, got 20001"),
        ({"colour": "red"}, "there is no setting 'colour'"),
        ([], "a request is an object of settings"),
    ],
)
def test_bad_values_are_one_sentence(settings, sentence):
    with pytest.raises(InvalidInput) as caught:
        read_request(LiveSettings, settings).resolved()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["nan", "inf", float("nan")])
def test_values_that_are_no_numbers_never_reach_a_training(value):
    with pytest.raises(InvalidInput):
        read_request(LiveSettings, {"temperature": value}).resolved()


def test_text_from_a_form_is_read_like_the_command_line():
    settings = read_request(
        LiveSettings, {"n": "20", "support": ["7", "10", "17"], "learning_rate": "0.1", "seed": "4"}
    )
    assert settings.problem().support == (7, 10, 17)
    assert settings.resolved().learning_rate == 0.1


def test_random_supports_are_those_of_the_command_line(capsys):
    from parityscope.apps.cli import app

    with pytest.raises(SystemExit):
        app(["learn", "--n", "20", "--k", "3", "--seed", "5", "--steps", "0", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert list(LiveSettings(n=20, k=3, seed=5).problem().support) == printed["runs"][0]["support"]


@pytest.mark.parametrize("recipe", ["bounded", "as-coded", "repaired"])
def test_the_snippet_gives_the_shown_numbers(recipe):
    from parityscope.apps.explorer.live import LiveTraining

    settings = LiveSettings(n=12, k=2, recipe=recipe, seed=3, learning_rate=0.07)
    training = LiveTraining(settings)
    training.turn()
    shown = json.loads(training.turn(steps=8))
    training.end()
    names: dict = {}
    exec(settings.snippet(shown["step"]).replace("print", "shown = "), names)
    run = names["run"]
    assert shown["step"] == 8
    assert shown["risk"] == float(run.risk[0])
    assert shown["accuracy"] == float(run.accuracy[0])
    assert abs(run.attention[0].numpy() - shown["attention"]).max() < 1e-5


@pytest.mark.parametrize("offset", [0.0, -0.4])
def test_agrees_with_every_input_through_the_kernel(offset):
    problem = Parity(9, (0, 4, 7))
    weights = torch.rand(9, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    at, width = torch.linspace(-1, 6, 60, dtype=torch.float64), 0.05
    score = AdditiveScore(weights, torch.tensor(offset, dtype=torch.float64), Cosine())
    density = exact_score_density(score, problem.mask(), at, width)
    x, y = next(problem.enumerate())
    s = x.double() @ weights + offset
    kernel = torch.exp(-(((at[:, None] - s) / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))
    torch.testing.assert_close(density.plus, kernel @ (y > 0).double() / 2**9, atol=1e-6, rtol=0)
    torch.testing.assert_close(density.minus, kernel @ (y < 0).double() / 2**9, atol=1e-6, rtol=0)


def test_a_learned_model_has_labels_apart_and_mass_one():
    n = 1000
    weights = torch.zeros(2, n, dtype=torch.float64)
    weights[0, [3, 500, 900]] = 1.0
    weights[1] = 3 / n
    hidden = Parity(n, (3, 500, 900)).mask()
    at = torch.linspace(-1, 4, 1001, dtype=torch.float64)
    density = exact_score_density(AdditiveScore(weights, torch.zeros(()), Cosine()), hidden, at)
    mass = (density.plus + density.minus).sum(-1) * 5 / 1000
    torch.testing.assert_close(mass, torch.ones(2, dtype=torch.float64), atol=1e-6, rtol=0)
    even = at.round().remainder(2) == 0
    assert float(density.minus[0, even].max()) < 1e-6 < float(density.plus[0, even].max())
    # Uniform attention knows almost nothing: labels overlap.
    torch.testing.assert_close(density.plus[1], density.minus[1], atol=1e-3, rtol=0)
