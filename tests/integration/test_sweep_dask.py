"""A real scheduler and three real worker processes on loopback; one worker and the client are killed with -9."""

import json
import signal
import subprocess
import sys

import pytest

from commands import ONE_THREAD, finished, started, wait_for
from parityscope.records import Store
from parityscope.runs import InProcess, load_spec, run_sweep
from sweep_specs import TRAININGS, TROUBLE, contents, written

pytestmark = pytest.mark.slow

pytest.importorskip("distributed", reason="needs dask.distributed: pip install 'parityscope[cluster]'")

PATIENCE = 180  # seconds


def dask(program, *arguments):
    command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *map(str, arguments)]
    return subprocess.Popen(command, env=ONE_THREAD, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ended(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.fixture
def cluster(tmp_path):
    """Yield the scheduler's address and its worker processes; stop everything that was started."""
    where = tmp_path / "scheduler.json"
    options = ("--host", "127.0.0.1", "--no-dashboard")
    processes = [dask("scheduler", *options, "--port", 0, "--scheduler-file", where)]
    try:
        wait_for(lambda: where.exists() and where.read_text().endswith("}"))  # it is there before it is complete
        address = json.loads(where.read_text())["address"]
        quiet = ("--nthreads", 1, "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--local-directory", tmp_path)
        processes += [dask("worker", address, *quiet) for _ in range(3)]
        yield address, processes[1:]
    finally:
        for process in reversed(processes):
            ended(process)


def test_a_killed_worker_and_a_killed_client_change_no_row(tmp_path, cluster):
    address, workers = cluster
    spec, out = written(tmp_path / "spec.py", TRAININGS), tmp_path / "out"
    client = started("sweep", spec, "--out", out, "--scheduler", address)

    def stored():
        return len(Store(out / "store").keys("trainings"))

    wait_for(lambda: stored() >= 4)
    workers[0].send_signal(signal.SIGKILL)
    killed_at = stored()
    wait_for(lambda: stored() >= killed_at + 8)
    client.send_signal(signal.SIGKILL)
    client.communicate()
    resumed_from = stored()
    assert resumed_from < 48, "the sweep was over before it could be killed"
    finished(started("sweep", spec, "--out", out, "--scheduler", address))
    run_sweep(load_spec(spec), Store(tmp_path / "clean"), InProcess())
    survived, clean = contents(out / "store"), contents(tmp_path / "clean")
    assert len(survived) == 48
    assert survived == clean  # bit for bit: the packs were the same


def test_failures_are_stored_and_ctrl_c_ends_cleanly_on_a_cluster(tmp_path, cluster):
    address, _ = cluster
    configs = '[Point(x=1), Point(x=2, what="raise"), *(Point(x=x, seconds=0.5) for x in range(3, 60))]'
    spec = written(tmp_path / "spec.py", TROUBLE, configs)
    client = started("sweep", spec, "--out", tmp_path, "--scheduler", address)
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
