"""Settings for every test: one thread per worker, reproducible hypothesis."""

import os
import signal

import pytest
import torch
from hypothesis import settings

from shape_checks import check_quickly_what_has_no_shapes

check_quickly_what_has_no_shapes()  # before anything of parityscope is imported
pytest.register_assert_rewrite("harness")

# A shell starts what runs in its background with Ctrl-C ignored, and the commands tested here would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Two pytest workers share two cores; more threads are for checking that nothing depends on their number.
torch.set_num_threads(int(os.environ.get("PARITYSCOPE_TEST_THREADS", "1")))
settings.register_profile("parityscope", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("parityscope")


@pytest.fixture
def said(monkeypatch, capsys):
    """Return a command in this process: its exit code, its lines, what it says on standard error."""
    from parityscope.apps.cli import main

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["parityscope", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return stopped.value.code or 0, printed.out.splitlines(), printed.err

    return run


@pytest.fixture(scope="session")
def smoke_store(tmp_path_factory):
    """Return a store of rows at smoke scale that all tests and all their workers fill and share."""
    from parityscope.records import Store

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return Store(shared / "smoke-rows")


@pytest.fixture(scope="session")
def slurm():
    """Return a real Slurm of one node on loopback; tests that ask for it skip where it is not installed."""
    import slurm_cluster

    if slurm_cluster.MISSING:
        pytest.skip(slurm_cluster.REASON)
    with slurm_cluster.slurm_on_loopback() as running:
        yield running
