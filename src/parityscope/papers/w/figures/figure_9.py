"""W, Figure 9: without chain of thought the (20, 12) problem is out of reach, for every configuration."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.multi_pass import (
    best_accuracy,
    guessing_bound,
    pool_cells,
    pool_name,
    shape_name,
    smoke_pool,
)
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    FRESH,
    DecoderRow,
    ShownDecoder,
    laptop,
    narrow,
    smoke,
    training_table,
    with_chain,
)

ID = "W-figure-9"
TITLE = "W, Figure 9: (20, 12) without chain of thought"
TEXT = (
    "Best held-out accuracy during training on the (20, 12) problem for several shapes, learning rates and pools, "
    "without chain of thought (dots) and with it (squares), one mark per seed. The caption says that "
    "training with CoT fails; the text and the computation say without. The bar is the largest accuracy that guessing "
    "reaches on the held-out set in all evaluations of a run, at six standard deviations."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 9, "reference": 90}
_SHORT = {"steps": 500, "batch": 512, "evaluate_every": 50, "held_out": 2048}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke_pool(ANSWER, 24), smoke(CHAIN, pool=24)],
    "demo": [
        narrow(ANSWER, 20, 12, chain_of_thought=False, pool=10_000, **{**_SHORT, "steps": 200}),
        narrow(CHAIN, 20, 12, pool=10_000, steps=400),
    ],
    "reference": [
        *(
            laptop(ANSWER, 20, 12, chain_of_thought=False, heads=heads, pool=pool, seed=seed, **_SHORT)
            for heads in (1, 4)
            for pool in (10_000, None)
            for seed in FRESH
        ),
        *(laptop(CHAIN, 20, 12, pool=pool, steps=1000, seed=seed) for pool in (10_000, None) for seed in FRESH),
    ],
}


def _name(row: DecoderRow) -> str:
    return f"{row.config.label}, {shape_name(row)}, {pool_name(row)}, rate {row.config.training.learning_rate:g}"


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw the best accuracy of every configuration and seed."""
    names = list(dict.fromkeys(map(_name, rows)))
    figure, axes = new_figure(9, 1.6 + 0.36 * len(names))
    for row in rows:
        chain = row.config.training.chain_of_thought
        place = names.index(_name(row))
        style = {"color": colour(0 if chain else 1), "markersize": 7, "fillstyle": "none"}
        axes.plot(best_accuracy(row), place, "s" if chain else "o", **style)
    axes.axvline(guessing_bound(rows[0]), color="0.5", linewidth=1)
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel="best held-out accuracy", xlim=(0.45, 1.02))
    axes.invert_yaxis()
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Count configurations above guessing."""
    without, chain = with_chain(rows, False), with_chain(rows, True)
    above = [row for row in without if best_accuracy(row) > guessing_bound(row)]
    listing = "; ".join(f"{pool_name(cell.rows[0])}: {cell}" for cell in pool_cells(chain))
    return [
        Finding(
            "Without CoT no configuration achieves non-trivial accuracy on (20, 12).",
            f"{len(above)} of {len(without)} trainings exceed what guessing can give "
            f"({guessing_bound(rows[0]):.3f}); the best reaches {max(map(best_accuracy, without)):.3f}.",
        ),
        Finding(
            "With CoT 10 000 inputs for 6 epochs are enough, or about 60 000 fresh samples.",
            f"With CoT, examples needed: {listing}.",
        ),
    ]
