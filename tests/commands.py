"""The command line in processes of its own, as tests start, await and end them."""

import os
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-c", "from parityscope.apps.cli import main; main()"]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def started(*arguments, env=ONE_THREAD, **more):
    """Start `parityscope` with these arguments; what it prints is text in pipes."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], env=env, **{**streams, **more})


def finished(process, timeout=300):
    """Wait until a process is done, without an error; return what it printed."""
    with process:
        printed, errors = process.communicate(timeout=timeout)
    assert process.returncode == 0, errors
    return printed


def wait_for(condition, process=None, timeout=180):
    """Wait until something has happened, and no longer than its process lives."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        assert process is None or process.poll() is None, "the process ended before"
        time.sleep(0.05)


def mounted(folder, size):
    """Mount a file system of a given size there."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a small file system here")
    return folder
