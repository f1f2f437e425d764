"""Worker processes: the same rows as in one process, a killed worker, a killed parent."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from parityscope import InvalidInput
from parityscope.records import Store
from parityscope.runs import DaskCluster, InProcess, Processes, load_spec, run_sweep
from sweep_specs import TROUBLE, contents, written


@pytest.mark.slow
def test_processes_survive_a_killed_worker_and_give_the_same_rows(tmp_path):
    configs = '[Point(x=x, seconds=0.3, what="raise" if x == 5 else "") for x in range(12)]'
    work = load_spec(written(tmp_path / "spec.py", TROUBLE, configs))
    launcher, store, killed = Processes(2), Store(tmp_path / "killed"), []

    def kill_one():
        while len(store.keys("trouble")) < 2:
            time.sleep(0.02)
        (victim, *_) = launcher._pool._processes
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    killer = threading.Thread(target=kill_one)
    killer.start()
    before = os.environ.get("OMP_NUM_THREADS")
    summary = run_sweep(work, store, launcher)
    killer.join()
    assert killed
    assert os.environ.get("OMP_NUM_THREADS") == before
    assert (summary.done, summary.failed) == (11, 1)
    run_sweep(work, Store(tmp_path / "straight"), InProcess())
    straight, survived = contents(tmp_path / "straight"), contents(tmp_path / "killed")
    assert straight.keys() == survived.keys()
    for config, (numbers, arrays, traceback) in straight.items():
        assert survived[config][:2] == (numbers, arrays)
        assert survived[config][2].splitlines()[-1:] == traceback.splitlines()[-1:]


PARENT = """
import sys
from pathlib import Path
from parityscope.records import Store
from parityscope.runs import Processes, load_spec, run_sweep
if __name__ == "__main__":
    launcher = Processes(1)
    def show(progress):
        if progress.running and launcher._pool._processes:
            print(*launcher._pool._processes, flush=True)
    run_sweep(load_spec(Path(sys.argv[1])), Store(Path(sys.argv[2])), launcher, on_progress=show)
"""


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(tmp_path):
    spec = written(tmp_path / "spec.py", TROUBLE, "[Point(x=x, seconds=1.0) for x in range(100)]")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, spec, tmp_path / "store"], stdout=subprocess.PIPE, text=True
    )
    worker = int(parent.stdout.readline())
    os.kill(worker, 0)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the worker outlived its parent")


def test_bad_places_are_one_sentence():
    with pytest.raises(InvalidInput, match="workers must be at least 1, got 0"):
        Processes(0)
    pytest.importorskip("distributed")
    with pytest.raises(InvalidInput, match="no Dask scheduler answers at carrier-pigeon://x"):
        DaskCluster("carrier-pigeon://x").start()


def test_a_missing_library_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInput, match=r"pip install 'parityscope\[cluster\]'"):
        DaskCluster("tcp://127.0.0.1:1")
