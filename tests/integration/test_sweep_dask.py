"""A real scheduler and three real worker processes on loopback; workers and the client are killed with -9."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import ONE_THREAD, finished, started, wait_for
from parityscope.records import Store
from parityscope.runs import InProcess, load_spec, run_sweep
from sweep_specs import TRAININGS, TROUBLE, contents, written

pytestmark = pytest.mark.slow

pytest.importorskip("distributed", reason="needs dask.distributed: pip install 'parityscope[cluster]'")

PATIENCE = 180  # seconds


def dask(program, *arguments, **settings):
    command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *map(str, arguments)]
    env = {**ONE_THREAD, **settings}
    return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ended(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


class Cluster:
    """The address of a scheduler, and its worker processes, the oldest first."""

    def __init__(self, address, folder):
        self.address, self.workers = address, []
        options = ("--nthreads", 1, "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--local-directory", folder)
        self.command = ("worker", address, *options)

    def add(self, count=1):
        self.workers += [dask(*self.command) for _ in range(count)]

    def kill(self):
        worker = self.workers.pop(0)
        worker.send_signal(signal.SIGKILL)
        assert worker.wait() == -signal.SIGKILL


@pytest.fixture
def cluster(tmp_path, request):
    """Yield a cluster of three workers, whose scheduler may have settings; stop everything that was started."""
    where = tmp_path / "scheduler.json"
    options = ("--host", "127.0.0.1", "--no-dashboard")
    options += ("--port", 0, "--scheduler-file", where)
    scheduler, running = dask("scheduler", *options, **getattr(request, "param", {})), None
    try:
        wait_for(lambda: where.exists() and where.read_text().endswith("}"))  # it is there before it is complete
        running = Cluster(json.loads(where.read_text())["address"], tmp_path)
        running.add(3)
        yield running
    finally:
        for process in (*(running.workers if running else ()), scheduler):
            ended(process)


def spawned_by(process):
    """Return the processes that a process has spawned to run what it sends them."""
    listed = Path(f"/proc/{process.pid}/task").glob("*/children")  # of each of its threads
    children = [child for text in listed for child in text.read_text().split()]
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_a_killed_worker_and_a_killed_client_change_no_row(tmp_path, cluster):
    spec, out = written(tmp_path / "spec.py", TRAININGS), tmp_path / "out"
    client = started("sweep", spec, "--out", out, "--scheduler", cluster.address)

    def stored():
        return len(Store(out / "store").keys("trainings"))

    wait_for(lambda: stored() >= 4)
    cluster.kill()
    killed_at = stored()
    wait_for(lambda: stored() >= killed_at + 8)
    client.send_signal(signal.SIGKILL)
    client.communicate()
    resumed_from = stored()
    assert resumed_from < 48, "the sweep was over before it could be killed"
    finished(started("sweep", spec, "--out", out, "--scheduler", cluster.address))
    run_sweep(load_spec(spec), Store(tmp_path / "clean"), InProcess())
    survived, clean = contents(out / "store"), contents(tmp_path / "clean")
    assert len(survived) == 48
    assert survived == clean  # bit for bit: the packs were the same


# The scheduler moves what a worker had to others, or leaves it to the sweep.
@pytest.mark.parametrize("cluster", [{}, {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}], indirect=True)
def test_a_sweep_whose_workers_are_killed_one_after_another_finishes_with_every_row_once(tmp_path, cluster):
    """Another worker comes in the place of each, as where machines are taken away at any time."""
    spec = written(tmp_path / "spec.py", TROUBLE, "[Point(x=x, seconds=0.2) for x in range(120)]")
    client = started("sweep", spec, "--out", tmp_path, "--pack", 3, "--scheduler", cluster.address)
    store = Store(tmp_path / "store")
    for kill in range(5):
        wait_for(lambda kill=kill: len(store.keys("trouble")) >= 20 * (kill + 1), client)
        cluster.kill()
        cluster.add()
    printed, errors = client.communicate(timeout=PATIENCE)
    assert client.returncode == 0, errors
    assert "120 done, 0 failed, 120 of them now" in printed
    finished(started("sweep", spec, "--out", tmp_path / "here", "--pack", 3, "--workers", 4))
    assert contents(tmp_path / "store") == contents(tmp_path / "here" / "store")


def test_a_killed_worker_of_a_local_cluster_is_replaced(tmp_path):
    """`--scheduler local`: a nanny in the command starts another."""
    spec = written(tmp_path / "spec.py", TROUBLE, "[Point(x=x, seconds=0.2) for x in range(60)]")
    local = ("--scheduler", "local", "--workers", 2, "--pack", 3)
    client = started("sweep", spec, "--out", tmp_path, *local, cwd=tmp_path)
    store = Store(tmp_path / "store")
    wait_for(lambda: len(store.keys("trouble")) >= 6, client)
    first, _ = spawned_by(client)
    os.kill(first, signal.SIGKILL)
    printed, errors = client.communicate(timeout=PATIENCE)
    assert client.returncode == 0, errors
    assert "60 done, 0 failed, 60 of them now" in printed


def test_failures_are_stored_and_ctrl_c_ends_cleanly_on_a_cluster(tmp_path, cluster):
    configs = '[Point(x=1), Point(x=2, what="raise"), *(Point(x=x, seconds=0.5) for x in range(3, 60))]'
    spec = written(tmp_path / "spec.py", TROUBLE, configs)
    client = started("sweep", spec, "--out", tmp_path, "--scheduler", cluster.address)
    store = Store(tmp_path / "store")
    wait_for(lambda: len(store.keys("trouble")) >= 4 and store.keys("trouble", failed=True))
    client.send_signal(signal.SIGINT)
    _, errors = client.communicate(timeout=PATIENCE)
    assert client.returncode == 130, errors
    assert "stopped; what was finished is stored, and the same command continues from there" in errors
    assert "Traceback" not in errors
    (failed,) = store.rows("trouble", failed=True)
    assert "ValueError: no answer for 2" in failed.traceback


def test_nobody_at_the_address_is_one_sentence(tmp_path):
    spec = written(tmp_path / "spec.py", TROUBLE, "[Point(x=1)]")
    client = started("sweep", spec, "--out", tmp_path, "--scheduler", "tcp://127.0.0.1:9")
    _, errors = client.communicate(timeout=PATIENCE)
    assert client.returncode == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in errors
    assert "Traceback" not in errors
