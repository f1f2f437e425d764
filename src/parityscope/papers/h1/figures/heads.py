"""Where heads look during training: those of Figure 2, and heads that lock onto the hidden bits or never do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import matplotlib
import numpy as np
import torch
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from parityscope.core.drawing import HEAT, colour, new_figure
from parityscope.core.statistics import median
from parityscope.core.ties import first_largest
from parityscope.models import ParityTransformer
from parityscope.papers.cells import ShownTraining, TrainingRow, by_label, of_learned, share_of
from parityscope.papers.figure import FigureSpec, Finding, TableColumn, fresh, table_of
from parityscope.papers.h1.trainings import FIGURE_2, NEIGHBOURS, SEPARATE, WATCHED, coded_heads
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import Training, training
from parityscope.runs.training import TrainingNumbers
from parityscope.training.learning import train

ID = "heads-lock-on"  # of the second figure, and of its rows


def _configs(
    n: int, supports: Sequence[tuple[int, ...]], seeds: int, coded_steps: int, **changes: Any
) -> list[ShownTraining]:
    coded = f"as coded, rate 0.2, {coded_steps} steps"
    return [
        *(ShownTraining(label=coded, training=coded_heads(n, one, seeds, coded_steps)) for one in supports),
        *(
            ShownTraining(
                label=recipe,
                training=training(
                    recipe, n, len(one), seeds=range(seeds), support=one, record_every=2, **WATCHED, **changes
                ),
            )
            for recipe in ("repaired", "bounded")
            for one in supports
        ),
    ]


def _plot_attention(rows: Sequence[TrainingRow]) -> Figure:
    """Draw recipes from top to bottom, the two supports side by side."""
    recipes = list(by_label(rows))
    supports = list(dict.fromkeys(_support(row) for row in rows))
    figure = Figure(figsize=(13, 2.9 * len(recipes)), layout="constrained")
    grid = figure.subplots(
        len(recipes), 2 * len(supports), sharey=True, squeeze=False, width_ratios=[3.2, 1] * len(supports)
    )
    for row in rows:
        line, column = recipes.index(row.config.label), 2 * supports.index(_support(row))
        _draw_training(grid[line][column], row)
        image = _draw_heads(grid[line][column + 1], row)
    figure.colorbar(image, ax=grid, shrink=0.5, label="attention", pad=0.01)
    return figure


def _support(row: TrainingRow) -> tuple[int, ...]:
    return row.numbers.supports[0]  # the same for all seeds


def _shown_seed(row: TrainingRow) -> int:
    """Return the first seed that learned, or seed 0."""
    return row.numbers.learned.index(True) if any(row.numbers.learned) else 0


def one_head_per_bit(row: Row[Any, TrainingNumbers]) -> int:
    """Return how many of the seeds that learned have heads that all attend to different bits most."""
    # Attention is stored in single precision, whose ties would be wider than what two heads between neighbours differ.
    heads = first_largest(row.arrays["attention"].double()).tolist()
    distinct = [len(set(found)) == len(support) for found, support in zip(heads, row.numbers.supports, strict=True)]
    return sum(of_learned(row.numbers, distinct))


def _draw_training(axes: Axes, row: TrainingRow) -> None:
    n, support, shown = row.config.training.n, _support(row), _shown_seed(row)
    steps, weights = row.arrays["steps"].numpy(), row.arrays["weights"][:, shown].numpy()
    used = steps <= max(1, row.numbers.steps[shown])
    axes.pcolormesh(
        steps[used], range(n), weights[used].T, cmap=HEAT, vmin=0, vmax=1, shading="nearest", rasterized=True
    )
    axes.set(xlabel="step", ylabel="position", yticks=range(0, n, 5))
    edge: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "clip_on": False}
    axes.plot([0.0] * len(support), support, ">", color=colour(1), markersize=8, **edge)
    share = row.numbers.share
    axes.set_title(f"{row.config.label}: {share.successes} of {share.trials} learned; seed {shown}", fontsize=11)


def _draw_heads(axes: Axes, row: TrainingRow) -> AxesImage:
    shown = _shown_seed(row)
    attention = row.arrays["attention"][shown].numpy()
    image = axes.imshow(attention.T, aspect="auto", cmap=HEAT, vmin=0, vmax=1, origin="lower", interpolation="nearest")
    axes.set(xlabel="head", xticks=range(len(attention)))
    axes.set_title(f"risk {row.numbers.risk[shown]:.3f}", fontsize=11)
    return image


_PANELS = {
    "as-written": "H1 as written",
    "as-coded": "H1 as coded",
    "repaired": "H1's model, readout repaired",
    "bounded": "ours (the default)",
}
_FRAMES = 200  # columns of a picture


class FilmNumbers(Numbers):
    """What became of every seed, and of the heads that the film shows."""

    learned: tuple[bool, ...]
    steps: tuple[int, ...]
    least_attention: float  # of the first seed's heads, each on the hidden bit it attends to most


class Film(Config):
    """One training, and where the heads of its first seed look while it runs."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = FilmNumbers

    training: Training

    def run(self) -> Result:
        """Train every seed and keep where the first one's heads look."""
        steps: list[int] = []
        frames: list[torch.Tensor] = []

        def keep(step: int, model: ParityTransformer) -> None:
            steps.append(step)
            frames.append(model.attention()[0].detach().float())

        asked, problems = self.training, self.training.problems()
        trained = train(
            problems,
            [asked.recipe],
            asked.seeds,
            samples=asked.samples,
            batch=asked.batch,
            on_record=keep,
            record_every=asked.record_every,
        )
        on_hidden = trained.attention[0][:, list(problems[0].support)]
        numbers = FilmNumbers(
            learned=tuple(trained.learned.tolist()),
            steps=tuple(trained.steps.tolist()),
            least_attention=float(on_hidden.amax(-1).min()),
        )
        until = next((i for i, step in enumerate(steps) if step >= trained.steps[0]), len(steps) - 1)
        kept = torch.linspace(0, until, min(_FRAMES, until + 1)).round().long()
        return Result(numbers, {"steps": torch.tensor(steps)[kept], "attention": torch.stack(frames)[kept]})


_FilmRow = Row[Film, FilmNumbers]


def _film(recipe: str, steps: int, seeds: int) -> Film:
    often = max(1, steps // 2000)
    trained = training(recipe, 20, 3, seeds=fresh(seeds), support=(7, 10, 17), record_every=often, steps=steps)
    return Film(training=trained)


def _films(seeds: int, *, written: tuple[int, int], coded: int, ours: int) -> list[Film]:
    """Return the four recipes with their steps; as written, seeds too, since a step costs fifty times the others'."""
    first, steps = written
    return [
        _film("as-written", steps, first),
        _film("as-coded", coded, seeds),
        _film("repaired", ours, seeds),
        _film("bounded", ours, seeds),
    ]


def _plot_film(rows: Sequence[_FilmRow]) -> Figure:
    """Draw positions against steps, one panel per recipe."""
    figure, panels = new_figure(13, 3.9, 1, len(rows), sharey=True)
    for axes, row in zip(panels, rows, strict=True):
        attention, steps = row.arrays["attention"].numpy(), row.arrays["steps"]
        n, support = row.config.training.n, row.config.training.support or ()
        axes.imshow(
            _painted(attention, np.array(to_rgb(axes.get_facecolor()))),
            aspect="auto",
            interpolation="nearest",
            extent=(0, max(1, int(steps[-1])), n - 0.5, -0.5),
        )
        for position in support:
            axes.annotate("◀", (1.0, position), xycoords=("axes fraction", "data"), va="center", fontsize=9)
        axes.set_title(f"{_PANELS[row.config.training.recipe.name]}\n{share_of([row])} learned", fontsize=11)
        axes.set(xlabel="step", ylim=(n - 0.5, -0.5))
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, prune="upper"))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(True)
    panels[0].set_ylabel("position")
    heads = rows[0].arrays["attention"].shape[1]
    handles: list[Artist] = [Patch(color=colour(head), label=f"head {head}") for head in range(heads)]
    handles.append(
        Line2D([], [], linestyle="", marker="<", color=matplotlib.rcParams["text.color"], label="hidden bit")
    )
    figure.legend(handles=handles, loc="outside lower center", ncols=heads + 1)
    return figure


def _painted(attention: np.ndarray, paper: np.ndarray) -> np.ndarray:
    """Return a picture, (n, steps, 3): every position in the colour of the head that looks there most."""
    inks = np.stack([to_rgb(colour(head)) for head in range(attention.shape[1])]) - paper
    strongest = attention.max(1)[..., None] ** 0.75  # lifts a nearly uniform head above the paper
    return np.clip(paper + strongest * inks[attention.argmax(1)], 0, 1).transpose(1, 0, 2)


def _median_steps(row: _FilmRow) -> str:
    steps = of_learned(row.numbers, row.numbers.steps)
    return f"{median(steps):.0f}" if steps else "–"


def _findings_film(rows: Sequence[_FilmRow]) -> list[Finding]:
    """Set H1's theorem beside what its heads do."""
    by_recipe = {row.config.training.recipe.name: row for row in rows}
    written, ours = by_recipe["as-written"], by_recipe["bounded"]
    return [
        Finding(
            "H1, Theorem 5: gradient descent brings every head to the hidden bits.",
            f"As written {share_of([written])} of the seeds learned in {written.config.training.recipe.steps} steps.",
        ),
        Finding(
            "Ours: so do a bounded readout and 8⌈log₂ n⌉ parameters per head.",
            f"{share_of([ours])} learned, the median after {_median_steps(ours)} steps.",
        ),
    ]


FIGURES = (
    FigureSpec(
        ID="H1-figure-2",
        TITLE="H1, Figure 2: what the heads attend to while they learn",
        TEXT="Twenty bits, three hidden (triangles): far apart on the left, two of them neighbours on the right. Wide "
        "panels show the weight of every position in the score, c = Σ γ over heads, step by step; narrow panels the "
        "heads after training. This is the attention the model uses, temperature included. Each row shows the first "
        "seed that learned, or seed 0 if none did; the share of all seeds stands in the title.",
        COST={"smoke": 4, "demo": 8, "reference": 39},
        CONFIGS={
            "smoke": _configs(10, ((1, 4, 8), (2, 6, 7)), 2, 100, steps=100),
            **{scale: _configs(20, (SEPARATE, NEIGHBOURS), *sizes) for scale, sizes in FIGURE_2.items()},
        },
        plot=_plot_attention,
        table=table_of(
            TableColumn("recipe", lambda row: row.config.label),
            TableColumn("hidden", lambda row: ", ".join(map(str, _support(row)))),
            TableColumn("seeds learned", lambda row: row.numbers.share),
            TableColumn(
                "of those one head per bit", lambda row: f"{one_head_per_bit(row)} of {sum(row.numbers.learned)}"
            ),
            TableColumn("shown seed", _shown_seed),
            TableColumn("risk", lambda row: row.numbers.risk[_shown_seed(row)], ".4f"),
            TableColumn("accuracy", lambda row: row.numbers.accuracy[_shown_seed(row)], ".4f"),
            TableColumn("steps", lambda row: row.numbers.steps[_shown_seed(row)]),
        ),
    ),
    FigureSpec(
        ID=ID,
        TITLE="Heads lock onto the hidden bits, or do not",
        TEXT="Every panel is one training on the same hidden bits (marked ◀), its steps from left to right; every "
        "position has the colour of the head that looks there most, the stronger the more it looks. The first seed is "
        "drawn, whatever became of it, and the title counts the seeds that learned. H1's model as its paper writes it "
        "descends, at a rate of 0.04/k², to a point near its random start; as its code trains it, heads gather in a "
        "neighbourhood within the code's own 2000 steps (at twice its rate, in twice as many, some seeds learn: "
        "H1-figure-2); with the readout repaired, and with our own recipe, every head ends on a hidden bit. All "
        "descend on the population risk, so this is about optimisation; H1-success and H2-samples have examples "
        "instead.",
        COST={"smoke": 1, "demo": 5, "reference": 25},
        CONFIGS={
            "smoke": _films(2, written=(2, 4), coded=40, ours=40),
            "demo": _films(4, written=(1, 150), coded=800, ours=2000),
            "reference": _films(8, written=(8, 1000), coded=2000, ours=2000),
        },
        plot=_plot_film,
        table=table_of(
            TableColumn("recipe", lambda row: row.config.training.recipe.name),
            TableColumn("learned", lambda row: share_of([row])),
            TableColumn("median steps", _median_steps),
            TableColumn(
                "least attention on a bit of the first seed's heads", lambda row: row.numbers.least_attention, ".3f"
            ),
        ),
        findings=_findings_film,
    ),
)
