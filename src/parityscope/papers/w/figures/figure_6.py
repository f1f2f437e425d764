"""W, Figure 6: attention entropy of pretrained models with and without chain of thought, in four layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from parityscope.language_models.measures import MATCHED, PAPER
from parityscope.papers.figure import Finding
from parityscope.papers.w.figures.entropy_panels import CONFIGS, COST, draw_studies, setups
from parityscope.papers.w.measured_studies import (
    COMMAND,
    PANELS,
    EntropyStudy,
    StudyNumbers,
    StudyRow,
    by_how_much,
    lower_share,
    shown_studies,
    studies_table,
)

__all__ = ["COMMAND", "CONFIGS", "COST"]

ID = "W-figure-6"
TITLE = "W, Figure 6: does chain of thought make attention sparser? Four layers of a pretrained model"
TEXT = (
    "Normalised attention entropy of each head, averaged over problems, sorted within each setup as in the paper; grey "
    "lines show 95 % intervals over problems. Top: the paper's measure, the minimum over all positions. A text with a "
    "solution has more positions than one with only the answer, and a minimum over more positions is lower even if "
    "nothing else differs. Middle: the expected minimum over as many positions of the solution as the bare answer has. "
    "Bottom: the same for the solution and for its words in random order. Rows come from "
    "`parityscope entropy … --out DIR`."
)
STORED = EntropyStudy


def plot(rows: Sequence[StudyRow]) -> Figure:
    """Draw sorted bars per head: three comparisons × four layers, for every stored study."""
    return draw_studies(rows, 8.6, _draw)


def _chosen_layers(layers: int) -> list[int]:
    """Return the first, the last and two intermediate layers, from 0.

    >>> _chosen_layers(28)
    [0, 9, 18, 27]
    """
    return sorted({round(step * (layers - 1) / 3) for step in range(4)})


def _draw(part: Any, row: StudyRow) -> None:
    layers = _chosen_layers(row.numbers.models[0].layers_by_heads[0])
    grid = part.subplots(len(PANELS), len(layers), sharey="row", squeeze=False)
    for line, (title, reduction, variants) in zip(grid, PANELS, strict=True):
        shown = setups(row, reduction, variants)
        width = 0.84 / len(shown)
        for axes, layer in zip(line, layers, strict=True):
            for place, (label, ink, mean, half) in enumerate(shown):
                layer_mean, order = mean[layer].sort()
                error = half[layer][order]
                x = [head + 1 + (place - (len(shown) - 1) / 2) * width for head in range(len(layer_mean))]
                style = {"elinewidth": 0.7, "ecolor": "#888888"}
                error_bars = error.numpy() if bool(error.isfinite().all()) else None
                axes.bar(x, layer_mean.numpy(), width, color=ink, label=label, yerr=error_bars, error_kw=style)
            axes.set_xlabel("heads, sorted", fontsize=9)
            axes.tick_params(labelsize=9)
            axes.set_title(f"layer {layer + 1}", fontsize=10)
        line[0].set_ylabel("entropy,\n" + title.replace(", ", ",\n"), fontsize=9)
        line[-1].legend(fontsize=9, loc="upper left")
        line[0].set_ylim(0, 1.22 * max(float(mean[layers].max()) for _, _, mean, _ in shown))


table = studies_table  # every measure, with the sink kept and removed


def findings(rows: Sequence[StudyRow]) -> list[Finding]:
    """Set W's reading of the figure beside what the measures say."""
    found = []
    for study in (row.numbers for row in shown_studies(rows)):
        model = study.models[0]
        paper, matched = (model.against("no CoT", reduction) for reduction in (PAPER, MATCHED))
        shuffled = model.against("shuffled CoT", MATCHED)
        found.append(
            Finding(
                "With CoT the entropy of Qwen2-7B is lower than without, so real CoT data has a sparser structure.",
                f"{model.label}, {study.problems} problems: the minimum over all positions is lower with CoT in "
                f"{lower_share(paper)} of heads; mean difference {by_how_much(paper)}. With as many positions on both "
                f"sides it is lower in {lower_share(matched)} of heads; mean difference {by_how_much(matched)}. "
                f"Against the same words shuffled, CoT is lower in {lower_share(shuffled)} of heads; mean difference "
                f"{by_how_much(shuffled)}.",
            )
        )
        if len(study.models) > 1:
            found.append(_second_model(study))
    return found or [Finding("CoT lowers the attention entropy of Qwen2-7B.", f"Not measured here. {COMMAND}")]


def _second_model(study: StudyNumbers) -> Finding:
    first, second = study.models[:2]
    paper = "On the same CoT data Qwen2-Math-7B has lower entropy than Qwen2-7B."
    if study.second_against_first is None:
        return Finding(paper, f"The heads of {first.label} and {second.label} do not correspond: nothing to compare.")
    comparison = study.second_against_first[0]
    return Finding(
        paper,
        f"{second.label} is lower than {first.label} in {lower_share(comparison)} of heads; mean difference "
        f"{by_how_much(comparison)}.",
    )
