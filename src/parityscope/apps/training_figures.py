"""The two figures that `learn` draws."""

from __future__ import annotations

from typing import Any

from parityscope.core.drawing import HEAT, colour, new_figure
from parityscope.core.errors import naming_the_extra
from parityscope.training.learning import LearnedRuns

with naming_the_extra():
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator


def attention_figure(run: LearnedRuns, row: int = 0) -> Figure:
    """Return the heat map of one run's attention, hidden bits marked.

    >>> from parityscope import Parity, learn
    >>> drawn = attention_figure(learn(Parity(8, (1, 4)), "as-coded", seeds=[3], steps=2))
    >>> drawn.axes[0].get_title(), drawn.axes[0].lines[0].get_xdata().tolist()
    ('as-coded, seed 3: ▼ hidden bits', [1, 4])
    """
    heads, n = run.attention[row].shape
    figure, axes = new_figure(min(14.0, max(6.0, 0.25 * n + 2)), 1.6 + 0.45 * heads)
    _draw_attention(axes, run.attention[row].numpy(), run.problems[row].support)
    axes.set_title(f"{run.recipe.name}, seed {run.seeds[row]}: ▼ hidden bits", pad=12)
    return figure


def risk_figure(run: LearnedRuns) -> Figure:
    """Return the risk of every run during training.

    >>> from parityscope import Parity, learn
    >>> drawn = risk_figure(learn(Parity(8, (1, 4)), "as-coded", seeds=range(4), steps=2))
    >>> len(drawn.axes[0].lines), drawn.axes[0].get_ylabel()
    (4, 'population risk')
    """
    figure, axes = new_figure(7, 4)
    learned = run.learned
    for row in range(len(run.seeds)):
        line = colour(2) if learned[row] else colour(1)
        risk = run.history_risk[:, row].clamp(min=1e-6).numpy()
        axes.plot(run.history_steps.numpy(), risk, color=line, alpha=0.5, linewidth=1.2)
    axes.set(xlabel="step", ylabel="population risk" if run.samples is None else "risk on the examples", yscale="log")
    axes.set_title(f"{run.recipe.name}: {run.success} learned (green), the rest orange")
    return figure


def _draw_attention(axes: Axes, attention: Any, support: tuple[int, ...]) -> None:
    """Draw heads × positions as a heat map and mark the hidden bits above it."""
    heads, n = attention.shape
    image = axes.imshow(attention, aspect="auto", cmap=HEAT, vmin=0, vmax=1, interpolation="nearest")
    axes.plot(support, [-0.5] * len(support), "v", color=colour(1), markersize=8, clip_on=False, zorder=5)
    axes.set(xlabel="position", ylabel="head", yticks=range(heads), xlim=(-0.5, n - 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.figure.colorbar(image, ax=axes, label="attention", shrink=0.9, pad=0.02)
