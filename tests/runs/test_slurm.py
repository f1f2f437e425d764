"""What `--slurm` says before any job is submitted; tests/integration/test_sweep_slurm.py has a real Slurm."""

import pytest

from parityscope import InvalidInput
from parityscope.runs import SlurmJobs

pytest.importorskip("dask_jobqueue", reason="needs dask-jobqueue: pip install 'parityscope[cluster]'")


def test_a_machine_that_cannot_submit_jobs_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInput, match="no sbatch on the PATH"):
        SlurmJobs(2).start()


def test_numbers_among_the_options_are_numbers():
    options = SlurmJobs(2, {"cores": "4", "queue": "short", "walltime": "00:30:00"}).options
    assert (options["cores"], options["queue"], options["walltime"]) == (4, "short", "00:30:00")


# dask's cluster complains of itself when it is given up half made.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_unknown_option_is_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "sbatch").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(InvalidInput, match=r"refuses the options .*: Got unexpected keyword argument 'quue'$"):
        SlurmJobs(2, {"quue": "short"}).start()
