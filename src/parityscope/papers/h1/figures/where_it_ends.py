"""Where H1's recipe ends: the share of its own starts that learn, and that end in certified strict minima."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, interval_lengths, new_figure
from parityscope.core.statistics import Share, share_of_true
from parityscope.papers.figure import Column, Scale, claims_say_it, table_of
from parityscope.papers.h1.descents import DESCENTS
from parityscope.papers.h1.ends import Ends, EndsNumbers, distances
from parityscope.papers.h1.full_matrix import FullMatrix, FullMatrixNumbers
from parityscope.papers.h1.minima import MinimumNumbers
from parityscope.records import Row

ID = "H1-where-it-ends"
TITLE = "Where H1's recipe ends"
TEXT = (
    "H1's own heads, starts, temperature τ = 1/n and smoothing b = 0.01, trained by plain gradient descent on the "
    "exact population risk. The rate is 0.01, 10⁴ to 10⁶ times the proof's: the heads move, and every step lowers "
    "the risk. Left: what becomes of the starts, for every distance of two hidden bits on the circle and for "
    "three hidden bits; lines are 95 % intervals; the third bar trains every entry of A, as the text says. A strict "
    "minimum is a point where Newton's steps end with a gradient of 0 and a positive definite Hessian; the first of "
    "each kind in every cell is refined to 40 digits, and interval arithmetic proves that nothing lies lower in a box "
    "around it. No rate that only descends, no number of steps and no constant c leads out of one. Right: the risk "
    "through one of them, along the eigenvectors of its Hessian. What is neither still falls, slowly: along valleys in "
    "which heads grow without end, past saddles, on plateaus."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 8, "reference": 120}
EndsRow = Row[Ends, EndsNumbers]
FullRow = Row[FullMatrix, FullMatrixNumbers]
_KINDS = ("end in a strict minimum", "learn", "learn, all of A trained")


CONFIGS: dict[Scale, list[Ends | FullMatrix]] = DESCENTS


def _name(support: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, support)) + "}"


def _trained_as_proved(rows: Sequence[Row[Any, Any]]) -> list[EndsRow]:
    """Return the rows in which a13 and a14 are trained."""
    return [row for row in rows if isinstance(row.config, Ends)]


def _whole(rows: Sequence[Row[Any, Any]]) -> dict[tuple[int, tuple[int, ...]], FullRow]:
    """Return the rows in which all of A is trained, by n and support."""
    return {(row.config.n, row.config.support): row for row in rows if isinstance(row.config, FullMatrix)}


def _shares(row: EndsRow, whole: FullRow | None) -> list[Share | None]:
    """Return the shares of a cell in the order of `_KINDS`."""
    of_parts = [share_of_true(row.numbers.in_strict_minimum), share_of_true(row.numbers.learned)]
    return [*of_parts, None if whole is None else share_of_true(whole.numbers.learned)]


def plot(rows: Sequence[Row[Any, Any]]) -> Figure:
    """Draw what becomes of the starts, and the risk through one minimum."""
    figure, (left, right) = new_figure(13.5, 5.2, 1, 2, width_ratios=(2.6, 1))
    _draw_shares(left, rows)
    _draw_valley(right, _trained_as_proved(rows))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=len(labels), fontsize=9)
    return figure


def _draw_shares(axes: Axes, rows: Sequence[Row[Any, Any]]) -> None:
    place, ticks, whole = 0.0, list[tuple[float, str]](), _whole(rows)
    bars: dict[str, list[tuple[float, Share]]] = {kind: [] for kind in _KINDS}
    for n, group in groupby(_trained_as_proved(rows), key=lambda row: row.config.n):
        first = place
        for row in group:
            support = row.config.support
            ticks.append((place, _name(support)))
            for index, (kind, share) in enumerate(zip(_KINDS, _shares(row, whole.get((n, support))), strict=True)):
                if share is not None:
                    bars[kind].append((place + 0.27 * (index - 1), share))
            place += 1
        axes.text((first + place - 1) / 2, 1.05, f"n = {n}", ha="center", fontsize=10)
        place += 0.7
    for hue, (kind, found) in zip((3, 2, 0), bars.items(), strict=True):
        at, shares = [one for one, _ in found], [share for _, share in found]
        values = [share.value for share in shares]
        axes.bar(at, values, 0.26, color=colour(hue), label=kind)
        axes.errorbar(at, values, yerr=interval_lengths(shares), fmt="none", ecolor="#777777", elinewidth=1)
    crowded = len(ticks) > 8
    axes.set_xticks([at for at, _ in ticks], [name for _, name in ticks], rotation=60 if crowded else 0, fontsize=8)
    axes.set(ylim=(0, 1.13), ylabel="share of H1's own starts", xlabel="hidden bits")
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])


def _draw_valley(axes: Axes, rows: Sequence[EndsRow]) -> None:
    with_minima = [row for row in rows if row.numbers.minima]
    if not with_minima:
        axes.text(0.5, 0.5, "no strict minimum was found", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    pairs = [row for row in with_minima if len(row.config.support) == 2] or with_minima  # four lines can be read
    shown = max(pairs, key=lambda row: row.numbers.minima[0].eigenvalues[0])
    minimum = shown.numbers.minima[0]
    for index, (line, eigenvalue) in enumerate(zip(shown.arrays["valley"], minimum.eigenvalues, strict=True)):
        axes.plot(distances(), line, color=colour(index % 6), label=f"curvature {eigenvalue:.2f}")
    axes.axhline(float(minimum.risk), color="#888888", linewidth=0.8, linestyle="--")
    axes.set(xlabel="distance from the minimum", ylabel="risk")
    axes.set_title(f"n = {shown.config.n}, B = {_name(shown.config.support)}: risk {float(minimum.risk):.4f}")
    axes.legend(fontsize=8)


class _Line(NamedTuple):
    row: EndsRow
    shares: Sequence[Share | None]
    minimum: MinimumNumbers | None  # the first that is certified


def _lines(rows: Sequence[Row[Any, Any]]) -> list[_Line]:
    whole = _whole(rows)
    return [
        _Line(row, _shares(row, whole.get((row.config.n, row.config.support))), next(iter(row.numbers.minima), None))
        for row in _trained_as_proved(rows)
    ]


table = table_of(
    Column("n", lambda line: line.row.config.n),
    Column("hidden bits", lambda line: _name(line.row.config.support)),
    Column(_KINDS[0], lambda line: line.shares[0]),
    Column(_KINDS[1], lambda line: line.shares[1]),
    Column(_KINDS[2], lambda line: line.shares[2]),
    Column("its risk", lambda line: line.minimum and line.minimum.risk[:10]),
    Column("gradient", lambda line: line.minimum and line.minimum.gradient, ".0e"),
    Column("least eigenvalue", lambda line: line.minimum and line.minimum.eigenvalues[0], ".3f"),
    Column("nothing lower within", lambda line: line.minimum and line.minimum.radius, ".1e"),
    Column("largest rise on the way", lambda line: line.row.numbers.largest_rise, ".0e"),
    lines=_lines,
)


findings = claims_say_it
