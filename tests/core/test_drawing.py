"""What a figure looks like once it is a file."""

from io import BytesIO

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra plots is not installed")

from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from PIL import Image

from parityscope.core.drawing import colour, new_figure, png, themed


def test_a_legend_keeps_its_colours_beside_pictures_of_many():
    draws, colours = np.random.default_rng(0), []

    def drawn():
        colours.extend(colour(i) for i in range(3))
        figure, panels = new_figure(13, 3.9, 1, 4)
        inks = np.array([to_rgb(one) for one in colours]) - 1
        for axes in panels:
            shades = draws.random((20, 200, 1)) ** 3 / 2
            axes.imshow(1 + shades * inks[draws.integers(0, 3, (20, 200))], aspect="auto")
        figure.legend(handles=[Patch(color=one, label=one) for one in colours], loc="outside lower center")
        return figure

    stored = Image.open(BytesIO(png(themed(drawn), dpi=120))).convert("RGB")
    seen = {tuple(pixel) for pixel in np.unique(np.asarray(stored).reshape(-1, 3), axis=0).tolist()}
    assert {tuple(round(255 * part) for part in to_rgb(one)) for one in colours} <= seen
