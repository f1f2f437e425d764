"""What commands print on a terminal: tables and sentences, claims as Markdown with coloured verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.markdown import Markdown
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text
from torch import Tensor
from torch.nn import functional

from parityscope.apps.benchmarking import COLUMNS, Timing, table_rows
from parityscope.apps.chain_of_thought import ChainPair, looks, on_the_secret
from parityscope.apps.terminal import plain_table
from parityscope.language_models.measures import COMPARISONS, MEASURES
from parityscope.language_models.study import StudyRow, lower_share, means
from parityscope.language_models.word_problems import VARIANTS
from parityscope.papers.claim import ClaimNumbers, Replayed
from parityscope.papers.figure import SCALES, PaperFigure, ResultTable, Scale
from parityscope.papers.rendering import IRREFUTABLE, claim_markdown, counts_markdown, judgement_markdown
from parityscope.runs import Summary
from parityscope.training import learning
from parityscope.training.decoders import DecoderRun

# Ten steps of a perceptually even dark-to-bright scale; the characters carry the same values without colour.
_COLOURS = (
    *("#440154", "#482878", "#3e4a89", "#31688e", "#26828e"),
    *("#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"),
)
_SHADES = "··░░▒▒▓▓██"
_MARK = "▼"


def _attention_heat_map(
    attention: Float[Tensor, "heads n"],
    hidden: Bool[Tensor, " n"],
    width: int,
    names: Sequence[str] | None = None,
    limit: int = 40,
) -> RenderableType:
    """Draw heads × positions, hidden bits marked; neighbouring positions share a cell when n exceeds the width.

    What the rows are called is up to `names`; heads are numbered. At most `limit` rows are drawn.

    >>> heads = torch.eye(4)[2:]
    >>> Console(width=40).print(_attention_heat_map(heads, heads.sum(0) > 0, width=40))
    hidden     ▼▼
    head 0   ··█· 1.00
    head 1   ···█ 1.00
    >>> Console(width=40).print(_attention_heat_map(heads, heads.sum(0) > 0, width=40, limit=1))
    hidden     ▼▼
    head 0   ··█· 1.00
    1 more
    >>> Console(width=40).print(_attention_heat_map(heads * torch.nan, heads.sum(0) > 0, width=40, limit=1))
    hidden     ▼▼
    head 0   ???? nan
    1 more
    """
    more, attention = len(attention) - limit, attention[:limit]
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
        line = Text((names[head] if names else f"head {head}").ljust(label))
        for value in row.tolist():
            if math.isnan(value):
                line.append("?", "red")
                continue
            level = min(9, int(value * 10))
            line.append(_SHADES[level], Style(color=_COLOURS[level], bgcolor=_COLOURS[level] if level > 1 else None))
        line.append(f" {float(row.max()):.2f}", "dim")
        lines.append(line)
    return Group(*lines, *([Text(f"{more} more", style="dim")] if more > 0 else ()))


def _runs_table(run: learning.LearnedRuns, limit: int = 40) -> Table:
    """Return the table of runs: the hidden and the recovered support, and how well.

    >>> from parityscope.problems import Parity
    >>> run = learning.learn(Parity(8, (1, 5)), seeds=range(3))
    >>> [str(column.header) for column in _runs_table(run).columns][:4], _runs_table(run, limit=2).caption
    (['seed', 'hidden', 'recovered', 'risk'], '1 more runs in run.json')
    """
    known = {"proved": run.certificate, "evidence": run.evidence}
    said = [title for title, value in known.items() if value is not None]
    accuracy = {"exact": "accuracy", "lower bound": "accuracy ≥", "estimate": "accuracy ≈"}[run.accuracy_kind]
    titles = ("seed", "hidden", "recovered", "risk", accuracy, "steps", "", *said)
    table = plain_table(titles, left=("hidden", "recovered", "", *said))
    for row in run.to_json()["runs"][:limit]:
        learned = row["recovered"] and row["accuracy"] > learning.LEARNED_ACCURACY
        verdict = Text("learned", "green") if learned else Text("diverged" if row["diverged"] else "not learned", "red")
        positions = (",".join(map(str, row[key])) for key in ("support", "found"))
        numbers = (f"{row['risk']:.4f}", f"{row['accuracy']:.4f}", str(row["steps"]))
        table.add_row(str(row["seed"]), *positions, *numbers, verdict, *(row[title] for title in said))
    if len(run.seeds) > limit:
        table.caption = f"{len(run.seeds) - limit} more runs in run.json"
    return table


def show_run(console: Console, run: learning.LearnedRuns) -> None:
    """Print what one training found.

    >>> from parityscope.problems import Parity
    >>> run = learning.learn(Parity(8, (1, 5)), seeds=range(2))
    >>> import io
    >>> console = Console(file=io.StringIO(), width=80)
    >>> show_run(console, run)
    >>> "2/2 (34%–100%) learned from the population" in console.file.getvalue()
    True
    """
    console.print(_attention_heat_map(run.attention[0], run.problems[0].mask(), min(console.width, 120)))
    console.print()
    console.print(_runs_table(run))
    console.print()
    settings = f"recipe {run.recipe.name}, {run.recipe.heads} heads × {run.recipe.numbers_per_head} parameters"
    source = "the population" if run.samples is None else f"{run.samples} examples per run"
    source = source if run.batch is None else f"{run.batch} fresh examples per step"
    console.print(
        f"{run.success} learned from {source} · {settings} · {run.engine} · {run.seconds:.1f} s",
        highlight=False,
    )


def show_chains(console: Console, pairs: Sequence[ChainPair]) -> None:
    """Print where the first seed's tokens looked, and a table of all."""
    first = pairs[0]
    links, answer = looks(first.chain), looks(first.at_once)
    hidden = torch.zeros(links.shape[-1], dtype=torch.bool)
    hidden[list(first.chain.task.secret)] = True
    rows = torch.cat([links, functional.pad(answer, (0, links.shape[-1] - answer.shape[-1]))])
    names = [*(f"link {link}" for link in range(len(links))), "at once"]
    console.print(_attention_heat_map(rows, hidden, min(console.width, 120), names))
    console.print()
    console.print(_table(pairs))
    console.print()
    even = 1 / (first.chain.task.n + 1)
    seconds = sum(pair.chain.seconds + pair.at_once.seconds for pair in pairs)
    for line in (
        "accuracy: on held-out inputs, continued from its own tokens · examples: seen when all were correct",
        f"on hidden: attention on the hidden bits, {even:.2f} if even · entropy (W, Eq. 1): before → after training",
        f"positions: {first.chain.task.n} bits, a 0, the chain · {seconds:.1f} s",
    ):
        console.print(line, highlight=False, soft_wrap=True)


def _table(pairs: Sequence[ChainPair]) -> Table:
    table = plain_table(("seed", "hidden", "", "accuracy", "examples", "on hidden", "entropy"), left=("hidden", ""))
    for column in table.columns:
        column.no_wrap = str(column.header) != "hidden"
    for pair in pairs:
        seed, secret = str(pair.chain.config.seed), ",".join(map(str, pair.chain.task.secret))
        table.add_row(seed, secret, "chain", *_numbers(pair.chain))
        table.add_row("", "", "at once", *_numbers(pair.at_once))
    return table


def _numbers(run: DecoderRun) -> tuple[str, ...]:
    needed = run.samples_to(1.0)
    seen = f"not in {run.history.step[-1] * run.config.batch:,}" if needed is None else f"{needed:,}"
    share = sum(on_the_secret(run)) / run.task.k
    before, after = (float(run.history.entropy[place].min()) for place in (0, -1))
    return f"{run.free_running:.3f}", seen, f"{share:.2f}", f"{before:.2f} → {after:.2f}"


def show_study(console: Console, row: StudyRow) -> None:
    """Print every measure of every model of a study: means over heads, and the share of heads where CoT is lower.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=120)
    >>> from parityscope.language_models.study import EntropyStudy, StudyNumbers
    >>> from parityscope.records import Row
    >>> numbers = StudyNumbers(data="own.jsonl", problems=8, too_long=2, models=(), second_against_first=None)
    >>> show_study(console, Row(EntropyStudy(models=(), problems="9b2e", seed=0), numbers))
    >>> console.file.getvalue().splitlines()[0]
    'left out because they are too long: 2 problems'
    """
    study = row.numbers
    for place, model in enumerate(study.models):
        console.print(
            f"{model.label} on {study.problems} problems of {study.data}", style="bold", highlight=False, soft_wrap=True
        )
        titles = ("measure", "sink", *VARIANTS, *(f"below {other}" for other in COMPARISONS))
        titles = tuple(title.removesuffix(" CoT") if "shuffled" in title else title for title in titles)
        table = plain_table(titles, left=titles)
        for index, measure in enumerate(MEASURES):
            shares = (lower_share(model.comparisons[other][index]) for other in COMPARISONS)
            table.add_row(*measure, *means(row, place, index), *shares)
        console.print(table)
        console.print()
    if study.second_against_first is not None:
        first, second = study.models[:2]
        lower = lower_share(study.second_against_first[0])
        console.print(f"with CoT, {second.name} is below {first.name} in {lower} of heads (Eq. 1)", highlight=False)
    if study.too_long:
        console.print(f"left out because they are too long: {study.too_long} problems", highlight=False)
    note = "below: share of heads whose mean over problems is lower with CoT, and its 95 % interval over problems"
    console.print(note, highlight=False, soft_wrap=True)


def figures_table(figures: Sequence[PaperFigure]) -> Table:
    """Return the list of figures with what each costs.

    >>> from parityscope.papers.registry import load_figure
    >>> table = figures_table([load_figure("H1-figure-1")])
    >>> [str(column.header) for column in table.columns]
    ['id', 'title', 'smoke, s', 'demo, s', 'reference, s']
    """
    table = plain_table(("id", "title", *(f"{scale}, s" for scale in SCALES)), left=("id", "title"))
    for figure in figures:
        table.add_row(figure.ID, figure.TITLE, *(f"{figure.COST[scale]:g}" for scale in SCALES))
    return table


def bench_table(results: Sequence[tuple[str, Timing]]) -> Table:
    """Return all ratios in one table, with both times.

    >>> table = bench_table([("risk", Timing("n=20", 32.1, 0.0012, 0.0385, "enumeration", {}))])
    >>> [next(column.cells).plain for column in table.columns]
    ['risk', 'n=20', '32×', '1.2 ms', '38 ms, enumeration', '']
    """
    table = plain_table(COLUMNS, left=set(COLUMNS) - {"ratio", "ours"})
    for row in table_rows(results):
        table.add_row(*map(Text, row))
    return table


def compare_table(shown: ResultTable) -> Table:
    """Return what methods need, a line for each method and size.

    >>> compare_table(ResultTable(["method", "n"], [["fit", "20"]])).row_count
    1
    """
    table = plain_table(tuple(shown.header), left={"method", "shown"})
    for row in shown.rows:
        table.add_row(*map(Text, row))
    return table


def sweep_sentence(summary: Summary, store: Path, tracebacks: Sequence[str]) -> str:
    """Return how a sweep ended, and for failures the last line of the first and how to go on.

    >>> sweep_sentence(Summary(done=8, failed=0, run_now=3), Path("out/store"), [])
    '8 done, 0 failed, 3 of them now: out/store'
    """
    sentence = f"{summary.done} done, {summary.failed} failed, {summary.run_now} of them now: {store}"
    if tracebacks:
        reason = tracebacks[0].strip().splitlines()[-1]
        sentence += (
            f"\nfirst failure: {reason}\n"
            f"parityscope rows {store} --failed shows every traceback; --retry-failed runs them again"
        )
    return sentence


_VERDICT_COLOURS = {"proved": "green", "holds": "green", "misprint": "yellow", "in part": "yellow", "fails": "red"}
_WIDEST = 118  # longer lines are hard to read


class _Verdicts:
    """Markdown whose emphasis, verdicts, has their colours."""

    def __init__(self, markdown: str) -> None:
        self._markdown = Markdown(markdown, code_theme="ansi_light", hyperlinks=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self._markdown, options):
            colour = _VERDICT_COLOURS.get(text) if style is not None and style.italic else None
            yield Segment(text, style if colour is None else Style(color=colour), control)


def show_claims(console: Console, checked: Sequence[ClaimNumbers]) -> None:
    """Print every claim in short, and how many got which verdict."""
    apart = ", ".join(f"{claim.id} ({claim.verdict})" for claim in checked if not claim.refutable)
    parts = [*map(claim_markdown, checked), counts_markdown(checked)]
    for part in [*parts, f"{IRREFUTABLE}, counted apart: {apart}"] if apart else parts:
        _print(console, part)


def show_claim(console: Console, checked: ClaimNumbers, scale: Scale) -> None:
    """Print everything about one claim as a page to read."""
    _print(console, f"{claim_markdown(checked)}\n\n{judgement_markdown(checked, scale)}")


def _print(console: Console, markdown: str) -> None:
    console.print(_Verdicts(markdown), "", width=min(console.width, _WIDEST))


def show_replays(console: Console, replayed: Sequence[Replayed]) -> None:
    """Print every number of the counterexamples beside the same number by a second method."""
    for one in replayed:
        console.print(Group(*_replayed(one), ""), highlight=False, width=min(console.width, _WIDEST))


def _replayed(one: Replayed) -> Iterator[Text | Table]:
    if one.missing is not None:
        yield Text(one.missing)
        return
    origin = "stored" if one.stored else "nothing was stored, so it was computed first"
    yield Text.assemble((one.id, "bold"), f"  counterexample at scale {one.scale} ({origin})")
    titles = ("what", "stored", "again", "by", "still refutes")
    table = plain_table(titles, left=titles)
    for replay in one.replays:
        confirms = Text("yes", "green") if replay.confirms else Text("no", "red")
        numbers = (f"{number:.6g}" for number in (replay.stored, replay.again))
        table.add_row(Text(replay.what), *numbers, Text(replay.route), confirms)
    yield table
