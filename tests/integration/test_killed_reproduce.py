"""`reproduce` killed with -9: it gets on however often, and its rows equal those of an uninterrupted run."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
import torch

from commands import ONE_THREAD, finished, mounted, started
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


# The system kills it after twelve seconds of work, of which hashing the code takes four, and drawing a figure takes
# five: all of them take longer than that. In seconds of the processor, so that a busy machine changes nothing.
IN_HASTE = """
import math, resource, sys, time
from parityscope.apps import reproduce
from parityscope.apps.cli import main
draw = reproduce.drawn

def slowly(*told):
    until = time.process_time() + 5
    while time.process_time() < until:
        pass
    return draw(*told)

reproduce.drawn = slowly
resource.setrlimit(resource.RLIMIT_CPU, 2 * (math.ceil(time.process_time()) + 12,))
main()
"""


def test_a_reproduction_that_is_killed_every_few_seconds_gets_on_and_ends(tmp_path):
    out, rows, ended = tmp_path / "out", [0], None
    parts = [out / place / ".file.999999999.part" for place in ("", "figures", ".drawn", "store/checkpoints")]
    for part in parts:  # of a writer that was killed a while ago
        part.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        os.utime(part, (0, 0))
    command = [sys.executable, "-c", IN_HASTE, "reproduce", *SOME, "--scale", "smoke", "--out", str(out), "--quiet"]
    while ended != 0:
        done = subprocess.run(command, env=ONE_THREAD, capture_output=True, text=True, check=False, timeout=300)
        ended = done.returncode
        assert ended in (0, -signal.SIGKILL, -signal.SIGXCPU), done.stderr
        assert not any(part.exists() for part in parts)
        rows.append(len(Store(out / "store").keys()))
        assert rows[-1] >= rows[-2], "rows were lost"
        assert len(rows) < 25, f"it does not get on: {rows}"
    assert len(rows) > 4, "it was hardly ever killed"
    assert {path.name for path in (out / "figures").glob("*.png")} == {f"{name}.png" for name in SOME}
    assert [path.name for path in (out / "store").iterdir()] == [
        "store.sqlite"
    ]  # neither logs nor locks nor checkpoints


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
