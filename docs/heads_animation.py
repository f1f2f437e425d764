"""README's animation: where three heads look while they train, from the stored rows of heads-lock-on.

python docs/heads_animation.py reference-output      # writes docs/images/heads-lock-on.gif
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.figure import Figure

from parityscope.core.drawing import colour
from parityscope.papers.registry import load_figure
from parityscope.records import Store

IMAGE = Path(__file__).parent / "images" / "heads-lock-on.gif"
TITLES = {"as-written": "H1, as its paper trains", "as-coded": "H1, as its code trains", "bounded": "ours"}
FRAMES, HELD = 36, 14


def main() -> None:
    """Draw the bars of every head at equal shares of each training, and hold the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the --out folder of `parityscope reproduce`")
    store = Store(parser.parse_args().folder / "store")
    rows = store.row_of_each(load_figure("heads-lock-on").CONFIGS["reference"])
    by_recipe = {row.config.training.recipe.name: row for row in rows if row is not None}
    shown = [by_recipe[recipe] for recipe in TITLES]
    with rc_context({"font.size": 9}):
        figure = Figure(figsize=(8.4, 2.3), layout="constrained", dpi=90)
        panels = figure.subplots(1, len(shown), sharey=True)

    def draw(frame: int) -> list:
        share = min(1.0, frame / (FRAMES - 1))
        for axes, row in zip(panels, shown, strict=True):
            steps, attention = row.arrays["steps"], row.arrays["attention"].numpy()
            at = round(share * (len(attention) - 1))
            n, support = row.config.training.n, row.config.training.support
            axes.clear()
            bottom = np.zeros(n)
            for head, weights in enumerate(attention[at]):
                axes.bar(range(n), weights, bottom=bottom, color=colour(head), width=0.9)
                bottom += weights
            axes.plot(support, [-0.09] * len(support), "^", color="black", markersize=5, clip_on=False)
            axes.set(ylim=(0, 1.3), xlim=(-0.7, n - 0.3), xticks=[], yticks=[0, 1])
            axes.set_title(f"{TITLES[row.config.training.recipe.name]}: step {int(steps[at])}", fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("attention")
        return []

    FuncAnimation(figure, draw, frames=FRAMES + HELD).save(IMAGE, writer=PillowWriter(fps=8))


if __name__ == "__main__":
    main()
