"""H1, Figure 1: the architecture, drawn from the real model with a worked 7-bit example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from parityscope.core.drawing import HEAT, colour, new_figure
from parityscope.models import parity_transformer
from parityscope.papers.figure import SCALES, Finding, ResultTable, Scale
from parityscope.problems import Parity
from parityscope.records import Config, Numbers, Result, Row

ID = "H1-figure-1"
TITLE = "H1, Figure 1: the transformer at work on seven bits"
TEXT = (
    "Each token is embedded as its bit and its place on a circle; every head compares its direction with the places,"
    " turns the scores into attention by a softmax, and averages the tokens (hidden bits in orange); the heads' "
    "averages are averaged again, and k frozen neurons turn the attended number of ones S into a parity. Heads point"
    " exactly at the hidden bits (the construction of Proposition 3) at the paper's temperature 1/n. Every number is"
    " computed by the model."
)
COST: dict[Scale, float] = {"smoke": 0.1, "demo": 0.0, "reference": 0.0}


class WorkedExampleNumbers(Numbers):
    """What the model computed on its way."""

    score: float
    prediction: float
    hard_prediction: float
    label: int
    attended_per_head: tuple[float, ...]


class WorkedExample(Config):
    """One input through one model."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = WorkedExampleNumbers

    bits: tuple[int, ...] = (1, 1, 0, 1, 0, 0, 1)
    support: tuple[int, ...] = (1, 3, 5)
    temperature: float = 1 / 7

    def run(self) -> Result:
        """Send the bits through the construction of Proposition 3 and keep every intermediate number."""
        n, k = len(self.bits), len(self.support)
        model = parity_transformer(n, self.support, self.temperature)
        with torch.no_grad():
            x = torch.tensor([self.bits])
            S = model.score(x)
            neurons = (S[:, None] + 0.5 - torch.arange(1, k + 1)).relu()
            numbers = WorkedExampleNumbers(
                score=S.item(),
                prediction=model(x).item(),
                hard_prediction=model(x, hard=True).item(),
                label=int(Parity(n, self.support).label(x)),
                attended_per_head=(model.attention() @ x[0].double()).tolist(),
            )
            arrays = {"positions": model.positions, "attention": model.attention(), "neurons": neurons[0]}
        return Result(numbers, arrays)


_Row = Row[WorkedExample, WorkedExampleNumbers]

CONFIGS: dict[Scale, list[WorkedExample]] = {scale: [WorkedExample()] for scale in SCALES}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw embedding, heads, averages, neurons and output from left to right."""
    row = rows[0]
    bits, support = row.config.bits, row.config.support
    n, k = len(bits), len(support)
    figure, axes = new_figure(12, 5.6)
    axes.set(xlim=(0, 12), ylim=(-0.9, n + 0.9))
    axes.axis("off")
    _draw_tokens(axes, bits, support, row.arrays["positions"].tolist())
    _draw_heads(axes, row, n, k)
    _draw_classifier(axes, row, n, k)
    return figure


def _box(
    axes: Axes, x: float, y: float, width: float, text: str, *, fill: Any = "none", ink: str | None = None
) -> None:
    edge = ink or axes.xaxis.label.get_color()
    patch = FancyBboxPatch((x, y - 0.33), width, 0.66, boxstyle="round,pad=0.02", facecolor=fill, edgecolor=edge)
    axes.add_patch(patch)
    axes.text(x + width / 2, y, text, ha="center", va="center", fontsize=10, color=ink)


def _draw_tokens(axes: Axes, bits: Sequence[int], support: Sequence[int], positions: list[list[float]]) -> None:
    n = len(bits)
    axes.text(1.55, n + 0.55, "embedding  $w_j=[x_j,\\,1-x_j,\\,\\sin,\\,\\cos]$", ha="center")
    for j, (bit, (sin, cos)) in enumerate(zip(bits, positions, strict=True)):
        y = n - 0.5 - j
        ink = colour(1) if j in support else None
        axes.text(0.05, y, f"$x_{j}={bit}$", va="center", color=ink, fontsize=11)
        _box(axes, 0.8, y, 2.1, f"{bit},  {1 - bit},  {sin:+.2f},  {cos:+.2f}", ink=ink)


def _draw_heads(axes: Axes, row: _Row, n: int, k: int) -> None:
    attention, attended = row.arrays["attention"], row.numbers.attended_per_head
    axes.text(4.75, n + 0.55, f"attention, τ = {row.config.temperature:.3g}", ha="center")
    heat = axes.figure.axes[0].imshow(
        attention.T.numpy(), cmap=HEAT, vmin=0, vmax=1, aspect="auto", extent=(3.6, 3.6 + 0.77 * k, 0, n), alpha=0.9
    )
    heat.set_clip_on(False)
    for head in range(k):
        x = 3.6 + 0.77 * (head + 0.5)
        for j in range(n):
            value = float(attention[head, j])
            axes.text(
                x, n - 0.5 - j, f"{value:.2f}", ha="center", va="center", fontsize=9, color="w" if value < 0.6 else "k"
            )
        axes.text(x, -0.3, f"head {head}", ha="center", va="center", fontsize=9)
        y = n * (k - head - 0.5) / k
        _box(axes, 6.6, y, 1.25, f"$v_{head}={attended[head]:.3f}$")
        axes.annotate("", (7.95 + 0.45, n / 2), (7.9, y), arrowprops={"arrowstyle": "->", "color": "#888"})
    axes.annotate("", (6.5, n / 2), (5.98, n / 2), arrowprops={"arrowstyle": "->", "color": "#888"})
    axes.annotate("", (3.5, n / 2), (3.0, n / 2), arrowprops={"arrowstyle": "->", "color": "#888"})
    axes.text(7.25, n + 0.55, "attended ones", ha="center")
    axes.set_aspect("auto")


def _draw_classifier(axes: Axes, row: _Row, n: int, k: int) -> None:
    numbers, neurons = row.numbers, row.arrays["neurons"].tolist()
    _box(axes, 8.45, n / 2, 1.1, f"$S={numbers.score:.3f}$", ink=colour(0))
    axes.text(9.0, n + 0.55, "$S=k\\cdot v^*_1$", ha="center")
    axes.text(10.25, n + 0.55, "k neurons", ha="center")
    for i in range(k):
        y = n * (k - i - 0.5) / k
        axes.annotate("", (9.85, y), (9.6, n / 2), arrowprops={"arrowstyle": "->", "color": "#888"})
        _box(axes, 9.9, y, 0.7, f"{neurons[i]:.3f}")
        weight = (-1) ** (i + 1) * (8 * (i + 1) - 4)
        axes.annotate("", (11.0, n / 2), (10.65, y), arrowprops={"arrowstyle": "->", "color": "#888"})
        axes.text(10.25, y - 0.62, f"× {weight}", ha="center", va="center", fontsize=9)
    _box(axes, 11.02, n / 2, 0.93, f"$\\hat y={numbers.prediction:.3f}$", ink=colour(2))
    axes.text(11.49, n / 2 - 0.75, f"label {numbers.label:+d}", ha="center", fontsize=10)


def table(rows: Sequence[_Row]) -> ResultTable:
    """Return the attention of every head on every position."""
    attention = rows[0].arrays["attention"]
    header = ["position", "bit", *(f"head {h}" for h in range(len(attention)))]
    bits = rows[0].config.bits
    return ResultTable(
        header, [[str(j), str(bit), *(f"{value:.4f}" for value in attention[:, j])] for j, bit in enumerate(bits)]
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare the soft prediction with the exact parity that Proposition 3 claims."""
    numbers = rows[0].numbers
    return [
        Finding(
            "Proposition 3: heads aligned with B give risk 0.",
            f"At temperature 1/n the prediction is {numbers.prediction:.3f} for the label "
            f"{numbers.label:+d}; with hard attention (temperature to 0) it is {numbers.hard_prediction:.3f}. "
            "The construction is exact only in that limit.",
        )
    ]
