"""One training: where the heads look, what every seed found."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text
from torch import Tensor

from parityscope.training import learning

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


def attention_heat_map(
    attention: Float[Tensor, "heads n"], hidden: Bool[Tensor, " n"], width: int, names: Sequence[str] | None = None
) -> RenderableType:
    """Draw heads × positions, hidden bits marked; neighbouring positions share a cell when n exceeds the width.

    What the rows are called is up to `names`; heads are numbered.

    >>> heads = torch.eye(4)[2:]
    >>> Console(width=40).print(attention_heat_map(heads, heads.sum(0) > 0, width=40))
    hidden     ▼▼
    head 0   ··█· 1.00
    head 1   ···█ 1.00
    """
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
            level = min(9, int(value * 10))
            line.append(_SHADES[level], Style(color=_COLOURS[level], bgcolor=_COLOURS[level] if level > 1 else None))
        line.append(f" {float(row.max()):.2f}", "dim")
        lines.append(line)
    return Group(*lines)


def runs_table(run: learning.LearnedRuns, limit: int = 40) -> Table:
    """Return the table of runs: what was hidden, what was found, how well.

    >>> from parityscope.problems import Parity
    >>> run = learning.learn(Parity(8, (1, 5)), seeds=range(3))
    >>> [column.header for column in runs_table(run).columns][:4], runs_table(run, limit=2).caption
    (['seed', 'hidden', 'found', 'risk'], '1 more runs in run.json')
    """
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    known = {"proved": run.certificate, "evidence": run.evidence}
    said = [title for title, value in known.items() if value is not None]
    accuracy = {"exact": "accuracy", "lower bound": "accuracy ≥", "estimate": "accuracy ≈"}[run.accuracy_kind]
    for title in ("seed", "hidden", "found", "risk", accuracy, "steps", "", *said):
        table.add_column(title, justify="left" if title in ("hidden", "found", "", *said) else "right")
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
