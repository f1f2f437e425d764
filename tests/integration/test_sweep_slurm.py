"""`sweep --slurm` on a real Slurm of one node: jobs that are cancelled, refused, or never become workers."""

import os
import signal

import pytest

import slurm_cluster
from commands import finished, started
from parityscope.records import Store
from slurm_cluster import wait_for
from sweep_specs import TROUBLE, contents, written

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(slurm_cluster.MISSING), reason=slurm_cluster.REASON)]

pytest.importorskip("dask_jobqueue", reason="needs dask-jobqueue: pip install 'parityscope[cluster]'")


class SlurmSweep:
    """A sweep under way: its process, its store, and the jobs that it submitted."""

    def __init__(self, slurm, folder, configs, *options):
        self.slurm, self.before = slurm, slurm.jobs()
        self.spec, self.store = written(folder / "spec.py", TROUBLE, configs), Store(folder / "store")
        command = ["sweep", self.spec, "--slurm", "--slurm-option", "interface=lo", "--out", folder, *options]
        command += ["--slurm-option", f"local_directory={folder}"]
        self.process = started(*command, cwd=folder, env={**slurm.env, "OMP_NUM_THREADS": "1"})

    def jobs(self, *states):
        new = {job: state for job, state in self.slurm.jobs().items() if job not in self.before}
        return [job for job, state in new.items() if not states or state in states]

    def stored(self):
        return len(self.store.keys("trouble"))

    def ended(self):
        try:
            printed, errors = self.process.communicate(timeout=240)
        finally:
            self.process.kill()
        assert "Traceback" not in errors, errors
        return self.process.returncode, printed, errors

    def rows_elsewhere(self, folder):
        finished(started("sweep", self.spec, "--out", folder, "--pack", 3, "--workers", 4))
        return contents(folder / "store")


@pytest.mark.parametrize("how", ["scancel", "kill -9"])
def test_a_job_that_ends_is_replaced_while_work_is_left_and_every_row_comes_once(tmp_path, slurm, how):
    configs = "[Point(x=x, seconds=0.2) for x in range(150)]"
    sweep = SlurmSweep(slurm, tmp_path, configs, "--workers", 2, "--pack", 3)
    wait_for(lambda: sweep.stored() >= 6 and len(sweep.jobs("RUNNING")) == 2, "two jobs work")
    victim, _ = sweep.jobs("RUNNING")
    if how == "scancel":
        slurm.told("scancel", victim)
    else:
        slurm.kill(victim)
    wait_for(lambda: len(sweep.jobs("RUNNING")) == 2 and victim not in sweep.jobs("RUNNING"), "there are two again")
    assert sweep.stored() < 150, "the sweep was over before its job could be replaced"
    code, printed, errors = sweep.ended()
    assert code == 0, errors
    assert "150 done, 0 failed, 150 of them now" in printed
    assert len(sweep.jobs()) == 3
    assert contents(tmp_path / "store") == sweep.rows_elsewhere(tmp_path / "here")


def test_a_killed_sweep_leaves_no_job_and_the_next_start_finishes(tmp_path, slurm):
    task = (slurm, tmp_path, "[Point(x=x, seconds=0.2) for x in range(60)]", "--workers", 2, "--pack", 3)
    killed = SlurmSweep(*task)
    wait_for(lambda: killed.stored() >= 6, "something is stored")
    killed.process.kill()
    killed.process.communicate()
    there = killed.stored()
    assert there < 60, "the sweep was over before it could be killed"
    wait_for(lambda: not killed.jobs("RUNNING", "PENDING", "COMPLETING"), "its jobs have noticed")
    again = SlurmSweep(*task)
    wait_for(lambda: again.stored() >= there + 3 and again.jobs("RUNNING"), "the next one goes on")
    for job in again.jobs("RUNNING"):
        slurm.kill(job)  # all of its workers at once
    code, printed, errors = again.ended()
    assert code == 0, errors
    assert f"60 done, 0 failed, {60 - there} of them now" in printed
    assert contents(tmp_path / "store") == again.rows_elsewhere(tmp_path / "here")


def test_the_only_job_cancelled_while_it_waits_in_the_queue_is_replaced(tmp_path, slurm):
    slurm.told("scontrol", "update", "nodename=localhost", "state=drain", "reason=test")
    try:
        sweep = SlurmSweep(slurm, tmp_path, "[Point(x=x) for x in range(6)]", "--workers", 1, "--pack", 3)
        wait_for(lambda: sweep.jobs("PENDING"), "a job waits")
        slurm.told("scancel", *sweep.jobs())
        wait_for(lambda: sweep.jobs("PENDING"), "another waits in its place")
    finally:
        slurm.told("scontrol", "update", "nodename=localhost", "state=resume")
    code, printed, errors = sweep.ended()
    assert code == 0, errors
    assert "6 done, 0 failed, 6 of them now" in printed
    assert len(sweep.jobs()) == 2


def test_a_refused_job_is_slurms_own_sentence(tmp_path, slurm):
    sweep = SlurmSweep(slurm, tmp_path, "[Point(x=1)]", "--workers", 2, "--slurm-option", "queue=nowhere")
    code, printed, errors = sweep.ended()
    assert (code, printed) == (2, "")
    assert "sbatch refuses a job: sbatch: error:" in errors
    assert "nvalid partition" in errors
    assert sweep.jobs() == []


def test_jobs_that_never_become_workers_end_the_sweep_with_a_sentence(tmp_path, slurm):
    sweep = SlurmSweep(slurm, tmp_path, "[Point(x=1)]", "--workers", 1, "--slurm-option", "python=/bin/false")
    code, printed, errors = sweep.ended()
    assert (code, printed) == (2, "")
    assert "3 Slurm jobs in a row ended before they were workers" in errors
    assert f"{sweep.jobs()[-1]}, as FAILED" in errors or f"{sweep.jobs()[0]}, as FAILED" in errors
    assert len(sweep.jobs()) == 3


def test_ctrl_c_leaves_no_job_behind(tmp_path, slurm):
    sweep = SlurmSweep(slurm, tmp_path, "[Point(x=x, seconds=0.3) for x in range(100)]", "--workers", 2, "--pack", 3)
    wait_for(lambda: sweep.stored() >= 2, "something is stored")
    os.kill(sweep.process.pid, signal.SIGINT)
    code, _, errors = sweep.ended()
    assert code == 130
    assert "stopped; what was finished is stored, and the same command continues from there" in errors
    wait_for(lambda: not sweep.jobs("RUNNING", "PENDING", "COMPLETING"), "no job is left")
    assert 0 < sweep.stored() < 100
