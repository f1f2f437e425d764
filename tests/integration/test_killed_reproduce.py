"""`reproduce` killed with -9 at random moments: after resuming, the rows equal those of an uninterrupted run."""

import os
import random
import signal
import subprocess
import time

import pytest
import torch

from commands import finished, mounted, started
from parityscope.records import Store

pytestmark = pytest.mark.slow

# A few experiments with many rows, arrays and trainings; kills between any two of them are alike.
SOME = ["H1-figure-2", "H1-success", "H1-why-it-fails", "H2-one-step", "W-figure-11"]


def start(out):
    return started("reproduce", *SOME, "--scale", "smoke", "--out", out, stdout=subprocess.DEVNULL)


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


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_rows_survive_kills(tmp_path, kills):
    """Kill a reproduction at random moments, resume each time; compare its rows with those of a straight run."""
    began = time.monotonic()
    finished(start(tmp_path / "straight"))
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
    finished(start(out))
    assert killed > 0
    assert (out / "report.html").exists()
    assert not list(out.rglob("*.part"))
    straight = rows_of(tmp_path / "straight")
    assert len(straight) > 0
    assert_same_rows(straight, rows_of(out))


def test_an_unwritable_folder_is_one_sentence(tmp_path):
    process = start("/proc/nowhere")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "Traceback" not in errors
    assert "/proc/nowhere" in errors


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(tmp_path):
    """A file system of 64 kB, where one can be mounted; the store must say so and keep what it has."""
    disk = mounted(tmp_path / "disk", "64k")
    try:
        process = start(disk)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 2
        assert "Traceback" not in errors
        assert "full" in errors or "No space left" in errors
    finally:
        subprocess.run(["umount", str(disk)], check=True)
