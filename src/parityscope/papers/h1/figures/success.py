"""Which recipe learns, where: the share of seeds over n × k, from the population and from samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.cells import ShownTraining, TrainingRow, by_label, draw_heat_map, ink_on, share_of
from parityscope.papers.figure import Column, Finding, Scale, fresh, table_of
from parityscope.runs import training

ID = "H1-success"
TITLE = "Which recipe learns, where"
TEXT = (
    "Seeds that learned (accuracy above 0.99 over all inputs and the support named exactly), each with its own "
    "random support and start. The first rows descend on the risk over all inputs and labels: they show whether "
    "descent arrives, not how many examples it would need. The last rows see only N drawn examples per run. Sharp "
    "start means H1's own: radius 1 at temperature 1/n. H1 as written descends at rate 0.04/k²: its heads move, and "
    "every step lowers the risk. At the rate of its proof, 4·10⁻⁸ and less, they do not move (first row)."
)
COST: dict[Scale, float] = {"smoke": 3, "demo": 17, "reference": 68}
_LABELS = {"as-written": "H1 as written", "as-coded": "H1 as coded"}
_PROVED = "H1 as written, the proof's rate"


def _shown(recipe: str, n: int, k: int, seeds: int, *, sharp_start: bool = False, **changes: Any) -> ShownTraining:
    label = _LABELS.get(recipe, recipe) + (", sharp start" if sharp_start else "")
    if sharp_start:
        changes["start_radius"] = float(n)
    changes = {name: value for name, value in changes.items() if value is not None}
    return ShownTraining(label=label, training=training(recipe, n, k, seeds=fresh(seeds), **changes))


def _written(n: int, k: int, seeds: int, steps: int | None = None) -> ShownTraining:
    return _shown("as-written", n, k, seeds, steps=steps)


def _proved(n: int, k: int, seeds: int, steps: int) -> ShownTraining:
    trained = training("as-written", n, k, seeds=fresh(seeds), learning_rate="theorem-5", steps=steps)
    return ShownTraining(label=_PROVED, training=trained)


def _coded(n: int, k: int, seeds: int, steps: int | None = None) -> ShownTraining:
    return _shown("as-coded", n, k, seeds, steps=steps)


def _own(n: int, k: int, seeds: int, steps: int | None = None) -> list[ShownTraining]:
    if n > 100:
        return [_shown("bounded", n, k, seeds, steps=steps)]
    return [
        _shown("repaired", n, k, seeds, sharp_start=True, steps=steps),
        _shown("repaired", n, k, seeds, steps=steps),
        _shown("bounded", n, k, seeds, steps=steps),
    ]


def _samples(n: int, k: int, samples: int, seeds: int) -> ShownTraining:
    trained = training("bounded", n, k, seeds=fresh(seeds), samples=samples)
    return ShownTraining(label="bounded, N examples", training=trained)


CONFIGS: dict[Scale, list[ShownTraining]] = {
    "smoke": [
        _proved(8, 2, 4, 30),
        _written(8, 2, 4, 300),
        _coded(8, 2, 4, 300),
        *_own(8, 2, 4, 300),
        _samples(8, 2, 1000, 4),
    ],
    "demo": [
        *(_proved(12, k, 16, 10) for k in (2, 3, 4)),
        *(one for k in (2, 3, 4) for one in (_written(12, k, 16, 200), _coded(12, k, 16, 600), *_own(12, k, 16))),
        *_own(20, 3, 16),
        *_own(100, 5, 16)[1:],
        *_own(1000, 10, 8),
        *(_samples(n, k, samples, 16) for n, k, samples in ((12, 3, 4000), (20, 3, 16_000), (100, 2, 4000))),
    ],
    "reference": [
        *(_proved(12, k, 32, 300) for k in (2, 3, 4)),
        *(one for k in (2, 3, 4) for one in (_written(12, k, 32), _coded(12, k, 32), *_own(12, k, 32))),
        *(one for k in (2, 3, 4) for one in (_coded(16, k, 32), *_own(16, k, 32))),
        *(one for n, k in ((20, 3), (24, 3), (40, 5), (100, 5), (1000, 10)) for one in _own(n, k, 32)),
        *(_samples(12, k, 4000, 32) for k in (2, 3, 4)),
        *(_samples(16, k, 8000, 32) for k in (2, 3, 4)),
        *(_samples(20, k, 16000, 32) for k in (3, 4)),
        _samples(100, 2, 4000, 32),
    ],
}


def plot(rows: Sequence[TrainingRow]) -> Figure:
    """Draw recipes × sizes as a heat map with the counts written in."""
    labels = list(by_label(rows))
    sizes = sorted({(row.config.training.n, row.config.training.k) for row in rows})
    figure, axes = new_figure(3.2 + 0.78 * len(sizes), 1.8 + 0.62 * len(labels))
    grid = [[float("nan")] * len(sizes) for _ in labels]
    for row in rows:
        y, x = labels.index(row.config.label), sizes.index((row.config.training.n, row.config.training.k))
        share = row.numbers.share
        grid[y][x] = share.value
        ink = ink_on(share.value)
        axes.text(x, y - 0.12, f"{share.successes}/{share.trials}", ha="center", va="center", color=ink, fontsize=10)
        interval = f"{share.low:.0%}–{share.high:.0%}"
        axes.text(x, y + 0.25, interval, ha="center", va="center", color=ink, fontsize=7)
    image = draw_heat_map(axes, grid, [f"n={n}\nk={k}" for n, k in sizes], labels, column_size=9)
    figure.colorbar(image, ax=axes, label="share of seeds", pad=0.01)
    return figure


table = table_of(
    Column("recipe", lambda row: row.config.label),
    Column("n", lambda row: row.config.training.n),
    Column("k", lambda row: row.config.training.k),
    Column("examples", lambda row: row.config.training.samples or "population"),
    Column("learned", lambda row: f"{row.numbers.share.successes} of {row.numbers.share.trials}"),
    Column("95 % interval", lambda row: f"{row.numbers.share.low:.2f} to {row.numbers.share.high:.2f}"),
    Column("support named", lambda row: sum(row.numbers.recovered)),
    Column("numbers", lambda row: row.numbers.parameters),
    Column("median steps", lambda row: row.numbers.median_steps, ".0f"),
)


def findings(rows: Sequence[TrainingRow]) -> list[Finding]:
    """Sum the cells up by recipe."""

    found = by_label(rows)

    def total(label: str) -> str:
        return f"{share_of(found[label])} over {len(found[label])} sizes"

    named = sum(sum(row.numbers.recovered) for row in found["H1 as coded"])
    return [
        Finding(
            "Theorem 5: gradient descent on k heads converges to risk 0, at a linear rate.",
            f"As written: {total('H1 as written')}. With the published code's own recipe: {total('H1 as coded')}, and "
            f"{named} seeds name the support: from n = 16 on its 2000 steps end too early.",
        ),
        Finding(
            "2k trainable numbers are enough.",
            f"With the same 2k numbers and a bounded readout: {total('repaired')} from a near-uniform start, "
            f"{total('repaired, sharp start')} from the paper's own sharp start.",
        ),
        Finding(
            "(Not in the paper: from examples instead of the population.)",
            f"Bounded readout, N examples per run: {total('bounded, N examples')}.",
        ),
    ]
