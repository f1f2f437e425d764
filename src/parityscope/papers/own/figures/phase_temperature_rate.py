"""Where each recipe learns, over temperature and learning rate."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.papers.cells import share_of
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.own.figures import phase
from parityscope.papers.own.figures.phase import PACK, Cell, batch_shape, run, run_batch
from parityscope.records import Row

__all__ = ["PACK", "batch_shape", "run", "run_batch"]

ID = "phase-temperature-rate"
TITLE = "Phase diagram: temperature × learning rate"
TEXT = (
    "Seeds that learned (numbers; colour is their share) when a recipe's softmax temperature τ and learning rate are "
    "changed and nothing else, n = 10, k = 3, each seed with its own support and start. The solid line is where half "
    "of the seeds learn; between the dashed lines Wilson's 95 % interval contains one half. Population panels speak of "
    "optimisation; the last one sees only N examples. H1's text has τ = 1/n = 0.1, its code τ = n/4 = 2.5."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 8, "reference": 18, "paper": 900}
_N, _K = 10, 3
_X = ("learning rate", lambda row: row.config.settings["learning_rate"])
_Y = ("temperature τ", lambda row: row.config.settings["temperature"])


def _cells(
    recipe: str,
    temperatures: Sequence[float],
    rates: Sequence[float],
    seeds: int,
    steps: int,
    samples: int | None = None,
) -> list[Cell]:
    source = "population" if samples is None else f"{samples} examples"
    return [
        Cell(
            panel=f"{recipe}, {source}, {steps} steps",
            recipe=recipe,
            n=_N,
            k=_K,
            seeds=seeds,
            samples=samples,
            settings={"temperature": temperature, "learning_rate": rate, "steps": steps},
        )
        for temperature in temperatures
        for rate in rates
    ]


_COARSE = (0.1, 1.0, 10.0), (0.01, 0.1, 1.0)
_GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_FINE = tuple(0.03 * 2**i for i in range(11)), tuple(0.001 * 2**i for i in range(13))
CONFIGS: dict[Scale, list[Cell]] = {
    "smoke": [*_cells("repaired", *_COARSE, 4, 150), *_cells("bounded", *_COARSE, 4, 150)],
    "demo": [
        *_cells("as-written", *_GRID, 2, 50),
        *_cells("as-coded", *_GRID, 4, 400),
        *_cells("repaired", *_GRID, 8, 400),
        *_cells("bounded", *_GRID, 8, 400),
        *_cells("bounded", *_GRID, 4, 250, 500),
    ],
    "reference": [
        *_cells("as-written", *_GRID, 4, 100),
        *_cells("as-coded", *_GRID, 8, 600),
        *_cells("repaired", *_GRID, 16, 500),
        *_cells("bounded", *_GRID, 16, 500),
        *_cells("bounded", *_GRID, 8, 250, 500),
    ],
    "paper": [
        *_cells("as-written", *_FINE, 32, 1000),
        *_cells("as-coded", *_FINE, 32, 2000),
        *_cells("repaired", *_FINE, 100, 3000),
        *_cells("bounded", *_FINE, 100, 3000),
        *_cells("bounded", *_FINE, 32, 250, 500),
    ],
}


def plot(rows: Sequence[Row]) -> Figure:
    """Draw one heat map per recipe."""
    return phase.draw_phases(rows, _X, _Y, columns=3)


def table(rows: Sequence[Row]) -> Table:
    """Return every cell with its interval."""
    return phase.phase_table(rows, _X, _Y)


def findings(rows: Sequence[Row]) -> list[Finding]:
    """Say how large the region is in which each recipe learns."""
    summary = {name: phase.counted(cells) for name, cells in phase.panels_of(rows).items()}
    at_theorem = {
        name: [row for row in cells if row.config.settings["temperature"] == 1 / _N]
        for name, cells in phase.panels_of(rows).items()
    }
    sharp = "; ".join(f"{name}: {share_of(cells)}" for name, cells in at_theorem.items() if cells)
    return [
        Finding(
            "H1, Theorem 5 needs a temperature of order 1/n and a rate below an explicit bound.",
            "Over the grid: " + "; ".join(f"{name}: {text}" for name, text in summary.items()) + ".",
        ),
        Finding("At τ = 1/n attention is sharp from the start.", f"Over all rates at τ = {1 / _N:g}: {sharp}."),
    ]
