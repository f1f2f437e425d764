"""Progress bars: what is done, how it goes, how long it will take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from parityscope import learning, sweep
from parityscope.claims.contract import Claim
from parityscope.experiments import measured_studies
from parityscope.experiments.contract import Stage


@contextmanager
def training_progress(console: Console) -> Iterator[Callable[[learning.Progress], None]]:
    """Show a bar with the median risk and how many runs are done.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system=None)
    >>> import torch
    >>> with training_progress(console) as show:
    ...     show(learning.Progress(5, 10, torch.tensor([0.25]), torch.tensor([0.75]), finished=0))
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

        def update(progress: learning.Progress) -> None:
            risk = float(progress.risk.median())
            done = f"{progress.finished} of {len(progress.risk)} runs stopped"
            accuracy = float(progress.accuracy_bound.median())
            bar.update(task, total=progress.steps, completed=progress.step, risk=risk, accuracy=accuracy, done=done)

        yield update


@contextmanager
def reproduction_progress(console: Console, experiments: int) -> Iterator[Callable[[Stage], None]]:
    """Show two bars: over experiments, and over the configs of the current one, with the time left.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system=None)
    >>> with reproduction_progress(console, experiments=2) as show:
    ...     show(Stage("H1-figure-1", done=1, total=1, seconds_left=120))
    >>> "1/2 about 2 min left" in console.file.getvalue()
    True
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=console) as bars:
        overall = bars.add_task("experiments", total=experiments, note="")
        current = bars.add_task("", total=None, note="")
        finished: set[str] = set()

        def update(stage: Stage) -> None:
            left = f"about {_duration(stage.seconds_left)} left"
            if stage.done == stage.total:
                finished.add(stage.experiment)
            bars.update(overall, completed=len(finished), note=left)
            bars.update(current, description=stage.experiment, completed=stage.done, total=stage.total, note="configs")

        yield update


@contextmanager
def sweep_progress(console: Console, name: str) -> Iterator[Callable[[sweep.Progress], None]]:
    """Show a bar with what is done, running and failed, the rate and the time left.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system=None)
    >>> with sweep_progress(console, "rates") as show:
    ...     show(sweep.Progress(total=8, done=2, failed=1, running=2, per_second=0.5))
    >>> "3/8 2 running · 1 failed · 0.5/s · 10 s left" in console.file.getvalue()
    True
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=None, note="")

        def update(progress: sweep.Progress) -> None:
            left = "" if progress.seconds_left is None else f" · {_duration(progress.seconds_left)} left"
            note = f"{progress.running} running · {progress.failed} failed · {progress.per_second:.1f}/s{left}"
            bar.update(task, total=progress.total, completed=progress.done + progress.failed, note=note)

        yield update


@contextmanager
def claims_progress(console: Console, claims: Sequence[Claim]) -> Iterator[Callable[[Claim], None]]:
    """Show a bar over the claims, weighted by what each costs, and the one being checked.

    >>> from parityscope.claims import named_claims
    >>> import io
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system=None)
    >>> claims = named_claims(["H1-lemma-19"])
    >>> with claims_progress(console, claims) as show:
    ...     show(claims[0])
    >>> "H1-lemma-19" in console.file.getvalue()
    True
    """
    columns = (TextColumn("checking"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=sum(claim.seconds for claim in claims))
        before: list[Claim] = []

        def update(claim: Claim) -> None:
            bar.update(task, description=claim.id, completed=sum(done.seconds for done in before))
            before.append(claim)

        yield update


@contextmanager
def entropy_progress(console: Console) -> Iterator[Callable[[measured_studies.Progress], None]]:
    """Show a bar over the problems for every model, with the time left.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system=None)
    >>> with entropy_progress(console) as show:
    ...     show(measured_studies.Progress("tiny", done=3, total=40))
    >>> "3/40 problems" in console.file.getvalue()
    True
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("problems"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def update(progress: measured_studies.Progress) -> None:
            if progress.model not in tasks:
                tasks[progress.model] = bars.add_task(progress.model, total=progress.total, completed=progress.done)
            bars.update(tasks[progress.model], completed=progress.done)

        yield update


def _duration(seconds: float) -> str:
    if seconds > 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
