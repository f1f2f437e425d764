"""W's Figures 6 and 7: attention entropy of pretrained models with and without chain of thought."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, new_figure, themed, write_figure
from parityscope.language_models.measures import COMPARISONS, MEASURES
from parityscope.language_models.study import COMMAND as _COMMAND
from parityscope.language_models.study import (
    PANELS,
    EntropyStudy,
    ModelNumbers,
    StudyRow,
    heads,
    lower_share,
    means,
    shown_studies,
)
from parityscope.language_models.word_problems import VARIANTS, Variant
from parityscope.papers.figure import SCALES, FigureSpec, TableColumn, table_of
from parityscope.records import Store
from parityscope.records.export import write_numbers

_COLOUR_OF: dict[Variant, int] = {"no CoT": 0, "CoT": 1, "shuffled CoT": 3}


def _setups(row: StudyRow, reduction: str, variants: Sequence[Variant]) -> list[tuple[str, str, Tensor, Tensor]]:
    """Return what a panel shows, as label, colour, means and half-widths: W's three setups, or CoT and its control."""
    shown: list[tuple[str, str, Tensor, Tensor]] = [
        (variant, colour(_COLOUR_OF[variant]), *heads(row, 0, variant, reduction)) for variant in variants
    ]
    # W compares the second model, trained further on CoT data, on CoT data; its heads must be those of the first.
    if "no CoT" in variants and row.numbers.second_against_first is not None:
        for place, second in enumerate(row.numbers.models[1:], start=1):
            shown.append((f"CoT, {second.name}", colour(2), *heads(row, place, "CoT", reduction)))
    return shown


def _draw_studies(rows: Sequence[StudyRow], height: float, draw: Callable[[Any, StudyRow], None]) -> Figure:
    """Return one figure with a part for every stored study, drawn by `draw`; how to measure one where there is none."""
    studies = shown_studies(rows)
    if not studies:
        figure, axes = new_figure(9, 1.7)
        axes.axis("off")
        text = "No language model has been measured in this folder. To measure one and draw this figure:\n\n"
        where: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes.transAxes}
        axes.text(0.5, 0.5, text + _COMMAND, fontsize=10, **where)
        return figure
    figure = Figure(figsize=(13, height * len(studies)), layout="constrained")
    for part, study in zip(figure.subfigures(len(studies), 1, squeeze=False)[:, 0], studies, strict=True):
        part.suptitle(study.numbers.title, fontsize=12)
        draw(part, study)
    return figure


def _plot_four_layers(rows: Sequence[StudyRow]) -> Figure:
    """Draw sorted bars per head: three comparisons × four layers, for every stored study."""
    return _draw_studies(rows, 8.6, _draw_four_layers)


def _draw_four_layers(part: Any, row: StudyRow) -> None:
    last = row.numbers.models[0].layers_by_heads[0] - 1
    layers = sorted({round(step * last / 3) for step in range(4)})  # the first, the last and two intermediate ones
    grid = part.subplots(len(PANELS), len(layers), sharey="row", squeeze=False)
    for line, (title, reduction, variants) in zip(grid, PANELS, strict=True):
        shown = _setups(row, reduction, variants)
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


def _plot_all_layers(rows: Sequence[StudyRow]) -> Figure:
    """Draw every head of every layer: three comparisons, for every stored study."""
    return _draw_studies(rows, 7.8, _draw_all_layers)


def _draw_all_layers(part: Any, row: StudyRow) -> None:
    for axes, (title, reduction, variants) in zip(part.subplots(len(PANELS), 1), PANELS, strict=True):
        for place, (label, ink, mean, _) in enumerate(_setups(row, reduction, variants)):
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


class _Line(NamedTuple):
    """A line of a table: one measure, or one layer, of one model of a study."""

    row: StudyRow
    place: int
    model: ModelNumbers
    number: int  # of the measure or of the layer


def _by_measure(rows: Sequence[StudyRow]) -> Iterator[_Line]:
    for row in shown_studies(rows):
        for place, model in enumerate(row.numbers.models):
            yield from (_Line(row, place, model, index) for index in range(len(MEASURES)))


def _by_layer(rows: Sequence[StudyRow]) -> Iterator[_Line]:
    for row in shown_studies(rows):
        for place, model in enumerate(row.numbers.models):
            yield from (_Line(row, place, model, layer) for layer in range(model.layers_by_heads[0]))


def _mean_of_layer(line: _Line, reduction: str, other: Variant) -> str:
    """Return the means over the heads of a layer, and whether they differ beyond the 95 % interval over problems."""
    values = (float(heads(line.row, line.place, name, reduction)[0][line.number].mean()) for name in (other, "CoT"))
    difference = line.model.against_by_layer(other, reduction)[line.number].difference
    mark = " ↓" if difference.high < 0 else " ↑" if difference.low > 0 else ""
    return "{:.3f}, {:.3f}".format(*values) + mark


_WHO = (
    TableColumn("model", lambda line: line.model.name),
    TableColumn("weights", lambda line: line.model.weights),
    TableColumn("problems", lambda line: line.row.numbers.problems),
)


def _mean_of(variant: int) -> Callable[[_Line], str]:
    return lambda line: means(line.row, line.place, line.number)[variant]


def _share_below(other: Variant) -> Callable[[_Line], str]:
    return lambda line: lower_share(line.model.comparisons[other][line.number])


def _of_layer(reduction: str, other: Variant) -> Callable[[_Line], str]:
    return lambda line: _mean_of_layer(line, reduction, other)


@dataclass
class _StudyFigure(FigureSpec):
    """A figure of the studies that a command of its own stores, since the user gives the models."""

    COMMAND = _COMMAND
    STORED = EntropyStudy


FIGURES = (
    _StudyFigure(
        ID="W-figure-6",
        TITLE="W, Figure 6: does chain of thought make attention sparser? Four layers of a pretrained model",
        TEXT="Normalised attention entropy of each head, averaged over problems, sorted within each setup as in the "
        "paper; grey lines show 95 % intervals over problems. Top: the paper's measure, the minimum over all positions."
        " A text with a solution has more positions than one with only the answer, and a minimum over more positions "
        "is lower even if nothing else differs. Middle: the expected minimum over as many positions of the solution as "
        "the bare answer has. Bottom: the same for the solution and for its words in random order. Rows come from "
        "`parityscope entropy … --out DIR`.",
        COST=dict.fromkeys(SCALES, 0.0),
        CONFIGS=dict.fromkeys(SCALES, ()),
        plot=_plot_four_layers,
        table=table_of(
            *_WHO,
            TableColumn("measure", lambda line: str(MEASURES[line.number])),
            *(TableColumn(variant, _mean_of(index)) for index, variant in enumerate(VARIANTS)),
            *(
                TableColumn(header, _share_below(other))
                for header, other in zip(("heads lower than no CoT", "than shuffled CoT"), COMPARISONS, strict=True)
            ),
            lines=_by_measure,
        ),
    ),
    _StudyFigure(
        ID="W-figure-7",
        TITLE="W, Figure 7: the same in all layers",
        TEXT="Normalised attention entropy of every head, averaged over problems; within each layer heads are sorted "
        "separately for each setup, as in the paper. Top: the paper's minimum over all positions. Middle: as many "
        "positions of each suffix, which removes the advantage of the longer text. Bottom: the solution and its words "
        "in random order, as many positions of each. Rows come from `parityscope entropy … --out DIR`.",
        COST=dict.fromkeys(SCALES, 0.0),
        CONFIGS=dict.fromkeys(SCALES, ()),
        plot=_plot_all_layers,
        table=table_of(
            *_WHO,
            TableColumn("layer", lambda line: line.number + 1),
            *(
                TableColumn(f"{title}: {other}, CoT", _of_layer(reduction, other))
                for title, reduction, (other, _) in PANELS
            ),
            lines=_by_layer,
        ),
    ),
)


def draw_study(out: Path) -> list[Path]:
    """Draw both figures from all studies stored in a folder, write their numbers beside them, return the PNG files."""
    rows = Store(out / "store").rows_of(EntropyStudy)
    for figure in FIGURES:
        write_figure(themed(figure.plot, rows), out / "figures", figure.ID)
        write_numbers(rows, out / "figures", figure.ID)
    return [out / "figures" / f"{figure.ID}.png" for figure in FIGURES]
