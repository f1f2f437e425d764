"""The look of every figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

from parityscope.core.errors import naming_the_extra
from parityscope.core.files import write_atomically
from parityscope.core.statistics import Share

with naming_the_extra():
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.colors import to_hex
    from matplotlib.figure import Figure
    from matplotlib.rcsetup import cycler
    from PIL import Image

Theme = Literal["light", "dark"]
# Okabe and Ito's palette, distinguishable with every common form of colour blindness; lightened for dark pages.
_PALETTE = {
    "light": ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    "dark": ("#56B4E9", "#F08A4B", "#35C69B", "#E3A3C8", "#F2C14E", "#A6D8F7"),
}
HEAT = "viridis"
_INK = {"light": ("#1a1a1a", "#ffffff"), "dark": ("#e8e8e8", "#16181d")}


def _style(theme: Theme) -> Any:
    ink, paper = _INK[theme]
    return {
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=_PALETTE[theme]),
        "legend.frameon": False,
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), paper),
        **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), ink),
        "grid.color": "#8884",
    }


def themed(draw: Callable[..., Figure], *arguments: Any, theme: Theme = "light") -> Figure:
    """Call a drawing function in the project's style, for light or dark pages, touching no global state."""
    with matplotlib.rc_context(_style(theme)):
        figure = draw(*arguments)
        # Text, ticks and places are made lazily from the style in force, so they are made now, and only once.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        return figure


class Pictures(NamedTuple):
    """One figure as a report needs it.

    >>> Pictures(b"light", b"<svg/>", 640).width
    640
    """

    light: bytes  # PNG
    vector: bytes  # SVG
    width: int  # in CSS pixels, so that small figures stay small


def drawn(draw: Callable[..., Figure], *arguments: Any) -> Pictures:
    """Return a figure in the project's style as PNG and as SVG."""
    with matplotlib.rc_context(_style("light")):
        figure = draw(*arguments)
        raster = png(figure)
        figure.set_layout_engine("none")
        return Pictures(raster, svg(figure), round(96 * figure.get_figwidth()))


def colour(index: int) -> str:
    """Return a colour of the palette in force."""
    return to_hex(matplotlib.rcParams["axes.prop_cycle"].by_key()["color"][index])


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **grid: Any) -> tuple[Figure, Any]:
    """Return a figure with a grid of axes and a layout that fits its labels.

    >>> figure, axes = new_figure(4, 3)
    >>> figure.get_size_inches().tolist(), axes.get_subplotspec().get_gridspec().get_geometry()
    ([4.0, 3.0], (1, 1))
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **grid)


def png(figure: Figure, dpi: int = 144) -> bytes:
    """Return the figure as PNG bytes with a palette, a third of the size without one: a report has fifty of them.

    The palette covers all colours, not the most frequent ones, which would give thin lines and legends one colour.
    """
    image = Image.open(BytesIO(_saved(figure, format="png", dpi=dpi))).convert("RGB")
    buffer = BytesIO()
    image.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def svg(figure: Figure) -> bytes:
    """Return the figure as SVG bytes, the same bytes for the same figure."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "parityscope"}):
        return _saved(figure, format="svg", metadata={"Date": None})


def write_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG and as SVG.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_figure(new_figure(2, 1)[0], folder, "empty")
    >>> sorted(path.name for path in folder.iterdir())
    ['empty.png', 'empty.svg']
    """
    write_pictures(Pictures(png(figure), svg(figure), 0), folder, name)


def write_pictures(pictures: Pictures, folder: Path, name: str) -> None:
    """Write the PNG and the SVG.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_pictures(drawn(lambda: new_figure(2, 1)[0]), folder, "empty")
    >>> sorted(path.name for path in folder.iterdir())
    ['empty.png', 'empty.svg']
    """
    write_atomically(folder / f"{name}.png", pictures.light)
    write_atomically(folder / f"{name}.svg", pictures.vector)


def _saved(figure: Figure, **options: Any) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, facecolor=figure.get_facecolor(), **options)
    return buffer.getvalue()


def interval_lengths(shares: Sequence[Share]) -> tuple[list[float], list[float]]:
    """Return how far the intervals of shares reach below and above them, as error bars ask for it.

    >>> from parityscope.core.statistics import wilson_share
    >>> below, above = interval_lengths([wilson_share(5, 10)])
    >>> round(below[0] - above[0], 9)
    0.0
    """
    below = [max(0.0, share.value - share.low) for share in shares]
    above = [max(0.0, share.high - share.value) for share in shares]
    return below, above


def draw_shares(axes: Axes, places: Sequence[float], shares: Sequence[Share], **style: Any) -> None:
    """Draw shares of successes as points on a line, each with its confidence interval.

    >>> from parityscope.core.statistics import wilson_share
    >>> _, axes = new_figure(4, 3)
    >>> draw_shares(axes, [8, 16], [wilson_share(9, 10), wilson_share(3, 10)])
    >>> axes.lines[0].get_ydata().tolist()
    [0.9, 0.3]
    """
    values = [share.value for share in shares]
    axes.errorbar(
        places, values, yerr=interval_lengths(shares), **{"marker": "o", "capsize": 3, "linewidth": 1.6, **style}
    )
    axes.set_ylim(-0.04, 1.04)
    axes.grid(axis="y", linewidth=0.6)
