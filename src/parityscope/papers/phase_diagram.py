"""Where a model learns, over two settings: shares of seeds with their intervals, as a table and as a heat map."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from parityscope.core.drawing import HEAT, colour, new_figure, themed
from parityscope.core.errors import InvalidInput
from parityscope.core.statistics import Share, share_of_true
from parityscope.papers.cells import ink_on


class PhaseDiagram(NamedTuple):
    """The share of runs that learned at every pair of settings, and its picture.

    >>> diagram = phase_diagram([{"n": 8, "rate": 0.1, "learned": True}], x="n", y="rate")
    >>> diagram.shares[8, 0.1].successes
    1
    """

    shares: dict[tuple[float, float], Share]
    figure: Figure


@runtime_checkable
class _Frame(Protocol):
    def to_dict(self, orient: str, /) -> list[dict[str, Any]]: ...


def phase_diagram(
    rows: Iterable[Mapping[str, Any]] | _Frame, *, x: str, y: str, learned: str = "learned"
) -> PhaseDiagram:
    """Count which runs learned at every pair of two settings, with Wilson's 95 % intervals, and draw it.

    Parameters
    ----------
    rows : table of pandas or iterable of mappings
        One row per run, as `LearnedRuns.frame` and `Store.frame` give them; several tables are put together by
        `pandas.concat`.
    x, y : str
        The columns with the two settings, which are numbers.
    learned : str
        The column that says whether a run learned: a truth value, or several, one per seed.

    Returns
    -------
    PhaseDiagram
        `shares`, a dictionary from (x, y) to the share with its interval, and `figure`. In the picture colour is the
        share and the number counts the runs that learned; the solid contour is where half of them do, and between the
        dashed ones the interval contains one half.

    >>> rows = [{"n": n, "samples": N, "learned": N > 10 * n} for n in (8, 16) for N in (100, 200) for _ in range(4)]
    >>> diagram = phase_diagram(rows, x="samples", y="n")
    >>> {place: str(share) for place, share in diagram.shares.items() if place[1] == 16}
    {(100.0, 16.0): '0/4 (0%–49%)', (200.0, 16.0): '4/4 (51%–100%)'}
    """
    lines = rows.to_dict("records") if isinstance(rows, _Frame) else list(rows)
    if not lines:
        raise InvalidInput("there are no rows to draw: give one mapping per run")
    runs: dict[tuple[float, float], list[bool]] = {}
    for line in lines:
        for name in (x, y, learned):
            if name not in line:
                raise InvalidInput(f"a row has no column {name!r}: it has {', '.join(map(str, line))}")
        flags = line[learned]
        try:
            place = float(line[x]), float(line[y])
        except (TypeError, ValueError):
            raise InvalidInput(f"{x} and {y} must be numbers, got {line[x]!r} and {line[y]!r}") from None
        runs.setdefault(place, []).extend(map(bool, flags if isinstance(flags, list | tuple) else [flags]))
    shares = {place: share_of_true(runs[place]) for place in sorted(runs, key=lambda place: place[::-1])}
    return PhaseDiagram(shares, themed(_draw, shares, x, y))


def _draw(shares: Mapping[tuple[float, float], Share], x: str, y: str) -> Figure:
    across, up = (sorted({place[axis] for place in shares}) for axis in (0, 1))
    figure, axes = new_figure(2.4 + 0.6 * len(across), 1.3 + 0.45 * len(up))
    image = draw_phases(axes, shares, across, up)
    axes.set(xlabel=x, ylabel=y, xticks=range(len(across)), yticks=range(len(up)))
    axes.set_xticklabels([f"{value:g}" for value in across])
    axes.set_yticklabels([f"{value:g}" for value in up])
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, label="share that learned")
    return figure


def draw_phases(
    axes: Axes, points: Mapping[tuple[float, float], Share], x: Sequence[float], y: Sequence[float]
) -> AxesImage:
    """Draw one heat map of shares with its counts, and the contours of one half of the share and of its interval.

    >>> figure, axes = new_figure(3, 2)
    >>> image = draw_phases(axes, {(1, 2): share_of_true([True]), (3, 2): share_of_true([False])}, [1, 3], [2])
    >>> [text.get_text() for text in axes.texts]
    ['1', '0']
    """
    value, low, high = ([[math.nan] * len(x) for _ in y] for _ in range(3))
    for place, share in points.items():
        across, up = x.index(place[0]), y.index(place[1])
        value[up][across], low[up][across], high[up][across] = share.value, share.low, share.high
        axes.text(across, up, str(share.successes), ha="center", va="center", color=ink_on(share.value), fontsize=8)
    image = axes.imshow(value, cmap=HEAT, vmin=0, vmax=1, aspect="auto", origin="lower")
    for surface, style in ((value, "solid"), (low, "dashed"), (high, "dashed")):
        known = [number for line in surface for number in line if not math.isnan(number)]
        if min(len(x), len(y)) > 1 and min(known) < 0.5 < max(known):  # a single line has no contour
            axes.contour(surface, levels=[0.5], colors=[colour(1)], linestyles=[style], linewidths=1.6)
    axes.spines[:].set_visible(False)
    return image
