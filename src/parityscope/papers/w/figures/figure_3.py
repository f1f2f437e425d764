"""W, Figure 3: samples needed with chain of thought for large k, and where the trained decoder looks."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import median
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_cells, draw_map
from parityscope.papers.w.over_seeds import Cell, cells_by, line, power_law, reached_pairs, spoken_cells
from parityscope.papers.w.settings import (
    FRESH,
    DecoderRow,
    ShownDecoder,
    laptop,
    looking_right,
    narrow,
    smoke,
    training_table,
)

ID = "W-figure-3"
TITLE = "W, Figure 3: many hidden bits with chain of thought, and sparse attention"
TEXT = (
    "Left: training examples until every held-out token is right, one layer with chain of thought, against k: median "
    "and range over seeds; a triangle means that the budget ended first. Middle: the attention of the chain positions "
    "on their secret bits at (40, 20), averaged over positions, by the head that gives each most; one dot per seed, "
    "after 50 steps more. Right: the attention of one head of the first of these seeds on one held-out input; squares "
    "mark the secret bit each next token depends on. The paper has one head, n = 100 and k from 20 to 100 on the left; "
    "here eight heads, n = 40 and 100, five seeds (the demo: n = 16, one seed)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 23, "reference": 580}
COUNT, MAP = "samples", "attention map"
_ON = {"steps": 800, "held_out": 512}
_PLAIN = {"start_gain": 1.0, "learning_rate": 5e-4}  # one head does not learn from the wider start at the larger rate

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [
        *(smoke(COUNT, 8, k) for k in (2, 4)),
        smoke(MAP, 8, 4, extra_steps=5).with_maps(),
    ],
    "demo": [
        *(laptop(COUNT, 16, k, steps=600, held_out=512) for k in (2, 4, 8, 16)),
        narrow(MAP, 16, 8, heads=1, start_gain=1.0, steps=400, extra_steps=100).with_maps(),
    ],
    "reference": [
        *(laptop(COUNT, n, k, seed=seed, **_ON) for n in (40, 100) for k in (5, 10, 20) for seed in FRESH),
        *(
            laptop(MAP, 40, 20, heads=heads, seed=seed, extra_steps=50, **_ON, **_PLAIN).with_maps()
            for heads in (1, 2, 4)
            for seed in FRESH
        ),
    ],
}


def _counts(rows: Sequence[DecoderRow]) -> dict[int, dict[int, Cell]]:
    """Return, for every n, the trainings that count samples by k."""
    counting = [row for row in rows if row.config.label == COUNT]
    return {
        n: cells_by([row for row in counting if row.config.training.n == n], lambda training: training.k)
        for n in dict.fromkeys(row.config.training.n for row in counting)
    }


def _maps(rows: Sequence[DecoderRow]) -> dict[int, list[DecoderRow]]:
    """Return, for every number of heads, the trainings whose attention is shown."""
    shown = [row for row in rows if row.config.label == MAP]
    heads = sorted({row.config.training.heads for row in shown})
    return {count: [row for row in shown if row.config.training.heads == count] for count in heads}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw samples against k beside the shares of attention and a map."""
    figure, (left, middle, right) = new_figure(14.5, 4.6, 1, 3, width_ratios=(1, 0.75, 1.5))
    for index, (n, cells) in enumerate(_counts(rows).items()):
        draw_cells(left, cells, index, f"n = {n}")
    left.set(xlabel="hidden bits k", ylabel="training examples until perfect")
    left.set_ylim(bottom=0)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.legend()
    maps = _maps(rows)
    _draw_shares(middle, maps)
    shown = next(iter(maps.values()))[0]
    training = shown.config.training
    image = draw_map(right, shown)
    which = "the only head" if training.heads == 1 else f"the first of {training.heads} heads"
    right.set_title(f"({training.n}, {training.k}), {which}, step {shown.numbers.steps}")
    figure.colorbar(image, ax=right, label="attention", pad=0.01)
    return figure


def _draw_shares(axes: Axes, maps: dict[int, list[DecoderRow]]) -> None:
    for place, rows in enumerate(maps.values()):
        shares = [row.numbers.secret_attention or 0.0 for row in rows]
        axes.plot([place] * len(rows), shares, "o", color=colour(0), fillstyle="none")
        axes.plot([place - 0.2, place + 0.2], [median(shares)] * 2, color=colour(1), linewidth=2)
    axes.set(xlabel="heads", ylabel="attention on the secret bit", ylim=(0, 1), xlim=(-0.5, len(maps) - 0.5))
    axes.set_xticks(range(len(maps)), [str(heads) for heads in maps])


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Fit the laws, and read the attention maps."""
    counts = []
    for n, cells in _counts(rows).items():
        pairs = reached_pairs(cells)
        laws = f"{line(pairs) or '–'} examples per bit, power of k {power_law(pairs) or '–'}"
        counts.append(f"n = {n}: {spoken_cells(cells)}; {laws}")
    looks = [f"{heads} {'head' if heads == 1 else 'heads'}: {_looks(found)}" for heads, found in _maps(rows).items()]
    return [
        Finding(
            "The samples needed with CoT grow approximately linearly with k.",
            f"{'. '.join(counts)} (95 % intervals; power 1 is a line through the origin, 0 no growth).",
        ),
        Finding("The i-th token of the chain predominantly attends to the i-th secret bit.", f"{'; '.join(looks)}."),
    ]


def _looks(rows: Sequence[DecoderRow]) -> str:
    shares = sorted(row.numbers.secret_attention or 0.0 for row in rows)
    positions = sum(len(row.numbers.secret) for row in rows)
    right = sum(map(looking_right, rows))
    return (
        f"{right} of {positions} chain positions of {len(rows)} seeds look most at their secret bit in some head, with "
        f"{median(shares):.2f} ({shares[0]:.2f}–{shares[-1]:.2f}) of their attention there"
    )
