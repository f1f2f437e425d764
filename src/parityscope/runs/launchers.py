"""Where packs run: in this process, in worker processes, on a Dask cluster, in Slurm jobs. All are Executors."""

from __future__ import annotations

import asyncio
import getpass
import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from typing import Any, Literal, Protocol, runtime_checkable

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.records import Outcome
from parityscope.runs.spec import Task, run_task, run_task_on_all_threads
from parityscope.training.checkpoint import checkpoint_folder

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@runtime_checkable
class Launcher(Protocol):
    """A place to run packs.

    >>> [isinstance(place, Launcher) for place in (InProcess(), Processes(2), "here")]
    [True, True, False]
    """

    worker_died: tuple[type[BaseException], ...]  # what a future raises when its worker was lost
    breaks_as_a_whole: bool  # whether a lost worker takes the executor with it

    @property
    def run(self) -> Callable[[Task], list[Outcome]]:
        """What a worker does with a pack."""
        ...

    def start(self) -> Executor:
        """Return a fresh executor; called again after an executor broke."""
        ...

    def in_flight(self) -> int:
        """Return how many packs to hand out at a time: enough that no worker waits, few enough to share."""
        ...

    def stop(self, *, now: bool) -> None:
        """End the workers this launcher started; `now` does not wait for what is running."""
        ...


class InProcess:
    """One pack after another in the calling process; `threads="all"` leaves torch as many as it has.

    >>> InProcess().start().submit(pow, 2, 10).result()
    1024
    """

    worker_died: tuple[type[BaseException], ...] = ()
    breaks_as_a_whole = False

    def __init__(self, threads: Literal["one", "all"] = "one") -> None:
        self.run = run_task if threads == "one" else run_task_on_all_threads

    def start(self) -> Executor:
        """Return an executor that runs what is submitted at once."""
        return _AtOnce()

    def in_flight(self) -> int:
        """One: a call returns when it is done."""
        return 1

    def stop(self, *, now: bool) -> None:
        """Nothing to end."""


class _AtOnce(Executor):
    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **keywords))
        except Exception as error:
            future.set_exception(error)
        return future


class Processes:
    """Worker processes on this machine, one thread each.

    >>> Processes(4).in_flight()  # packs that are out at a time: one under way and three in reserve for each
    16
    """

    worker_died: tuple[type[BaseException], ...] = (BrokenExecutor,)
    breaks_as_a_whole = True

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise InvalidInput(f"the number of workers must be at least 1, got {workers}")
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    @property
    def run(self) -> Callable[[Task], list[Outcome]]:
        """Run a pack; its long trainings keep checkpoints where those of this process would."""
        return partial(run_task, checkpoints=checkpoint_folder())

    def start(self) -> Executor:
        """Start fresh processes: forking one that has used torch is not safe."""
        context = multiprocessing.get_context("spawn")
        self._before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
        os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
        self._pool = _DeafPool(self.workers, mp_context=context, initializer=_end_with_parent)
        return self._pool

    def in_flight(self) -> int:
        """One per worker and three in reserve each, so that none waits while this process stores or draws."""
        return 4 * self.workers

    def stop(self, *, now: bool) -> None:
        """End the processes."""
        if self._pool is None:
            return
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=not now, cancel_futures=True)
        if now:
            for process in processes:
                process.kill()
        self._pool = None
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _DeafPool(ProcessPoolExecutor):
    """A pool whose workers never hear Ctrl-C, which a terminal sends to them too: the parent decides when they end.

    They are started while the signal is blocked, and inherit that. To ignore it once they run would be too late for one
    that is still importing.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        if not hasattr(signal, "pthread_sigmask"):  # on Windows
            return super().submit(function, *arguments, **keywords)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(function, *arguments, **keywords)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End when the parent is gone: a pool's worker would wait for it for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


class DaskCluster:
    """A Dask scheduler: by address, or a cluster of so many local processes where no address is given.

    >>> [error.__name__ for error in DaskCluster("tcp://10.0.0.1:8786").worker_died]  # nothing is connected yet
    ['KilledWorker']
    """

    run = staticmethod(run_task)
    breaks_as_a_whole = False

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.address, self.workers = address, workers
        self.distributed = _distributed()
        self.worker_died: tuple[type[BaseException], ...] = (self.distributed.KilledWorker,)
        self._open = ExitStack()

    def start(self) -> Executor:
        """Connect."""
        self.client = self._open.enter_context(self._connected(self._address()))
        # The scheduler moves the packs of a lost worker to others by itself, three times.
        executor: Executor = self.client.get_executor(pure=False)
        return executor

    def in_flight(self) -> int:
        """Two per worker thread; the cluster may grow and shrink meanwhile."""
        return 2 * max(1, sum(self.client.nthreads().values()))

    def stop(self, *, now: bool) -> None:
        """Disconnect, and end the cluster if it was started here."""
        self._open.close()

    def _address(self) -> Any:
        """Return the address, or a cluster of this machine's own."""
        if self.address is not None:
            return self.address
        return self._open.enter_context(
            self.distributed.LocalCluster(
                n_workers=self.workers or os.cpu_count(), threads_per_worker=1, dashboard_address=None
            )
        )

    def _connected(self, address: Any) -> Any:
        try:
            return self.distributed.Client(address, timeout="10s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"no Dask scheduler answers at {address} ({error}): start one with `dask scheduler`, and workers with "
                "`dask worker ADDRESS --nthreads 1`"
            ) from None


def _distributed() -> Any:
    with naming_the_extra():
        import distributed
    # A connection that is closed while it is being written to, as on Ctrl-C, is logged with a traceback otherwise.
    logging.getLogger("distributed.batched").setLevel(logging.WARNING)
    return distributed


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
