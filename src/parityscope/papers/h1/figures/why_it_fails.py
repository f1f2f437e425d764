"""Why H1's recipe fails: the part of the first gradient that knows the hidden bits, against the part that does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, new_figure
from parityscope.models import ParityTransformer
from parityscope.papers.cells import share_of
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import Parity, draw_problems
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import population_risk
from parityscope.training.build import build_model
from parityscope.training.learning import learn
from parityscope.training.recipes import Recipe, named_recipe

ID = "H1-why-it-fails"
TITLE = "Why it fails: the gradient that knows B against the gradient that does not"
TEXT = (
    "Every loss of yŷ is an even part of ŷ plus y times an odd part. Averaged over inputs, the even part does not "
    "contain the hidden set B at all: its gradient is the same for every B. Left: the length of both parts at the "
    "start, median over seeds, against how sharp attention starts (score length ρ = radius/τ; H1 starts at ρ = n, "
    "uniform attention is ρ = 0). Middle: the share of the gradient that depends on B, against n. Right: that "
    "share against the share of seeds that learned from this start with Adam, with 95 % intervals."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 6, "reference": 23, "paper": 900}

Readout = Literal["zig-zag", "cosine"]
Loss = Literal["hinge", "squared-hinge"]
_KINDS: tuple[tuple[Readout, Loss], ...] = (
    ("zig-zag", "squared-hinge"),
    ("zig-zag", "hinge"),
    ("cosine", "squared-hinge"),
    ("cosine", "hinge"),
)


class StartNumbers(Numbers):
    """TODO."""


class Start(Config):
    """One readout and loss from one sharpness of the start; trained when `steps` is not 0."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = StartNumbers

    readout: Readout
    loss: Loss
    n: int
    k: int
    sharpness: float
    seeds: int
    steps: int = 0

    def run(self) -> Result:
        """Split the gradient of every seed at its start, and train from there if asked to."""
        seeds = range(self.seeds)
        problems = draw_problems(self.n, self.k, seeds)
        recipe = _recipe(self)
        model = build_model(recipe.resolved(self.n, self.k), self.n, self.k, tuple(seeds))
        dependent, free = (part.norm(dim=-1) for part in gradient_parts(model, problems, self.loss))
        numbers = {
            "dependent": float(dependent.median()),
            "free": float(free.median()),
            "share": float((dependent / (dependent + free)).median()),
        }
        if self.steps:
            numbers["learned"] = int(learn(problems, recipe, seeds).learned.sum())
        return Result(numbers)


def _starts(n: int, sharpness: Sequence[float], seeds: int, steps: int, trained: Sequence[float]) -> list[Start]:
    return [
        Start(readout=readout, loss=loss, n=n, k=3, sharpness=rho, seeds=seeds, steps=steps if rho in trained else 0)
        for readout, loss in _KINDS
        for rho in sharpness
    ]


_Row = Row[Start, StartNumbers]

CONFIGS: dict[Scale, list[Start]] = {
    "smoke": [*_starts(8, (0.1, 8.0), 4, 50, (0.1,)), *_starts(10, (0.1,), 4, 0, ())],
    "demo": [
        *_starts(12, (0.01, 0.1, 1.0, 4.0, 12.0), 8, 250, (0.1, 1.0, 12.0)),
        *(start for n in (8, 16, 20) for start in _starts(n, (0.1, float(n)), 8, 0, ())),
    ],
    "reference": [
        *_starts(12, (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0), 16, 800, (0.1, 1.0, 12.0)),
        *(start for n in (8, 16, 20, 24) for start in _starts(n, (0.1, float(n)), 16, 0, ())),
    ],
    "paper": [
        *_starts(12, (0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 12.0), 100, 2000, (0.1, 1.0, 4.0, 12.0)),
        *_starts(16, (0.1, 1.0, 16.0), 100, 2000, (0.1, 1.0, 16.0)),
        *(start for n in (8, 20, 24, 28) for start in _starts(n, (0.1, float(n)), 32, 0, ())),
    ],
}


def _recipe(config: Start) -> Recipe:
    """H1's model in score units, so that its radius is the sharpness; Adam, since plain descent learns nothing here."""
    return named_recipe("as-coded").overridden(
        positions="circle",
        readout=config.readout,
        loss=config.loss,
        temperature=1.0,
        start_radius=config.sharpness,
        steps=config.steps,
    )


def gradient_parts(model: ParityTransformer, problems: Sequence[Parity], loss: str) -> tuple[Tensor, Tensor]:
    """Return the gradient's part that depends on B and the part that does not, per run: (runs, numbers) each.

    Label noise ν scales the first by 1 − 2ν and leaves the second, so two noise levels tell them apart exactly, for
    every loss that is a mean over inputs (the squared mean hinge is not).

    >>> model = build_model(named_recipe("repaired").resolved(8, 2), 8, 2, (0,))
    >>> dependent, free = gradient_parts(model, [Parity(8, (1, 4))], "hinge")
    >>> bool(free.abs().max() < 1e-12 < dependent.norm())  # the cosine's hinge risk is 1 − C: all of it knows B
    True
    """

    def gradient(noise: float) -> Tensor:
        noisy = [replace(problem, noise=noise) for problem in problems]
        risk = population_risk(model, noisy, loss=loss).value
        return torch.autograd.grad(risk.sum(), list(model.parameters()))[0].flatten(1)

    clean, half = gradient(0.0), gradient(0.25)
    free = 2 * half - clean
    return clean - free, free


def _name(row: _Row) -> str:
    return f"{row.config.readout}, {row.config.loss.replace('-', ' ')}"


def _by_kind(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    kinds: dict[str, list[_Row]] = {}
    for row in rows:
        kinds.setdefault(_name(row), []).append(row)
    return kinds


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw lengths against sharpness, shares against n, and shares against what was learned."""
    figure, (left, middle, right) = new_figure(14.5, 4.6, 1, 3)
    for index, (name, own) in enumerate(_by_kind(rows).items()):
        _draw_lengths(left, own, index)
        _draw_sizes(middle, own, index, name)
        _draw_prediction(right, own, index)
    n = _trained_size(rows)
    left.set(xscale="log", yscale="log", xlabel="sharpness ρ of the start", ylabel="length of the gradient's part")
    left.set_title(f"n = {n}: depends on B (solid), does not (dashed)", fontsize=11)
    middle.set(yscale="log", xlabel="n", ylabel="share that depends on B")
    middle.set_title("near-uniform (○) and H1's sharp start (×)", fontsize=11)
    right.set(xlabel="share that depends on B", ylabel="seeds that learned", xlim=(-0.05, 1.05), ylim=(-0.05, 1.08))
    right.set_title(f"n = {n}: prediction and outcome", fontsize=11)
    figure.legend(*middle.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _trained_size(rows: Sequence[_Row]) -> int:
    return next((int(row.config.n) for row in rows if row.config.steps), int(rows[0].config.n))


def _draw_lengths(axes: Axes, rows: Sequence[_Row], index: int) -> None:
    size = rows[0].config.n
    own = sorted((row for row in rows if row.config.n == size), key=lambda row: row.config.sharpness)
    rho = [row.config.sharpness for row in own]
    axes.plot(rho, [row.numbers.dependent for row in own], "-o", color=colour(index), markersize=4)
    free = [row.numbers.free for row in own]
    if max(free) > 0:  # the cosine with hinge loss has no such part
        axes.plot(rho, free, "--", color=colour(index))


def _draw_sizes(axes: Axes, rows: Sequence[_Row], index: int, name: str) -> None:
    uniform = sorted((row for row in rows if row.config.sharpness == 0.1), key=lambda row: row.config.n)
    sharp = sorted((row for row in rows if row.config.sharpness == row.config.n), key=lambda row: row.config.n)
    for own, style in ((uniform, "o-"), (sharp, "x:")):
        sizes = [row.config.n for row in own]
        shares = [row.numbers.share for row in own]
        axes.plot(sizes, shares, style, color=colour(index), label=name if own is uniform else None)


def _draw_prediction(axes: Axes, rows: Sequence[_Row], index: int) -> None:
    for row in rows:
        if "learned" in row.numbers:
            share = share_of([row])
            span = [[share.value - share.low], [share.high - share.value]]
            axes.errorbar(row.numbers.share, share.value, yerr=span, fmt="o", color=colour(index), capsize=3)


def table(rows: Sequence[_Row]) -> Table:
    """Return both parts for every start."""
    header = ["readout, loss", "n", "sharpness ρ", "depends on B", "does not", "share", "learned"]
    lines = [
        [
            _name(row),
            str(row.config.n),
            f"{row.config.sharpness:g}",
            f"{row.numbers.dependent:.1e}",
            f"{row.numbers.free:.1e}",
            f"{row.numbers.share:.3f}",
            f"{row.numbers.learned} of {row.config.seeds}" if "learned" in row.numbers else "–",
        ]
        for row in rows
    ]
    return Table(header, lines)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Name the ratio at H1's start, and how well the share predicts."""
    trained = [row for row in rows if "learned" in row.numbers]
    sharpest = max(
        (row for row in rows if _name(row) == "zig-zag, squared hinge" and row.config.n == _trained_size(rows)),
        key=lambda row: row.config.sharpness,
    )
    ratio = sharpest.numbers.free / max(sharpest.numbers.dependent, 1e-300)
    low = [row for row in trained if row.numbers.share < 0.5]
    high = [row for row in trained if row.numbers.share >= 0.5]

    def learned(chosen: Sequence[_Row]) -> str:
        return str(share_of(chosen)) if chosen else "none tried"

    return [
        Finding(
            "Gradients of single examples agree, so their mean points to the hidden bits (Lemmas 8 and 17).",
            f"At the sharpest start with n = {sharpest.config.n}, zig-zag and squared hinge, the part of the "
            f"gradient that is the same for every B is {ratio:.0e} times longer than the part that is not.",
        ),
        Finding(
            "Theorem 5: training converges from every start.",
            f"Starts where less than half of the gradient depends on B: {learned(low)} seeds learned; others: "
            f"{learned(high)}.",
        ),
    ]
