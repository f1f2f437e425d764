"""What W's Figures 6 and 7 share: the setups in a panel, and the picture where nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from parityscope.experiments.entropy_studies import COMMAND, MeasuredStudy
from parityscope.figures import colour, new_figure
from parityscope.language_models.word_problems import Variant

_COLOUR_OF: dict[Variant, int] = {"no CoT": 0, "CoT": 1, "shuffled CoT": 3}


def setups(study: MeasuredStudy, reduction: str, variants: Sequence[Variant]) -> list[tuple[str, str, Tensor, Tensor]]:
    """Return what a panel shows, as label, colour, means and half-widths: W's three setups, or CoT and its control."""
    first, *others = study.models
    shown: list[tuple[str, str, Tensor, Tensor]] = [
        (variant, colour(_COLOUR_OF[variant]), *first.heads(variant, reduction)) for variant in variants
    ]
    # W compares the second model, trained further on CoT data, on CoT data; its heads must be those of the first.
    if "no CoT" in variants and study.second_against_first is not None:
        shown += [(f"CoT, {second.name}", colour(2), *second.heads("CoT", reduction)) for second in others]
    return shown


def how_to_make_it() -> Figure:
    """Return the picture that stands where no study is stored."""
    figure, axes = new_figure(9, 1.7)
    axes.axis("off")
    text = f"No language model has been measured in this folder. To measure one and draw this figure:\n\n{COMMAND}"
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=10, transform=axes.transAxes)
    return figure
