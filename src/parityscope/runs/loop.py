"""The loop of a sweep: hand packs out, store what comes back, survive what does not, wait for nobody else."""

from __future__ import annotations

import secrets
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType

from parityscope.records import Outcome, Store
from parityscope.runs.launchers import InProcess, Launcher
from parityscope.runs.spec import Pack, Work, check_configs_travel, packs_of, task_of

_POLL_SECONDS = 0.5
_SHOW_SECONDS = 0.2
_IN_RESERVE = 4  # launchers hand out two to four packs per worker: below a quarter of that some worker is idle
_BREAKING_SECONDS = 60.0


@dataclass(frozen=True)
class SweepProgress:
    """Where a sweep stands, in configs.

    >>> SweepProgress(total=100, done=18, failed=2, running=4, per_second=2.0).seconds_left
    40.0
    """

    total: int
    done: int
    failed: int
    running: int
    per_second: float

    @property
    def seconds_left(self) -> float | None:
        """The time left at this rate, once there is a rate."""
        left = self.total - self.done - self.failed
        return left / self.per_second if self.per_second else None


@dataclass(frozen=True)
class Summary:
    """How a sweep ended: configs done and failed in all, and how many of them were run now.

    >>> resumed = Summary(done=98, failed=2, run_now=10)
    >>> resumed.done + resumed.failed - resumed.run_now  # were there before
    90
    """

    done: int
    failed: int
    run_now: int


def run_sweep(
    work: Work,
    store: Store,
    launcher: Launcher,
    *,
    retry_failed: bool = False,
    on_progress: Callable[[SweepProgress], None] = lambda progress: None,
) -> Summary:
    """Run every config that has no row, and store it as soon as its pack is finished.

    A config that fails becomes a failed row. Several sweeps may share a store, also from several machines: each begins
    with packs that no other has begun, and at its end runs whatever still has no row, whoever began it. So nobody is
    waited for; at worst a row is computed twice, and it is stored once.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> from parityscope.runs import InProcess
    >>> configs = tuple(WorkedExample(temperature=t) for t in (0.1, 0.2, 0.3))
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> run_sweep(Work("two", configs[:2]), store, InProcess())
    Summary(done=2, failed=0, run_now=2)
    >>> run_sweep(Work("three", configs), store, InProcess())
    Summary(done=3, failed=0, run_now=1)
    """
    return run_together((work,), store, launcher, retry_failed=retry_failed, on_progress=on_progress)


def run_together(
    works: Sequence[Work],
    store: Store,
    launcher: Launcher,
    *,
    retry_failed: bool = False,
    on_progress: Callable[[SweepProgress], None] = lambda progress: None,
    on_finished: Callable[[Work], None] = lambda work: None,
) -> Summary:
    """Run several works as one sweep, in their order, so that no worker waits for the last config of each.

    Works may share configs: each is run once. `on_finished` is told of every work whose configs all have rows, as soon
    as that is so; of those that are complete already, at once.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> from parityscope.runs import InProcess
    >>> configs = [WorkedExample(temperature=t) for t in (0.1, 0.2, 0.3)]
    >>> works = [Work("part", tuple(part)) for part in (configs[:2], configs[1:])]
    >>> run_together(works, Store(Path(tempfile.mkdtemp())), InProcess(), on_finished=lambda work: print("finished"))
    finished
    finished
    Summary(done=3, failed=0, run_now=3)
    """
    store.check_writable()
    for work in works:
        check_configs_travel(work)
    sweep = _Sweep(works, store, launcher, retry_failed)
    finished = False
    try:
        with _late_interrupts(sweep) if not isinstance(launcher, InProcess) else nullcontext():
            sweep.run(on_progress, on_finished)
        finished = True
    finally:
        launcher.stop(now=not finished)
        store.end_hints(sweep.name)
    progress = sweep.progress()
    return Summary(progress.done, progress.failed, sweep.run_now)


@contextmanager
def _late_interrupts(sweep: _Sweep) -> Iterator[None]:
    """Let Ctrl-C be noted and raised by the loop: in the middle of some library's clean-up it would get lost.

    Pressed again it is raised at once.
    """

    def note(number: int, frame: FrameType | None) -> None:
        if sweep.interrupted:
            raise KeyboardInterrupt
        sweep.interrupted = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if sweep.interrupted:
        raise KeyboardInterrupt


@dataclass
class _Sweep:
    works: Sequence[Work]
    store: Store
    launcher: Launcher
    retry_failed: bool
    name: str = field(default_factory=lambda: secrets.token_hex(8))  # no two sweeps have the same
    run_now: int = 0
    running: dict[Future[list[Outcome]], Pack] = field(default_factory=dict)
    begun_elsewhere: list[Pack] = field(default_factory=list)  # by another sweep, which may be dead: they come last
    suspects: deque[Pack] = field(default_factory=deque)  # were out when a worker died: run alone to see which it was
    on_trial: Pack | None = None  # the suspect that is out alone
    done: set[str] = field(default_factory=set)  # as far as it was looked up
    interrupted: bool = False

    def __post_init__(self) -> None:
        packs = [packs_of(work) for work in self.works]
        self.unfinished = {
            id(work): {key for pack in own for key in pack.keys} for work, own in zip(self.works, packs, strict=True)
        }
        self.keys = set().union(*self.unfinished.values())
        todo = self._without_row(self.keys)
        self.waiting: deque[Pack] = deque()
        for pack in (pack for own in packs for pack in own):
            part = pack.only(todo)
            if part.keys:
                self.waiting.append(part)
            todo = todo - set(part.keys)  # of works that share a config the first runs it
        self.started = time.monotonic()

    def run(self, on_progress: Callable[[SweepProgress], None], on_finished: Callable[[Work], None]) -> None:
        on_progress(self.progress())
        self._tell(on_finished)
        shown = time.monotonic()
        if not self.waiting:
            return
        self.executor: Executor = self.launcher.start()
        try:
            while self.waiting or self.suspects or self.running or self.begun_elsewhere:
                self._hand_out()
                if self.running:
                    self._settle(wait(self.running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED).done)
                if self.interrupted:
                    raise KeyboardInterrupt
                if time.monotonic() - shown > _SHOW_SECONDS:
                    self._hand_out()  # what follows may take a while
                    on_progress(self.progress())
                    self._tell(on_finished)
                    shown = time.monotonic()
        except KeyboardInterrupt:
            # What is finished is stored also when the rest is stopped.
            self._settle({future for future in self.running if future.done() and not future.exception()})
            raise
        on_progress(self.progress())
        self._tell(on_finished)

    def _tell(self, on_finished: Callable[[Work], None]) -> None:
        """Tell of the works that have been finished since the last time."""
        for work in self.works:
            if id(work) in self.unfinished and self.unfinished[id(work)] <= self.done:
                del self.unfinished[id(work)]
                on_finished(work)

    def progress(self) -> SweepProgress:
        """Count what the store has: other sweeps may be filling it too."""
        self.done |= self.store.keys(among=self.keys - self.done)
        failed = self.keys & self.store.keys(failed=True)
        running = {key for pack in self.running.values() for key in pack.keys}
        to_come = running.union(*(pack.keys for pack in (*self.waiting, *self.suspects, *self.begun_elsewhere)))
        rate = self.run_now / max(1e-9, time.monotonic() - self.started)
        return SweepProgress(len(self.keys), len(self.done), len(failed - to_come), len(running), rate)

    def _without_row(self, keys: set[str]) -> set[str]:
        """Return which of these configs are still to be run; failed ones only where that was asked for."""
        left = keys - self.store.keys(among=keys)
        return left if self.retry_failed else left - self.store.keys(among=left, failed=True)

    def _hand_out(self) -> None:
        """Submit packs until enough are in flight; a suspect goes out alone."""
        limit = self.launcher.in_flight()  # asked every time: a launcher looks after its workers here
        if self.on_trial is not None:
            return
        if self.suspects:
            if not self.running:
                self.on_trial = self.suspects.popleft()
                self._submit(self.on_trial)
            return
        while self.waiting and len(self.running) < limit and not self.suspects:
            pack = self.waiting.popleft()
            alone = self.store.hint(pack.keys, self.name)
            # Looked up after the hint: whoever had begun it may have stored it, which ends theirs.
            pack = pack.only(self._without_row(set(pack.keys)))
            if pack.keys and not alone:
                self.begun_elsewhere.append(pack)
            elif pack.keys:
                self._submit(pack)
        # Nothing of one's own is left, and a worker would be idle: what another sweep began is not waited for.
        while not self.waiting and self.begun_elsewhere and len(self.running) < max(1, limit // _IN_RESERVE):
            # Any of them, so that several sweeps that have come to their end do not all run the same.
            pack = self.begun_elsewhere.pop(secrets.randbelow(len(self.begun_elsewhere)))
            pack = pack.only(self._without_row(set(pack.keys)))
            if pack.keys:
                self._submit(pack)

    def _submit(self, pack: Pack) -> None:
        try:
            self.running[self.executor.submit(self.launcher.run, task_of(pack))] = pack
        except self.launcher.worker_died:  # while it was idle, or nobody has heard of it yet
            self.on_trial = None
            self.suspects.append(pack)
            self._recover()

    def _settle(self, finished: set[Future[list[Outcome]]]) -> None:
        """Store what came back; what did not is on the list of suspects after this."""
        for future in finished:
            if not _lost(future, self.launcher.worker_died):
                pack = self.running.pop(future)
                self._keep(pack, _outcomes(future, len(pack.keys)))
        if any(future in self.running for future in finished):
            self._recover()

    def _keep(self, pack: Pack, outcomes: Sequence[Outcome]) -> None:
        self.store.add_all(zip(pack.configs, outcomes, strict=True))
        self.run_now += len(pack.keys)
        if pack == self.on_trial:
            self.on_trial = None

    def _recover(self) -> None:
        """Sort out who was lost with a worker; a pool of processes loses everything that was out, and is replaced."""
        if self.launcher.breaks_as_a_whole:
            wait(self.running, timeout=_BREAKING_SECONDS)
        lost = [future for future in self.running if _lost(future, self.launcher.worker_died)]
        if self.launcher.breaks_as_a_whole:
            self._settle({future for future in self.running if future.done()} - set(lost))
            self.launcher.stop(now=True)
            self.executor = self.launcher.start()
        for future in lost:
            self._suspect(self.running.pop(future))

    def _suspect(self, pack: Pack) -> None:
        """A worker died while this pack was out: run it alone; if one dies again split it, or give its config up."""
        if pack != self.on_trial:
            self.suspects.append(pack)
            return
        self.on_trial = None
        if len(pack.keys) > 1:
            self.suspects.extendleft(reversed(pack.singles()))
        else:
            reason = "its worker died twice, the second time while nothing else was running: killed, crashed or out of"
            self._keep(pack, [Outcome(traceback=f"{reason} memory")])


def _lost(future: Future[list[Outcome]], kinds: tuple[type[BaseException], ...]) -> bool:
    """Say whether a future ended in one of these errors; a cancelled one has lost its scheduler."""
    if not future.done():
        return False
    if future.cancelled() or isinstance(future.exception(), CancelledError):
        raise OSError("the connection to the scheduler was lost: what was finished is stored, run again to go on")
    return isinstance(future.exception(), kinds)


def _outcomes(future: Future[list[Outcome]], count: int) -> Sequence[Outcome]:
    """Return what a pack gave; a failure for each of its configs when it could not be sent, run or returned."""
    try:
        return future.result()
    except Exception as error:
        return [Outcome(traceback="".join(traceback.format_exception(error)))] * count
