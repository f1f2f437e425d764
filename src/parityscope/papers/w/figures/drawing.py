"""How W's figures draw trainings: curves of accuracy and entropy, attention maps, budgets that ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from parityscope.core.drawing import HEAT, colour
from parityscope.papers.w.over_seeds import Cell
from parityscope.papers.w.settings import DecoderRow


def draw_progress(axes: Axes, rows: Sequence[DecoderRow], index: int, label: str) -> None:
    """Draw accuracy (solid) and the lowest head's entropy (dashed) of some trainings, one thin line per seed.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Numbers, Row
    >>> axes = new_figure(3, 2)[1]
    >>> arrays = {"step": torch.arange(2), "accuracy": torch.tensor([0.5, 1.0])}
    >>> row = Row(smoke(""), Numbers(), {**arrays, "entropy": torch.tensor([[[1.0, 0.75]], [[0.5, 0.25]]])})
    >>> draw_progress(axes, [row], 0, "with CoT")
    >>> [line.get_ydata().tolist() for line in axes.lines]
    [[0.5, 1.0], [0.75, 0.25]]
    """
    for place, row in enumerate(rows):
        names = [f"{label}: {what}" if place == 0 else None for what in ("accuracy", "entropy")]
        draw_accuracy(axes, row, color=colour(index), linewidth=1.2, label=names[0])
        lowest = row.arrays["entropy"].flatten(1).amin(1).numpy()
        step = row.arrays["step"].numpy()
        axes.plot(step, lowest, color=colour(index), linestyle="--", linewidth=1.0, label=names[1])


def draw_map(axes: Axes, row: DecoderRow, layer: int = 0, head: int = 0) -> AxesImage:
    """Draw the attention of the predicting positions (rows) and mark each one's secret bit.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Row
    >>> from parityscope.runs.decoder import DecoderNumbers
    >>> axes = new_figure(3, 2)[1]
    >>> numbers = DecoderNumbers.model_construct(secret=(2, 0))
    >>> row = Row(smoke("", n=4), numbers, {"one_attention": torch.rand(1, 1, 2, 6)})
    >>> draw_map(axes, row).get_array().shape, axes.collections[0].get_offsets().tolist()
    ((2, 6), [[2.0, 0.0], [0.0, 1.0]])
    """
    n, secret = row.config.training.n, row.numbers.secret
    attention = row.arrays["one_attention"][layer, head].numpy()
    image = axes.imshow(attention, aspect="auto", cmap=HEAT, vmin=0, vmax=1, interpolation="nearest")
    axes.scatter(secret, range(len(secret)), s=26, marker="s", facecolors="none", edgecolors=colour(1), linewidths=1.1)
    axes.set(xlabel="attended position", ylabel="chain position")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.axvline(n - 0.5, color=colour(0), linewidth=0.8)
    return image


def draw_accuracy(axes: Axes, row: DecoderRow, **style: Any) -> None:
    """Draw the held-out accuracy of one training against steps.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Numbers, Row
    >>> axes = new_figure(3, 2)[1]
    >>> row = Row(smoke(""), Numbers(), {"step": torch.arange(3), "accuracy": torch.ones(3)})
    >>> draw_accuracy(axes, row, label="perfect")
    >>> axes.lines[0].get_ydata().tolist()
    [1.0, 1.0, 1.0]
    """
    axes.plot(row.arrays["step"].numpy(), row.arrays["accuracy"].numpy(), **style)


def draw_accuracies(axes: Axes, cells: Sequence[Cell], names: Sequence[str]) -> None:
    """Draw held-out accuracy against steps: one colour and name per cell, one thin line per seed.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Numbers, Row
    >>> axes = new_figure(3, 2)[1]
    >>> row = Row(smoke(""), Numbers(), {"step": torch.arange(3), "accuracy": torch.ones(3)})
    >>> draw_accuracies(axes, [Cell((row, row)), Cell((row,))], ["one", "other"])
    >>> [line.get_label() for line in axes.lines if not line.get_label().startswith("_")]
    ['one', 'other']
    """
    for index, (cell, name) in enumerate(zip(cells, names, strict=True)):
        for place, row in enumerate(cell.rows):
            label = name if place == 0 else None
            draw_accuracy(axes, row, color=colour(index % 6), linewidth=1.2, label=label)
    axes.set(xlabel="step", ylabel="held-out accuracy", ylim=(0.4, 1.03))


def draw_entropy(axes: Axes, row: DecoderRow) -> None:
    """Draw the entropy of every head of every layer against steps.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Numbers, Row
    >>> axes = new_figure(3, 2)[1]
    >>> draw_entropy(axes, Row(smoke(""), Numbers(), {"step": torch.arange(3), "entropy": torch.rand(3, 2, 1)}))
    >>> [line.get_label() for line in axes.lines]
    ['layer 1, head 1', 'layer 2, head 1']
    """
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


def draw_cells(axes: Axes, cells: Mapping[int, Cell], index: int, label: str) -> None:
    """Draw the median samples needed against k with the range over seeds; an open triangle where the budget ended.

    Below a triangle stands how many seeds were reached all the same; triangles of several lines lie in each other.

    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Row
    >>> from parityscope.runs.decoder import DecoderNumbers
    >>> axes = new_figure(3, 2)[1]
    >>> found = [DecoderNumbers.model_construct(samples=(count,)) for count in (100, 300, None)]
    >>> rows = tuple(Row(smoke("", k=4, steps=10, batch=32), numbers) for numbers in found)
    >>> draw_cells(axes, {4: Cell(rows)}, 0, "with CoT")
    >>> [text.get_text() for text in axes.texts], axes.lines[-1].get_xydata().tolist()
    (['2/3'], [[4.0, 320.0]])
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
