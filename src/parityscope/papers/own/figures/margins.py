"""How little 2k harmonics tell apart: margins against n, their bounds, and what Newton still learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import Share, median, wilson_share
from parityscope.models import is_face
from parityscope.papers.figure import Finding, Scale, TableColumn, fresh, table_of
from parityscope.problems import Parity
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import training
from parityscope.runs.training import Training
from parityscope.theory import harmonic_margins
from parityscope.training.learning import train

ID = "P-margins"
TITLE = "2k parameters are enough, but few digits are left"
TEXT = (
    "The margin of a hidden set: how far the scores of a q of length 1 can keep it above all other positions, "
    "relative to the size of the code. Left: one head with 2k harmonics. Dots are medians over random hidden sets, "
    "triangles the least of them, squares the worst set, every second of 2k positions (full: Newton learns it); the "
    "shaded strip is proved: the worst margin lies between two multiples of n^(−2k). Where double precision ends a "
    "square is missing. Middle: the share of the same random sets that Newton's steps learn (C > 0.996). Right: ⌈2k "
    "log n⌉ random signs on the same hidden sets, whose margins hardly fall (a line that leaves the panel: a set that "
    "is no face). Seeds from 1000 on; population gradients throughout."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 2, "reference": 120}
_RESOLVED = 64 * float(np.finfo(float).eps)  # the margin below which `is_face` cannot tell a face
_MANY = 6  # positions per hidden bit, from which on a power is fitted
_Code = Literal["harmonics", "random-signs"]


class MarginNumbers(Numbers):
    """Margins of random hidden sets and of the worst one, and which of the random ones were learned."""

    margin: tuple[float, ...]  # 0: below what double precision tells
    worst: float | None  # of every second of 2k positions; of harmonics only
    worst_learned: bool | None
    learned: tuple[bool, ...]
    steps: tuple[int, ...]

    @property
    def share(self) -> Share:
        """The share of seeds that learned, with Wilson's 95 % interval."""
        return wilson_share(sum(self.learned), len(self.learned))


class MarginCell(Config):
    """One code at one size, every seed with its own hidden set."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = MarginNumbers

    training: Training

    def run(self) -> Result:
        """Find the margins, and train every seed."""
        asked = self.training
        worst = tuple(range(0, 2 * asked.k, 2))
        shared = asked.recipe.positions == "harmonics"
        # With a code that all runs share, the worst set is one run more.
        problems = [*asked.problems(), *([Parity(asked.n, worst)] if shared else [])]
        trained = train(problems, [asked.recipe], [*asked.seeds, *([0] if shared else [])])
        codes = trained.model.positions
        learned = (trained.risk < float(asked.recipe.stop_risk or 0.0)).tolist()
        count = len(asked.seeds)
        return Result(
            MarginNumbers(
                margin=tuple(
                    is_face(codes if shared else codes[run], problem.support).margin
                    for run, problem in enumerate(problems[:count])
                ),
                worst=is_face(codes, worst).margin if shared else None,
                worst_learned=learned[-1] if shared else None,
                learned=tuple(learned[:count]),
                steps=tuple(trained.steps[:count].tolist()),
            )
        )


_Row = Row[MarginCell, MarginNumbers]


def _cells(sizes: Sequence[int], ks: Sequence[int], seeds: int, most: int) -> list[MarginCell]:
    """Return both codes at all sizes; harmonics of k > 2 up to nk = `most`, beyond which they take minutes."""
    codes: list[_Code] = ["harmonics", "random-signs"]
    return [
        MarginCell(training=training("concave", n, k, seeds=fresh(seeds), positions=code))
        for code in codes
        for k in ks
        for n in sizes
        if n > 2 * k and (code != "harmonics" or k == 2 or n * k <= most)
    ]


CONFIGS: dict[Scale, list[MarginCell]] = {
    "smoke": _cells((12,), (2, 3), 2, 36),
    "demo": _cells((12, 20, 40), (2, 3), 6, 120),
    "reference": _cells((12, 20, 40, 100, 200, 400, 1000), (2, 3, 5), 32, 3000),
}


def _of(rows: Sequence[_Row], code: _Code, k: int) -> list[_Row]:
    mine = [row for row in rows if row.config.training.recipe.positions == code and row.config.training.k == k]
    return sorted(mine, key=lambda row: row.config.training.n)


def _ks(rows: Sequence[_Row]) -> list[int]:
    return sorted({row.config.training.k for row in rows})


def _power(sizes: Sequence[int], values: Sequence[float]) -> float | None:
    """Return the p of values ∝ n^p by least squares in the logarithms; none for fewer than two.

    >>> _power([10, 100], [1e-3, 1e-7])
    -4.0
    """
    if len(sizes) < 2:
        return None
    x, y = np.log(np.array(sizes, dtype=float)), np.log(np.array(values))
    return round(float(((x - x.mean()) @ (y - y.mean())) / ((x - x.mean()) @ (x - x.mean()))), 9)


def _worst(rows: Sequence[_Row]) -> tuple[list[int], list[float]]:
    """Return the sizes at which the worst margin is told by doubles, and it."""
    told = [(row.config.training.n, row.numbers.worst) for row in rows if row.numbers.worst]
    return [n for n, _ in told], [worst for _, worst in told if worst]


def _told(row: _Row) -> list[float]:
    return [max(margin, _RESOLVED / 4) for margin in row.numbers.margin]


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw the margins of harmonics, who learns with them, and the margins of random signs."""
    sizes = sorted({row.config.training.n for row in rows})
    figure, (left, middle, right) = new_figure(13.5, 5.2, 1, 3, width_ratios=(1.35, 1, 1))
    for index, k in enumerate(_ks(rows)):
        harmonic, signs = _of(rows, "harmonics", k), _of(rows, "random-signs", k)
        _draw_harmonic(left, harmonic, k, colour(index))
        at = [row.config.training.n * (1 + 0.04 * (index - 1)) for row in harmonic]
        draw_shares(middle, at, [row.numbers.share for row in harmonic], color=colour(index), label=f"k = {k}")
        _draw_random(right, signs, colour(index))
    for axes in (left, middle, right):
        axes.set_xscale("log")
        axes.set_xticks(sizes, [str(n) for n in sizes], fontsize=9)
        axes.minorticks_off()
        axes.set_xlabel("n")
    left.set_yscale("log")
    low, _ = left.get_ylim()
    if low < _RESOLVED / 8:  # few positions have margins far above: a text down there would leave no room for axes
        left.axhspan(low, _RESOLVED, color="#888888", alpha=0.18, linewidth=0)
        beside = left.get_yaxis_transform()
        left.text(0.02, _RESOLVED / 8, " doubles cannot resolve", transform=beside, va="top", fontsize=9)
    left.set(ylim=(low, 2), ylabel="margin", title="2k harmonics")
    middle.set(ylabel="share of hidden sets", title="learned with 2k harmonics")
    right.set(yscale="log", ylim=(1e-2, 2), ylabel="margin", title="⌈2k log n⌉ random signs")
    for axes in (left, right):
        axes.grid(True, which="major", linewidth=0.5)
    middle.legend(fontsize=9, loc="lower left")
    handles = [
        left.plot([], [], marker, color="#888888", markersize=5, label=name)[0]
        for marker, name in (
            ("o-", "median of random sets"),
            ("v--", "least of them"),
            ("s:", "worst set (hollow: not learned)"),
        )
    ]
    handles.append(left.fill_between([], [], [], color="#888888", alpha=0.3, label="proved: worst set"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9)
    return figure


def _draw_harmonic(axes: Axes, rows: Sequence[_Row], k: int, hue: str) -> None:
    sizes = [row.config.training.n for row in rows]
    axes.plot(sizes, [median(_told(row)) for row in rows], "o-", color=hue, markersize=5, linewidth=1.6)
    axes.plot(sizes, [min(_told(row)) for row in rows], "v--", color=hue, markersize=4, linewidth=1)
    at, worst = _worst(rows)
    axes.plot(at, worst, ":", color=hue, linewidth=1)
    for row in rows:
        if row.numbers.worst:
            full = hue if row.numbers.worst_learned else "none"
            axes.plot(row.config.training.n, row.numbers.worst, "s", color=hue, markerfacecolor=full, markersize=5)
    fine = sorted(set(np.geomspace(sizes[0], sizes[-1], 60).round().astype(int).tolist()))
    bounds = [harmonic_margins(n, k) for n in fine]
    low, high = (np.clip([bound[side] for bound in bounds], _RESOLVED / 20, None) for side in (0, 1))
    axes.fill_between(fine, low, high, color=hue, alpha=0.13, linewidth=0)


def _draw_random(axes: Axes, rows: Sequence[_Row], hue: str) -> None:
    sizes = [row.config.training.n for row in rows]
    axes.plot(sizes, [median(_told(row)) for row in rows], "o-", color=hue, markersize=5, linewidth=1.6)
    axes.plot(sizes, [min(_told(row)) for row in rows], "v--", color=hue, markersize=4, linewidth=1)


def _proved(row: _Row, side: int) -> float | None:
    """Return the least (0) or the largest (1) margin that is proved of the worst set with harmonics."""
    asked = row.config.training
    return harmonic_margins(asked.n, asked.k)[side] if asked.recipe.positions == "harmonics" else None


table = table_of(
    TableColumn("positions", lambda row: row.config.training.recipe.positions.replace("-", " ")),
    TableColumn("n", lambda row: row.config.training.n),
    TableColumn("k", lambda row: row.config.training.k),
    TableColumn("r", lambda row: row.config.training.recipe.numbers_per_head),
    TableColumn("margin: median", lambda row: median(row.numbers.margin), ".1e"),
    TableColumn("least", lambda row: min(row.numbers.margin), ".1e"),
    TableColumn("worst set", lambda row: row.numbers.worst, ".1e"),
    TableColumn("proved: at least", lambda row: _proved(row, 0), ".1e"),
    TableColumn("at most", lambda row: _proved(row, 1), ".1e"),
    TableColumn("worst set learned", lambda row: {None: None, True: "yes", False: "no"}[row.numbers.worst_learned]),
    TableColumn("learned", lambda row: row.numbers.share),
    TableColumn("most steps", lambda row: max(row.numbers.steps)),
)


def _fitted(rows: Sequence[_Row], k: int) -> str:
    """Return the powers of the worst and of the median margin: of many positions, and of all sizes."""
    many = [row for row in rows if row.config.training.n >= _MANY * k]

    def said(some: Sequence[_Row]) -> str:
        sizes = [row.config.training.n for row in some]
        found = (_power(*_worst(some)), _power(sizes, [median(_told(row)) for row in some]))
        worst, typical = ("–" if one is None else f"n^({one:.1f})" for one in found)
        return f"worst {worst}, median {typical}"

    return f"{said(many)} (all n: {said(rows)}; {len(_worst(many)[0])} and {len(_worst(rows)[0])} worst margins)"


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Fit the powers, and say where harmonics still learn."""
    powers = [f"k = {k}: {_fitted(_of(rows, 'harmonics', k), k)}" for k in _ks(rows)]
    harmonic = [row for row in rows if row.config.training.recipe.positions == "harmonics"]
    signs = [row for row in rows if row.config.training.recipe.positions == "random-signs"]
    missed = [row for row in harmonic if row.numbers.share.value < 1]
    where = ", ".join(f"({row.config.training.n}, {row.config.training.k})" for row in missed) or "none"
    inside = sum(
        low <= row.numbers.worst <= high
        for row in harmonic
        if row.numbers.worst
        for low, high in [harmonic_margins(row.config.training.n, row.config.training.k)]
    )
    held = sum(bool(row.numbers.worst and row.numbers.worst_learned) for row in harmonic)
    return [
        Finding(
            "(Ours: the worst margin of 2k harmonics is of the order n^(−2k).)",
            f"Fitted powers, n ≥ {_MANY}k: {'; '.join(powers)}. "
            f"{inside} of {sum(1 for row in harmonic if row.numbers.worst)} worst margins that doubles resolve lie "
            f"within the proved bounds, and {held} of these sets are learned. Cells in which not every random set is "
            f"learned: {where}. The least margin of random signs is "
            f"{min(min(row.numbers.margin) for row in signs):.2g}, and "
            f"{sum(sum(row.numbers.learned) for row in signs)} of {sum(len(row.numbers.learned) for row in signs)} of "
            "their seeds learn.",
        )
    ]
