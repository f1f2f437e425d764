"""The look of every figure, and the two that `learn` draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

from parityscope.atomic_files import write_atomically
from parityscope.errors import naming_the_extra
from parityscope.learning import Learned
from parityscope.measures import Share

with naming_the_extra():
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.colors import to_hex
    from matplotlib.figure import Figure
    from matplotlib.rcsetup import cycler
    from matplotlib.ticker import MaxNLocator

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
    """Call a drawing function in the project's style, for light or dark pages, touching no global state.

    >>> themed(lambda: new_figure(4, 3)[0], theme="dark").get_facecolor()[0] < 0.5
    True
    """
    with matplotlib.rc_context(_style(theme)):
        figure = draw(*arguments)
        # Text, ticks and places are made lazily from the style in force, so they are made now, and only once.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        return figure


class Pictures(NamedTuple):
    """One figure as a report needs it.

    >>> Pictures(b"light", b"dark", b"<svg/>", 640).width
    640
    """

    light: bytes  # PNG for light pages and print
    dark: bytes  # PNG for dark pages
    vector: bytes  # SVG
    width: int  # in CSS pixels, so that small figures stay small


def drawn(draw: Callable[..., Figure], *arguments: Any) -> Pictures:
    """Return a figure for light and for dark pages; both are laid out alike, once.

    >>> pictures = drawn(lambda: new_figure(4, 3)[0])
    >>> pictures.width, pictures.light == pictures.dark
    (384, False)
    """
    with matplotlib.rc_context(_style("light")):
        light = draw(*arguments)
        light_png = png(light)
        light.set_layout_engine("none")
        vector = svg(light)
    with matplotlib.rc_context(_style("dark")):
        dark = draw(*arguments)
        dark.set_layout_engine("none")
        for place, axes in zip(light.axes, dark.axes, strict=True):
            axes.set_position(place.get_position(original=True), which="original")
            axes.set_position(place.get_position(), which="active")
        return Pictures(light_png, png(dark), vector, round(96 * light.get_figwidth()))


def colour(index: int) -> str:
    """Return a colour of the palette in force.

    >>> with matplotlib.rc_context(_style("dark")):
    ...     colour(0)
    '#56b4e9'
    """
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
    """Return the figure as PNG bytes.

    >>> picture = png(new_figure(2, 1)[0], dpi=50)
    >>> [int.from_bytes(picture[start : start + 4], "big") for start in (16, 20)]  # width and height in pixels
    [100, 50]
    """
    return _saved(figure, format="png", dpi=dpi, metadata={"Software": None})


def svg(figure: Figure) -> bytes:
    """Return the figure as SVG bytes, the same bytes for the same figure.

    >>> svg(new_figure(2, 1)[0]) == svg(new_figure(2, 1)[0])
    True
    """
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
    write_pictures(Pictures(png(figure), b"", svg(figure), 0), folder, name)


def write_pictures(pictures: Pictures, folder: Path, name: str) -> None:
    """Write the PNG for light pages and the SVG.

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


def _draw_attention(axes: Axes, attention: Any, support: tuple[int, ...]) -> None:
    """Draw heads × positions as a heat map and mark the hidden bits above it."""
    heads, n = attention.shape
    image = axes.imshow(attention, aspect="auto", cmap=HEAT, vmin=0, vmax=1, interpolation="nearest")
    axes.plot(support, [-0.5] * len(support), "v", color=colour(1), markersize=8, clip_on=False, zorder=5)
    axes.set(xlabel="position", ylabel="head", yticks=range(heads), xlim=(-0.5, n - 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.figure.colorbar(image, ax=axes, label="attention", shrink=0.9, pad=0.02)


def draw_shares(axes: Axes, places: Sequence[float], shares: Sequence[Share], **style: Any) -> None:
    """Draw shares of successes as points on a line, each with its confidence interval.

    >>> from parityscope.measures import wilson_share
    >>> _, axes = new_figure(4, 3)
    >>> draw_shares(axes, [8, 16], [wilson_share(9, 10), wilson_share(3, 10)])
    >>> axes.lines[0].get_ydata().tolist()
    [0.9, 0.3]
    """
    values = [share.value for share in shares]
    below = [max(0.0, share.value - share.low) for share in shares]
    above = [max(0.0, share.high - share.value) for share in shares]
    axes.errorbar(places, values, yerr=(below, above), **{"marker": "o", "capsize": 3, "linewidth": 1.6, **style})
    axes.set_ylim(-0.04, 1.04)
    axes.grid(axis="y", linewidth=0.6)


def attention_figure(run: Learned, row: int = 0) -> Figure:
    """Return the heat map of one run's attention, hidden bits marked.

    >>> from parityscope import Parity, learn
    >>> drawn = attention_figure(learn(Parity(8, (1, 4)), "as-coded", seeds=[3], steps=2))
    >>> drawn.axes[0].get_title(), drawn.axes[0].lines[0].get_xdata().tolist()
    ('as-coded, seed 3: ▼ hidden bits', [1, 4])
    """
    heads, n = run.attention[row].shape
    figure, axes = new_figure(min(14.0, max(6.0, 0.25 * n + 2)), 1.6 + 0.45 * heads)
    _draw_attention(axes, run.attention[row].numpy(), run.problems[row].support)
    axes.set_title(f"{run.recipe.name}, seed {run.seeds[row]}: ▼ hidden bits", pad=12)
    return figure


def risk_figure(run: Learned) -> Figure:
    """Return the risk of every run during training.

    >>> from parityscope import Parity, learn
    >>> drawn = risk_figure(learn(Parity(8, (1, 4)), "as-coded", seeds=range(4), steps=2))
    >>> len(drawn.axes[0].lines), drawn.axes[0].get_ylabel()
    (4, 'population risk')
    """
    figure, axes = new_figure(7, 4)
    learned = run.learned
    for row in range(len(run.seeds)):
        line = colour(2) if learned[row] else colour(1)
        risk = run.history_risk[:, row].clamp(min=1e-6).numpy()
        axes.plot(run.history_steps.numpy(), risk, color=line, alpha=0.5, linewidth=1.2)
    axes.set(xlabel="step", ylabel="population risk" if run.samples is None else "risk on the examples", yscale="log")
    axes.set_title(f"{run.recipe.name}: {run.success} learned (green), the rest orange")
    return figure
