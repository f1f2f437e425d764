"""Temperature from 1/n to n: is a vanishing temperature needed, and what does the temperature do at all?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import median
from parityscope.papers.cells import by_label, of_learned, share_of
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import Training, training
from parityscope.training.learning import train

ID = "H1-temperature"
TITLE = "Is a vanishing temperature needed?"
TEXT = (
    "Scores are directions times positions, divided by τ. Directions train, so τ is a unit of length: with directions "
    "measured in units of τ, another temperature is the same model with a start 1/τ times as sharp and steps 1/τ "
    "times as long (1/τ² for plain gradient descent). Solid lines change τ and nothing else, so both change; dashed "
    "lines also scale the start, so that attention starts as in the recipe and only the step changes. Left: seeds "
    "that learned. Middle: their median steps. Right: the median length of their heads in units of τ when they "
    "stopped, which is what makes attention sharp (as coded has no stopping rule and uses all its steps). As written "
    "trains at a rate of 0.1, its theorem's own rate never moves; dotted lines train on drawn examples."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 12, "reference": 19}
Start = Literal["own radius", "own sharpness"]
_STARTS: tuple[Start, ...] = get_args(Start)


class TemperatureNumbers(Numbers):
    """What became of every seed."""

    learned: tuple[bool, ...]
    recovered: tuple[bool, ...]
    steps: tuple[int, ...]
    length: tuple[float, ...]  # of a head in units of τ, the mean over heads


class TemperatureTraining(Config):
    """One recipe at one temperature, with the recipe's start radius or with its start sharpness."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = TemperatureNumbers

    label: str
    start: Start
    training: Training

    @property
    def temperature(self) -> float:
        """The temperature τ."""
        return float(self.training.recipe.temperature)

    def run(self) -> Result:
        """Train all seeds and measure their heads."""
        asked = self.training
        trained = train(asked.problems(), [asked.recipe], asked.seeds, samples=asked.samples, batch=asked.batch)
        length = trained.model.directions.detach().norm(dim=-1).mean(-1) / self.temperature
        return Result(
            TemperatureNumbers(
                learned=tuple(trained.learned.tolist()),
                recovered=tuple(trained.recovered.tolist()),
                steps=tuple(trained.steps.tolist()),
                length=tuple(length.tolist()),
            )
        )


_Row = Row[TemperatureTraining, TemperatureNumbers]


def _sweep(
    label: str,
    recipe: str,
    size: tuple[int, int, int],
    temperatures: Sequence[float],
    starts: Sequence[Start] = _STARTS,
    **more: Any,
) -> list[TemperatureTraining]:
    n, k, seeds = size
    own = training(recipe, n, k).recipe

    def at(tau: float, start: Start) -> Training:
        radius = float(own.start_radius)
        if start == "own sharpness":
            radius *= tau / float(own.temperature)
        return training(recipe, n, k, seeds=range(seeds), temperature=tau, start_radius=radius, **more)

    return [
        TemperatureTraining(label=label, start=start, training=at(tau, start))
        for start in starts
        for tau in temperatures
    ]


def _all(n: int, k: int, seeds: int, samples: int, steps: Mapping[str, int]) -> list[TemperatureTraining]:
    size, low, full = (n, k, seeds), (1 / n, 0.3, 1.0, n / 4), (1 / n, 0.3, 1.0, n / 4, float(n))
    as_written = {"learning_rate": 0.1, "steps": steps["as-written"]}
    as_coded = {"learning_rate": 0.2, "steps": steps["as-coded"]}
    return [
        *_sweep("as written", "as-written", size, low, _STARTS[:1], **as_written),
        *_sweep("as coded", "as-coded", size, low, _STARTS[:1], **as_coded),
        *_sweep("repaired", "repaired", size, full, steps=steps["repaired"]),
        *_sweep("bounded", "bounded", size, low),
        *_sweep(f"bounded, {samples} examples", "bounded", size, low[1:], samples=samples),
    ]


CONFIGS: dict[Scale, list[TemperatureTraining]] = {
    "smoke": [
        one
        for one in _all(6, 2, 4, 500, {"as-coded": 40, "as-written": 20, "repaired": 200})
        if one.temperature in (0.3, 1.0)
    ],
    "demo": _all(12, 3, 8, 2000, {"as-coded": 250, "as-written": 30, "repaired": 600}),
    "reference": _all(12, 3, 16, 2000, {"as-coded": 400, "as-written": 100, "repaired": 1000}),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw share, steps and final sharpness against the temperature."""
    figure, (left, middle, right) = new_figure(13.5, 4.9, 1, 3)
    labels = list(by_label(rows))
    for index, label in enumerate(labels):
        for start in _STARTS:
            chosen = [row for row in rows if (row.config.label, row.config.start) == (label, start)]
            if not chosen:
                continue
            sampled = chosen[0].config.training.samples is not None
            line = ":" if sampled else ("-" if start == _STARTS[0] else "--")
            marker = "o" if start == _STARTS[0] else "s"
            style = {"color": colour(index), "linestyle": line, "marker": marker, "markersize": 5}
            # Neighbouring curves are set a little apart, so that their intervals can be told from each other.
            apart = 1.045 ** (2 * index + _STARTS.index(start) - len(labels))
            places = [row.config.temperature * apart for row in chosen]
            draw_shares(left, places, [share_of([row]) for row in chosen], **style)
            some = [row for row in chosen if any(row.numbers.learned)]
            taus = [row.config.temperature for row in some]
            middle.plot(taus, [_median(row, row.numbers.steps) for row in some], linewidth=1.6, **style)
            right.plot(taus, [_median(row, row.numbers.length) for row in some], linewidth=1.6, **style)
    left.set(ylabel="share of seeds", title="learned")
    middle.set(ylabel="steps", yscale="log", title="median steps of those")
    right.set(ylabel="length of a head / τ", yscale="log", title="sharpness when they stopped")
    n = rows[0].config.training.n
    for axes in (left, middle, right):
        axes.set(xlabel="temperature τ", xscale="log")
        axes.set_xticks([1 / n, 0.3, 1, n / 4, n], ["1/n", "0.3", "1", "n/4", "n"])
        axes.minorticks_off()
    right.set_yticks([5, 10, 20, 50], ["5", "10", "20", "50"])
    figure.legend(handles=_legend(labels), loc="outside lower center", ncols=4)
    return figure


def _median(row: _Row, values: Sequence[float]) -> float:
    return median(of_learned(row.numbers, values))


def _legend(labels: Sequence[str]) -> list[Line2D]:
    by_colour = [Line2D([], [], color=colour(index), linewidth=3, label=label) for index, label in enumerate(labels)]
    grey: dict[str, Any] = {"color": "#888888", "linewidth": 1.6}
    return [
        *by_colour,
        Line2D([], [], marker="o", linestyle="-", label="start radius as in the recipe", **grey),
        Line2D([], [], marker="s", linestyle="--", label="start sharpness as in the recipe", **grey),
    ]


def _median_of_learned(values: Callable[[TemperatureNumbers], Sequence[float]]) -> Callable[[_Row], float | None]:
    return lambda row: _median(row, values(row.numbers)) if any(row.numbers.learned) else None


table = table_of(
    TableColumn("recipe", lambda row: row.config.label),
    TableColumn("τ", lambda row: row.config.temperature, ".3g"),
    TableColumn("initialisation", lambda row: row.config.start),
    TableColumn("learned", lambda row: share_of([row])),
    TableColumn("support recovered", lambda row: sum(row.numbers.recovered)),
    TableColumn("median steps", _median_of_learned(lambda numbers: numbers.steps), ".4g"),
    TableColumn("of at most", lambda row: row.config.training.recipe.steps),
    TableColumn("length of a head / τ", _median_of_learned(lambda numbers: numbers.length), ".4g"),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Sum up over temperatures of at least 1, which do not vanish, and over the theorem's own 1/n."""

    found = by_label(rows)

    def totals(*, vanishing: bool) -> str:
        chosen = {label: [r for r in some if (r.config.temperature < 1) == vanishing] for label, some in found.items()}
        return "; ".join(f"{label} {share_of(some)}" for label, some in chosen.items())

    lengths = [_median(row, row.numbers.length) for row in found["repaired"] if any(row.numbers.learned)]
    temperatures = [row.config.temperature for row in found["repaired"]]
    sharp = (
        f"Repaired: while τ varies by a factor of {max(temperatures) / min(temperatures):.0f}, the length of a head in "
        f"units of τ ends between {min(lengths):.0f} and {max(lengths):.0f}: training supplies the sharpness that the "
        "theorem requires of τ."
        if lengths
        else "Repaired: no run learned."
    )
    return [
        Finding(
            "Open question: can transformers learn parity with a temperature that does not vanish?",
            f"Seeds that learned at τ ≥ 1: {totals(vanishing=False)}.",
        ),
        Finding(
            "The theory needs τ = O(1/n).",
            f"Seeds that learned at τ < 1: {totals(vanishing=True)}.",
        ),
        Finding("A small temperature is what makes attention approximate hard attention.", sharp),
    ]
