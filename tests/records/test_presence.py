"""A sign of life ends with its process, also with kill -9."""

import signal
import subprocess
import sys

from parityscope.papers.h1.figures.figure_1 import WorkedExample
from parityscope.records import Store, presence
from parityscope.records.presence import is_present, present_in
from parityscope.runs import InProcess, Work, run_sweep

HOLDER = """
import subprocess, sys, time
from pathlib import Path
from parityscope.records.presence import present_in
with present_in(Path(sys.argv[1])) as name:
    child = subprocess.Popen(["sleep", "30"])
    print(name, child.pid, flush=True)
    time.sleep(60)
"""


def test_a_killed_process_is_not_present_even_when_a_child_of_it_lives(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    name, child = holder.stdout.readline().split()
    try:
        assert is_present(tmp_path, name)
        assert is_present(tmp_path, name)  # asking changes nothing
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=10)
        assert not is_present(tmp_path, name)
    finally:
        subprocess.run(["kill", child], check=False)
        holder.communicate()


def test_two_in_one_process_see_each_other(tmp_path):
    with present_in(tmp_path) as first:
        with present_in(tmp_path) as second:
            assert first != second
            assert is_present(tmp_path, first)
            assert is_present(tmp_path, second)
        assert not is_present(tmp_path, second)
        assert is_present(tmp_path, first)
    assert not list((tmp_path / "present").iterdir())


def test_without_locks_nobody_looks_present_and_work_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(presence, "fcntl", None)
    with present_in(tmp_path) as name:
        assert not is_present(tmp_path, name)
        work = Work("squares", (WorkedExample(),))
        assert run_sweep(work, Store(tmp_path / "store"), InProcess()).done == 1
    assert not is_present(tmp_path, name)
    assert not list((tmp_path / "present").iterdir())


def test_the_file_can_be_imported_where_there_is_no_fcntl():
    script = "import sys; sys.modules['fcntl'] = None; from parityscope.records import presence; print(presence.fcntl)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
