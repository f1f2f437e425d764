"""W's Figures 1, 2, 3 and 8: the samples that decoders need with and without chain of thought, and where they look."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from parityscope.core.drawing import HEAT, colour, new_figure
from parityscope.core.statistics import median
from parityscope.papers.cells import by_label, draw_heat_map
from parityscope.papers.figure import FigureSpec, Finding
from parityscope.papers.w.own_size import AT_OWN_SIZE, OWN_COMMAND, found_at_own_size, planned_for
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    FRESH,
    DecoderCell,
    DecoderRow,
    cells_by,
    exponential,
    laptop,
    line,
    looking_right,
    narrow,
    of_own_size,
    power_law,
    reached_pairs,
    smoke,
    spoken_cells,
    training_table,
    with_chain,
)
from parityscope.training.decoders import DecoderSettings

FOUR_HEADS = f"{ANSWER}, four heads"
_COUNT, _MAP = "samples", "attention map"


def _draw_cells(axes: Axes, cells: Mapping[int, DecoderCell], index: int, label: str) -> None:
    """Draw the median samples needed against k with the range over seeds; an open triangle where the budget ended.

    Below a triangle stands how many seeds were reached all the same; triangles of several lines lie in each other.
    """
    done = {k: cell for k, cell in cells.items() if cell.median is not None}
    middles = [cell.median or 0.0 for cell in done.values()]
    below = [middle - cell.needed[0] for middle, cell in zip(middles, done.values(), strict=True)]
    above = [cell.needed[-1] - middle for middle, cell in zip(middles, done.values(), strict=True)]
    axes.errorbar(list(done), middles, (below, above), fmt="o-", color=colour(index), capsize=3, label=label)
    for k, cell in cells.items():
        if cell.reached < len(cell.rows):
            axes.plot(k, cell.budget, "^", color=colour(index), fillstyle="none", markersize=8 + 3 * index)
            if cell.reached:
                axes.annotate(
                    f"{cell.reached}/{len(cell.rows)}",
                    (k, cell.budget),
                    (0, -9),
                    textcoords="offset points",
                    color=colour(index),
                    fontsize=8,
                    va="top",
                    ha="center",
                )


def _draw_progress(axes: Axes, rows: Sequence[DecoderRow], index: int, label: str) -> None:
    """Draw accuracy (solid) and the lowest head's entropy (dashed) of some trainings, one thin line per seed."""
    for place, row in enumerate(rows):
        names = [f"{label}: {what}" if place == 0 else None for what in ("accuracy", "entropy")]
        step, accuracy = row.arrays["step"].numpy(), row.arrays["accuracy"].numpy()
        lowest = row.arrays["entropy"].flatten(1).amin(1).numpy()
        axes.plot(step, accuracy, color=colour(index), linewidth=1.2, label=names[0])
        axes.plot(step, lowest, color=colour(index), linestyle="--", linewidth=1.0, label=names[1])


def _draw_map(axes: Axes, row: DecoderRow, layer: int = 0, head: int = 0) -> AxesImage:
    """Draw the attention of the predicting positions (rows) and mark each one's secret bit."""
    n, secret = row.config.training.n, row.numbers.secret
    attention = row.arrays["one_attention"][layer, head].numpy()
    image = axes.imshow(attention, aspect="auto", cmap=HEAT, vmin=0, vmax=1, interpolation="nearest")
    axes.scatter(secret, range(len(secret)), s=26, marker="s", facecolors="none", edgecolors=colour(1), linewidths=1.1)
    axes.set(xlabel="attended position", ylabel="chain position")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.axvline(n - 0.5, color=colour(0), linewidth=0.8)
    return image


def _by_k(rows: Sequence[DecoderRow]) -> dict[int, DecoderCell]:
    """Return the trainings of every k, from the smallest on: those of W's own size come in the order of their worth."""
    return dict(sorted(cells_by(rows, lambda training: training.k).items()))


def _plot_growth(rows: Sequence[DecoderRow]) -> Figure:
    """Draw samples against k on the left, the hardest solved trainings on the right: of W's size, if there are any."""
    figure, (left, right) = new_figure(13, 4.4, 1, 2)
    own = any(map(of_own_size, rows))
    for index, (label, found) in enumerate(by_label(rows).items()):
        cells = _by_k(found)
        _draw_cells(left, cells, index, label)
        # The hardest trainings that some seed solved, the hardest of all if none was.
        shown = ([cell for cell in cells.values() if cell.reached] or list(cells.values()))[-1]
        if label != FOUR_HEADS and label.endswith(AT_OWN_SIZE) == own:
            _draw_progress(right, shown.rows, index, f"{label}, k = {shown.rows[0].config.training.k}")
    left.set(xlabel="hidden bits k", ylabel="training examples until perfect", yscale="log")
    left.legend()
    first = min(float(row.arrays["step"][1]) for row in rows)
    right.set(xlabel="step", ylabel="accuracy, entropy", ylim=(-0.02, 1.03), xscale="log")
    right.set_xlim(left=first)
    right.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _growth(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Fit laws of k to the samples needed."""
    cells = {label: _by_k(found) for label, found in by_label(rows).items()}
    chain, answer, four = cells[CHAIN], cells[ANSWER], cells.get(FOUR_HEADS)
    own = {label: _at_own_size(cells.get(label + AT_OWN_SIZE, {})) for label in (CHAIN, ANSWER)}
    first = exponential(reached_pairs(answer))
    laws = [law(reached_pairs(chain)) for law in (exponential, line, power_law)]
    return [
        Finding(
            "Without CoT the samples needed grow exponentially with k.",
            f"{spoken_cells(answer)}. Factor per bit where they were reached, with its 95 % interval: {first or '–'}."
            + (f" With four heads: {spoken_cells(four)}." if four else "")
            + own[ANSWER],
        ),
        Finding(
            "With CoT the samples needed grow linearly with k.",
            f"{spoken_cells(chain)}. Factor per bit {laws[0] or '–'}; line: {laws[1] or '–'} examples per bit; power "
            f"of k: {laws[2] or '–'}, where 1 is a line through the origin and 0 is no growth.{own[CHAIN]}",
        ),
    ]


def _at_own_size(cells: Mapping[int, DecoderCell]) -> str:
    """Say what trainings of W's own size needed, as far as there are any."""
    return f" At W's own size, four heads: {spoken_cells(cells)}." if cells else ""


def _plot_shapes(rows: Sequence[DecoderRow]) -> Figure:
    """Draw shapes × k as two heat maps with the counts written in."""
    shapes = list(by_label(rows))
    ks = sorted({row.config.training.k for row in rows})
    figure, panels = new_figure(2.2 + 1.35 * len(shapes), 1.6 + 0.75 * 2 * len(ks), 2, 1, squeeze=False)
    shown = {
        chain: {
            (label, k): cell
            for label, found in by_label(with_chain(rows, chain)).items()
            for k, cell in _by_k(found).items()
        }
        for chain in (True, False)
    }
    counts = [math.log10(cell.median or cell.budget) for cells in shown.values() for cell in cells.values()]
    for axes, chain in zip(panels[:, 0], (True, False), strict=True):
        grid = [[float("nan")] * len(shapes) for _ in ks]
        for (label, k), cell in shown[chain].items():
            x, y = shapes.index(label), ks.index(k)
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


def _short(cell: DecoderCell) -> str:
    """Return what a cell of the heat map says: the median, and how many seeds got there where not all did."""
    text = f"> {cell.budget / 1000:.0f}k" if cell.median is None else f"{cell.median / 1000:.1f}k"
    return text if cell.reached in (0, len(cell.rows)) else f"{text}\n{cell.reached}/{len(cell.rows)}"


def _counts(rows: Sequence[DecoderRow]) -> dict[str, dict[int, DecoderCell]]:
    """Return, for every n, the trainings that count samples by k; those of W's own size apart."""
    return {name: _by_k(found) for name, found in _named(rows, _COUNT, lambda training: f"n = {training.n}").items()}


def _maps(rows: Sequence[DecoderRow]) -> dict[str, list[DecoderRow]]:
    """Return, for every number of heads, the trainings whose attention is shown; those of W's own size come first."""
    ordered = sorted(rows, key=lambda row: (not of_own_size(row), row.config.training.heads))
    return _named(ordered, _MAP, lambda training: f"{training.heads} {'head' if training.heads == 1 else 'heads'}")


def _named(
    rows: Sequence[DecoderRow], label: str, name: Callable[[DecoderSettings], str]
) -> dict[str, list[DecoderRow]]:
    """Return the rows of a label, of W's own size or not, by a name."""
    found: dict[str, list[DecoderRow]] = {}
    for row in rows:
        if row.config.label.removesuffix(AT_OWN_SIZE) == label:
            end = row.config.label.removeprefix(label)
            found.setdefault(f"{name(row.config.training)}{end}", []).append(row)
    return found


def _plot_long_chains(rows: Sequence[DecoderRow]) -> Figure:
    """Draw samples against k beside the shares of attention and a map."""
    figure, (left, middle, right) = new_figure(14.5, 4.6, 1, 3, width_ratios=(1, 0.75, 1.5))
    for index, (name, cells) in enumerate(_counts(rows).items()):
        _draw_cells(left, cells, index, name)
    left.set(xlabel="hidden bits k", ylabel="training examples until perfect")
    left.set_ylim(bottom=0)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.legend()
    maps = _maps(rows)
    for place, found in enumerate(maps.values()):
        shares = [row.numbers.secret_attention or 0.0 for row in found]
        middle.plot([place] * len(found), shares, "o", color=colour(0), fillstyle="none")
        middle.plot([place - 0.2, place + 0.2], [median(shares)] * 2, color=colour(1), linewidth=2)
    middle.set(ylabel="attention on the secret bit", ylim=(0, 1), xlim=(-0.5, len(maps) - 0.5))
    middle.set_xticks(range(len(maps)), [name.replace(", ", ",\n") for name in maps])
    shown = next(iter(maps.values()))[0]
    training = shown.config.training
    image = _draw_map(right, shown)
    which = "the only head" if training.heads == 1 else f"the first of {training.heads} heads"
    right.set_title(f"({training.n}, {training.k}), {which}, step {shown.numbers.steps}")
    figure.colorbar(image, ax=right, label="attention", pad=0.01)
    return figure


def _long_chains(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Fit the laws, and read the attention maps."""
    counts = []
    for name, cells in _counts(rows).items():
        pairs = reached_pairs(cells)
        laws = f"{line(pairs) or '–'} examples per bit, power of k {power_law(pairs) or '–'}"
        counts.append(f"{name}: {spoken_cells(cells)}; {laws}")
    looks = [f"{name}: {_looks(found)}" for name, found in _maps(rows).items()]
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


def _plot_maps(rows: Sequence[DecoderRow]) -> Figure:
    """Draw one map per layer and head, of the first training that gets most right at its end, of W's size if any is."""
    row = max([row for row in rows if of_own_size(row)] or rows, key=lambda row: float(row.arrays["accuracy"][-1]))
    layers, heads = row.config.training.layers, row.config.training.heads
    figure, panels = new_figure(6.4 * heads, 2.9 * layers, layers, heads, squeeze=False, sharex=True, sharey=True)
    for layer in range(layers):
        for head in range(heads):
            image = _draw_map(panels[layer][head], row, layer, head)
            panels[layer][head].set_title(f"layer {layer + 1}, head {head + 1}", fontsize=11)
            panels[layer][head].label_outer()
    figure.colorbar(image, ax=panels, label="attention", shrink=0.7, pad=0.01)
    return figure


_OWN_NAMED = " Trainings of W's own size, where some are stored, are named so and decide; the others illustrate."
# Without the chain: ten times and more what the chain needs.
_WITHOUT = {"chain_of_thought": False, "steps": 2000}
_SHAPES = ((1, 1), (1, 4), (2, 4))
_SHAPES_BUDGET = {"steps": 400, "evaluate_every": 20, "held_out": 512}
_SHAPES_DEMO = {"steps": 300, "batch": 128, "held_out": 256, "evaluate_every": 10}
_ON = {"steps": 800, "held_out": 512}
_PLAIN = {"start_gain": 1.0, "learning_rate": 5e-4}  # one head does not learn from the wider start at the larger rate
_TWO_BY_TWO = {"layers": 2, "heads": 2}
_TWO_BY_TWO_DEMO = {"batch": 128, "width": 48, "held_out": 256, "steps": 300, "extra_steps": 20}

FIGURES = (
    FigureSpec(
        ID="W-figure-1",
        TITLE="W, Figure 1: chain of thought turns exponential into about linear",
        TEXT="Left: training examples seen when every held-out token was right for the first time, against the number "
        "of hidden bits k: median and range over seeds; an open triangle means that the budget ended first. Right: "
        "accuracy (solid) and the normalised attention entropy of the sparsest head (dashed, Eq. (1)) during training, "
        "one line per seed. The paper has n = 30 and k up to 4; here n = 20, k up to 12, width 128, one layer, batches "
        "of 256, an evaluation every 10 steps, five seeds that no setting was chosen on (the demo: n = 16, k up to 8, "
        "one seed). Eight heads were chosen for the chain, so that without it four are shown too." + _OWN_NAMED,
        COST={"smoke": 2, "demo": 28, "reference": 460},
        CONFIGS={
            "smoke": [
                smoke(CHAIN if chain else ANSWER, k=k, chain_of_thought=chain)
                for chain in (True, False)
                for k in (1, 2)
            ],
            "demo": [
                *(laptop(CHAIN, 16, k, steps=600, held_out=512) for k in (1, 2, 3, 4, 8)),
                *(narrow(ANSWER, 16, k, chain_of_thought=False, steps=500, evaluate_every=20) for k in (1, 2, 3)),
            ],
            "reference": [
                *(laptop(CHAIN, 20, k, steps=1000, seed=seed) for k in range(1, 13) for seed in FRESH),
                *(laptop(ANSWER, 20, k, seed=seed, **_WITHOUT) for k in range(1, 13) for seed in FRESH),
                *(laptop(FOUR_HEADS, 20, k, heads=4, seed=seed, **_WITHOUT) for k in range(1, 5) for seed in FRESH),
            ],
        },
        plot=_plot_growth,
        table=training_table,
        OWN_SIZE=planned_for("W-figure-1"),
        OWN_COMMAND=OWN_COMMAND,
        findings=_growth,
    ),
    FigureSpec(
        ID="W-figure-2",
        TITLE="W, Figure 2: layers and heads against hidden bits",
        TEXT="Training examples until every held-out token is right, median over seeds, for every shape (layers × "
        "heads) and number of hidden bits, with chain of thought above and without below; colour is the logarithm, > "
        "means that the budget ended first for half of the seeds or more, a share how many seeds got there where not "
        "all did. The paper uses n = 30 and picks the best of three learning rates; here it is n = 16, width 128, one "
        "rate and five seeds that no setting was chosen on (the demo: n = 14, one seed)." + _OWN_NAMED,
        COST={"smoke": 2, "demo": 26, "reference": 330},
        CONFIGS={
            "smoke": [
                smoke(f"{layers} × 1", k=k, chain_of_thought=chain, layers=layers)
                for chain in (True, False)
                for layers in (1, 2)
                for k in (1, 2)
            ],
            "demo": [
                laptop(f"{layers} × {heads}", 14, k, chain_of_thought=chain, layers=layers, heads=heads, **_SHAPES_DEMO)
                for chain in (True, False)
                for layers, heads in _SHAPES
                for k in (1, 2, 3)
            ],
            "reference": [
                laptop(
                    f"{layers} × {heads}",
                    16,
                    k,
                    chain_of_thought=chain,
                    layers=layers,
                    heads=heads,
                    seed=seed,
                    **_SHAPES_BUDGET,
                )
                for chain in (True, False)
                for layers, heads in _SHAPES
                for k in (1, 2, 3)
                for seed in FRESH
            ],
        },
        plot=_plot_shapes,
        table=training_table,
        findings=found_at_own_size(
            "Figure 2, n = 30: CoT needs fewer samples for every shape; without it they grow exponentially with k."
        ),
        OWN_SIZE=planned_for("W-figure-2"),
        OWN_COMMAND=OWN_COMMAND,
    ),
    FigureSpec(
        ID="W-figure-3",
        TITLE="W, Figure 3: many hidden bits with chain of thought, and sparse attention",
        TEXT="Left: training examples until every held-out token is right, one layer with chain of thought, against k: "
        "median and range over seeds; a triangle means that the budget ended first. Middle: the attention of the chain "
        "positions on their secret bits at (40, 20), averaged over positions, by the head that gives each most; one "
        "dot per seed, after 50 steps more. Right: the attention of one head of the first of these seeds on one "
        "held-out input; squares mark the secret bit each next token depends on. The paper has one head, n = 100 and k "
        "from 20 to 100 on the left; here eight heads, n = 40 and 100, five seeds (the demo: n = 16, one seed)."
        + _OWN_NAMED,
        COST={"smoke": 2, "demo": 23, "reference": 580},
        CONFIGS={
            "smoke": [*(smoke(_COUNT, 8, k) for k in (2, 4)), smoke(_MAP, 8, 4, extra_steps=5).with_maps()],
            "demo": [
                *(laptop(_COUNT, 16, k, steps=600, held_out=512) for k in (2, 4, 8, 16)),
                narrow(_MAP, 16, 8, heads=1, start_gain=1.0, steps=400, extra_steps=100).with_maps(),
            ],
            "reference": [
                *(laptop(_COUNT, n, k, seed=seed, **_ON) for n in (40, 100) for k in (5, 10, 20) for seed in FRESH),
                *(
                    laptop(_MAP, 40, 20, heads=heads, seed=seed, extra_steps=50, **_ON, **_PLAIN).with_maps()
                    for heads in (1, 2, 4)
                    for seed in FRESH
                ),
            ],
        },
        plot=_plot_long_chains,
        table=training_table,
        OWN_SIZE=planned_for("W-figure-3"),
        OWN_COMMAND=OWN_COMMAND,
        findings=_long_chains,
    ),
    FigureSpec(
        ID="W-figure-8",
        TITLE="W, Figure 8: two layers, two heads",
        TEXT="Attention of the positions that predict, on one held-out input, for each layer and head of a decoder "
        "trained with chain of thought, of the first of five seeds that knows its task at the end; squares mark the "
        "secret bit each next token depends on. The caption says (20, 6), the authors' code (40, 20); reference scale "
        "has (20, 6) at width 128, the demo (12, 4) at 48, which illustrate; one of W's own size, which decides, is "
        "drawn where it is stored.",
        COST={"smoke": 2, "demo": 8, "reference": 100},
        CONFIGS={
            "smoke": [smoke("2 × 2", 8, 4, **_TWO_BY_TWO).with_maps()],
            "demo": [narrow("2 × 2", 12, 4, **_TWO_BY_TWO, **_TWO_BY_TWO_DEMO).with_maps()],
            "reference": [
                laptop("2 × 2", 20, 6, **_TWO_BY_TWO, steps=600, extra_steps=50, held_out=512, seed=seed).with_maps()
                for seed in FRESH
            ],
        },
        plot=_plot_maps,
        table=training_table,
        findings=found_at_own_size(
            "Figure 8, (20, 6), 2 × 2: the first layer attends to every secret bit, the second is almost uniform."
        ),
        OWN_SIZE=planned_for("W-figure-8"),
        OWN_COMMAND=OWN_COMMAND,
    ),
)
