"""Where H1's recipe ends: the share of its own starts that learn, and that end in certified strict minima."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import Share, wilson_share
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.h1.ends import LEARNED, Ends, EndsNumbers, distances
from parityscope.records import Row

ID = "H1-where-it-ends"
TITLE = "Where H1's recipe ends"
TEXT = (
    "H1's own heads, starts, temperature τ = 1/n and smoothing b = 0.01, trained by plain gradient descent on the exact "
    "population risk, at a rate that moves them (0.01, 10⁵ times what the proof allows) and at which the risk still "
    "only falls. Left: what becomes of the starts, for every distance of two hidden bits on the circle and for three "
    "hidden bits; bars are 95 % intervals. A strict minimum is a point where Newton's steps end with a gradient of 0 "
    "and a positive definite Hessian; the first of each kind in every cell is refined to 40 digits, and interval "
    "arithmetic proves that nothing lies lower in a box around it. No rate, number of steps or constant c leads out "
    "of one. Right: the risk through one of them, along the eigenvectors of its Hessian."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 8, "reference": 120, "paper": 900}
EndsRow = Row[Ends, EndsNumbers]


def _supports(n: int, three: bool) -> list[tuple[int, ...]]:
    """Return one pair of hidden bits for every distance on the circle, and two triples."""
    pairs = [(0, distance) for distance in range(1, n // 2 + 1)]
    return [*pairs, (0, 1, 2), (0, n // 3, 2 * n // 3)] if three else [*pairs]


def _configs(sizes: Iterable[int], seeds: int, steps: int, certified: int, *, three: bool = True) -> list[Ends]:
    return [
        Ends(n=n, support=support, seeds=tuple(range(seeds)), steps=steps, certified=certified)
        for n in sizes
        for support in _supports(n, three)
    ]


_SHOWN = ((0, 1), (0, 3))  # neighbours, and the farthest apart at n = 6
CONFIGS: dict[Scale, list[Ends]] = {
    "smoke": _configs((4, 6), 8, 600, 1, three=False),
    "demo": [one for one in _configs((6, 8), 16, 2000, 1, three=False) if one.support in _SHOWN],
    "reference": _configs((4, 6, 8, 10), 32, 10_000, 3),
    "paper": _configs((4, 5, 6, 7, 8, 9, 10, 12), 100, 20_000, 5),
}


def _share(of_starts: Sequence[bool]) -> Share:
    return wilson_share(sum(of_starts), len(of_starts))


def _name(row: EndsRow) -> str:
    return "{" + ", ".join(map(str, row.config.support)) + "}"


def plot(rows: Sequence[EndsRow]) -> Figure:
    """Draw what becomes of the starts, and the risk through one minimum."""
    figure, (left, right) = new_figure(13.5, 4.9, 1, 2, width_ratios=(2.6, 1))
    _draw_shares(left, rows)
    _draw_valley(right, rows)
    return figure


def _draw_shares(axes: Axes, rows: Sequence[EndsRow]) -> None:
    place, ticks, groups = 0.0, [], []
    for n, group in groupby(rows, key=lambda row: row.config.n):
        own = list(group)
        places = [place + index for index in range(len(own))]
        ticks += list(zip(places, map(_name, own), strict=True))
        groups.append((sum(places) / len(places), f"n = {n}"))
        place = places[-1] + 2
        for offset, hue, label, kind in (
            (-0.2, colour(3), "end in a strict minimum", "in_strict_minimum"),
            (0.2, colour(2), "learn", "learned"),
        ):
            shares = [_share(getattr(row.numbers, kind)) for row in own]
            values = [share.value for share in shares]
            ends = ([v - s.low for v, s in zip(values, shares, strict=True)],
                    [s.high - v for v, s in zip(values, shares, strict=True)])  # fmt: skip
            at = [one + offset for one in places]
            axes.bar(at, values, 0.38, color=hue, label=label if len(groups) == 1 else None)
            axes.errorbar(at, values, yerr=ends, fmt="none", ecolor="#555555", elinewidth=1, capsize=2)
    axes.set_xticks([at for at, _ in ticks], [name for _, name in ticks], rotation=60, fontsize=8)
    for at, name in groups:
        axes.text(at, 1.06, name, ha="center", fontsize=9)
    axes.set(ylim=(0, 1.15), ylabel="share of H1's own starts", xlabel="hidden bits")
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.legend(fontsize=9, loc="upper right", bbox_to_anchor=(1, 0.97))


def _draw_valley(axes: Axes, rows: Sequence[EndsRow]) -> None:
    shown = next((row for row in rows if row.numbers.minima and row.config.n >= 6), None)
    if shown is None:
        axes.text(0.5, 0.5, "no strict minimum was found", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    minimum = shown.numbers.minima[0]
    for index, (line, eigenvalue) in enumerate(zip(shown.arrays["valley"], minimum.eigenvalues, strict=True)):
        axes.plot(distances(), line, color=colour(index % 6), label=f"curvature {eigenvalue:.2f}")
    axes.axhline(float(minimum.risk), color="#888888", linewidth=0.8, linestyle="--")
    axes.set(xlabel="distance from the minimum", ylabel="risk")
    axes.set_title(f"n = {shown.config.n}, B = {_name(shown)}: risk {float(minimum.risk):.4f}")
    axes.legend(fontsize=8)


def table(rows: Sequence[EndsRow]) -> Table:
    """Return every cell, and its first certified minimum."""
    header = ["n", "hidden bits", "learned", "in a strict minimum", "its risk", "gradient", "least eigenvalue",
              "nothing lower within", "largest rise on the way"]  # fmt: skip

    def cells(row: EndsRow) -> list[str]:
        of = row.numbers
        shown = [f"{_share(of.learned)}", f"{_share(of.in_strict_minimum)}"]
        if not of.minima:
            return [str(row.config.n), _name(row), *shown, "–", "–", "–", "–", f"{of.largest_rise:.0e}"]
        first = of.minima[0]
        certified = [f"{first.risk[:10]}", f"{first.gradient:.0e}", f"{first.eigenvalues[0]:.3f}", f"{first.radius:.1e}"]
        return [str(row.config.n), _name(row), *shown, *certified, f"{of.largest_rise:.0e}"]

    return Table(header, [cells(row) for row in rows])


def findings(rows: Sequence[EndsRow]) -> list[Finding]:
    """Set Theorem 5 and Lemma 8 beside the minima."""
    ended = sum(sum(row.numbers.in_strict_minimum) for row in rows)
    learned = sum(sum(row.numbers.learned) for row in rows)
    tried = sum(len(row.config.seeds) for row in rows)
    minima = [minimum for row in rows for minimum in row.numbers.minima]
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
            f"{max((one.gradient for one in minima), default=0.0):.0e} in 40 digits, while the risk is at least "
            f"{min((float(one.risk) for one in minima), default=0.0):.2f}.",
        ),
    ]
