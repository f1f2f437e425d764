"""What people see in a terminal: progress with risk, a heat map of attention, a table of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.style import Style
from rich.table import Table
from rich.text import Text
from torch import Tensor

from parityscope import learning, sweep
from parityscope.benchmarking import Measurement
from parityscope.claims.contract import CheckedClaim, Claim
from parityscope.experiments import entropy_studies
from parityscope.experiments.contract import SCALES, Experiment, Row, Stage
from parityscope.language_models.measures import COMPARISONS, MEASURES
from parityscope.language_models.word_problems import VARIANTS

if TYPE_CHECKING:
    from parityscope.estimator.files import Fitted

# Ten steps of a perceptually even dark-to-bright scale; the characters carry the same values without colour.
_COLOURS = [
    "#440154",
    "#482878",
    "#3e4a89",
    "#31688e",
    "#26828e",
    "#1f9e89",
    "#35b779",
    "#6ece58",
    "#b5de2b",
    "#fde725",
]
_SHADES = "··░░▒▒▓▓██"
_MARK = "▼"


@contextmanager
def training_progress(console: Console) -> Iterator[Callable[[learning.Progress], None]]:
    """Show a bar with the median risk and how many runs are done."""
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


def attention_heat_map(attention: Float[Tensor, "heads n"], hidden: Bool[Tensor, " n"], width: int) -> RenderableType:
    """Draw heads × positions, hidden bits marked; neighbouring positions share a cell when n exceeds the width."""
    label = 9
    cells = max(1, min(attention.shape[-1], width - label - 5))
    # Each cell shows the largest attention among its positions, so that a single sharp bit stays visible.
    cell_of = torch.arange(attention.shape[-1]) * cells // attention.shape[-1]
    heat = torch.zeros(attention.shape[0], cells, dtype=attention.dtype)
    heat.scatter_reduce_(1, cell_of.expand(attention.shape), attention, "amax")
    marked = torch.zeros(cells, dtype=torch.bool)
    marked[cell_of[hidden]] = True
    lines = [Text("hidden".ljust(label) + "".join(_MARK if m else " " for m in marked), style="bold")]
    for head, row in enumerate(heat):
        line = Text(f"head {head}".ljust(label))
        for value in row.tolist():
            level = min(9, int(value * 10))
            line.append(_SHADES[level], Style(color=_COLOURS[level], bgcolor=_COLOURS[level] if level > 1 else None))
        line.append(f" {float(row.max()):.2f}", "dim")
        lines.append(line)
    return Group(*lines)


def runs_table(run: learning.Learned, limit: int = 40) -> Table:
    """Return the table of runs: what was hidden, what was found, how well."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    accuracy = {"exact": "accuracy", "lower bound": "accuracy ≥", "estimate": "accuracy ≈"}[run.accuracy_kind]
    for title in ("seed", "hidden", "found", "risk", accuracy, "steps", ""):
        table.add_column(title, justify="left" if title in ("hidden", "found", "") else "right")
    for row in run.to_json()["runs"][:limit]:
        learned = row["recovered"] and row["accuracy"] > learning.LEARNED_ACCURACY
        verdict = Text("learned", "green") if learned else Text("diverged" if row["diverged"] else "not learned", "red")
        positions = (",".join(map(str, row[key])) for key in ("support", "found"))
        numbers = (f"{row['risk']:.4f}", f"{row['accuracy']:.4f}", str(row["steps"]))
        table.add_row(str(row["seed"]), *positions, *numbers, verdict)
    if len(run.seeds) > limit:
        table.caption = f"{len(run.seeds) - limit} more runs in run.json"
    return table


def show_run(console: Console, run: learning.Learned) -> None:
    """Print what one training found."""
    console.print(attention_heat_map(run.attention[0], run.problems[0].mask(), min(console.width, 120)))
    console.print()
    console.print(runs_table(run))
    console.print()
    settings = f"recipe {run.recipe.name}, {run.recipe.heads} heads × {run.recipe.numbers_per_head} numbers"
    source = "the population" if run.samples is None else f"{run.samples} examples per run"
    source = source if run.batch is None else f"{run.batch} fresh examples per step"
    console.print(
        f"{run.success} learned from {source} · {settings} · {run.engine} · {run.seconds:.1f} s",
        highlight=False,
    )


@contextmanager
def reproduction_progress(console: Console, experiments: int) -> Iterator[Callable[[Stage], None]]:
    """Show two bars: over experiments, and over the configs of the current one, with the time left."""
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
    """Show a bar with what is done, running and failed, the rate and the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=None, note="")

        def update(progress: sweep.Progress) -> None:
            left = "" if progress.seconds_left is None else f" · {_duration(progress.seconds_left)} left"
            note = f"{progress.running} running · {progress.failed} failed · {progress.per_second:.1f}/s{left}"
            bar.update(task, total=progress.total, completed=progress.done + progress.failed, note=note)

        yield update


def _duration(seconds: float) -> str:
    if seconds > 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


def sweep_sentence(summary: sweep.Summary, store: Path, tracebacks: Sequence[str]) -> str:
    """Return how a sweep ended, and for failures the last line of the first and how to go on."""
    sentence = f"{summary.done} done, {summary.failed} failed, {summary.run_now} of them now: {store}"
    if tracebacks:
        reason = tracebacks[0].strip().splitlines()[-1]
        sentence += (
            f"\nfirst failure: {reason}\n"
            f"parityscope rows {store} --failed shows every traceback; --retry-failed runs them again"
        )
    return sentence


@contextmanager
def claims_progress(console: Console, claims: Sequence[Claim]) -> Iterator[Callable[[Claim], None]]:
    """Show a bar over the claims, weighted by what each costs, and the one being checked."""
    columns = (TextColumn("checking"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=sum(claim.seconds for claim in claims))
        before: list[Claim] = []

        def update(claim: Claim) -> None:
            bar.update(task, description=claim.id, completed=sum(done.seconds for done in before))
            before.append(claim)

        yield update


@contextmanager
def entropy_progress(console: Console) -> Iterator[Callable[[entropy_studies.Progress], None]]:
    """Show a bar over the problems for every model, with the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("problems"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def update(progress: entropy_studies.Progress) -> None:
            if progress.model not in tasks:
                tasks[progress.model] = bars.add_task(progress.model, total=progress.total, completed=progress.done)
            bars.update(tasks[progress.model], completed=progress.done)

        yield update


def show_study(console: Console, row: Row) -> None:
    """Print every measure of every model of a study: means over heads, and the share of heads where CoT is lower."""
    study = entropy_studies.MeasuredStudy.from_row(row)
    for model in study.models:
        console.print(
            f"{model.label} on {study.problems} problems of {study.data}", style="bold", highlight=False, soft_wrap=True
        )
        table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
        for title in ("measure", "sink", *VARIANTS, *(f"below {other}" for other in COMPARISONS)):
            table.add_column(title.removesuffix(" CoT") if "shuffled" in title else title)
        for place, measure in enumerate(MEASURES):
            means = (f"{float(model.mean[variant, place].mean()):.3f}" for variant in range(len(VARIANTS)))
            shares = (entropy_studies.lower_share(model.comparisons[other][place]) for other in COMPARISONS)
            table.add_row(*measure, *means, *shares)
        console.print(table)
        console.print()
    if study.second_against_first is not None:
        first, second = study.models[:2]
        lower = entropy_studies.lower_share(study.second_against_first[0])
        console.print(f"with CoT, {second.name} is below {first.name} in {lower} of heads (Eq. 1)", highlight=False)
    if row.numbers["too_long"]:
        console.print(f"left out because they are too long: {row.numbers['too_long']} problems", highlight=False)
    note = "below: share of heads whose mean over problems is lower with CoT, and its 95 % interval over problems"
    console.print(note, highlight=False, soft_wrap=True)


_VERDICT_STYLE = {"holds": "green", "holds in part": "yellow", "fails": "red", "not testable here": "dim"}


def claims_table(checked: Sequence[CheckedClaim]) -> Table:
    """Return the claims with their verdicts and the number that says it shortest."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 1, 0))
    for title in ("claim", "statement", "verdict", "number"):
        table.add_column(title, overflow="fold")
    for one in checked:
        verdict = Text(one.outcome.verdict, _VERDICT_STYLE[one.outcome.verdict])
        table.add_row(one.claim.id, one.claim.statement, verdict, one.outcome.number)
    return table


def experiments_table(experiments: Sequence[Experiment]) -> Table:
    """Return the list of experiments with what each costs."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("id")
    table.add_column("title")
    for scale in SCALES:
        table.add_column(f"{scale}, s", justify="right")
    for experiment in experiments:
        costs = (f"{experiment.COST[scale]:g}" for scale in SCALES)
        table.add_row(experiment.ID, experiment.TITLE, *costs)
    return table


def measurement_line(result: Measurement) -> str:
    """Return one line of `bench`: the ratio first."""
    ratio = "" if result.ratio is None else f"{result.ratio:,.1f}×"
    against = f" against {result.other_seconds:.4g} s, {result.other}" if result.other_seconds is not None else ""
    extra = ", ".join(f"{key} {value}" for key, value in result.setting.items() if key not in ("n", "k", "runs"))
    return f"{ratio:>10}  {result.name}: {result.ours_seconds:.4g} s{against}  ({extra})"


def show_fit(console: Console, fitted: Fitted, limit: int = 64) -> None:
    """Print what was found in a table: the columns, how sure it is, and the truth table with a bar per line."""
    found = fitted.to_json()
    for note in found["notes"]:
        console.print(Text(note, "yellow"))
    if found["columns"]:
        _show_interaction(console, found, limit)
    sure = f"p = {found['p_value']:.2g}" if found["p_value"] > 1e-300 else "p < 1e-300"
    console.print(
        f"held-out accuracy {found['accuracy']:.3f} · {sure} after the search · label noise {found['noise_rate']:.1%}"
        f" · {found['rows']} rows × {found['features']} columns · {found['solver'] or 'no solver'}"
        f" · {found['seconds']:.1f} s",
        highlight=False,
        soft_wrap=True,
    )
    for name, why in found["ignored"].items():
        console.print(f"ignored: {name} ({why})", highlight=False, markup=False)


def _show_interaction(console: Console, found: dict[str, Any], limit: int) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("column", "number", "bit"):
        table.add_column(title)
    for name, index, bit in zip(found["columns"], found["support"], found["bits"], strict=True):
        table.add_row(Text(name), str(index), Text(bit))
    console.print(table)
    console.print()
    second = found["classes"][1]
    cells = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in found["truth_table"][0]["values"]:
        cells.add_column(Text(name))
    for title in ("rows", f"{found['target']} = {second}"):
        cells.add_column(Text(title), justify="right")
    cells.add_column("")
    for cell in found["truth_table"][:limit]:
        share = cell["share"]
        bar = Text("" if share is None else "█" * round(20 * share), "green" if (share or 0) > 0.5 else "yellow")
        values = (Text(value) for value in cell["values"].values())
        cells.add_row(*values, str(cell["rows"]), "–" if share is None else f"{share:.0%}", bar)
    if len(found["truth_table"]) > limit:
        cells.caption = f"{len(found['truth_table']) - limit} more combinations with --json"
    console.print(cells)
    console.print()
