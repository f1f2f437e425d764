"""Real processes killed with -9 while training: the resumed run ends with the same numbers."""

import json
import random
import signal
import time

import pytest

from commands import finished, started, wait_for

pytestmark = pytest.mark.slow

TASK = ["learn", "--recipe", "as-coded", "--n", "13", "--k", "3", "--runs", "4", "--steps", "4000", "--json"]
TASK += ["--engine", "enumerate"]  # slow enough to be killed between two checkpoints


def test_a_killed_training_resumes_to_the_same_result(tmp_path):
    expected = json.loads(finished(started(*TASK, "--out", tmp_path / "straight"), timeout=600))["runs"]
    moment, kills = random.Random(0), 0
    folder = tmp_path / "killed"
    while True:
        process = started(*TASK, "--out", folder, "--resume")
        if kills < 3:
            wait_for((folder / "weights.safetensors").exists, process)
            time.sleep(moment.uniform(0.2, 2.5))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
        output, _ = process.communicate(timeout=600)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
    assert kills > 0
    assert json.loads(output)["runs"] == expected


def test_ctrl_c_is_one_sentence_that_says_how_to_go_on(tmp_path):
    process = started(*TASK, "--out", tmp_path)
    wait_for((tmp_path / "weights.safetensors").exists, process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == ""
    assert "stopped; add --resume to continue" in errors
    assert "Traceback" not in errors
