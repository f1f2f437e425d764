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
    PAPER_RATES,
    DecoderRow,
    ShownDecoder,
    fell_before_jump,
    laptop,
    narrow,
    paper,
    smoke,
    training_table,
    with_chain,
)

ID = "W-figure-1"
TITLE = "W, Figure 1: chain of thought turns exponential into about linear"
TEXT = (
    "Left: training examples seen when every held-out token was right for the first time, against the number of hidden"
    " bits k: median and range over seeds; an open triangle means that the budget ended first. Right: accuracy (solid) "
    "and the normalised attention entropy of the sparsest head (dashed, Eq. (1)) during training, one line per seed. "
    "The paper has n = 30 and k up to 4; here n = 20, k up to 12, width 128, one layer and eight heads, five seeds that"
    " no setting was chosen on (the demo: n = 16, k up to 8, one seed)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 28, "reference": 460, "paper": 4e5}
# Ten times and more what the chain needs.
_BUDGET = {"batch": 512, "steps": 1000, "evaluate_every": 20}

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
        *(laptop(ANSWER, 20, k, chain_of_thought=False, seed=seed, **_BUDGET) for k in range(1, 13) for seed in FRESH),
    ],
    "paper": [
        paper(CHAIN if chain else ANSWER, 30, k, chain_of_thought=chain, learning_rate=rate)
        for chain in (True, False)
        for k in (1, 2, 3, 4)
        for rate in PAPER_RATES
    ],
}


def _cells(rows: Sequence[DecoderRow], chain: bool) -> dict[int, Cell]:
    return cells_by(with_chain(rows, chain), lambda training: training.k)


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw samples against k on the left, the hardest solved trainings on the right."""
    figure, (left, right) = new_figure(13, 4.4, 1, 2)
    for index, chain in enumerate((True, False)):
        cells = _cells(rows, chain)
        draw_cells(left, cells, index, (CHAIN, ANSWER)[index])
        shown = _shown(cells)
        draw_progress(right, shown.rows, index, f"{(CHAIN, ANSWER)[index]}, k = {shown.rows[0].config.training.k}")
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
    chain, answer = _cells(rows, True), _cells(rows, False)
    first = exponential(reached_pairs(answer))
    laws = [law(reached_pairs(chain)) for law in (exponential, line, power_law)]
    timing = [f"{name}: {_timing(_shown(cells))}" for name, cells in ((CHAIN, chain), (ANSWER, answer))]
    return [
        Finding(
            "Without CoT the samples needed grow exponentially with k.",
            f"{spoken_cells(answer)}. Factor per bit where they were reached, with its 95 % interval: {first or '–'}.",
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
