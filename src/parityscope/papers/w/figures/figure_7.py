"""W, Figure 7: attention entropy of pretrained models with and without chain of thought, in all layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.figure import Figure

from parityscope.language_models.summary import Comparison
from parityscope.papers.figure import Finding, Table
from parityscope.papers.w.figures.entropy_panels import CONFIGS, COST, draw_studies, setups
from parityscope.papers.w.measured_studies import COMMAND, PANELS, EntropyStudy, StudyRow, heads, shown_studies

__all__ = ["COMMAND", "CONFIGS", "COST"]

ID = "W-figure-7"
TITLE = "W, Figure 7: the same in all layers"
TEXT = (
    "Normalised attention entropy of every head, averaged over problems; within each layer heads are sorted separately "
    "for each setup, as in the paper. Top: the paper's minimum over all positions. Middle: as many positions of each "
    "suffix, which removes the advantage of the longer text. Bottom: the solution and its words in random order, as "
    "many positions of each. Rows come from `parityscope entropy … --out DIR`."
)
STORED = EntropyStudy


def plot(rows: Sequence[StudyRow]) -> Figure:
    """Draw every head of every layer: three comparisons, for every stored study."""
    return draw_studies(rows, 7.8, _draw)


def _draw(part: Any, row: StudyRow) -> None:
    for axes, (title, reduction, variants) in zip(part.subplots(len(PANELS), 1), PANELS, strict=True):
        for place, (label, ink, mean, _) in enumerate(setups(row, reduction, variants)):
            layers, count = mean.shape
            # Each layer is one unit wide; its heads fill nine tenths of it.
            x = torch.arange(layers)[:, None] + 0.55 + 0.9 * (torch.arange(count) + 0.5) / count
            sorted_heads = mean.sort(-1).values
            if place == 0:
                axes.bar(
                    x.flatten().numpy(), sorted_heads.flatten().numpy(), 0.9 / count, color=ink, alpha=0.55, label=label
                )
                continue
            for layer in range(layers):
                name = label if layer == 0 else None
                axes.plot(x[layer].numpy(), sorted_heads[layer].numpy(), color=ink, linewidth=1.8, label=name)
        axes.set(xlim=(0.4, layers + 0.6), ylim=(0, None), ylabel="entropy")
        axes.set_xticks(range(1, layers + 1))
        axes.tick_params(axis="x", labelsize=9, length=0)
        axes.set_title(title, fontsize=11, loc="left")
        axes.legend(fontsize=9, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.1)
    axes.set_xlabel("layer; within it heads, sorted")


def table(rows: Sequence[StudyRow]) -> Table:
    """Return the mean over heads of every layer, and where CoT is lower beyond the sampling of problems."""
    header = [
        "model",
        "weights",
        "problems",
        "layer",
        *(f"{title}: {variants[0]}, CoT" for title, _, variants in PANELS),
    ]
    lines = []
    for row in shown_studies(rows):
        for place, model in enumerate(row.numbers.models):
            for layer in range(model.layers_by_heads[0]):
                cells = []
                for _, reduction, (other, _) in PANELS:
                    values = [float(heads(row, place, name, reduction)[0][layer].mean()) for name in (other, "CoT")]
                    cells.append(
                        "{:.3f}, {:.3f}".format(*values) + _mark(model.against_by_layer(other, reduction)[layer])
                    )
                lines.append([model.name, model.weights, str(row.numbers.problems), str(layer + 1), *cells])
    return Table(header, lines)


def _mark(comparison: Comparison) -> str:
    """Say whether the mean over heads differs beyond its 95 % interval."""
    return " ↓" if comparison.difference.high < 0 else " ↑" if comparison.difference.low > 0 else ""


def findings(rows: Sequence[StudyRow]) -> list[Finding]:
    """Count the layers in which CoT is lower."""
    found = []
    for study in (row.numbers for row in shown_studies(rows)):
        model = study.models[0]
        counts = [_layers_lower(model.against_by_layer(other, reduction)) for _, reduction, (other, _) in PANELS]
        found.append(
            Finding(
                "The entropy is lower with CoT across all layers.",
                f"{model.label}, {study.problems} problems; layers whose mean over heads is lower with CoT beyond its "
                f"95 % interval over problems: {counts[0]} by the minimum over all positions, {counts[1]} with as many "
                f"positions on both sides, {counts[2]} against the same words shuffled.",
            )
        )
    return found or [Finding("The entropy is lower with CoT across all layers.", f"Not measured here. {COMMAND}")]


def _layers_lower(layers: Sequence[Comparison]) -> str:
    lower = sum(layer.difference.high < 0 for layer in layers)
    higher = sum(layer.difference.low > 0 for layer in layers)
    return f"{lower} of {len(layers)} lower and {higher} higher"
