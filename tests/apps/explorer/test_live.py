"""A live training is `learn`, in slices."""

import json
import threading

import pytest

from parityscope.apps.explorer.learn import LiveSettings
from parityscope.apps.explorer.live import TRAINING_THREAD, LiveTraining
from parityscope.training.learning import learn


def threads():
    return sum(thread.name == TRAINING_THREAD for thread in threading.enumerate())


def finish(training, **turn):
    frames = []
    while not training.finished:
        frames.append(json.loads(training.turn(**turn)))
    return frames


@pytest.mark.parametrize("recipe", ["bounded", "repaired", "as-coded"])
def test_slices_change_nothing(recipe):
    settings = LiveSettings(n=12, k=2, recipe=recipe, seed=1, steps=60)
    training = LiveTraining(settings)
    frames = finish(training, steps=7)
    run = learn(settings.problem(), recipe, [1], steps=60)
    assert frames[0]["step"] == 0
    assert frames[-1]["done"]
    assert frames[-1]["step"] == int(run.steps[0])
    assert frames[-1]["risk"] == float(run.risk[0])
    assert frames[-1]["accuracy"] == float(run.accuracy[0])
    assert frames[-1]["found"] == run.found[0].tolist()
    assert frames[-1]["learned"] == bool(run.learned[0])
    assert threads() == 0


def test_turns_stop_where_they_are_told_to():
    training = LiveTraining(LiveSettings(n=12, k=2))
    steps = [json.loads(training.turn(steps=100, until=9, stops={4}))["step"] for _ in range(3)]
    one_more = json.loads(training.turn(steps=100, seconds=0.0))["step"]
    training.end()
    assert [*steps, one_more] == [0, 4, 9, 10]


def test_an_ended_training_leaves_no_thread_and_stays_ended():
    trainings = [LiveTraining(LiveSettings(n=12, k=2, seed=seed)) for seed in range(3)]
    for training in trainings[:2]:
        training.turn()
    assert threads() == 2
    for training in trainings:  # the last one never began
        training.end()
        training.end()
    assert threads() == 0
    assert json.loads(trainings[0].turn())["step"] == 0


def test_a_training_that_breaks_says_so_and_leaves_no_thread(monkeypatch):
    from parityscope.apps.explorer import live

    def broken(*_, **__):
        raise RuntimeError("a cable was pulled")

    monkeypatch.setattr(live, "frame", broken)
    training = LiveTraining(LiveSettings(n=12, k=2))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="a cable was pulled"):
            training.turn()
    training.end()
    assert threads() == 0


def test_a_thousand_bits_are_live_and_found():
    training = LiveTraining(LiveSettings(n=1000, k=10))
    last = finish(training, steps=1000, seconds=60)[-1]
    assert last["learned"]
    assert last["accuracy_kind"] == "exact"  # by certificate
