"""Progress: bars on a terminal, plain lines anywhere else; what is done, how it goes, how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from parityscope.papers.figure import Stage

if TYPE_CHECKING:
    from parityscope.language_models.study import StudyProgress
    from parityscope.papers.claim import Claim
    from parityscope.runs import SweepProgress
    from parityscope.training.learning import TrainingProgress

_LINE_SECONDS = 15.0  # between two plain lines about many small things


class Lines:
    """Plain lines for logs: each at once, or not more often than a log wants.

    >>> import io
    >>> lines = Lines(Console(file=io.StringIO(), width=140))
    >>> lines.say("one"), lines.now_and_then("two"), lines.now_and_then("last", last=True)
    (None, None, None)
    >>> [line.split(" ", 1)[1] for line in lines.console.file.getvalue().splitlines()]  # after the time of day
    ['one', 'last']
    """

    def __init__(self, console: Console) -> None:
        self.console, self.said, self.last = console, time.monotonic(), ""

    def say(self, text: str) -> None:
        """Write a line now."""
        line = f"{time.strftime('%H:%M:%S')} {text}"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)
        self.said, self.last = time.monotonic(), text

    def now_and_then(self, text: str, *, last: bool = False) -> None:
        """Write a line if the one before is old, or if nothing follows; never the same twice."""
        if text != self.last and (last or time.monotonic() - self.said > _LINE_SECONDS):
            self.say(text)


@contextmanager
def training_progress(console: Console) -> Iterator[Callable[[TrainingProgress], None]]:
    """Show a bar with the median risk and how many runs are done.

    >>> import io
    >>> import torch
    >>> from parityscope.training.learning import TrainingProgress
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system=None)
    >>> with training_progress(console) as show:
    ...     show(TrainingProgress(5, 10, torch.tensor([0.25]), torch.tensor([0.75]), finished=0))
    >>> "5/10 steps · risk 0.2500" in console.file.getvalue()
    True
    """
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(
            "steps · risk {task.fields[risk]:.4f} · accuracy ≥ {task.fields[accuracy]:.3f} · {task.fields[done]}"
        ),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, risk=float("nan"), accuracy=0.0, done="")

        def update(progress: TrainingProgress) -> None:
            risk = float(progress.risk.median())
            done = f"{progress.finished} of {len(progress.risk)} runs stopped"
            accuracy = float(progress.accuracy_bound.median())
            bar.update(task, total=progress.steps, completed=progress.step, risk=risk, accuracy=accuracy, done=done)

        yield update


@contextmanager
def decoder_progress(console: Console, steps: int) -> Iterator[Callable[[str, int, float], None]]:
    """Show a bar with the accuracy of the training under way; without a terminal a line now and then.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system=None)
    >>> with decoder_progress(console, 600) as show:
    ...     show("with the chain", 20, 0.75)
    >>> "with the chain" in console.file.getvalue(), "20/600 steps · accuracy 0.750" in console.file.getvalue()
    (True, True)
    """
    if not console.is_terminal:
        lines = Lines(console)
        yield lambda name, step, accuracy: lines.now_and_then(f"{name}: step {step}, accuracy {accuracy:.3f}")
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps · accuracy {task.fields[accuracy]:.3f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=steps, accuracy=0.0)
        yield lambda name, step, accuracy: bar.update(task, description=name, completed=step, accuracy=accuracy)


@contextmanager
def reproduction_progress(console: Console) -> Iterator[Callable[[Stage], None]]:
    """Show a bar over figures and claim groups and one over configs; without a terminal a line for each that is done.

    >>> import io
    >>> stages = [Stage("H1-figure-1", done=1, total=2, seconds_left=120), Stage("claims H1", 2, 2, 0.0)]
    >>> for terminal in (True, False):
    ...     console = Console(file=io.StringIO(), width=140, force_terminal=terminal, color_system=None)
    ...     with reproduction_progress(console) as show:
    ...         for stage in stages:
    ...             show(stage)
    ...     "1/2 H1-figure-1 done, about 2 min left" in console.file.getvalue()
    True
    True
    """
    if not console.is_terminal:
        lines = Lines(console)

        def say(stage: Stage) -> None:
            if stage.name is not None:
                lines.say(_sentence(stage))
            elif stage.configs_total:
                lines.now_and_then(f"{stage.configs_done} of {stage.configs_total} computations done")

        yield say
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=console) as bars:
        overall = bars.add_task("figures and claims", total=None, note="")
        current = bars.add_task("computations", total=None, note="")

        def update(stage: Stage) -> None:
            bars.update(
                overall, completed=stage.done, total=stage.total, note=f"about {_duration(stage.seconds_left)} left"
            )
            if stage.configs_total is not None:
                bars.update(current, completed=stage.configs_done, total=stage.configs_total)
            if stage.name is not None:
                bars.console.print(_sentence(stage), highlight=False, markup=False)

        yield update


def _sentence(stage: Stage) -> str:
    left = f"about {_duration(stage.seconds_left)} left" if stage.done < stage.total else "nothing left"
    return f"{stage.done}/{stage.total} {stage.name} done, {left}"


@contextmanager
def sweep_progress(console: Console, name: str) -> Iterator[Callable[[SweepProgress], None]]:
    """Show what is done, running and failed, the rate and the time left.

    >>> import io
    >>> from parityscope.runs import SweepProgress
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system=None)
    >>> with sweep_progress(console, "rates") as show:
    ...     show(SweepProgress(total=8, done=2, failed=1, running=2, per_second=0.5))
    >>> "3/8 2 running · 1 failed · 0.5/s · 10 s left" in console.file.getvalue()
    True
    """

    def note(progress: SweepProgress) -> str:
        left = "" if progress.seconds_left is None else f" · {_duration(progress.seconds_left)} left"
        return f"{progress.running} running · {progress.failed} failed · {progress.per_second:.1f}/s{left}"

    if not console.is_terminal:
        lines = Lines(console)

        def say(progress: SweepProgress) -> None:
            done = progress.done + progress.failed
            lines.now_and_then(f"{name}: {done}/{progress.total} {note(progress)}", last=done == progress.total)

        yield say
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=None, note="")

        def update(progress: SweepProgress) -> None:
            done = progress.done + progress.failed
            bar.update(task, total=progress.total, completed=done, note=note(progress))

        yield update


@contextmanager
def claims_progress(console: Console, claims: Sequence[Claim]) -> Iterator[Callable[[Claim], None]]:
    """Show a bar over the claims, weighted by what each costs, and the one being checked.

    >>> from parityscope.papers.registry import named_claims
    >>> import io
    >>> claims = named_claims(["H1-lemma-19"])
    >>> for terminal in (True, False):
    ...     console = Console(file=io.StringIO(), width=140, force_terminal=terminal, color_system=None)
    ...     with claims_progress(console, claims) as show:
    ...         show(claims[0])
    ...     "H1-lemma-19" in console.file.getvalue()
    True
    False
    """
    total, before = sum(claim.seconds for claim in claims), [0.0, 0.0]
    if not console.is_terminal:
        lines = Lines(console)

        def say(claim: Claim) -> None:
            left = _duration(total - before[0])
            lines.now_and_then(f"{int(before[1])}/{len(claims)} claims checked, about {left} left; now {claim.id}")
            before[:] = [before[0] + claim.seconds, before[1] + 1]

        yield say
        return
    columns = (TextColumn("checking"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def update(claim: Claim) -> None:
            bar.update(task, description=claim.id, completed=before[0])
            before[0] += claim.seconds

        yield update


@contextmanager
def entropy_progress(console: Console) -> Iterator[Callable[[StudyProgress], None]]:
    """Show how many problems every model has read, with the time left.

    >>> import io
    >>> from parityscope.language_models.study import StudyProgress
    >>> for terminal in (True, False):
    ...     console = Console(file=io.StringIO(), width=140, force_terminal=terminal, color_system=None)
    ...     with entropy_progress(console) as show:
    ...         show(StudyProgress("tiny", done=40, total=40))
    ...     "40/40 problems" in console.file.getvalue()
    True
    True
    """
    if not console.is_terminal:
        lines, started = Lines(console), time.monotonic()

        def say(progress: StudyProgress) -> None:
            left = (time.monotonic() - started) * (progress.total / max(1, progress.done) - 1)
            text = f"{progress.model}: {progress.done}/{progress.total} problems, about {_duration(left)} left"
            lines.now_and_then(text, last=progress.done == progress.total)

        yield say
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("problems"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def update(progress: StudyProgress) -> None:
            if progress.model not in tasks:
                tasks[progress.model] = bars.add_task(progress.model, total=progress.total, completed=progress.done)
            bars.update(tasks[progress.model], completed=progress.done)

        yield update


@contextmanager
def bench_progress(console: Console, questions: Sequence[str]) -> Iterator[Callable[[str, str | None], None]]:
    """Show which question is being measured (the second word none) and what was measured last.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=False)
    >>> with bench_progress(console, ["risk", "cot"]) as show:
    ...     show("risk", None), show("risk", "split n=20")
    (None, None)
    >>> console.file.getvalue().split(" ", 1)[1]
    '1/2 risk: split n=20 measured\\n'
    """
    if not console.is_terminal:
        lines = Lines(console)

        def say(question: str, measured: str | None) -> None:
            if measured is not None:
                lines.say(f"{questions.index(question) + 1}/{len(questions)} {question}: {measured} measured")

        yield say
        return
    with console.status("") as status:
        count = 0

        def update(question: str, measured: str | None) -> None:
            nonlocal count
            count += measured is not None
            status.update(f"measuring: {question}" + (f", {count} done, last {measured}" if measured else ""))

        yield update


@contextmanager
def search_progress(console: Console) -> Iterator[Callable[[float, str], None]]:
    """Show which share of the time budget of a search is used, and what is being searched.

    >>> import io
    >>> for terminal in (True, False):
    ...     console = Console(file=io.StringIO(), width=140, force_terminal=terminal, color_system=None)
    ...     with search_progress(console) as show:
    ...         show(0.5, "3 of 1000 columns")
    ...     "3 of 1000 columns" in console.file.getvalue()
    True
    False
    """
    if not console.is_terminal:
        lines = Lines(console)
        yield lambda share, doing: lines.now_and_then(f"searching {doing}, {share:.0%} of the time budget used")
        return
    columns = (TextColumn("searching"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share, doing: bar.update(task, completed=share, description=doing)


def _duration(seconds: float) -> str:
    if seconds > 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
