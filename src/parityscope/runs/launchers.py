"""Where packs run: in this process, in worker processes, on a Dask cluster. All are Executors; slurm.py has another."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
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
        self._pool = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_prepare_worker)
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


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone: a pool's worker would wait for it for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
