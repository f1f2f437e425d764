"""Where H1's recipe ends: the share of its own starts that learn, and that end in certified strict minima."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import Share, wilson_share
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.h1.descents import (
    DESCENTS,
    LEARNED,
    Ends,
    EndsNumbers,
    FullMatrix,
    FullMatrixNumbers,
    distances,
)
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
COST: dict[Scale, float] = {"smoke": 1, "demo": 8, "reference": 120, "paper": 900}
EndsRow = Row[Ends, EndsNumbers]
FullRow = Row[FullMatrix, FullMatrixNumbers]
_KINDS = ("end in a strict minimum", "learn", "learn, all of A trained")


CONFIGS: dict[Scale, list[Ends | FullMatrix]] = DESCENTS


def _share(of_starts: Sequence[bool]) -> Share:
    return wilson_share(sum(of_starts), len(of_starts))


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
    of_parts = [_share(row.numbers.in_strict_minimum), _share(row.numbers.learned)]
    return [*of_parts, None if whole is None else _share(whole.numbers.learned)]


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
        low = [share.value - share.low for share in shares]
        high = [share.high - share.value for share in shares]
        axes.bar(at, [share.value for share in shares], 0.26, color=colour(hue), label=kind)
        axes.errorbar(
            at, [share.value for share in shares], yerr=(low, high), fmt="none", ecolor="#777777", elinewidth=1
        )
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


def table(rows: Sequence[Row[Any, Any]]) -> Table:
    """Return every cell, and its first certified minimum."""
    header = ["n", "hidden bits", *_KINDS, "its risk", "gradient", "least eigenvalue", "nothing lower within",
              "largest rise on the way"]  # fmt: skip
    whole = _whole(rows)

    def cells(row: EndsRow) -> list[str]:
        n, support, of = row.config.n, row.config.support, row.numbers
        shares = ["–" if share is None else str(share) for share in _shares(row, whole.get((n, support)))]
        certified = ["–"] * 4
        if of.minima:
            first = of.minima[0]
            certified = [first.risk[:10], f"{first.gradient:.0e}", f"{first.eigenvalues[0]:.3f}", f"{first.radius:.1e}"]
        return [str(n), _name(support), *shares, *certified, f"{of.largest_rise:.0e}"]

    return Table(header, [cells(row) for row in _trained_as_proved(rows)])


def findings(rows: Sequence[Row[Any, Any]]) -> list[Finding]:
    """Set Theorem 5 and Lemma 8 beside the minima."""
    cells, whole = _trained_as_proved(rows), _whole(rows).values()
    ended = sum(sum(row.numbers.in_strict_minimum) for row in cells)
    learned = sum(sum(row.numbers.learned) for row in cells)
    tried = sum(len(row.config.seeds) for row in cells)
    minima = [minimum for row in cells for minimum in row.numbers.minima]
    highest = max((float(one.risk) for one in minima), default=0.0)
    return [
        Finding(
            "Training the heads converges to risk 0 (Theorem 5).",
            f"Of {tried} starts {learned} reach a risk below {LEARNED} and {ended} end in strict local minima, with "
            f"risks up to {highest:.2f}.",
        ),
        Finding(
            "½‖∇L‖² ≥ μL for some μ > 0 (Lemma 8).",
            f"At {len(minima)} certified minima the gradient is at most "
            f"{max((one.gradient for one in minima), default=0.0):.0e} in 50 digits, while the risk is at least "
            f"{min((float(one.risk) for one in minima), default=0.0):.2f}.",
        ),
        Finding(
            "No entry of A but a13 and a14 gets a gradient (proof of Theorem 5).",
            f"At the starts a11 and a12 get up to {max(row.numbers.gradient_of_a11_a12 for row in whole):.1f}, a13 and "
            f"a14 up to {max(row.numbers.gradient_of_a13_a14 for row in whole):.1f}; with all of A trained "
            f"{sum(sum(row.numbers.learned) for row in whole)} of {sum(len(row.config.seeds) for row in whole)} learn.",
        ),
    ]
