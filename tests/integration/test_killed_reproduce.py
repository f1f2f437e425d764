"""`reproduce` killed with -9 at random moments: after resuming, the rows equal those of an uninterrupted run."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
import torch

from parityscope.records import Store

pytestmark = pytest.mark.slow

# A few experiments with many rows, arrays and trainings; kills between any two of them are alike.
SOME = ["H1-figure-2", "H1-success", "H1-why-it-fails", "H2-one-step", "W-figure-11"]
COMMAND = [
    sys.executable,
    "-c",
    "from parityscope.apps.cli import main; main()",
    "reproduce",
    *SOME,
    "--scale",
    "smoke",
]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def start(out):
    return subprocess.Popen(
        [*COMMAND, "--out", str(out)], env=ONE_THREAD, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def rows_of(out):
    rows = Store(out / "store").rows()
    for row in rows:
        row.numbers.pop("seconds", None)  # of a claim's check
    return {(row.experiment, str(row.config)): row for row in rows}


def assert_same_rows(first, second):
    assert first.keys() == second.keys()
    for key, row in first.items():
        assert row.numbers == second[key].numbers
        assert row.arrays.keys() == second[key].arrays.keys()
        for name, array in row.arrays.items():
            assert torch.equal(array, second[key].arrays[name])


def reproduce_with_kills(tmp_path, kills):
    """Kill a reproduction at random moments, resume each time; return the rows of a straight run and of this one."""
    began = time.monotonic()
    straight = start(tmp_path / "straight")
    _, errors = straight.communicate(timeout=300)
    assert straight.returncode == 0, errors
    usual = time.monotonic() - began
    moment, out, killed = random.Random(1), tmp_path / "killed", 0
    for _ in range(kills):
        process = start(out)
        try:
            process.wait(timeout=moment.uniform(0.3, 1.0) * usual)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
    process = start(out)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert killed > 0
    assert (out / "report.html").exists()
    assert not list(out.rglob("*.part"))
    return rows_of(tmp_path / "straight"), rows_of(out)


def test_rows_survive_kills(tmp_path):
    straight, killed = reproduce_with_kills(tmp_path, kills=3)
    assert len(straight) > 0
    assert_same_rows(straight, killed)


@pytest.mark.long
def test_rows_survive_twenty_kills(tmp_path):
    straight, killed = reproduce_with_kills(tmp_path, kills=20)
    assert len(straight) > 0
    assert_same_rows(straight, killed)


def test_an_unwritable_folder_is_one_sentence(tmp_path):
    process = start("/proc/nowhere")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"Traceback" not in errors
    assert b"/proc/nowhere" in errors


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(tmp_path):
    """A file system of 64 kB, where one can be mounted; the store must say so and keep what it has."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("cannot mount a small file system here")
    try:
        process = start(disk)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 2
        assert b"Traceback" not in errors
        assert b"full" in errors or b"No space left" in errors
    finally:
        subprocess.run(["umount", str(disk)], check=True)
