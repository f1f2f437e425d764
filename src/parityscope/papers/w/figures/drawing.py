"""How W's figures draw trainings: curves of accuracy and entropy, attention maps, budgets that ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from parityscope.core.drawing import HEAT, colour
from parityscope.papers.w.settings import budget, samples, settings
from parityscope.problems.sequences import ParitySequences
from parityscope.records import Row


def draw_progress(axes: Axes, row: Row, index: int, label: str) -> None:
    """Draw accuracy (solid) and the lowest head's entropy (dashed) of one training.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> axes = new_figure(3, 2)[1]
    >>> arrays = {"step": torch.arange(2), "accuracy": torch.tensor([0.5, 1.0])}
    >>> row = Row("", {}, {}, {**arrays, "entropy": torch.tensor([[[1.0, 0.75]], [[0.5, 0.25]]])})
    >>> draw_progress(axes, row, 0, "with CoT")
    >>> [line.get_ydata().tolist() for line in axes.lines]
    [[0.5, 1.0], [0.75, 0.25]]
    """
    draw_accuracy(axes, row, color=colour(index), label=f"{label}: accuracy")
    lowest = row.arrays["entropy"].flatten(1).amin(1).numpy()
    step = row.arrays["step"].numpy()
    axes.plot(step, lowest, color=colour(index), linestyle="--", linewidth=1.3, label=f"{label}: entropy")


def draw_map(axes: Axes, row: Row, layer: int = 0, head: int = 0) -> AxesImage:
    """Draw the attention of the predicting positions (rows) and mark each one's secret bit.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> axes = new_figure(3, 2)[1]
    >>> config = {"training": {"n": 4, "chain_of_thought": True}}
    >>> row = Row("", config, {"secret": [2, 0]}, {"one_attention": torch.rand(1, 1, 6, 6)})
    >>> draw_map(axes, row).get_array().shape, axes.collections[0].get_offsets().tolist()
    ((2, 6), [[2.0, 0.0], [0.0, 1.0]])
    """
    task = ParitySequences(settings(row)["n"], tuple(row.numbers.secret), settings(row)["chain_of_thought"])
    attention = row.arrays["one_attention"][layer, head, task.n :].numpy()
    image = axes.imshow(attention, aspect="auto", cmap=HEAT, vmin=0, vmax=1, interpolation="nearest")
    axes.scatter(task.secret, range(task.k), s=26, marker="s", facecolors="none", edgecolors=colour(1), linewidths=1.1)
    axes.set(xlabel="attended position", ylabel="chain position")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.axvline(task.n - 0.5, color=colour(0), linewidth=0.8)
    return image


def draw_accuracy(axes: Axes, row: Row, **style: Any) -> None:
    """Draw the held-out accuracy of one training against steps.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> axes = new_figure(3, 2)[1]
    >>> draw_accuracy(axes, Row("", {}, {}, {"step": torch.arange(3), "accuracy": torch.ones(3)}), label="perfect")
    >>> axes.lines[0].get_ydata().tolist()
    [1.0, 1.0, 1.0]
    """
    axes.plot(row.arrays["step"].numpy(), row.arrays["accuracy"].numpy(), **style)


def draw_accuracies(axes: Axes, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Draw held-out accuracy against steps, one named line per row.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> axes = new_figure(3, 2)[1]
    >>> row = Row("", {}, {}, {"step": torch.arange(3), "accuracy": torch.ones(3)})
    >>> draw_accuracies(axes, [row, row], ["one", "other"])
    >>> [line.get_label() for line in axes.lines]
    ['one', 'other']
    """
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        draw_accuracy(axes, row, color=colour(index % 6), label=name)
    axes.set(xlabel="step", ylabel="held-out accuracy", ylim=(0.4, 1.03))


def draw_entropy(axes: Axes, row: Row) -> None:
    """Draw the entropy of every head of every layer against steps.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> axes = new_figure(3, 2)[1]
    >>> draw_entropy(axes, Row("", {}, {}, {"step": torch.arange(3), "entropy": torch.rand(3, 2, 1)}))
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


def draw_unreached(axes: Axes, rows: Iterable[Row], index: int) -> None:
    """Draw an open triangle at k and the budget of every row whose budget ended before all was right.

    >>> from parityscope.core.drawing import new_figure
    >>> axes = new_figure(3, 2)[1]
    >>> row = Row("", {"training": {"k": 4, "steps": 10, "batch": 32}}, {"samples": [None, None, None]})
    >>> draw_unreached(axes, [row], 0)
    >>> axes.lines[0].get_xydata().tolist()
    [[4.0, 320.0]]
    """
    for row in rows:
        if samples(row) is None:
            axes.plot(settings(row)["k"], budget(row), "^", color=colour(index), fillstyle="none", markersize=9)
