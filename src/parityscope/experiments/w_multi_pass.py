"""What W's figures on multi-pass training share: the trainings without chain of thought on pools of several sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from parityscope.cot import CotTraining
from parityscope.experiments.contract import Row
from parityscope.experiments.w_training import laptop, paper, settings, smoke
from parityscope.figures import colour

# Found by search: the smallest problem here that a pool teaches and fresh samples do not, in the same steps.
LAPTOP_N, LAPTOP_K, LAPTOP_STEPS = 16, 4, 2500
LAPTOP_POOLS = (500, 2000, 8000, None)
PAPER_POOLS = (5_000, 10_000, 50_000, 100_000, 1_000_000)
PAPER_STEPS = 10**4 * 1000 // 512  # Figure 4: 10 000 samples, 1000 epochs


def laptop_pool(pool: int | None, heads: int = 4, **changes: Any) -> CotTraining:
    """Return laptop scale's training without chain of thought on a pool, or on fresh samples."""
    options = {"chain_of_thought": False, "steps": LAPTOP_STEPS, "batch": 512, "evaluate_every": 50}
    return laptop(LAPTOP_N, LAPTOP_K, pool=pool, heads=heads, **{**options, **changes})


def paper_pool(pool: int | None, layers: int, heads: int, **changes: Any) -> CotTraining:
    """Return W's training of the (20, 6) problem without chain of thought on a pool."""
    options = {"chain_of_thought": False, "steps": PAPER_STEPS, "evaluate_every": 50}
    return paper(20, 6, pool=pool, layers=layers, heads=heads, **{**options, **changes})


def smoke_pool(pool: int | None, heads: int = 1, layers: int = 1) -> CotTraining:
    """Return a training of a second."""
    return smoke(chain_of_thought=False, pool=pool, heads=heads, layers=layers)


def pool_name(row: Row) -> str:
    """Return the size of a row's pool in words."""
    pool = settings(row)["pool"]
    return "fresh" if pool is None else f"pool {pool:,}"


def shape_name(row: Row) -> str:
    """Return a row's layers × heads in words."""
    return f"{settings(row)['layers']} × {settings(row)['heads']}"


def lowest_entropy(row: Row) -> float:
    """Return the lowest normalised entropy any head reached."""
    return float(row.arrays["entropy"].min())


def best_accuracy(row: Row) -> float:
    """Return the best held-out accuracy during training."""
    return float(row.arrays["accuracy"].max())


def draw_accuracy(axes: Axes, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Draw held-out accuracy against steps, one line per row."""
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        axes.plot(row.arrays["step"].numpy(), row.arrays["accuracy"].numpy(), color=colour(index % 6), label=name)
    axes.set(xlabel="step", ylabel="held-out accuracy", ylim=(0.4, 1.03))


def draw_entropy(axes: Axes, row: Row) -> None:
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
