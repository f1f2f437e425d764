"""Draw the pictures of the page on concavity: `python docs/concave_pictures.py`, or `make docs-results`."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from parityscope.core.drawing import colour, new_figure, png, themed
from parityscope.core.files import write_atomically
from parityscope.models import is_face
from parityscope.models.positions import circle, harmonics

IMAGES = Path(__file__).parent / "images"
N = 12
FACE, NO_FACE, PAIR = (2, 3), (5, 8), (2, 5)
BETWEEN = 40  # points of a curve per position
GREY, INK = "#8a8f98", "#4a4f58"
Points = NDArray[np.float64]


def main() -> None:
    """Write the three pictures."""
    for name, draw in (("circle", draw_circle), ("two-harmonics", draw_two_harmonics), ("curves", draw_curves)):
        write_atomically(IMAGES / f"concave-{name}.png", png(themed(draw)))


def draw_circle() -> Figure:
    """Left a pair of neighbours and its supporting line; right a pair apart, whose middle other corners share."""
    figure, axes = new_figure(8.6, 4.4, columns=2)
    points = circle(N).numpy()
    for panel, pair in zip(axes, (FACE, NO_FACE), strict=True):
        ring = np.vstack([points, points[:1]])
        panel.plot(*ring.T, color=GREY, linewidth=1.3, zorder=1)
        corners(panel, points, pair, 1.13)
        panel.set(aspect="equal", xlim=(-1.35, 1.35), ylim=(-1.35, 1.35))
        panel.axis("off")
    q = is_face(circle(N), FACE).q.numpy()
    foot, along = float(points[FACE[0]] @ q) * q, np.array([-q[1], q[0]])
    axes[0].plot(*np.array([foot - 0.85 * along, foot + 0.85 * along]).T, color=colour(2), linewidth=2.4, zorder=2)
    axes[0].set_title("neighbours {2, 3}: a face", y=0.96)
    middle = points[list(NO_FACE)].mean(0)
    axes[1].plot(*points[list(NO_FACE)].T, color=colour(1), linewidth=1.8, zorder=2)
    for near, far in ((7, 3), (6, 10)):  # on two other chords, so it lies between their ends as well
        axes[1].plot(*points[[near, far]].T, color=colour(0), linewidth=1.2, zorder=1)
    axes[1].plot(*middle, marker="X", markersize=11, color="black", markeredgecolor="white", zorder=4)
    axes[1].set_title("{5, 8}: no face, others have the same middle", y=0.96)
    return figure


def corners(panel: Axes, points: Points, hidden: tuple[int, ...], away: float) -> None:
    """Draw positions as dots with their names beside them, hidden ones in another colour."""
    for j, point in enumerate(points):
        chosen = j in hidden
        panel.plot(*point, marker="o", markersize=9 if chosen else 6, color=colour(1 if chosen else 0), zorder=3)
        panel.text(*(away * point), str(j), ha="center", va="center", color=colour(1) if chosen else INK, fontsize=10)


def draw_two_harmonics() -> Figure:
    """Above the polytope of two harmonics in a plane in which a pair is an edge; below the score that proves it."""
    figure = new_figure(7.2, 7.4)[0]
    figure.clear()
    plane, wave = figure.subplots(2, 1, height_ratios=(1.7, 1))
    # `harmonics` begins after the angle 0: the point i of the finer circle is position (i + 1)/BETWEEN − 1.
    code, curve = harmonics(N, 2).numpy(), harmonics(BETWEEN * N, 2).numpy()
    places = (np.arange(BETWEEN * N) + 1) / BETWEEN - 1
    angle = 2 * math.pi / N
    score = -np.prod([1 - np.cos(angle * (places - b)) for b in PAIR], axis=0)
    q = np.linalg.lstsq(np.column_stack([curve, np.ones(len(curve))]), score, rcond=None)[0][:-1]
    across = code[PAIR[1]] - code[PAIR[0]]
    view = np.column_stack([across / np.linalg.norm(across), q / np.linalg.norm(q)])
    draw_plane(plane, code @ view, curve @ view)
    wave.plot(places, score, color=GREY, linewidth=1.5, zorder=1)
    wave.axhline(0, color=colour(2), linewidth=1.6, zorder=0)
    at = score[BETWEEN - 1 :: BETWEEN]
    for j in range(N):
        chosen = j in PAIR
        wave.plot(j, at[j], marker="o", markersize=9 if chosen else 6, color=colour(1 if chosen else 0), zorder=3)
    wave.set(xlabel="position", ylabel="score", xticks=range(N), xlim=(-1, N - 0.7))
    wave.set_title("−(1 − cos(θ − θ₂))(1 − cos(θ − θ₅)): 0 at 2 and 5, below 0 elsewhere", fontsize=11)
    return figure


def draw_plane(plane: Axes, points: Points, curve: Points) -> None:
    """Draw all pairs as the edges they are, the curve through the corners, and the line that touches at the pair."""
    for j in range(N):
        for i in range(j):
            plane.plot(*points[[i, j]].T, color="#c9ced6", linewidth=0.6, zorder=0)
    plane.plot(*np.vstack([curve, curve[:1]]).T, color=GREY, linewidth=1.5, zorder=1)
    top = float(points[PAIR[0], 1])
    plane.plot([-1.9, 1.9], [top, top], color=colour(2), linewidth=2.4, zorder=2)
    for j, point in enumerate(points):
        chosen = j in PAIR
        plane.plot(*point, marker="o", markersize=9 if chosen else 6, color=colour(1 if chosen else 0), zorder=3)
        above, sideways = (0.17 if chosen else -0.15), (0.1 if point[0] > 0 else -0.1)
        plane.text(point[0] + sideways, point[1] + above, str(j), ha="center", va="center", fontsize=10, color=INK)
    plane.set(aspect="equal", xlim=(-2.2, 2.2), ylim=(points[:, 1].min() - 0.3, top + 0.3))
    plane.axis("off")
    plane.set_title("twelve corners in four dimensions: every pair is an edge, {2, 5} here", fontsize=11)


def draw_curves() -> Figure:
    """Both factors' logarithms over u = log c, each below its tangents."""
    figure, axes = new_figure(8.6, 3.6, columns=2)
    on, off = np.linspace(-3.2, math.log(2) - 1e-4, 600), np.linspace(-3.2, -1e-4, 600)
    draw_concave(axes[0], on, np.log(np.sin(math.pi / 2 * np.exp(on))), (-1.6, 0.0), 0)
    draw_concave(axes[1], off, np.log(np.cos(math.pi / 2 * np.exp(off))), (-1.2, -0.45), 1)
    axes[0].set_title("a hidden position: log sin(πc/2)")
    axes[1].set_title("any other: log cos(πc/2)")
    axes[0].plot(0, 0, marker="o", color=colour(0))
    axes[0].annotate("c = 1", (0, 0), (0, -0.5), ha="center", fontsize=10)
    return figure


def draw_concave(panel: Axes, u: Points, values: Points, touched: tuple[float, ...], index: int) -> None:
    """Draw a function and two of its tangents."""
    slopes = np.gradient(values, u)
    for place in touched:
        i = int(np.abs(u - place).argmin())
        panel.plot(u, values[i] + slopes[i] * (u - u[i]), color=GREY, linewidth=1.0, linestyle="--", zorder=1)
    panel.plot(u, values, color=colour(index), linewidth=2.4, zorder=2)
    panel.set(xlabel="u = log c", xlim=(-3.2, 0.85), ylim=(-3.6, 0.75))
    panel.axhline(0, color=GREY, linewidth=0.6)


if __name__ == "__main__":
    main()
