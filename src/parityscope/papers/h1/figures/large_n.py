"""H1's recipes beyond what can be enumerated: does anything learn at n = 60 to 200, at temperatures of c/n?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import median
from parityscope.models import ParityTransformer
from parityscope.papers.cells import by_label, share_of
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import population_risk
from parityscope.runs import Training, training
from parityscope.training.learning import train

ID = "H1-large-n"
TITLE = "H1's recipes at n = 60 to 200"
TEXT = (
    "Sizes at which nobody can visit all inputs: every risk is computed over all 2^n of them by the lattice engine, "
    "with a proved error. H1's start (directions of length 1) at temperatures τ = c/n, since Theorem 5 says that τ = "
    "O(1/n) suffices. One line per seed, each with its own start and hidden bits: the risk that descends, divided by "
    "the first one. As written is plain descent at a rate of 0.04/k², with ReLU, the limit b → 0 of the paper's "
    "smoothed one, whose risk costs ten times as much (b = 0.01 in one cell); as coded is Adam on (mean hinge)² at "
    "these temperatures, and at the code's own, n/4. Both take few steps, at most 800 in one cell: a line that is flat "
    "there is no proof that it stays flat. Repaired starts with the same attention. Right: seeds that learned, over "
    "all sizes, with 95 % intervals. All of them see the population, so this is about optimisation, not about data."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 2, "reference": 240}
_TOLERANCE = 1e-4  # of the mean loss at every step
_FACTORS = (0.3, 1.0, 3.0, 10.0)
_WRITTEN, _CODED, _REPAIRED = _RECIPES = ("as written", "as coded", "repaired")


class LargeNumbers(Numbers):
    """What became of every seed."""

    learned: tuple[bool, ...]
    recovered: tuple[bool, ...]
    first_risk: tuple[float, ...]
    risk: tuple[float, ...]
    error_bound: tuple[float, ...]  # proved, of the last risk
    engine: str
    hidden_first: tuple[float, ...]  # the largest share of a head's attention that any hidden bit has at the start
    hidden: tuple[float, ...]  # and at the end


class LargeTraining(Config):
    """One recipe at one temperature, c/n or the recipe's own (none), with a risk along the way that is certified."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = LargeNumbers

    label: str
    factor: float | None
    training: Training
    tolerance: float = _TOLERANCE

    def run(self) -> Result:
        """Train all seeds, and look at how much attention the hidden bits have."""
        asked, problems = self.training, self.training.problems()
        support = torch.tensor([problem.support for problem in problems])
        seen: list[Tensor] = []

        def look(step: int, model: ParityTransformer) -> None:
            if not seen:
                seen.append(_on_hidden(model.attention().detach(), support))

        trained = train(
            problems,
            [asked.recipe],
            asked.seeds,
            tolerance=self.tolerance,
            on_record=look,
            record_every=asked.record_every,
        )
        loss = "hinge" if asked.recipe.loss == "log-correlation" else asked.recipe.loss
        with torch.no_grad():
            last = population_risk(trained.model, problems, loss=loss, tolerance=self.tolerance)
        return Result(
            LargeNumbers(
                learned=tuple(trained.learned.tolist()),
                recovered=tuple(trained.recovered.tolist()),
                first_risk=tuple(trained.history_risk[0].tolist()),
                risk=tuple(last.value.tolist()),
                error_bound=tuple(last.error_bound.tolist()),
                engine=last.engine,
                hidden_first=tuple(seen[0].tolist()),
                hidden=tuple(_on_hidden(trained.attention, support).tolist()),
            ),
            {"steps": trained.history_steps, "risk": trained.history_risk},
        )


def _on_hidden(attention: Tensor, support: Tensor) -> Tensor:
    """Return for every run the largest share that a head (runs, heads, n) gives to a bit of the support (runs, k)."""
    return attention.amax(1).gather(1, support).amax(1)


_Row = Row[LargeTraining, LargeNumbers]


def _shown(label: str, n: int, k: int, factor: float | None, seeds: int, **changes: Any) -> LargeTraining:
    changes = {"seeds": range(1000, 1000 + seeds), **changes}
    if label == _REPAIRED:
        # The same attention, in the recipe's own unit of length; it takes as many steps as it needs.
        own: dict[str, Any] = {} if factor is None else {"start_radius": n / factor}
    else:
        own = {"smoothing": 0.0} | ({} if factor is None else {"temperature": factor / n})
    asked = training(label.replace(" ", "-"), n, k, **{**own, **changes})
    return LargeTraining(label=label, factor=factor, training=asked)


def _grid(
    sizes: Sequence[tuple[int, int]], factors: Sequence[float], seeds: int, steps: int, record_every: int = 1
) -> list[LargeTraining]:
    of_h1: dict[str, Any] = {"steps": steps, "record_every": record_every}
    return [
        _shown(label, n, k, factor, seeds, **({} if label == _REPAIRED else of_h1))
        for label in _RECIPES
        for n, k in sizes
        for factor in factors
    ]


def _longer(n: int, k: int, written: int, coded: int, own: int) -> list[LargeTraining]:
    """Return single seeds with more steps, at τ = 1/n and at the code's own temperature."""
    return [
        _shown(_WRITTEN, n, k, 1.0, 1, steps=written, record_every=10),
        _shown(_CODED, n, k, 1.0, 1, steps=coded, record_every=10),
        _shown(_CODED, n, k, None, 1, steps=own, record_every=10),
    ]


CONFIGS: dict[Scale, list[LargeTraining]] = {
    "smoke": _grid([(50, 2)], (1.0,), 1, 2),
    "demo": _grid([(50, 2)], (0.3, 3.0), 1, 8),
    "reference": [
        *_grid([(n, k) for n in (60, 100) for k in (2, 3)], _FACTORS, 2, 25),
        *_grid([(200, 2), (200, 3)], (1.0,), 2, 25),
        *_longer(60, 2, written=800, coded=400, own=250),
        _shown(_WRITTEN, 60, 2, 1.0, 2, steps=25, record_every=1, smoothing=0.01),
    ],
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw the risk along training, one panel per recipe, and the share that learned."""
    figure, panels = new_figure(13.5, 4.6, 1, len(_RECIPES) + 1, width_ratios=(1, 1, 1, 1.15))
    found = by_label(rows)
    for axes, label in zip(panels, _RECIPES, strict=False):
        _draw_risk(axes, found[label])
        axes.set_title(f"{label}: {share_of(found[label])}\n{_steps(found[label])}", fontsize=10.5)
    panels[0].set_ylabel("risk / first risk")
    last = panels[-1]
    for index, label in enumerate(_RECIPES):
        mine = [row for row in found[label] if row.config.factor is not None]
        factors = sorted({float(row.config.factor or 0) for row in mine})
        shares = [share_of([row for row in mine if row.config.factor == factor]) for factor in factors]
        apart = 1.12 ** (index - 1)  # intervals can be told from each other
        draw_shares(
            last, [apart * factor for factor in factors], shares, color=colour((1, 4, 5)[index]), **_MARKS[index]
        )
    last.set(xscale="log", xlabel="c of τ = c/n", ylabel="share of seeds", title="learned")
    last.set_xticks(_FACTORS, [f"{factor:g}" for factor in _FACTORS])
    last.minorticks_off()
    last.legend(loc="center left", fontsize=9)
    figure.legend(handles=_legend(rows), loc="outside lower left", ncols=5, fontsize=9)
    return figure


_MARKS: list[dict[str, Any]] = [
    {"label": _WRITTEN, "marker": "v", "linestyle": "--"},
    {"label": _CODED, "marker": "s", "linestyle": ":"},
    {"label": _REPAIRED, "marker": "o", "linestyle": "-"},
]


def _steps(rows: Sequence[_Row]) -> str:
    """Return how many steps were taken: one that ended early counts as long as it was."""
    taken = sorted(int(row.arrays["steps"][-1]) for row in rows)
    return f"{taken[len(taken) // 2]} steps (median), at most {taken[-1]}"


def _hue(factor: float | None) -> str:
    return "#888888" if factor is None else colour(_FACTORS.index(factor))


def _draw_risk(axes: Axes, rows: Sequence[_Row]) -> None:
    for row in rows:
        steps, risk = row.arrays["steps"] + 1, row.arrays["risk"]
        axes.plot(steps.numpy(), (risk / risk[0]).numpy(), color=_hue(row.config.factor), alpha=0.6, linewidth=1.1)
    axes.set(xscale="log", xlabel="step + 1", ylim=(0, 1.1))


def _legend(rows: Sequence[_Row]) -> list[Line2D]:
    factors = sorted({row.config.factor for row in rows if row.config.factor is not None})
    lines = [Line2D([], [], color=_hue(factor), linewidth=3, label=f"τ = {factor:g}/n") for factor in factors]
    own = [Line2D([], [], color=_hue(None), linewidth=3, label="τ = n/4, the code's own")]
    return lines + (own if any(row.config.factor is None for row in rows) else [])


table = table_of(
    TableColumn("recipe", lambda row: row.config.label),
    TableColumn("n", lambda row: row.config.training.n),
    TableColumn("k", lambda row: row.config.training.k),
    TableColumn("τ", lambda row: "n/4" if row.config.factor is None else f"{row.config.factor:g}/n"),
    TableColumn("b", lambda row: row.config.training.recipe.smoothing, "g"),
    TableColumn("steps", lambda row: int(row.arrays["steps"][-1])),
    TableColumn("learned", lambda row: share_of([row])),
    TableColumn("support recovered", lambda row: sum(row.numbers.recovered)),
    TableColumn("median first risk", lambda row: median(row.numbers.first_risk), ".3f"),
    TableColumn("median last risk", lambda row: median(row.numbers.risk), ".3f"),
    TableColumn("proved to", lambda row: max(row.numbers.error_bound), ".0e"),
    TableColumn("by", lambda row: row.numbers.engine),
    TableColumn("most attention on a hidden bit, first", lambda row: median(row.numbers.hidden_first), ".2g"),
    TableColumn("last", lambda row: median(row.numbers.hidden), ".2g"),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Set the claim of Theorem 5 beside what the recipes did, and beside what the same attention can do."""

    def outcome(label: str) -> str:
        mine = by_label(rows)[label]
        fall = [
            1 - last / first
            for row in mine
            for first, last in zip(row.numbers.first_risk, row.numbers.risk, strict=True)
        ]
        most = max(int(row.arrays["steps"][-1]) for row in mine)
        return (
            f"{label} {share_of(mine)} seeds, the risk lower by {median(fall):.1%} in the median and "
            f"{max(fall):.0%} at most after up to {most} steps"
        )

    of_h1 = [row for row in rows if row.config.label != _REPAIRED]
    bound = max(one for row in of_h1 for one in row.numbers.error_bound)
    sizes = sorted({row.config.training.n for row in rows})
    blind = [one for row in of_h1 if row.config.factor is not None for one in row.numbers.hidden_first]
    return [
        Finding(
            "A temperature of O(1/n) suffices (Theorem 5).",
            f"n = {', '.join(map(str, sizes))}; learned: {outcome(_WRITTEN)}; {outcome(_CODED)}. Last risks are proved "
            f"to {bound:.0e}.",
        ),
        Finding(
            "A small temperature makes attention approximate hard attention.",
            f"And blind: at these starts, at τ = c/n, the hidden bit that is seen best has {median(blind):.1g} of a "
            f"head's attention in the median, and in {sum(one < 1e-3 for one in blind)} of {len(blind)} starts less "
            "than 0.001: what no head sees has no gradient.",
        ),
        Finding(
            "(Not in the paper: the same attention with a bounded readout.)",
            f"Learned: {outcome(_REPAIRED)}.",
        ),
    ]
