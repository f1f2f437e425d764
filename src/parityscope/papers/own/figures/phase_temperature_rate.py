"""Where each recipe learns, over temperature and learning rate."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.papers.cells import ShownTraining, TrainingRow, share_of
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.own.figures import phase
from parityscope.runs import training

ID = "phase-temperature-rate"
TITLE = "Phase diagram: temperature × learning rate"
TEXT = (
    "Seeds that learned (numbers; colour is their share) when a recipe's softmax temperature τ and learning rate are "
    "changed and nothing else, n = 10, k = 3, each seed with its own support and start. The solid line is where half "
    "of the seeds learn; between the dashed lines Wilson's 95 % interval contains one half. Population panels speak of "
    "optimisation; the last one sees only N examples. H1's text has τ = 1/n = 0.1, its code τ = n/4 = 2.5."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 8, "reference": 18}
_N, _K = 10, 3
_X = phase.Axis("learning rate", lambda row: float(row.config.training.recipe.learning_rate))
_Y = phase.Axis("temperature τ", lambda row: float(row.config.training.recipe.temperature))


def _grid(
    recipe: str,
    temperatures: Sequence[float],
    rates: Sequence[float],
    seeds: int,
    steps: int,
    samples: int | None = None,
) -> list[ShownTraining]:
    source = "population" if samples is None else f"{samples} examples"
    trainings = [
        training(
            recipe,
            _N,
            _K,
            seeds=range(seeds),
            samples=samples,
            temperature=temperature,
            learning_rate=rate,
            steps=steps,
        )
        for temperature in temperatures
        for rate in rates
    ]
    return [ShownTraining(label=f"{recipe}, {source}, {steps} steps", training=one) for one in trainings]


_COARSE = (0.1, 1.0, 10.0), (0.01, 0.1, 1.0)
_GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
CONFIGS: dict[Scale, list[ShownTraining]] = {
    "smoke": [*_grid("repaired", *_COARSE, 4, 150), *_grid("bounded", *_COARSE, 4, 150)],
    "demo": [
        *_grid("as-written", *_GRID, 2, 50),
        *_grid("as-coded", *_GRID, 4, 400),
        *_grid("repaired", *_GRID, 8, 400),
        *_grid("bounded", *_GRID, 8, 400),
        *_grid("bounded", *_GRID, 4, 250, 500),
    ],
    "reference": [
        *_grid("as-written", *_GRID, 4, 100),
        *_grid("as-coded", *_GRID, 8, 600),
        *_grid("repaired", *_GRID, 16, 500),
        *_grid("bounded", *_GRID, 16, 500),
        *_grid("bounded", *_GRID, 8, 250, 500),
    ],
}


def plot(rows: Sequence[TrainingRow]) -> Figure:
    """Draw one heat map per recipe."""
    return phase.draw_phases(rows, _X, _Y, columns=3)


def table(rows: Sequence[TrainingRow]) -> Table:
    """Return every cell with its interval."""
    return phase.phase_table(rows, _X, _Y)


def findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Say how large the region is in which each recipe learns."""
    panels = phase.panels_of(rows)
    summary = {name: phase.counted(panel) for name, panel in panels.items()}
    at_theorem = {name: [row for row in panel if _Y.place(row) == 1 / _N] for name, panel in panels.items()}
    sharp = "; ".join(f"{name}: {share_of(some)}" for name, some in at_theorem.items() if some)
    return [
        Finding(
            "H1, Theorem 5 needs a temperature of order 1/n and a rate below an explicit bound.",
            "Over the grid: " + "; ".join(f"{name}: {text}" for name, text in summary.items()) + ".",
        ),
        Finding("At τ = 1/n attention is sharp from the start.", f"Over all rates at τ = {1 / _N:g}: {sharp}."),
    ]
