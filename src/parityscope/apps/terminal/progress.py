"""Progress: bars on a terminal, plain lines anywhere else; what is done, how it goes, how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import rich.progress
from rich.console import Console

if TYPE_CHECKING:
    from parityscope.language_models.study import StudyProgress
    from parityscope.papers.figure import Stage
    from parityscope.runs import SweepProgress
    from parityscope.training.learning import TrainingProgress

_LINE_SECONDS = 15.0  # between two plain lines about many small things


class Progress:
    """A bar for each thing under way, on a terminal; else a line now and then, and one when it is done.

    >>> import io
    >>> for terminal in (True, False):
    ...     console = Console(file=io.StringIO(), width=140, force_terminal=terminal, color_system=None)
    ...     with Progress(console) as progress:
    ...         progress.say("tiny is loaded")
    ...         progress.show("tiny", 39, 40, "problems", seconds_left=120)
    ...         if not terminal:  # nothing is said twice within seconds, but the end is
    ...             progress.show("tiny", 40, 40, "problems")
    ...     [words in console.file.getvalue() for words in ("is loaded", "39/40 problems · about 2 min left", "40/40")]
    [True, True, False]
    [True, False, True]
    """

    def __init__(self, console: Console) -> None:
        columns = (
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.TextColumn("{task.fields[note]}"),
        )
        bars = rich.progress.Progress(*columns, console=console, transient=True)
        self._bars = bars if console.is_terminal else None
        self._console, self._started, self._said, self._last = console, time.monotonic(), time.monotonic(), ""
        self._tasks: dict[str, rich.progress.TaskID] = {}

    def __enter__(self) -> Progress:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def show(
        self, name: str, done: int, total: int, note: str = "", *, seconds_left: float | None = None, unit: str = ""
    ) -> None:
        """Show how much of `name` is done; the time left follows from the pace so far unless it is given.

        A `unit` such as " %" stands in the place of the total.
        """
        if seconds_left is None and 0 < done < total:
            seconds_left = (time.monotonic() - self._started) * (total / done - 1)
        left = f"about {_duration(seconds_left)} left" if seconds_left and done < total else ""
        text = f"{done}{unit or f'/{total}'} {' · '.join(filter(None, (note, left)))}".rstrip()
        if self._bars is not None:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, note="")
            self._bars.update(self._tasks[name], completed=done, total=total, note=text)
        elif f"{name}: {text}" != self._last and (done == total or time.monotonic() - self._said > _LINE_SECONDS):
            self.say(f"{name}: {text}")

    def say(self, text: str) -> None:
        """Write a line that stays: with the time of day where there are no bars."""
        line = text if self._bars is not None else f"{time.strftime('%H:%M:%S')} {text}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._said, self._last = time.monotonic(), text

    def training(self, progress: TrainingProgress) -> None:
        """Show a training by its median risk and accuracy."""
        risk, accuracy = float(progress.risk.median()), float(progress.accuracy_bound.median())
        runs = f"{progress.finished} of {len(progress.risk)} runs stopped"
        self.show(
            "training", progress.step, progress.steps, f"steps · risk {risk:.4f} · accuracy ≥ {accuracy:.3f} · {runs}"
        )

    def study(self, progress: StudyProgress) -> None:
        """Show how many problems a language model has read."""
        self.show(progress.model, progress.done, progress.total, "problems")

    def reproduction(self, stage: Stage) -> None:
        """Show how many computations are done, and write a line for each figure or group of claims that is."""
        left = f"about {_duration(stage.seconds_left)} left" if stage.done < stage.total else "nothing left"
        if stage.name is not None:
            self.say(f"{stage.done}/{stage.total} {stage.name} done, {left}")
        if stage.configs_done is not None and stage.configs_total:
            note = f"computations · {stage.done} of {stage.total} figures and groups of claims"
            self.show("reproducing", stage.configs_done, stage.configs_total, note, seconds_left=stage.seconds_left)


@contextmanager
def sweep_progress(console: Console, name: str) -> Iterator[Callable[[SweepProgress], None]]:
    """Show what is done, running and failed of a sweep, the rate and the time left.

    >>> import io
    >>> from parityscope.runs import SweepProgress
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system=None)
    >>> with sweep_progress(console, "rates") as show:
    ...     show(SweepProgress(total=8, done=2, failed=1, running=2, per_second=0.5))
    >>> "3/8 2 running · 1 failed · 0.5/s · about 10 s left" in console.file.getvalue()
    True
    """
    with Progress(console) as bar:

        def show(progress: SweepProgress) -> None:
            note = f"{progress.running} running · {progress.failed} failed · {progress.per_second:.1f}/s"
            done = progress.done + progress.failed
            bar.show(name, done, progress.total, note, seconds_left=progress.seconds_left)

        yield show


def _duration(seconds: float) -> str:
    if seconds > 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
