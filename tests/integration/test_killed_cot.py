"""Real processes killed with -9 while a decoder trains: the resumed training ends with the same numbers."""

import json
import signal
import subprocess
import sys

import pytest

from commands import ONE_THREAD, finished, wait_for
from parityscope.core.errors import InvalidInput
from parityscope.papers.registry import load_figure
from parityscope.training.checkpoint import read_tensors
from parityscope.training.decoders import DecoderSettings

pytestmark = pytest.mark.slow

CHILD = """
import hashlib, json, sys
from pathlib import Path
from parityscope.training.decoders import DecoderSettings, train_decoder
run = train_decoder(
    DecoderSettings.model_validate_json(sys.argv[1]),
    checkpoint=Path(sys.argv[2]),
    checkpoint_seconds=float(sys.argv[3]),
)
digest = hashlib.sha256()
for parameter in run.model.parameters():
    digest.update(parameter.detach().numpy().tobytes())
print(json.dumps([run.history.step, run.history.loss, run.history.accuracy, run.free_running, digest.hexdigest()]))
"""


def start(config, place, pause):
    command = [sys.executable, "-c", CHILD, config.model_dump_json(), str(place), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ONE_THREAD)


def steps_stored(place):
    try:
        return int(read_tensors(place)[0]["state.steps_taken"]) if place.exists() else 0
    except InvalidInput:
        return 0  # it was replaced while it was read


def killed_and_resumed(config, folder, pause, kill_at, timeout):
    """Return the result of a straight training and of one killed at the given numbers of stored steps."""
    straight = json.loads(finished(start(config, folder / "straight.safetensors", 1e9), timeout))
    place = folder / "killed.safetensors"
    for step in kill_at:
        process = start(config, place, pause)
        wait_for(lambda step=step: steps_stored(place) >= step, process, timeout)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert step <= steps_stored(place) < config.steps
    return straight, json.loads(finished(start(config, place, pause), timeout))


def test_a_killed_decoder_resumes_to_the_same_numbers(tmp_path):
    config = DecoderSettings(
        n=10, k=3, width=32, batch=128, held_out=32, learning_rate=1e-3, steps=80, stop=False, pool=500, dropout=0.1
    )
    straight, resumed = killed_and_resumed(config, tmp_path, 0.0, (10, 40), 240)
    assert straight == resumed


@pytest.mark.long
@pytest.mark.parametrize("name", [f"W-figure-{number}" for number in (1, 2, 3, 4, 5, 8, 9, 10, 11)])
def test_a_figures_training_takes_twenty_steps_a_kill_and_a_resume(tmp_path, name):
    """The first reference training of every figure, everything but its length as it is."""
    training = load_figure(name).CONFIGS["reference"][0].training
    config = training.model_copy(update={"steps": 20, "held_out": 256, "stop": False})
    straight, resumed = killed_and_resumed(config, tmp_path, 0.0, (8,), 3600)
    assert straight == resumed
    assert straight[0][-1] == 20
