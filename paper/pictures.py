"""The paper's pictures, drawn from stored rows at the size they are printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import matplotlib
import numpy as np
from evidence import Evidence
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter
from named_numbers import shown_minimum

from parityscope.core.drawing import colour, draw_shares, new_figure, themed
from parityscope.core.statistics import median, wilson_share
from parityscope.models import is_face
from parityscope.models.positions import circle
from parityscope.papers.h1.descents import Ends, distances
from parityscope.papers.w.settings import ANSWER, CHAIN, cells_by
from parityscope.records import Row
from parityscope.theory import harmonic_margins

WIDTH = 6.4  # inches, of the text
GREY = "#8a8f98"
_PRINT = {
    "font.size": 8,
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
}
_RESOLVED = 64 * float(np.finfo(float).eps)  # the margin below which doubles tell nothing


def in_print(draw: Callable[[Evidence], Figure], evidence: Evidence) -> Figure:
    """Draw in the project's style, with the letters of a printed page."""

    def small() -> Figure:
        with matplotlib.rc_context(_PRINT):
            figure = draw(evidence)
            figure.draw_without_rendering()
        return figure

    return themed(small)


def where_it_ends(evidence: Evidence) -> Figure:
    """What becomes of H1's starts, and the risk through one strict minimum."""
    rows = [row for row in evidence.rows("H1-where-it-ends") if isinstance(row.config, Ends)]
    figure, (left, right) = new_figure(WIDTH, 2.3, 1, 2, width_ratios=(2.5, 1))
    place, ticks = 0.0, list[tuple[float, str]]()
    for n, group in groupby(rows, key=lambda row: row.config.n):
        first = place
        for row in group:
            ticks.append((place, ",".join(map(str, row.config.support))))
            of = row.numbers
            for shift, hue, flags in ((-0.2, 3, of.in_strict_minimum), (0.2, 2, of.learned)):
                share = wilson_share(sum(flags), len(flags))
                left.bar(place + shift, share.value, 0.38, color=colour(hue))
                left.plot([place + shift] * 2, [share.low, share.high], color="#777777", linewidth=0.6)
            place += 1
        left.text((first + place - 1) / 2, 1.2, f"n = {n}", ha="center", fontsize=8)
        place += 0.7
    left.set_xticks([at for at, _ in ticks], [name for _, name in ticks], rotation=60, fontsize=6.5)
    left.set(ylim=(0, 1.3), ylabel="share of H1's starts", xlabel="hidden bits", yticks=[0, 0.5, 1])
    left.bar(0, 0, color=colour(3), label="end in a strict minimum")
    left.bar(0, 0, color=colour(2), label="reach the global one")
    left.legend(loc="upper left", bbox_to_anchor=(0.0, 0.92))
    _draw_valley(right, rows)
    return figure


def _draw_valley(axes: Axes, rows: Sequence[Row[Any, Any]]) -> None:
    shown = shown_minimum(rows)
    minimum = shown.numbers.minima[0]
    for index, line in enumerate(shown.arrays["valley"]):
        axes.plot(distances(), line, color=colour(index % 6))
    axes.axhline(float(minimum.risk), color=GREY, linewidth=0.7, linestyle="--")
    axes.set(xlabel="distance from the minimum", ylabel="risk")
    axes.set_title(f"n = {shown.config.n}, B = {{{', '.join(map(str, shown.config.support))}}}")


def concavity(evidence: Evidence) -> Figure:
    """Both logarithms over u, a face and no face of the circle, and the score of two harmonics."""
    figure, (curves, ring, wave) = new_figure(WIDTH, 1.9, 1, 3, width_ratios=(1.1, 1, 1.25))
    on, off = np.linspace(-3.2, math.log(2) - 1e-3, 400), np.linspace(-3.2, -1e-3, 400)
    curves.plot(on, np.log(np.sin(math.pi / 2 * np.exp(on))), color=colour(0), label=r"$\log\,\sin(\pi c/2)$")
    curves.plot(off, np.log(np.cos(math.pi / 2 * np.exp(off))), color=colour(1), label=r"$\log\,\cos(\pi c/2)$")
    curves.set(xlabel=r"$u=\log\,c$", xlim=(-3.2, 0.8), ylim=(-3.6, 0.5), title="(a) concave in log attention")
    curves.legend(loc="lower center")
    _draw_ring(ring)
    n, pair = 12, (2, 5)
    fine = np.linspace(-0.5, n - 0.5, 400)

    def score(places: np.ndarray) -> np.ndarray:
        return -np.prod([1 - np.cos(2 * math.pi / n * (places - b)) for b in pair], axis=0)

    wave.plot(fine, score(fine), color=GREY, linewidth=1)
    wave.axhline(0, color=colour(2), linewidth=0.8)
    for j in range(n):
        wave.plot(
            j, score(np.array([j]))[0], "o", color=colour(1 if j in pair else 0), markersize=5 if j in pair else 3.5
        )
    wave.set(xlabel="position", ylabel="score", xticks=range(0, n, 2), title="(c) two harmonics: {2, 5} is a face")
    return figure


def _draw_ring(axes: Axes) -> None:
    n, face, no_face = 12, (2, 3), (5, 8)
    points = circle(n).numpy()
    axes.plot(*np.vstack([points, points[:1]]).T, color=GREY, linewidth=0.8, zorder=1)
    for j, point in enumerate(points):
        chosen = j in (*face, *no_face)
        axes.plot(*point, "o", color=colour(1 if chosen else 0), markersize=4.5 if chosen else 3, zorder=3)
        if chosen:
            axes.text(*(1.2 * point), str(j), ha="center", va="center")
    q = is_face(circle(n), face).q.numpy()
    foot, along = float(points[face[0]] @ q) * q, np.array([-q[1], q[0]])
    axes.plot(*np.array([foot - 0.75 * along, foot + 0.75 * along]).T, color=colour(2), linewidth=1.4, zorder=2)
    axes.plot(*points[list(no_face)].T, color=colour(1), linewidth=1)
    for near, far in ((7, 3), (6, 10)):
        axes.plot(*points[[near, far]].T, color=colour(0), linewidth=0.7)
    axes.plot(*points[list(no_face)].mean(0), "X", color="black", markersize=5, zorder=4)
    axes.set(aspect="equal", xlim=(-1.4, 1.4), ylim=(-1.35, 1.35), title="(b) one harmonic: a circle")
    axes.axis("off")


_CODES = {"random-signs": "random signs", "gaussian": "random unit vectors", "harmonics": "harmonics"}


def faces(evidence: Evidence) -> Figure:
    """The share of sets that are faces, by geometry, and that are learned, by training."""
    rows = evidence.rows("P-faces")
    figure, panels = new_figure(WIDTH, 1.9, 1, 3, sharey=True)
    for axes, (code, name) in zip(panels, _CODES.items(), strict=True):
        mine = [row for row in rows if row.config.training.recipe.positions == code]
        for index, size in enumerate(dict.fromkeys((row.config.training.n, row.config.training.k) for row in mine)):
            own = sorted(
                (row for row in mine if (row.config.training.n, row.config.training.k) == size),
                key=lambda row: row.config.in_units,
            )
            at = [row.config.in_units for row in own]
            found = [wilson_share(sum(row.numbers.face), len(row.numbers.face)) for row in own]
            ring = {"marker": "o", "markersize": 6.5, "markerfacecolor": "none", "linewidth": 0.8, "capsize": 0}
            draw_shares(axes, at, found, color=colour(index), label=f"({size[0]}, {size[1]})", **ring)
            learned = [sum(row.numbers.learned) / len(row.numbers.learned) for row in own]
            axes.plot(at, learned, "o", color=colour(index), markersize=3)
        axes.set(title=name, xlabel="r / 2k" if code == "harmonics" else "r / (2k log n)", ylim=(-0.05, 1.08))
        axes.legend(title="(n, k)", title_fontsize=7.5, loc="lower right", handlelength=1.2)
    panels[0].set_ylabel("share of hidden sets")
    return figure


def margins(evidence: Evidence) -> Figure:
    """Margins of harmonics within their bounds, and the margins of random signs."""
    rows = evidence.rows("P-margins")
    figure, (left, right) = new_figure(WIDTH, 2.0, 1, 2, width_ratios=(1.35, 1))
    for index, k in enumerate(sorted({row.config.training.k for row in rows})):
        own = sorted((row for row in rows if row.config.training.k == k), key=lambda row: row.config.training.n)
        harmonic = [row for row in own if row.config.training.recipe.positions == "harmonics"]
        signs = [row for row in own if row.config.training.recipe.positions == "random-signs"]
        _draw_margins(left, harmonic, k, colour(index))
        sizes = [row.config.training.n for row in signs]
        right.plot(sizes, [median(row.numbers.margin) for row in signs], "o-", color=colour(index), label=f"k = {k}")
        right.plot(sizes, [min(row.numbers.margin) for row in signs], "--", color=colour(index), linewidth=0.8)
    for axes in (left, right):
        axes.set(xscale="log", xlabel="n", ylabel="margin")
    left.set(yscale="log", ylim=(_RESOLVED / 20, 3), title="k harmonics")
    left.axhspan(_RESOLVED / 20, _RESOLVED, color=GREY, alpha=0.18, linewidth=0)
    left.text(
        0.03, _RESOLVED / 1.5, "below double precision", transform=left.get_yaxis_transform(), va="top", fontsize=7
    )
    right.set(ylim=(0, None), title="⌈2k log n⌉ random signs")
    right.legend()
    return figure


def _draw_margins(axes: Axes, rows: Sequence[Row[Any, Any]], k: int, hue: str) -> None:
    sizes = [row.config.training.n for row in rows]
    fine = np.unique(np.geomspace(sizes[0], sizes[-1], 60).round().astype(int)).tolist()
    low, high = (
        np.clip(side, _RESOLVED / 20, None) for side in zip(*(harmonic_margins(n, k) for n in fine), strict=True)
    )
    axes.fill_between(fine, low, high, color=hue, alpha=0.13, linewidth=0)
    typical = [(row.config.training.n, median(row.numbers.margin)) for row in rows]
    told = [(n, margin) for n, margin in typical if margin > 0]
    axes.plot([n for n, _ in told], [margin for _, margin in told], "o-", color=hue, markersize=2.5, linewidth=0.8)
    worst = [row for row in rows if row.numbers.worst]
    axes.plot([row.config.training.n for row in worst], [row.numbers.worst for row in worst], ":", color=hue)
    for row in worst:
        full = hue if row.numbers.worst_learned else "white"
        axes.plot(row.config.training.n, row.numbers.worst, "s", color=hue, markerfacecolor=full)


def heads_rate(evidence: Evidence) -> Figure:
    """t·V of many heads over its proved limit, along the flow and at the end, and heads that leave wrong faces."""
    rows, flows = evidence.rows("P-heads-rate"), evidence.rows("P-three-heads")
    figure, (along, ends, waits) = new_figure(WIDTH, 1.9, 1, 3)
    counts = sorted({row.config.heads for row in rows})
    for row in rows:
        hue, uniform = colour(counts.index(row.config.heads)), row.config.start == "uniform"
        style = {"color": hue, "linewidth": 1.2 if uniform else 0.5, "linestyle": "-" if uniform else ":"}
        along.plot(row.arrays["times"], row.arrays["scaled"] / row.numbers.bound, **style)
        ends.plot(row.numbers.bound, row.numbers.reached, "o" if uniform else "x", color=hue, markersize=3)
    for index, count in enumerate(counts):
        ends.plot([], [], "o", color=colour(index), label=f"H = {count}")
    reached = [row.numbers.bound for row in rows]
    ends.plot([min(reached), max(reached)], [min(reached), max(reached)], color=GREY, linewidth=0.8)
    along.axhline(1, color=GREY, linewidth=0.8)
    along.set(xscale="log", xlabel="time t", ylabel="tV over its bound", ylim=(0, 1.3), title="(a) along the flow")
    ends.set(xscale="log", yscale="log", xlabel="bound", ylabel="tV at the end", title="(b) at the end")
    ends.legend(handlelength=0.8, handletextpad=0.3)
    ends.xaxis.set_major_locator(FixedLocator([0.5, 1, 2, 5]))
    ends.yaxis.set_major_locator(FixedLocator([0.5, 1, 2, 5]))
    for axis in (ends.xaxis, ends.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    starts = list(dict.fromkeys(row.config.start for row in flows))
    for row in flows:
        hue = colour(starts.index(row.config.start))
        waits.plot(row.arrays["times"][1:], row.arrays["loss"][1:], color=hue, linewidth=0.9)
    waits.set(xscale="log", yscale="log", xlabel="time t", ylabel="V", title="(c) near stationary faces")
    return figure


def chain(evidence: Evidence) -> Figure:
    """Samples until every held-out token is right, with and without a chain, against k."""
    rows, many = evidence.rows("W-figure-1"), evidence.rows("W-figure-3")
    figure, (left, right) = new_figure(WIDTH, 2.2, 1, 2)
    for index, (with_chain, label) in enumerate(((True, "with chain"), (False, "without"))):
        mine = [row for row in rows if row.config.label == (CHAIN if with_chain else ANSWER)]
        _draw_samples(left, mine, index, label)
    counts = [row for row in many if row.config.label == "samples"]
    for index, n in enumerate(sorted({row.config.training.n for row in counts})):
        _draw_samples(right, [row for row in counts if row.config.training.n == n], index + 2, f"with chain, n = {n}")
    left.set_title(f"n = {rows[0].config.training.n}")
    for axes in (left, right):
        axes.set(yscale="log", xlabel="hidden bits k", ylabel="training sequences until perfect")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend()
    return figure


def _draw_samples(axes: Axes, rows: Sequence[Row[Any, Any]], index: int, label: str) -> None:
    hue, medians = colour(index), []
    for k, cell in sorted(cells_by(rows, lambda training: training.k).items()):
        if cell.median is None:
            axes.plot(k, cell.budget, "^", color=hue, markerfacecolor="none", markersize=5)
        else:
            medians.append((k, cell.median))
        if cell.reached > 1:
            axes.plot([k, k], [cell.needed[0], cell.needed[-1]], color=hue, linewidth=0.8)
    axes.plot([k for k, _ in medians], [count for _, count in medians], "o-", color=hue, label=label)


PICTURES: dict[str, Callable[[Evidence], Figure]] = {
    "where-it-ends": where_it_ends,
    "concavity": concavity,
    "faces": faces,
    "margins": margins,
    "heads-rate": heads_rate,
    "chain": chain,
}
