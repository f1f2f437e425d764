"""W, Figure 1: samples needed against k with and without chain of thought; entropy and accuracy during training."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_progress, draw_unreached
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    PAPER_RATES,
    DecoderRow,
    ShownDecoder,
    best_by_k,
    fell_before_jump,
    growth,
    narrow,
    paper,
    samples_at_least,
    smoke,
    solved,
    spoken_by_k,
    training_table,
    with_chain,
)

ID = "W-figure-1"
TITLE = "W, Figure 1: chain of thought turns exponential into about linear"
TEXT = (
    "Left: training examples seen when every held-out token was right for the first time, against the number of hidden"
    " bits k; an open triangle means that the budget ended first. Right: accuracy (solid) and the normalised attention "
    "entropy of the sparsest head (dashed, Eq. (1)) during training. Laptop scale is a decoder of width 64 with one "
    "layer and four heads (one head does not learn two bits without CoT within the budget), best of two rates with CoT."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 28, "reference": 69, "paper": 4e5}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [
        smoke(CHAIN if chain else ANSWER, k=k, chain_of_thought=chain) for chain in (True, False) for k in (1, 2)
    ],
    "demo": [
        *(narrow(CHAIN, 16, k, steps=400, heads=4, held_out=512) for k in (1, 2, 3, 4, 8, 12)),
        *(
            narrow(ANSWER, 16, k, chain_of_thought=False, heads=4, steps=500, held_out=512, evaluate_every=20)
            for k in (1, 2, 3)
        ),
    ],
    "reference": [
        *(
            narrow(CHAIN, 16, k, steps=400, heads=4, learning_rate=rate)
            for k in (1, 2, 3, 4, 8, 12)
            for rate in (5e-4, 1e-3)
        ),
        *(
            narrow(ANSWER, 16, k, chain_of_thought=False, heads=4, batch=512, steps=2000, evaluate_every=20)
            for k in (1, 2, 3)
        ),
    ],
    "paper": [
        paper(CHAIN if chain else ANSWER, 30, k, chain_of_thought=chain, learning_rate=rate)
        for chain in (True, False)
        for k in (1, 2, 3, 4)
        for rate in PAPER_RATES
    ],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw samples against k on the left, two trainings on the right."""
    figure, (left, right) = new_figure(12, 4.4, 1, 2)
    for index, chain in enumerate((True, False)):
        chosen = best_by_k(with_chain(rows, chain))
        _draw_samples(left, list(chosen.values()), index)
        shown = _shown(list(chosen.values()))
        draw_progress(right, shown, index, f"{shown.config.label}, k = {shown.config.training.k}")
    left.set(xlabel="hidden bits k", ylabel="training examples until perfect", yscale="log")
    left.legend()
    first = min(float(row.arrays["step"][1]) for row in rows)
    right.set(xlabel="step", ylabel="accuracy, entropy", ylim=(-0.02, 1.03), xscale="log")
    right.set_xlim(left=first)
    right.legend(fontsize=9, loc="lower left")
    return figure


def _draw_samples(axes: Axes, rows: list[DecoderRow], index: int) -> None:
    done = solved(rows)
    needed = [float(samples_at_least(row)) for row in done]
    axes.plot(
        [row.config.training.k for row in done],
        needed,
        "o-",
        color=colour(index),
        label=(CHAIN, ANSWER)[index],
    )
    draw_unreached(axes, rows, index)


def _shown(rows: list[DecoderRow]) -> DecoderRow:
    """Return the hardest solved training, the hardest of all if none was."""
    return (solved(rows) or rows)[-1]


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Compare growth in k, and when entropy falls with when accuracy jumps."""
    factors, lists = {}, {}
    for chain in (True, False):
        best = best_by_k(with_chain(rows, chain))
        factors[chain] = growth([(k, samples_at_least(row)) for k, row in best.items()])
        lists[chain] = spoken_by_k(best)
    timing = []
    for chain in (True, False):
        row = _shown(list(best_by_k(with_chain(rows, chain)).values()))
        fallen, risen = fell_before_jump(row)
        timing.append(f"{row.config.label}: entropy half down at step {fallen}, accuracy half up at step {risen}")
    return [
        Finding(
            "Without CoT the samples needed grow exponentially with k; with CoT linearly.",
            f"Factor per bit {factors[False] or float('nan'):.2f} without ({lists[False]}; a budget that ended counts "
            f"as the samples needed, so both are lower bounds) and {factors[True] or float('nan'):.2f} with "
            f"({lists[True]}).",
        ),
        Finding("As attention becomes sparser, accuracy jumps.", "; ".join(timing) + "."),
    ]
