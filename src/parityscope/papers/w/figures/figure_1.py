"""W, Figure 1: samples needed against k with and without chain of thought; entropy and accuracy during training."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_cells, draw_progress
from parityscope.papers.w.over_seeds import (
    Cell,
    cells_by,
    exponential,
    line,
    power_law,
    reached_pairs,
    spoken_cells,
)
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    FRESH,
    DecoderRow,
    ShownDecoder,
    fell_before_jump,
    laptop,
    narrow,
    smoke,
    training_table,
)

ID = "W-figure-1"
TITLE = "W, Figure 1: chain of thought turns exponential into about linear"
TEXT = (
    "Left: training examples seen when every held-out token was right for the first time, against the number of hidden"
    " bits k: median and range over seeds; an open triangle means that the budget ended first. Right: accuracy (solid) "
    "and the normalised attention entropy of the sparsest head (dashed, Eq. (1)) during training, one line per seed. "
    "The paper has n = 30 and k up to 4; here n = 20, k up to 12, width 128, one layer, batches of 256, an evaluation "
    "every 10 steps, five seeds that no setting was chosen on (the demo: n = 16, k up to 8, one seed). Eight heads "
    "were chosen for the chain, so that without it four are shown too."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 28, "reference": 460}
# Without the chain: ten times and more what the chain needs.
_BUDGET = {"chain_of_thought": False, "steps": 2000}
FOUR_HEADS = f"{ANSWER}, four heads"

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [
        smoke(CHAIN if chain else ANSWER, k=k, chain_of_thought=chain) for chain in (True, False) for k in (1, 2)
    ],
    "demo": [
        *(laptop(CHAIN, 16, k, steps=600, held_out=512) for k in (1, 2, 3, 4, 8)),
        *(narrow(ANSWER, 16, k, chain_of_thought=False, steps=500, evaluate_every=20) for k in (1, 2, 3)),
    ],
    "reference": [
        *(laptop(CHAIN, 20, k, steps=1000, seed=seed) for k in range(1, 13) for seed in FRESH),
        *(laptop(ANSWER, 20, k, seed=seed, **_BUDGET) for k in range(1, 13) for seed in FRESH),
        *(laptop(FOUR_HEADS, 20, k, heads=4, seed=seed, **_BUDGET) for k in range(1, 5) for seed in FRESH),
    ],
}


def _cells(rows: Sequence[DecoderRow], label: str) -> dict[int, Cell]:
    return cells_by([row for row in rows if row.config.label == label], lambda training: training.k)


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw samples against k on the left, the hardest solved trainings on the right."""
    figure, (left, right) = new_figure(13, 4.4, 1, 2)
    for index, label in enumerate(dict.fromkeys(row.config.label for row in rows)):
        cells = _cells(rows, label)
        draw_cells(left, cells, index, label)
        shown = _shown(cells)
        if label != FOUR_HEADS:
            draw_progress(right, shown.rows, index, f"{label}, k = {shown.rows[0].config.training.k}")
    left.set(xlabel="hidden bits k", ylabel="training examples until perfect", yscale="log")
    left.legend()
    first = min(float(row.arrays["step"][1]) for row in rows)
    right.set(xlabel="step", ylabel="accuracy, entropy", ylim=(-0.02, 1.03), xscale="log")
    right.set_xlim(left=first)
    right.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _shown(cells: dict[int, Cell]) -> Cell:
    """Return the hardest trainings that some seed solved, the hardest of all if none was."""
    return ([cell for cell in cells.values() if cell.reached] or list(cells.values()))[-1]


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Compare growth in k, and when entropy falls with when accuracy jumps."""
    chain, answer, four = (_cells(rows, label) for label in (CHAIN, ANSWER, FOUR_HEADS))
    first = exponential(reached_pairs(answer))
    laws = [law(reached_pairs(chain)) for law in (exponential, line, power_law)]
    timing = [f"{name}: {_timing(_shown(cells))}" for name, cells in ((CHAIN, chain), (ANSWER, answer))]
    return [
        Finding(
            "Without CoT the samples needed grow exponentially with k.",
            f"{spoken_cells(answer)}. Factor per bit where they were reached, with its 95 % interval: {first or '–'}."
            + (f" With four heads: {spoken_cells(four)}." if four else ""),
        ),
        Finding(
            "With CoT the samples needed grow linearly with k.",
            f"{spoken_cells(chain)}. Factor per bit {laws[0] or '–'}; line: {laws[1] or '–'} examples per bit; power "
            f"of k: {laws[2] or '–'}, where 1 is a line through the origin and 0 is no growth.",
        ),
        Finding("As attention becomes sparser, accuracy jumps.", "; ".join(timing) + "."),
    ]


def _timing(cell: Cell) -> str:
    pairs = [fell_before_jump(row) for row in cell.rows]
    first = sum(fallen is not None and risen is not None and fallen <= risen for fallen, risen in pairs)
    steps = ", ".join(f"{fallen} and {risen}" for fallen, risen in pairs)
    return (
        f"k = {cell.rows[0].config.training.k}, steps at which entropy is half down and accuracy half up {steps}; "
        f"entropy not later in {first} of {len(pairs)}"
    )
