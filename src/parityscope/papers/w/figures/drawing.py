"""How W's figures draw trainings: curves of accuracy and entropy, attention maps, budgets that ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from parityscope.core.drawing import HEAT, colour
from parityscope.papers.w.settings import DecoderRow, budget, samples


def draw_progress(axes: Axes, row: DecoderRow, index: int, label: str) -> None:
    """Draw accuracy (solid) and the lowest head's entropy (dashed) of one training.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Numbers, Row
    >>> axes = new_figure(3, 2)[1]
    >>> arrays = {"step": torch.arange(2), "accuracy": torch.tensor([0.5, 1.0])}
    >>> row = Row(smoke(""), Numbers(), {**arrays, "entropy": torch.tensor([[[1.0, 0.75]], [[0.5, 0.25]]])})
    >>> draw_progress(axes, row, 0, "with CoT")
    >>> [line.get_ydata().tolist() for line in axes.lines]
    [[0.5, 1.0], [0.75, 0.25]]
    """
    draw_accuracy(axes, row, color=colour(index), label=f"{label}: accuracy")
    lowest = row.arrays["entropy"].flatten(1).amin(1).numpy()
    step = row.arrays["step"].numpy()
    axes.plot(step, lowest, color=colour(index), linestyle="--", linewidth=1.3, label=f"{label}: entropy")


def draw_map(axes: Axes, row: DecoderRow, layer: int = 0, head: int = 0) -> AxesImage:
    """Draw the attention of the predicting positions (rows) and mark each one's secret bit.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Row
    >>> from parityscope.runs.decoder import DecoderNumbers
    >>> axes = new_figure(3, 2)[1]
    >>> numbers = DecoderNumbers.model_construct(secret=(2, 0))
    >>> row = Row(smoke("", n=4), numbers, {"one_attention": torch.rand(1, 1, 6, 6)})
    >>> draw_map(axes, row).get_array().shape, axes.collections[0].get_offsets().tolist()
    ((2, 6), [[2.0, 0.0], [0.0, 1.0]])
    """
    n, secret = row.config.training.n, row.numbers.secret
    attention = row.arrays["one_attention"][layer, head, n:].numpy()
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


def draw_accuracies(axes: Axes, rows: Sequence[DecoderRow], names: Sequence[str]) -> None:
    """Draw held-out accuracy against steps, one named line per row.

    >>> import torch
    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Numbers, Row
    >>> axes = new_figure(3, 2)[1]
    >>> row = Row(smoke(""), Numbers(), {"step": torch.arange(3), "accuracy": torch.ones(3)})
    >>> draw_accuracies(axes, [row, row], ["one", "other"])
    >>> [line.get_label() for line in axes.lines]
    ['one', 'other']
    """
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        draw_accuracy(axes, row, color=colour(index % 6), label=name)
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


def draw_unreached(axes: Axes, rows: Iterable[DecoderRow], index: int) -> None:
    """Draw an open triangle at k and the budget of every row whose budget ended before all was right.

    >>> from parityscope.core.drawing import new_figure
    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Row
    >>> from parityscope.runs.decoder import DecoderNumbers
    >>> axes = new_figure(3, 2)[1]
    >>> numbers = DecoderNumbers.model_construct(samples=(None, None, None))
    >>> row = Row(smoke("", k=4, steps=10, batch=32), numbers)
    >>> draw_unreached(axes, [row], 0)
    >>> axes.lines[0].get_xydata().tolist()
    [[4.0, 320.0]]
    """
    for row in rows:
        if samples(row) is None:
            axes.plot(row.config.training.k, budget(row), "^", color=colour(index), fillstyle="none", markersize=9)
