"""W's Figures 4, 5, 9, 10 and 11: what many passes over a pool of inputs teach without chain of thought."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import FigureSpec
from parityscope.papers.w.own_size import BESIDE, OWN_COMMAND, found_at_own_size, planned_for
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    FRESH,
    DecoderCell,
    DecoderRow,
    ShownDecoder,
    best_accuracy,
    cells_by,
    fell_before_jump,
    guessing_bound,
    laptop,
    narrow,
    of_own_size,
    samples,
    shape_name,
    smoke,
    training_table,
    with_chain,
)

# Found by search on seeds below 1000: among the smallest problems that a pool can teach where fresh samples do not, in
# as many steps.
_N, _K = 14, 3
_SIZES = (150, 600, 2400, None)
_WITHOUT = {"chain_of_thought": False, "start_gain": 1.0, "evaluate_every": 25}


def _smoke(label: str, pool: int | None, heads: int = 1) -> ShownDecoder:
    return smoke(label, chain_of_thought=False, pool=pool, heads=heads)


def _demo(label: str, pool: int | None, heads: int = 4) -> ShownDecoder:
    return narrow(label, _N, _K, pool=pool, heads=heads, steps=600, **_WITHOUT)


def _reference(label: str, pool: int | None, layers: int = 1, heads: int = 4) -> list[ShownDecoder]:
    shape = {"layers": layers, "heads": heads}
    return [laptop(label, _N, _K, pool=pool, seed=seed, steps=1000, **shape, **_WITHOUT) for seed in FRESH]


def _cells(rows: Iterable[DecoderRow]) -> list[DecoderCell]:
    """Return the trainings of every shape and pool over their seeds, in the order they come in."""
    return list(
        cells_by(
            rows, lambda training: (training.chain_of_thought, training.layers, training.heads, training.pool)
        ).values()
    )


def _pool_name(row: DecoderRow) -> str:
    pool = row.config.training.pool
    return "fresh" if pool is None else f"pool {pool:,}"


def _draw_accuracies(axes: Axes, cells: Sequence[DecoderCell], names: Sequence[str]) -> None:
    """Draw held-out accuracy against steps: one colour and name per cell, one thin line per seed."""
    for index, (cell, name) in enumerate(zip(cells, names, strict=True)):
        for place, row in enumerate(cell.rows):
            steps, accuracy = row.arrays["step"].numpy(), row.arrays["accuracy"].numpy()
            label = name if place == 0 else None
            axes.plot(steps, accuracy, color=colour(index % 6), linewidth=1.2, label=label)
    axes.set(xlabel="step", ylabel="held-out accuracy", ylim=(0.4, 1.03))


def _draw_entropy(axes: Axes, row: DecoderRow) -> None:
    """Draw the entropy of every head of every layer against steps."""
    entropy = row.arrays["entropy"]
    styles = ("-", "--", "-.", ":")
    for layer in range(entropy.shape[1]):
        for head in range(entropy.shape[2]):
            axes.plot(
                row.arrays["step"].numpy(),
                entropy[:, layer, head].numpy(),
                color=colour(head % 6),
                linestyle=styles[layer % 4],
                label=f"layer {layer + 1}, head {head + 1}",
            )
    axes.set(xlabel="step", ylabel="normalised attention entropy", ylim=(-0.02, 1.03))


def _legend_beside(axes: Axes) -> None:
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _name(cell: DecoderCell) -> str:
    row = cell.rows[0]
    chain = "with CoT, " if row.config.training.chain_of_thought else ""
    return f"{chain}{shape_name(row)}, {_pool_name(row)}"


_Plot = Callable[[Sequence[DecoderRow]], Figure]


def _or_own_size(narrow_plot: _Plot) -> _Plot:
    """Return a plot that draws the trainings of W's own size where some are without CoT, or else the narrower ones."""

    def plot(rows: Sequence[DecoderRow]) -> Figure:
        own = [row for row in rows if of_own_size(row) and not row.config.label.startswith(BESIDE)]
        return (
            _plot_own_size(own)
            if with_chain(own, False)
            else narrow_plot([row for row in rows if not of_own_size(row)])
        )

    return plot


def _plot_own_size(rows: Sequence[DecoderRow]) -> Figure:
    """Draw a column per shape and pool: accuracy and loss of every seed above, entropy of the first one below."""
    cells = sorted(_cells(rows), key=lambda cell: cell.rows[0].config.training.chain_of_thought)
    figure, panels = new_figure(2 + 3.4 * len(cells), 6.4, 2, len(cells), squeeze=False, sharey=True)
    for (above, below), cell in zip(panels.T, cells, strict=True):
        for place, row in enumerate(cell.rows):
            _draw_learning(above, row, named=place == 0)
        above.set_title(f"{_name(cell)}\n{cell.reached} of {len(cell.rows)} learned", fontsize=11)
        _draw_both_entropies(below, cell.rows[0])
        below.set(xlabel="step", ylim=(-0.02, 1.03))
    panels[0, 0].set_ylabel("accuracy, loss")
    panels[1, 0].set_ylabel("normalised attention entropy")
    most_heads = max(panels[1], key=lambda axes: len(axes.lines))
    for last, named in ((panels[0, -1], panels[0, 0]), (panels[1, -1], most_heads)):
        names = named.get_legend_handles_labels()
        last.legend(*names, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _draw_learning(axes: Axes, row: DecoderRow, *, named: bool) -> None:
    step, accuracy, loss = (row.arrays[name].numpy() for name in ("step", "accuracy", "loss"))
    axes.plot(step, accuracy, color=colour(0), linewidth=1.2, label="held-out accuracy" if named else None)
    # The first record is made before the first step, which has no loss yet.
    axes.plot(step[1:], loss[1:], color=colour(1), linewidth=1.2, label="training loss" if named else None)


def _draw_both_entropies(axes: Axes, row: DecoderRow) -> None:
    """Draw the entropy of every head by Eq. (1), a minimum over positions, and its mean at the predicting ones."""
    for name, said, style in (("entropy", "Eq. (1)", "-"), ("label_entropy", "predicting", "--")):
        for head, curve in enumerate(row.arrays[name].flatten(1).T):
            label = f"{said}, head {head + 1}"
            axes.plot(row.arrays["step"].numpy(), curve.numpy(), style, color=colour(head % 6), label=label)


def _plot_shapes(rows: Sequence[DecoderRow]) -> Figure:
    """Draw every shape's accuracy, one thin line per seed; the training with chain of thought is the last."""
    figure, axes = new_figure(9.5, 4.6)
    cells = [*_cells(with_chain(rows, False)), *_cells(with_chain(rows, True))]
    _draw_accuracies(axes, cells, [_name(cell) for cell in cells])
    axes.set_title("layers × heads, training inputs", fontsize=11)
    _legend_beside(axes)
    return figure


def _plot_two_pools(rows: Sequence[DecoderRow]) -> Figure:
    """Draw accuracy of every seed, then the entropy of every head of the first seed for each pool."""
    cells = _cells(rows)
    figure, panels = new_figure(4.6 * (1 + len(cells)), 4, 1, 1 + len(cells))
    names = [_pool_name(cell.rows[0]) for cell in cells]
    _draw_accuracies(panels[0], cells, names)
    panels[0].legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    for axes, cell, name in zip(panels[1:], cells, names, strict=True):
        _draw_entropy(axes, cell.rows[0])
        axes.set_title(f"{name}, seed {cell.rows[0].config.training.seed}", fontsize=11)
    _legend_beside(panels[-1])
    return figure


def _plot_best(rows: Sequence[DecoderRow]) -> Figure:
    """Draw the best accuracy of every configuration and seed."""

    def name(row: DecoderRow) -> str:
        rate = row.config.training.learning_rate
        width = ", W's size" if of_own_size(row) else ""
        return f"{row.config.label}, {shape_name(row)}, {_pool_name(row)}, rate {rate:g}{width}"

    names = list(dict.fromkeys(map(name, rows)))
    figure, axes = new_figure(9, 1.6 + 0.36 * len(names))
    for row in rows:
        chain = row.config.training.chain_of_thought
        style = {"color": colour(0 if chain else 1), "markersize": 7, "fillstyle": "none"}
        axes.plot(best_accuracy(row), names.index(name(row)), "s" if chain else "o", **style)
    axes.axvline(guessing_bound(rows[0]), color="0.5", linewidth=1)
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel="best held-out accuracy", xlim=(0.45, 1.02))
    axes.invert_yaxis()
    return figure


def _plot_sizes(rows: Sequence[DecoderRow]) -> Figure:
    """Draw one panel per shape, one colour per pool, one thin line per seed."""
    shapes = list(dict.fromkeys(shape_name(row) for row in rows))
    figure, panels = new_figure(3 + 4.2 * len(shapes), 4.2, 1, len(shapes), squeeze=False, sharey=True)
    for axes, shape in zip(panels[0], shapes, strict=True):
        cells = _cells(row for row in rows if shape_name(row) == shape)
        _draw_accuracies(axes, cells, [_pool_name(cell.rows[0]) for cell in cells])
        axes.set_title(f"{shape} (layers × heads)", fontsize=11)
    _legend_beside(panels[0][-1])
    return figure


def _plot_heads(rows: Sequence[DecoderRow]) -> Figure:
    """Draw the entropies of one shape per panel, accuracy in grey: of the first seed that learned, or of the first."""
    shown = [next((row for row in cell.rows if samples(row)), cell.rows[0]) for cell in _cells(rows)]
    figure, panels = new_figure(5.2 * len(shown), 4.2, 1, len(shown), squeeze=False, sharey=True)
    for axes, row in zip(panels[0], shown, strict=True):
        _draw_entropy(axes, row)
        steps, accuracy = row.arrays["step"].numpy(), row.arrays["accuracy"].numpy()
        axes.plot(steps, accuracy, color="0.55", linewidth=2.2, label="accuracy")
        axes.set_title(f"{shape_name(row)} (layers × heads), seed {row.config.training.seed}", fontsize=11)
        fallen, risen = fell_before_jump(row)
        if samples(row) is not None and fallen is not None and risen is not None:
            axes.axvline(fallen, color=colour(1), linewidth=0.9, linestyle=":")
            axes.axvline(risen, color="0.55", linewidth=0.9, linestyle=":")
    _legend_beside(panels[0][-1])
    return figure


_OWN_DRAWN = (
    " These trainings illustrate. Those of W's own size decide; where some are stored they are drawn instead, a column "
    "per shape and pool: above, held-out accuracy and training loss of every seed; below, the entropy of every head of "
    "the first seed by Eq. (1), a minimum over positions (solid), and its mean at the predicting positions (dashed)."
)
_SHORT = {"batch": 512, "evaluate_every": 50, "held_out": 2048, "chain_of_thought": False}

FIGURES = (
    FigureSpec(
        ID="W-figure-4",
        TITLE="W, Figure 4: many passes over a small pool learn without chain of thought",
        TEXT="Held-out accuracy without chain of thought while one pool of inputs is visited over and over, for "
        "several numbers of layers × heads, beside the same number of steps on fresh samples and a training with chain "
        "of thought on the same pool; one line per seed. The paper has (20, 6), 10 000 inputs and 1000 epochs; here "
        "(14, 3), 600 inputs and 1000 steps of 256 at width 128, five seeds (the demo: 600 steps at width 64, one "
        "seed)." + _OWN_DRAWN,
        COST={"smoke": 2, "demo": 19, "reference": 210},
        CONFIGS={
            "smoke": [_smoke(ANSWER, 24), _smoke(ANSWER, None), smoke(CHAIN, pool=24)],
            "demo": [
                *(_demo(ANSWER, 600, heads) for heads in (1, 4)),
                _demo(ANSWER, None, 4),
                narrow(CHAIN, _N, _K, pool=600, steps=300),
            ],
            "reference": [
                *(one for shape in ((1, 1), (1, 2), (1, 4), (2, 1)) for one in _reference(ANSWER, 600, *shape)),
                *_reference(ANSWER, None),
                *(laptop(CHAIN, _N, _K, pool=600, steps=1000, seed=seed) for seed in FRESH),
            ],
        },
        plot=_or_own_size(_plot_shapes),
        table=training_table,
        findings=found_at_own_size(
            "Figure 4, (20, 6), 10,000 inputs, 1000 epochs: almost all shapes reach perfect accuracy without CoT; with "
            "it in 5 epochs."
        ),
        OWN_SIZE=planned_for("W-figure-4"),
        OWN_COMMAND=OWN_COMMAND,
    ),
    FigureSpec(
        ID="W-figure-5",
        TITLE="W, Figure 5: a smaller pool learns, a larger one does not",
        TEXT="Without chain of thought, one shape and one number of steps, two pools of inputs. Left: held-out "
        "accuracy. Middle and right: normalised attention entropy (Eq. (1)) of every head, for the smaller and the "
        "larger pool. The paper has (20, 6), 4 layers × 4 heads, 50 000 inputs against 10⁶; here (14, 3), 1 layer × 4 "
        "heads, 600 against 2400, five seeds (the demo: one, at width 64). These trainings illustrate: at W's own size "
        "each of the two would take 38 hours of one core, and was not run.",
        COST={"smoke": 2, "demo": 7, "reference": 20},
        CONFIGS={
            "smoke": [_smoke("pool", pool, heads=2) for pool in (16, 40)],
            "demo": [_demo("pool", pool) for pool in (600, 2400)],
            "reference": [*_reference("pool", 600), *_reference("pool", 2400)],
        },
        plot=_plot_two_pools,
        table=training_table,
    ),
    FigureSpec(
        ID="W-figure-9",
        TITLE="W, Figure 9: (20, 12) without chain of thought",
        TEXT="Best held-out accuracy during training on the (20, 12) problem for several shapes, learning rates and "
        "pools, without chain of thought (dots) and with it (squares), one mark per seed. The caption says that "
        "training with CoT fails; the text and the computation say without. The bar is the largest accuracy that "
        "guessing reaches on the held-out set in all evaluations of a run, at six standard deviations. Trainings of "
        "W's own size, where some are stored, are named so and decide; the others illustrate.",
        COST={"smoke": 2, "demo": 9, "reference": 90},
        CONFIGS={
            "smoke": [_smoke(ANSWER, 24), smoke(CHAIN, pool=24)],
            "demo": [
                narrow(ANSWER, 20, 12, pool=10_000, steps=200, **_SHORT),
                narrow(CHAIN, 20, 12, pool=10_000, steps=400),
            ],
            "reference": [
                *(
                    laptop(ANSWER, 20, 12, heads=heads, pool=pool, seed=seed, steps=500, **_SHORT)
                    for heads in (1, 4)
                    for pool in (10_000, None)
                    for seed in FRESH
                ),
                *(laptop(CHAIN, 20, 12, pool=pool, steps=1000, seed=seed) for pool in (10_000, None) for seed in FRESH),
            ],
        },
        plot=_plot_best,
        table=training_table,
        findings=found_at_own_size(
            "Figure 9, (20, 12): without CoT no accuracy above guessing; with it perfect in 6 epochs of 10,000 inputs."
        ),
        OWN_SIZE=planned_for("W-figure-9"),
        OWN_COMMAND=OWN_COMMAND,
    ),
    FigureSpec(
        ID="W-figure-10",
        TITLE="W, Figure 10: how large a pool may be",
        TEXT="Held-out accuracy without chain of thought for pools of several sizes and a fixed number of steps, one "
        "panel per layers × heads. A pool can be too small and too large to be learned in so many steps. The "
        "paper has (20, 6) with 5000 to 10⁶ inputs; here (14, 3) with 150 to 2400 and fresh samples, "
        "five seeds (the demo: one, at width 64)." + _OWN_DRAWN,
        COST={"smoke": 2, "demo": 18, "reference": 80},
        CONFIGS={
            "smoke": [_smoke("1 × 2", pool, heads=2) for pool in (16, 40)],
            "demo": [_demo("1 × 4", pool) for pool in _SIZES],
            "reference": [one for m in (2, 4) for pool in _SIZES for one in _reference(f"1 × {m}", pool, heads=m)],
        },
        plot=_or_own_size(_plot_sizes),
        table=training_table,
        findings=found_at_own_size(
            "Figure 10, (20, 6): the smaller pools are learned, 10⁶ inputs are not, in as many steps."
        ),
        OWN_SIZE=planned_for("W-figure-10"),
        OWN_COMMAND=OWN_COMMAND,
    ),
    FigureSpec(
        ID="W-figure-11",
        TITLE="W, Figure 11: entropy of every head while learning from a pool",
        TEXT="Normalised attention entropy (Eq. (1)) of every head during training without chain of thought on a small "
        "pool, one panel per layers × heads; the grey line is held-out accuracy. The paper has (20, 6) and 10 000 "
        "inputs; here (14, 3) and 600 inputs, one layer, five seeds; drawn is the first that learned, or else the "
        "first." + _OWN_DRAWN,
        COST={"smoke": 2, "demo": 7, "reference": 5},
        CONFIGS={
            "smoke": [_smoke(f"1 × {heads}", 24, heads=heads) for heads in (1, 2)],
            "demo": [_demo(f"1 × {heads}", 600, heads) for heads in (1, 4)],
            "reference": [one for m in (1, 2, 4) for one in _reference(f"1 × {m}", 600, heads=m)],
        },
        plot=_or_own_size(_plot_heads),
        table=training_table,
        findings=found_at_own_size("Figure 11, (20, 6): entropy falls before accuracy jumps."),
        OWN_SIZE=planned_for("W-figure-11"),
        OWN_COMMAND=OWN_COMMAND,
    ),
)
