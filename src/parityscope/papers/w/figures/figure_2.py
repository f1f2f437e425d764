"""W, Figure 2: samples needed over layers × heads × k, with and without chain of thought."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.cells import draw_heat_map
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.over_seeds import Cell, cells_by, exponential
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    FRESH,
    DecoderRow,
    ShownDecoder,
    laptop,
    smoke,
    training_table,
    with_chain,
)

ID = "W-figure-2"
TITLE = "W, Figure 2: layers and heads against hidden bits"
TEXT = (
    "Training examples until every held-out token is right, median over seeds, for every shape (layers × heads) and "
    "number of hidden bits, with chain of thought above and without below; colour is the logarithm, > means that the "
    "budget ended first for half of the seeds or more, a share how many seeds got there where not all did. The paper "
    "uses n = 30 and picks the best of three learning rates; here it is n = 16, width 128, one rate and five seeds that"
    " no setting was chosen on (the demo: n = 14, one seed)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 26, "reference": 330}
_SHAPES = ((1, 1), (1, 4), (2, 4))
_BUDGET = {"steps": 400, "evaluate_every": 20, "held_out": 512}
_SHORTER = {"steps": 300, "batch": 128, "held_out": 256, "evaluate_every": 10}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [
        smoke(f"{layers} × 1", k=k, chain_of_thought=chain, layers=layers)
        for chain in (True, False)
        for layers in (1, 2)
        for k in (1, 2)
    ],
    "demo": [
        laptop(f"{layers} × {heads}", 14, k, chain_of_thought=chain, layers=layers, heads=heads, **_SHORTER)
        for chain in (True, False)
        for layers, heads in ((1, 1), (1, 4), (2, 4))
        for k in (1, 2, 3)
    ],
    "reference": [
        laptop(f"{layers} × {heads}", 16, k, chain_of_thought=chain, layers=layers, heads=heads, seed=seed, **_BUDGET)
        for chain in (True, False)
        for layers, heads in _SHAPES
        for k in (1, 2, 3)
        for seed in FRESH
    ],
}

_Shape = tuple[int, int, int]


def _cells(rows: Sequence[DecoderRow], chain: bool) -> dict[_Shape, Cell]:
    """Return the trainings by layers, heads and k."""
    return cells_by(with_chain(rows, chain), lambda training: (training.layers, training.heads, training.k))


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw shapes × k as two heat maps with the counts written in."""
    shapes = list(dict.fromkeys(row.config.label for row in rows))
    ks = sorted({row.config.training.k for row in rows})
    figure, panels = new_figure(2.2 + 1.35 * len(shapes), 1.6 + 0.75 * 2 * len(ks), 2, 1, squeeze=False)
    shown = {chain: _cells(rows, chain) for chain in (True, False)}
    counts = [math.log10(cell.median or cell.budget) for cells in shown.values() for cell in cells.values()]
    for axes, chain in zip(panels[:, 0], (True, False), strict=True):
        grid = [[float("nan")] * len(shapes) for _ in ks]
        for (_, _, k), cell in shown[chain].items():
            x, y = shapes.index(cell.rows[0].config.label), ks.index(k)
            grid[y][x] = math.log10(cell.median or cell.budget)
            middle = grid[y][x] > (min(counts) + max(counts)) / 2
            ink = "black" if middle else "white"
            axes.text(x, y, _short(cell), ha="center", va="center", color=ink, fontsize=10)
        span = min(counts), max(counts) + 1e-9
        image = draw_heat_map(axes, grid, shapes, [f"k = {k}" for k in ks], span=span)
        axes.set_title(CHAIN if chain else ANSWER)
    panels[-1, 0].set_xlabel("layers × heads")
    figure.colorbar(image, ax=panels, label="log₁₀ of training examples", shrink=0.7)
    return figure


def _short(cell: Cell) -> str:
    """Return what a cell of the heat map says: the median, and how many seeds got there where not all did."""
    text = f"> {cell.budget / 1000:.0f}k" if cell.median is None else f"{cell.median / 1000:.1f}k"
    return text if cell.reached in (0, len(cell.rows)) else f"{text}\n{cell.reached}/{len(cell.rows)}"


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Count the shapes where CoT needs fewer samples, and compare growth per bit."""
    chain, answer = _cells(rows, True), _cells(rows, False)
    harder = [key for key in chain if key[2] > 1]
    fewer = [key for key in harder if (chain[key].median or math.inf) < (answer[key].median or math.inf)]
    stuck = [f"{key[0]} × {key[1]}, k = {key[2]}" for key in harder if chain[key].reached < len(chain[key].rows)]
    return [
        Finding(
            "Training with CoT consistently needs fewer samples.",
            f"By the median in {len(fewer)} of {len(harder)} pairs of shape and k > 1 (for k = 1 the two tasks are the "
            f"same). With CoT not reached by every seed: {'; '.join(stuck) or 'none'} (W-plateau says why).",
        ),
        Finding(
            "For every shape the samples without CoT grow exponentially with k; CoT is an exponential improvement.",
            f"Factor per bit where samples were reached, with its 95 % interval; without CoT: {_factors(answer)}. With "
            f"CoT: {_factors(chain)}.",
        ),
    ]


def _factors(cells: dict[_Shape, Cell]) -> str:
    found = []
    for layers, heads in dict.fromkeys(key[:2] for key in cells):
        own = {key[2]: cell for key, cell in cells.items() if key[:2] == (layers, heads)}
        law = exponential([(float(k), float(count)) for k, cell in own.items() for count in cell.needed])
        beyond = [str(k) for k, cell in own.items() if cell.median is None]
        ended = f", not reached at k = {', '.join(beyond)}" if beyond else ""
        found.append(f"{layers} × {heads}: {law or '–'}{ended}")
    return "; ".join(found)
