"""Why H1's recipe fails: the part of the first gradient that knows the hidden bits, against the part that does not."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import Any, ClassVar, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, interval_lengths, new_figure
from parityscope.core.statistics import median
from parityscope.papers.cells import ShownTraining, TrainingRow, share_of
from parityscope.papers.figure import Column, Finding, Scale, table_of
from parityscope.papers.h1.circle import SMOOTHING
from parityscope.papers.h1.gradient_parts import gradient_parts
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import Training, training
from parityscope.training.build import build_model

ID = "H1-why-it-fails"
TITLE = "Why it fails: the gradient that knows B against the gradient that does not"
TEXT = (
    "Every loss of yŷ is an even part of ŷ plus y times an odd part. Averaged over inputs, the even part does not "
    "contain the hidden set B at all: its gradient is the same for every B. Left: the length of both parts at the "
    "start, median over seeds, against how sharp attention starts (score length ρ = radius/τ; H1 starts at ρ = n, "
    "uniform attention is ρ = 0). Middle: the share of the gradient that depends on B, against n. Right: that "
    "share against the share of seeds that learned from this start with Adam, with 95 % intervals."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 6, "reference": 23}

Readout = Literal["zig-zag", "cosine"]
Loss = Literal["hinge", "squared-hinge"]
_KINDS: tuple[tuple[Readout, Loss], ...] = (
    ("zig-zag", "squared-hinge"),
    ("zig-zag", "hinge"),
    ("cosine", "squared-hinge"),
    ("cosine", "hinge"),
)


class StartGradientNumbers(Numbers):
    """The lengths of the gradient's two parts, one entry per seed."""

    dependent: tuple[float, ...]
    free: tuple[float, ...]

    @property
    def share(self) -> float:
        """The median share of the length that depends on B; where there is no gradient at all, nothing does."""
        pairs = zip(self.dependent, self.free, strict=True)
        return median(dependent / (dependent + free) if dependent else 0.0 for dependent, free in pairs)


class StartGradient(Config):
    """The gradient at the start of a training; of the training only its start counts."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = StartGradientNumbers

    training: Training

    def run(self) -> Result:
        """Split the gradient of every seed."""
        of = self.training
        model = build_model(of.recipe, of.n, of.k, of.seeds)
        dependent, free = gradient_parts(model, of.problems(), of.recipe.loss)
        return Result(StartGradientNumbers(dependent=dependent.norm(dim=-1).tolist(), free=free.norm(dim=-1).tolist()))


_StartRow = Row[StartGradient, StartGradientNumbers]
_Row = Row[Any, Any]  # of a start, or of a training from one


def _starts(
    n: int, sharpness: Sequence[float], seeds: int, steps: int = 0, trained: Sequence[float] = ()
) -> list[StartGradient | ShownTraining]:
    """Return every kind from every sharpness, and the trainings from some of them."""
    configs: list[StartGradient | ShownTraining] = []
    for readout, loss in _KINDS:
        for rho in sharpness:
            one = _training(readout, loss, n, rho, seeds, steps if rho in trained else 0)
            configs.append(StartGradient(training=one))
            if rho in trained:
                configs.append(ShownTraining(label=_name(one), training=one))
    return configs


def _training(readout: Readout, loss: Loss, n: int, sharpness: float, seeds: int, steps: int) -> Training:
    """H1's model in score units, so that its radius is the sharpness; Adam, since plain descent learns nothing here."""
    return training(
        "as-coded",
        n,
        3,
        seeds=range(seeds),
        positions="circle",
        readout=readout,
        loss=loss,
        smoothing=SMOOTHING if readout == "zig-zag" else 0.0,  # as H1's text has it
        temperature=1.0,
        start_radius=sharpness,
        steps=steps,
    )


def _name(training: Training) -> str:
    return f"{training.recipe.readout}, {training.recipe.loss.replace('-', ' ')}"


CONFIGS: dict[Scale, list[StartGradient | ShownTraining]] = {
    "smoke": [*_starts(8, (0.1, 8.0), 4, 50, (0.1,)), *_starts(10, (0.1,), 4)],
    "demo": [
        *_starts(12, (0.01, 0.1, 1.0, 4.0, 12.0), 8, 250, (0.1, 1.0, 12.0)),
        *(start for n in (8, 16) for start in _starts(n, (0.1, float(n)), 8)),
    ],
    "reference": [
        *_starts(12, (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0), 16, 800, (0.1, 1.0, 12.0)),
        *(start for n in (8, 16, 20, 24) for start in _starts(n, (0.1, float(n)), 16)),
    ],
}


def _start_rows(rows: Sequence[_Row]) -> list[_StartRow]:
    return [row for row in rows if isinstance(row.config, StartGradient)]


def _trained(rows: Sequence[_Row]) -> list[TrainingRow]:
    return [row for row in rows if isinstance(row.config, ShownTraining)]


def _outcomes(start: _StartRow, trained: Sequence[TrainingRow]) -> list[TrainingRow]:
    """Return the training from a start, if there is one."""
    return [row for row in trained if row.config.training == start.config.training]


def _by_kind(rows: Sequence[_StartRow]) -> dict[str, list[_StartRow]]:
    kinds: dict[str, list[_StartRow]] = {}
    for row in rows:
        kinds.setdefault(_name(row.config.training), []).append(row)
    return kinds


def _sharpness(row: _StartRow) -> float:
    return float(row.config.training.recipe.start_radius)


def _size(row: _StartRow) -> int:
    return row.config.training.n


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw lengths against sharpness, shares against n, and shares against what was learned."""
    figure, (left, middle, right) = new_figure(14.5, 4.6, 1, 3)
    n, trained = _trained_size(rows), _trained(rows)
    for index, (name, own) in enumerate(_by_kind(_start_rows(rows)).items()):
        _draw_lengths(left, own, index)
        _draw_sizes(middle, own, index, name)
        _draw_prediction(right, own, trained, index)
    left.set(xscale="log", yscale="log", xlabel="sharpness ρ of the start", ylabel="length of the gradient's part")
    left.set_title(f"n = {n}: depends on B (solid), does not (dashed)", fontsize=11)
    middle.set(yscale="log", xlabel="n", ylabel="share that depends on B")
    middle.set_title("near-uniform (○) and H1's sharp start (×)", fontsize=11)
    right.set(xlabel="share that depends on B", ylabel="seeds that learned", xlim=(-0.05, 1.05), ylim=(-0.05, 1.08))
    right.set_title(f"n = {n}: prediction and outcome", fontsize=11)
    figure.legend(*middle.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _trained_size(rows: Sequence[_Row]) -> int:
    """Return the n of the first training; of the first start where nothing was trained."""
    return int(next(iter(_trained(rows)), rows[0]).config.training.n)


def _draw_lengths(axes: Axes, rows: Sequence[_StartRow], index: int) -> None:
    own = sorted((row for row in rows if _size(row) == _size(rows[0])), key=_sharpness)
    rho = [_sharpness(row) for row in own]
    axes.plot(rho, [median(row.numbers.dependent) for row in own], "-o", color=colour(index), markersize=4)
    free = [median(row.numbers.free) for row in own]
    if max(free) > 0:  # the cosine with hinge loss has no such part
        axes.plot(rho, free, "--", color=colour(index))


def _draw_sizes(axes: Axes, rows: Sequence[_StartRow], index: int, name: str) -> None:
    uniform = sorted((row for row in rows if _sharpness(row) == 0.1), key=_size)
    sharp = sorted((row for row in rows if _sharpness(row) == _size(row)), key=_size)
    for own, style, label in ((uniform, "o-", name), (sharp, "x:", None)):
        axes.plot(
            [_size(row) for row in own], [row.numbers.share for row in own], style, color=colour(index), label=label
        )


def _draw_prediction(axes: Axes, rows: Sequence[_StartRow], trained: Sequence[TrainingRow], index: int) -> None:
    for row in rows:
        for outcome in _outcomes(row, trained):
            share = share_of([outcome])
            axes.errorbar(
                row.numbers.share, share.value, yerr=interval_lengths([share]), fmt="o", color=colour(index), capsize=3
            )


def _lines(rows: Sequence[_Row]) -> list[tuple[_StartRow, str | None]]:
    """Return every start with what became of its training, if there is one."""
    trained = _trained(rows)
    outcomes = [(row, _outcomes(row, trained)) for row in _start_rows(rows)]
    shares = [(row, share_of(found) if found else None) for row, found in outcomes]
    return [(row, share and f"{share.successes} of {share.trials}") for row, share in shares]


table = table_of(
    Column("readout, loss", lambda line: _name(line[0].config.training)),
    Column("n", lambda line: _size(line[0])),
    Column("sharpness ρ", lambda line: _sharpness(line[0]), "g"),
    Column("depends on B", lambda line: median(line[0].numbers.dependent), ".1e"),
    Column("does not", lambda line: median(line[0].numbers.free), ".1e"),
    Column("share", lambda line: line[0].numbers.share, ".3f"),
    Column("learned", lambda line: line[1]),
    lines=_lines,
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Name the ratio at H1's start, and how well the share predicts."""
    n, trained, starts = _trained_size(rows), _trained(rows), _start_rows(rows)
    sharpest = max((row for row in _by_kind(starts)["zig-zag, squared hinge"] if _size(row) == n), key=_sharpness)
    parts = zip(sharpest.numbers.free, sharpest.numbers.dependent, strict=True)
    low, middle, high = quantiles([free / max(dependent, 1e-300) for free, dependent in parts], n=4)

    def learned(*, mostly_dependent: bool) -> str:
        chosen = [row for row in starts if (row.numbers.share >= 0.5) == mostly_dependent]
        found = [outcome for row in chosen for outcome in _outcomes(row, trained)]
        return str(share_of(found)) if found else "none tried"

    return [
        Finding(
            "Gradients of single examples agree, so their mean points to the hidden bits (Lemmas 8 and 17).",
            f"At the sharpest start with n = {n}, zig-zag and squared hinge, the part of the "
            f"gradient that is the same for every B is {middle:.0e} times longer than the part that is not, in the "
            f"median over seeds (quartiles {low:.0e} and {high:.0e}).",
        ),
        Finding(
            "Theorem 5: training converges from every start.",
            f"Starts where less than half of the gradient depends on B: {learned(mostly_dependent=False)} seeds "
            f"learned; others: {learned(mostly_dependent=True)}.",
        ),
    ]
