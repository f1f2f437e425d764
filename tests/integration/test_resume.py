"""Real processes killed with -9 while training: the resumed run ends with the same numbers."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

LEARN = [sys.executable, "-c", "from parityscope.apps.cli import main; main()", "learn"]
TASK = ["--recipe", "as-coded", "--n", "13", "--k", "3", "--runs", "4", "--steps", "4000", "--json"]
TASK += ["--engine", "enumerate"]  # slow enough to be killed between two checkpoints
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def test_a_killed_training_resumes_to_the_same_result(tmp_path):
    straight = subprocess.run(
        [*LEARN, *TASK, "--out", str(tmp_path / "straight")], capture_output=True, check=True, env=ONE_THREAD
    )
    expected = json.loads(straight.stdout)["runs"]
    moment, kills = random.Random(0), 0
    folder = tmp_path / "killed"
    while True:
        process = subprocess.Popen(
            [*LEARN, *TASK, "--out", str(folder), "--resume"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=ONE_THREAD,
        )
        if kills < 3:
            deadline = time.monotonic() + 60
            while not (folder / "weights.safetensors").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(moment.uniform(0.2, 2.5))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
        output, _ = process.communicate(timeout=120)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
    assert kills > 0
    assert json.loads(output)["runs"] == expected


def test_ctrl_c_is_one_sentence_that_says_how_to_go_on(tmp_path):
    process = subprocess.Popen(
        [*LEARN, *TASK, "--out", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ONE_THREAD
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "weights.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == b""
    assert b"stopped; add --resume to continue" in errors
    assert b"Traceback" not in errors
