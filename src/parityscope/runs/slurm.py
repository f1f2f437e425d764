"""Slurm jobs as workers, as many as were asked for: a job that ends while work is left is replaced by a new one."""

from __future__ import annotations

import asyncio
import getpass
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.runs.launchers import DaskCluster

_ASK_SECONDS = 5.0  # between two questions to Slurm, which are asked only while a worker is missing
_SQUEUE_SECONDS = 30.0
_FRUITLESS_PER_JOB = 3
# States of `squeue` from which a job does not come back by itself; one that Slurm starts again is PENDING meanwhile.
_ENDED = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
}


class SlurmJobs(DaskCluster):
    """Slurm jobs that are the workers of a Dask scheduler in this process, through dask-jobqueue.

    What a job asks for (queue, memory, walltime, …) comes from dask-jobqueue's own configuration file and `options`.
    A job that was cancelled or ran out of time is replaced; when jobs end again and again before they become workers,
    the sweep stops with a sentence.

    >>> SlurmJobs(8, {"queue": "short"}).options
    {'cores': 1, 'processes': 1, 'memory': '2GB', 'queue': 'short'}
    """

    def __init__(self, jobs: int, options: Mapping[str, str] | None = None) -> None:
        super().__init__(workers=jobs)
        self.jobs = jobs
        given = {name: int(value) if value.isdecimal() else value for name, value in (options or {}).items()}
        self.options = {"cores": 1, "processes": 1, "memory": "2GB", **given}
        self._numbers = count()
        self._connected_once: set[str] = set()  # names of jobs that became workers
        self._fruitless = 0  # jobs in a row that did not
        self._asked = -_ASK_SECONDS
        self._replacing: Any = None  # the future of the replacement that is under way

    def in_flight(self) -> int:
        """Two per worker thread; jobs that have ended are replaced on the way."""
        self._look_after_jobs()
        return super().in_flight()

    def _address(self) -> Any:
        with naming_the_extra(), _own_signals():
            from dask_jobqueue import SLURMCluster
        if shutil.which("sbatch") is None:
            raise InvalidInput("there is no sbatch on the PATH: --slurm is for a machine that can submit Slurm jobs")
        try:
            self._cluster = self._open.enter_context(SLURMCluster(**self.options))
        except (TypeError, ValueError) as error:
            said = str(error).partition(". ")[0]
            raise InvalidInput(f"dask-jobqueue refuses the options {self.options}: {said}") from None
        try:
            self._cluster.sync(self._replace, ())
        except RuntimeError as error:
            raise InvalidInput(f"sbatch refuses a job: {_last_line(error)}") from None
        return self._cluster

    def _look_after_jobs(self) -> None:
        """Replace jobs that have ended, without waiting for it; Slurm is asked only while a worker is missing."""
        if self._replacing is not None:
            if not self._replacing.done():
                return
            if (error := self._replacing.exception()) is not None:
                raise OSError(f"sbatch refuses a job that is to replace one that ended: {_last_line(error)}")
            self._replacing = None
        self._connected_once |= (connected := self._connected_jobs())
        if len(connected) >= self.jobs or time.monotonic() - self._asked < _ASK_SECONDS:
            return
        self._asked = time.monotonic()
        ended = self._ended_jobs()
        self._count_fruitless(ended)
        if ended or self._cluster.worker_spec.keys() - self._cluster.workers.keys():  # dask lets go of lost ones too
            self._replacing = asyncio.run_coroutine_threadsafe(self._replace(ended), self._cluster.loop.asyncio_loop)

    def _connected_jobs(self) -> set[str]:
        """Return the names of jobs of which a worker is connected; a job of several processes has several."""
        workers = [str(worker.name) for worker in list(self._cluster.scheduler.workers.values())]
        return {name for name in list(self._cluster.worker_spec) if any(_is_of(worker, name) for worker in workers)}

    def _ended_jobs(self) -> dict[str, str]:
        """Return names of jobs that have ended, and in which state; none if Slurm does not answer now."""
        try:
            command = ["squeue", "--noheader", "--states=all", f"--user={getpass.getuser()}", "--format=%i %T"]
            told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SQUEUE_SECONDS)
        except (OSError, subprocess.SubprocessError):
            return {}
        states = dict(line.split(maxsplit=1) for line in told.stdout.splitlines())
        jobs = {name: job for name, job in list(self._cluster.workers.items()) if job.job_id}
        # Slurm forgets a job some minutes after its end.
        found = {name: states.get(job.job_id, "FORGOTTEN") for name, job in jobs.items()}
        return {name: state for name, state in found.items() if state in {*_ENDED, "FORGOTTEN"}}

    def _count_fruitless(self, ended: Mapping[str, str]) -> None:
        """Give up when nothing but jobs that never became workers has ended for a while."""
        if any(name in self._connected_once for name in ended) or self._connected_jobs():
            self._fruitless = 0
            return
        self._fruitless += len(ended)
        if self._fruitless >= _FRUITLESS_PER_JOB * self.jobs:
            name, state = next(iter(ended.items()))
            job = self._cluster.workers[name].job_id
            raise OSError(
                f"{self._fruitless} Slurm jobs in a row ended before they were workers, the last, {job}, as {state}: "
                f"its log (slurm-{job}.out unless configured otherwise) says why"
            )

    async def _replace(self, ended: Iterable[str]) -> None:
        """Forget these jobs and submit as many as are missing."""
        cluster = self._cluster
        await cluster.scale_down(ended)
        while len(cluster.worker_spec) < self.jobs:
            # A name of its own: dask cancels the job of this name some seconds after a worker of it was lost.
            cluster.worker_spec[f"parityscope-{next(self._numbers)}"] = cluster.new_spec
        try:
            await cluster
        except RuntimeError:  # what sbatch refused does not run: dask would not close with it otherwise
            for job in cluster.workers.values():
                if job.job_id is None:
                    job.status = self.distributed.core.Status.failed
            raise


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep this process's answer to Ctrl-C: dask-jobqueue's import installs another, a silent exit with code 0."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, answer in before.items():
            signal.signal(number, answer)


def _is_of(worker: str, job: str) -> bool:
    return worker == job or worker.startswith(f"{job}-")


def _last_line(error: BaseException) -> str:
    """Return what the command said last: dask-jobqueue's message quotes its whole output."""
    return str(error).strip().splitlines()[-1]
