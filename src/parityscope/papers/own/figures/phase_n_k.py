"""Where each recipe learns, over the number of bits and of hidden bits."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.papers.cells import ShownTraining, TrainingRow
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.own.figures import phase
from parityscope.runs import training

ID = "phase-n-k"
TITLE = "Phase diagram: n × k"
TEXT = (
    "Seeds that learned (numbers; colour is their share) over the number n of bits and k of hidden bits. From the "
    "population, whose gradient contains the hidden bits, learning is a matter of optimisation; from N examples the "
    "signal of a diffuse start falls like n^(−k/2) and a boundary appears. The solid line is where half of the seeds "
    "learn; between the dashed lines Wilson's 95 % interval contains one half. H1's own two recipes over n and k are "
    "in the success table: their cost doubles with every second bit."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 18, "reference": 30}
_X = phase.Axis("bits n", lambda row: row.config.training.n)
_Y = phase.Axis("hidden bits k", lambda row: row.config.training.k)


def _grid(
    recipe: str, n_values: Sequence[int], k_values: Sequence[int], seeds: int, samples: int | None
) -> list[ShownTraining]:
    source = "population" if samples is None else f"{samples} examples"
    trainings = [training(recipe, n, k, seeds=range(seeds), samples=samples) for k in k_values for n in n_values]
    return [ShownTraining(label=f"{recipe}, {source}", training=one) for one in trainings]


_FEW = (8, 16, 32), (2, 3, 4, 6)
_SIZES = (8, 12, 16, 24, 32), (2, 3, 4, 6)
CONFIGS: dict[Scale, list[ShownTraining]] = {
    "smoke": [*_grid("bounded", (8, 16), (2, 3), 4, None), *_grid("bounded", (8, 16), (2, 3), 4, 200)],
    "demo": [
        *_grid("repaired", *_FEW, 8, None),
        *_grid("bounded", *_FEW, 8, None),
        *_grid("bounded", *_FEW, 6, 300),
        *_grid("bounded", *_FEW, 4, 1000),
    ],
    "reference": [
        *_grid("repaired", *_SIZES, 16, None),
        *_grid("bounded", *_SIZES, 16, None),
        *_grid("bounded", *_SIZES, 12, 300),
        *_grid("bounded", *_SIZES, 8, 1000),
    ],
}


def plot(rows: Sequence[TrainingRow]) -> Figure:
    """Draw one heat map per recipe and source of data."""
    return phase.draw_phases(rows, _X, _Y, columns=2)


def table(rows: Sequence[TrainingRow]) -> Table:
    """Return every cell with its interval."""
    return phase.phase_table(rows, _X, _Y)


def findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Set optimisation beside data."""
    counts = {name: phase.counted(chosen) for name, chosen in phase.panels_of(rows).items()}
    return [
        Finding(
            "(Not in the papers: where optimisation ends and where data end.)",
            "; ".join(f"{name}: {text}" for name, text in counts.items()) + ".",
        )
    ]
