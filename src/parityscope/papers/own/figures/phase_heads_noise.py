"""Where each recipe learns from examples, over the number of heads and the share of wrong labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from parityscope.papers.cells import ShownTraining, TrainingRow, share_of
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.own.figures import phase
from parityscope.runs import training

ID = "phase-heads-noise"
TITLE = "Phase diagram: heads × label noise"
TEXT = (
    "Seeds that learned from N examples (numbers; colour is their share) over the number m of attention heads and the "
    "probability that a label is flipped, n = 12, k = 3. Accuracy is that against the true parity. Noise p shrinks the "
    "correlation with the label by 1 − 2p, so it acts like fewer examples, (1 − 2p)²N; in the population it changes "
    "nothing but a constant factor. The solid line is where half of the seeds learn; between the dashed lines Wilson's "
    "95 % interval contains one half."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 6, "reference": 18}
_N, _K = 12, 3
_X = phase.Axis("probability that a label is flipped", lambda row: row.config.training.noise)
_Y = phase.Axis("heads m", lambda row: row.config.training.recipe.heads or _K)


def _grid(recipe: str, heads: Sequence[int], noises: Sequence[float], seeds: int, samples: int) -> list[ShownTraining]:
    trainings = [
        training(recipe, _N, _K, seeds=range(seeds), samples=samples, noise=noise, heads=m)
        for m in heads
        for noise in noises
    ]
    return [ShownTraining(label=f"{recipe}, {samples} examples", training=one) for one in trainings]


_FEW = (1, 2, 3, 6), (0.0, 0.1, 0.2, 0.3, 0.4)
_GRID = (1, 2, 3, 4, 6, 9), (0.0, 0.1, 0.2, 0.3, 0.4, 0.45)
CONFIGS: dict[Scale, list[ShownTraining]] = {
    "smoke": _grid("bounded", (1, 3), (0.0, 0.2, 0.4), 4, 300),
    "demo": [*_grid("repaired", *_FEW, 6, 500), *_grid("bounded", *_FEW, 6, 500)],
    "reference": [*_grid("repaired", *_GRID, 12, 500), *_grid("bounded", *_GRID, 12, 500)],
}


def plot(rows: Sequence[TrainingRow]) -> Figure:
    """Draw one heat map per recipe."""
    return phase.draw_phases(rows, _X, _Y, columns=2)


def table(rows: Sequence[TrainingRow]) -> Table:
    """Return every cell with its interval."""
    return phase.phase_table(rows, _X, _Y)


def findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Compare fewer heads than hidden bits with as many and with more."""

    def by_heads(panel: Sequence[TrainingRow]) -> str:
        groups: dict[str, Callable[[float], bool]] = {
            "m < k": lambda m: m < _K,
            "m = k": lambda m: m == _K,
            "m > k": lambda m: m > _K,
        }
        chosen = {name: [row for row in panel if fits(_Y.place(row))] for name, fits in groups.items()}
        return ", ".join(f"{name} {share_of(some)}" for name, some in chosen.items() if some)

    panels = phase.panels_of(rows)
    clean = {name: [row for row in panel if row.config.training.noise == 0] for name, panel in panels.items()}
    return [
        Finding(
            "H1 uses as many heads as hidden bits, m = k.",
            "Without noise: " + "; ".join(f"{name}: {by_heads(panel)}" for name, panel in clean.items()) + ".",
        ),
        Finding(
            "(Not in the papers: label noise.)",
            "Over all noise levels: " + "; ".join(f"{name}: {by_heads(panel)}" for name, panel in panels.items()) + ".",
        ),
    ]
