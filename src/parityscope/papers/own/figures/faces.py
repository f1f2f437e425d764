"""What is a face is learned, and nothing else: geometry against training, run by run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import share_of_true
from parityscope.models import is_face
from parityscope.papers.figure import Finding, Scale, TableColumn, fresh, table_of
from parityscope.problems import draw_problems
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import training
from parityscope.runs.training import Training
from parityscope.training.learning import train

ID = "P-faces"
TITLE = "A head learns exactly the faces"
TEXT = (
    "One head with exponential attention and r parameters is trained by Newton's steps on log C, which is concave in "
    "its parameters. Top: the share of random hidden sets that are faces of the polytope of position codes (rings, "
    "with 95 % intervals; decided by geometry alone, before any training) and the share that training learns, C > "
    "0.996 (dots). Bottom: the C that every run reaches; for those that do not learn (orange) the dash is an upper "
    "bound on C for all values of the parameters, proved by duality from where the run ended. A random code's r is "
    "divided by 2k log n; 2k harmonics represent every set, and fewer do not. Seeds from 1000 on, which played no part "
    "in choosing how training is done. The gradient contains the hidden bits: this says what training can hold and "
    "find, not what examples tell."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 2, "reference": 60}
_Code = Literal["random-signs", "gaussian", "harmonics"]
_NAMES: dict[_Code, str] = {"random-signs": "random signs", "gaussian": "random unit vectors", "harmonics": "harmonics"}


class FaceNumbers(Numbers):
    """What geometry and training say of every run."""

    face: tuple[bool, ...]
    margin: tuple[float, ...]
    learned: tuple[bool, ...]
    correlation: tuple[float, ...]  # C at the end
    at_most: tuple[float, ...]  # what C does not exceed whatever the numbers are; 1 where nothing is proved
    steps: tuple[int, ...]

    @property
    def disagreements(self) -> int:
        """How many runs learned what is no face, or did not learn a face."""
        return sum(face != learned for face, learned in zip(self.face, self.learned, strict=True))


class FaceCell(Config):
    """One code with r parameters at one size: every seed draws its own hidden set, and its code if codes are drawn."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = FaceNumbers

    training: Training

    @property
    def in_units(self) -> float:
        """r as a multiple of what is about enough: 2k log n at random, 2k harmonics."""
        n, k, r = self.training.n, self.training.k, int(self.training.recipe.numbers_per_head or 0)
        return r / (2 * k) if self.training.recipe.positions == "harmonics" else r / (2 * k * math.log(n))

    def run(self) -> Result:
        """Train every seed, and ask whether its hidden set is a face."""
        asked = self.training
        problems = draw_problems(asked.n, asked.k, asked.seeds)
        trained = train(problems, [asked.recipe], asked.seeds)
        codes = trained.model.positions
        faces = [
            is_face(codes[run] if codes.dim() == 3 else codes, problem.support) for run, problem in enumerate(problems)
        ]
        assert trained.certificate is not None
        limit = float(asked.recipe.stop_risk or 0.0)
        return Result(
            FaceNumbers(
                face=tuple(map(bool, faces)),
                margin=tuple(face.margin for face in faces),
                learned=tuple((trained.risk < limit).tolist()),
                correlation=tuple((1 - trained.risk).tolist()),
                at_most=tuple((-trained.certificate.at_least).exp().tolist()),
                steps=tuple(trained.steps.tolist()),
            )
        )


_Row = Row[FaceCell, FaceNumbers]


def _cell(code: _Code, n: int, k: int, r: int, seeds: int) -> FaceCell:
    seeded = fresh(seeds)
    return FaceCell(training=training("concave", n, k, seeds=seeded, positions=code, numbers_per_head=r))


def _cells(
    at_random: dict[tuple[int, int], Sequence[float]], harmonic: Sequence[tuple[int, int]], seeds: int
) -> list[FaceCell]:
    """Return cells by (n, k): multiples of 2k log n for random codes, and up to k + 1 harmonics."""
    drawn, random_codes = list[FaceCell](), list[_Code](["random-signs", "gaussian"])
    for code in random_codes:
        for (n, k), multiples in at_random.items():
            numbers = dict.fromkeys(round(one * 2 * k * math.log(n)) for one in multiples)
            # Fewer signs than that are hardly different for all positions.
            drawn += [_cell(code, n, k, r, seeds) for r in numbers if 2**r >= 2 * n]
    return drawn + [_cell("harmonics", n, k, 2 * count, seeds) for n, k in harmonic for count in range(1, k + 2)]


_GRID = (0.3, 0.4, 0.45, 0.5, 0.6, 0.75, 1.0)
CONFIGS: dict[Scale, list[FaceCell]] = {
    "smoke": _cells({(20, 2): (0.5, 0.8)}, [(8, 2)], 2),
    "demo": _cells({(24, 2): (0.5, 0.7, 1.0)}, [(12, 2)], 6),
    "reference": _cells({(100, 2): _GRID, (200, 3): _GRID, (500, 5): _GRID}, [(20, 3), (40, 4)], 32),
}


def _size(row: _Row) -> tuple[int, int]:
    return row.config.training.n, row.config.training.k


def _by_code(rows: Sequence[_Row]) -> dict[_Code, list[_Row]]:
    codes: list[_Code] = ["random-signs", "gaussian", "harmonics"]
    return {code: [row for row in rows if row.config.training.recipe.positions == code] for code in codes}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw shares above, and what every run reached below, one column per code."""
    figure, panels = new_figure(13, 6.6, 2, 3, sharey="row", sharex="col", height_ratios=(1.15, 1))
    for (code, mine), upper, lower in zip(_by_code(rows).items(), panels[0], panels[1], strict=True):
        sizes = sorted(set(map(_size, mine)))
        for index, size in enumerate(sizes):
            chosen = [row for row in mine if _size(row) == size]
            _draw_shares(upper, chosen, index)
            _draw_runs(lower, chosen, (index - (len(sizes) - 1) / 2) / max(len(sizes), 1))
        upper.set_title(_NAMES[code])
        upper.legend(fontsize=9, loc="lower right" if code != "harmonics" else "upper left")
        lower.set_xlabel("r / 2k" if code == "harmonics" else "r / (2k log n)")
        lower.set_ylim(-0.04, 1.06)
        lower.grid(axis="y", linewidth=0.6)
    panels[0, 0].set_ylabel("share of hidden sets")
    panels[1, 0].set_ylabel("C")
    grey, ink = "#888888", matplotlib.rcParams["text.color"]
    handles = [
        lower.plot([], [], "o", markerfacecolor="none", markersize=9, color=grey, label="is a face")[0],
        lower.plot([], [], "o", markersize=4, color=grey, label="is learned")[0],
        lower.plot([], [], "o", markersize=4, color=colour(0), label="C of a run: a face")[0],
        lower.plot([], [], "o", markersize=4, color=colour(1), label="C of a run: no face")[0],
        lower.plot([], [], "_", markersize=10, color=ink, label="no parameters reach more")[0],
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=9)
    return figure


def _draw_shares(axes: Axes, rows: Sequence[_Row], index: int) -> None:
    at = [row.config.in_units for row in rows]
    hue, (n, k) = colour(index + 2), _size(rows[0])
    faces = [share_of_true(row.numbers.face) for row in rows]
    style = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "linestyle": "-", "linewidth": 1.2}
    draw_shares(axes, at, faces, color=hue, label=f"n = {n}, k = {k}", **style)
    axes.plot(at, [share_of_true(row.numbers.learned).value for row in rows], "o", markersize=4, color=hue)


def _draw_runs(axes: Axes, rows: Sequence[_Row], shift: float) -> None:
    """Draw every run's C beside its cell's place; the sizes stand side by side."""
    places = sorted({row.config.in_units for row in rows})
    width = min((b - a for a, b in pairwise(places)), default=0.1) * 0.5
    for row in rows:
        of = row.numbers
        across = row.config.in_units + width * (shift + np.linspace(-0.12, 0.12, len(of.face)))
        for kind, hue in ((True, colour(0)), (False, colour(1))):
            some = [index for index, face in enumerate(of.face) if face == kind]
            axes.plot(across[some], [of.correlation[i] for i in some], "o", markersize=2.2, color=hue, alpha=0.7)
        bounded = [index for index, bound in enumerate(of.at_most) if bound < 1]
        ink = matplotlib.rcParams["text.color"]
        axes.plot(across[bounded], [of.at_most[i] for i in bounded], "_", markersize=9, color=ink, zorder=1)


def _without_a_face(row: _Row, values: Sequence[float]) -> float | None:
    """Return the largest value of the runs whose hidden set is no face."""
    return max((value for value, face in zip(values, row.numbers.face, strict=True) if not face), default=None)


def _least_margin(row: _Row) -> float | None:
    pairs = zip(row.numbers.margin, row.numbers.face, strict=True)
    return min((margin for margin, face in pairs if face), default=None)


table = table_of(
    TableColumn("positions", lambda row: _NAMES[row.config.training.recipe.positions]),
    TableColumn("n", lambda row: row.config.training.n),
    TableColumn("k", lambda row: row.config.training.k),
    TableColumn("r", lambda row: row.config.training.recipe.numbers_per_head),
    TableColumn("faces", lambda row: f"{sum(row.numbers.face)} of {len(row.numbers.face)}"),
    TableColumn("learned", lambda row: f"{sum(row.numbers.learned)} of {len(row.numbers.learned)}"),
    TableColumn("disagree", lambda row: row.numbers.disagreements),
    TableColumn("least margin of a face", _least_margin, ".2g"),
    TableColumn("most steps", lambda row: max(row.numbers.steps)),
    TableColumn("largest C without a face", lambda row: _without_a_face(row, row.numbers.correlation), ".4f"),
    TableColumn("proved to stay below", lambda row: _without_a_face(row, row.numbers.at_most), ".4f"),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Count disagreements and certificates."""
    runs = [
        one
        for row in rows
        for one in zip(row.numbers.face, row.numbers.correlation, row.numbers.at_most, row.numbers.margin, strict=True)
    ]
    others = [(reached, bound) for face, reached, bound, _ in runs if not face]
    proved = [bound for _, bound in others if bound < 1]
    gap = max((bound - reached for reached, bound in others if bound < 1), default=0.0)
    least = min((margin for face, _, _, margin in runs if face), default=0.0)
    wrong = sum(row.numbers.disagreements for row in rows)
    return [
        Finding(
            "(Ours: a head with exponential attention learns B if and only if B is a face of its code.)",
            f"{len(runs)} runs in {len(rows)} cells: {sum(face for face, *_ in runs)} faces, and training disagrees "
            f"with geometry in {wrong} of them. The least margin of a face is {least:.1g}. Of {len(others)} sets that "
            f"are no faces {len(proved)} have a proved bound on C, the largest {max(proved, default=1.0):.4f}, and no "
            f"run ended more than {gap:.1g} below its own.",
        )
    ]
