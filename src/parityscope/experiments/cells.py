"""What figures over cells of seeds share: the share of seeds that learned, and heat maps with something written in."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from parityscope.experiments.contract import Row
from parityscope.figures import HEAT
from parityscope.measures import Share, wilson_share


def share_of(rows: Sequence[Row]) -> Share:
    """Return the share of seeds that learned, over all rows, with Wilson's 95 % interval.

    >>> str(share_of([Row("", {"seeds": 4}, {"learned": 3}), Row("", {"seeds": 4}, {"learned": 4})]))
    '7/8 (53%–98%)'
    """
    return wilson_share(sum(row.numbers["learned"] for row in rows), sum(row.config["seeds"] for row in rows))


def ink_on(value: float) -> str:
    """Return the colour in which a number is readable on the heat map's colour of a value between 0 and 1.

    >>> ink_on(0.1), ink_on(0.9)
    ('white', 'black')
    """
    return "black" if value > 0.6 else "white"


def draw_heat_map(
    axes: Axes,
    values: Sequence[Sequence[float]],
    columns: Sequence[str],
    lines: Sequence[str],
    *,
    span: tuple[float, float] = (0.0, 1.0),
    column_size: float | None = None,
) -> AxesImage:
    """Draw a table of values (NaN: nothing) as colours, with the names of its columns and lines.

    >>> from parityscope.figures import new_figure
    >>> figure, axes = new_figure(3, 2)
    >>> image = draw_heat_map(axes, [[0.0, 0.5, 1.0]], ["a", "b", "c"], ["one line"])
    >>> image.get_clim(), [label.get_text() for label in axes.get_xticklabels()]
    ((0.0, 1.0), ['a', 'b', 'c'])
    """
    image = axes.imshow(values, cmap=HEAT, vmin=span[0], vmax=span[1], aspect="auto")
    axes.set_xticks(range(len(columns)), columns, fontsize=column_size)
    axes.set_yticks(range(len(lines)), lines)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image
