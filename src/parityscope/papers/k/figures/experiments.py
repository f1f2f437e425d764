"""K's Figures 4 and 5 at their own size: four ways to train the chain, both losses over 350 steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import FigureSpec, Scale, TableColumn, table_of
from parityscope.papers.k.chain import QUADRATIC, ChainTransformer, ParityTree
from parityscope.papers.k.training import RATES, VARIANTS, Variant, experiment, fresh_answers
from parityscope.problems import seeded_generator
from parityscope.records import Config, Numbers, Result, Row


class ExperimentNumbers(Numbers):
    """Losses at the end and at their lowest, when levels opened, and how the chain answers fresh inputs."""

    chain_loss: float
    answer_loss: float
    least_chain_loss: float
    least_answer_loss: float
    opened: tuple[int | None, ...]
    accuracy: float


class Experiment(Config):
    """One curve of K's Figures 4 and 5."""

    ROWS: ClassVar[str] = "K-experiment"
    NUMBERS: ClassVar[type[Numbers]] = ExperimentNumbers

    d: int
    k: int
    variant: Variant
    examples: int
    steps: int
    seed: int

    def run(self) -> Result:
        """Train with K's rate and keep both curves."""
        tree = ParityTree.random(self.d, self.k, self.seed)
        # Differs from K: W starts at 0, as in its theorems; its experiments do not say where they start.
        model = ChainTransformer(tree, QUADRATIC, block=self.variant in ("CoT", "CoT + self-consistency"))
        x = tree.draw(self.examples, seeded_generator(self.seed, "data"))
        curves = experiment(self.variant, model, x, RATES[self.k], self.steps)
        numbers = ExperimentNumbers(
            chain_loss=curves.chain_loss[-1],
            answer_loss=curves.answer_loss[-1],
            least_chain_loss=min(curves.chain_loss),
            least_answer_loss=min(curves.answer_loss),
            opened=tuple(curves.opened),
            accuracy=fresh_answers(model, self.seed).accuracy,
        )
        losses = {"chain": curves.chain_loss, "answer": curves.answer_loss}
        return Result(numbers, {name: torch.tensor(one, dtype=torch.float32) for name, one in losses.items()})


ExperimentRow = Row[Experiment, ExperimentNumbers]
OWN_SIZE = "d = 64, 100 000 examples, 350 steps"


def at_own_size(config: Experiment) -> bool:
    """Say whether a curve is of the paper's own size."""
    return (config.d, config.examples, config.steps) == (64, 100_000, 350)


def _experiments(examples: int, steps: int, *sizes: int) -> list[Experiment]:
    return [
        Experiment(d=64, k=k, variant=variant, examples=examples, steps=steps, seed=0)
        for k in sizes
        for variant in VARIANTS
    ]


def _configs(*sizes: int) -> dict[Scale, list[Experiment]]:
    return {
        "smoke": _experiments(500, 20, *sizes),
        "demo": _experiments(2000, 120, *sizes),
        "reference": _experiments(100_000, 350, *sizes),
    }


def _plot(rows: Sequence[ExperimentRow]) -> Figure:
    """Draw the chain's loss (left) and the answer's (right), a line of panels for every k."""
    sizes = list(dict.fromkeys(row.config.k for row in rows))
    figure, axes = new_figure(12, 3.2 * len(sizes) + 0.3, len(sizes), 2, squeeze=False, sharex=True)
    for line, k in enumerate(sizes):
        for row in (row for row in rows if row.config.k == k):
            index = VARIANTS.index(row.config.variant)
            for ax, losses in zip(axes[line], ("chain", "answer"), strict=True):
                ax.plot(row.arrays[losses].numpy(), color=colour(index), label=row.config.variant, linewidth=1.6)
                for step in row.numbers.opened if index == 3 else ():
                    if step is not None:
                        ax.axvline(step, color=colour(index), linestyle="--", linewidth=0.8)
        for ax, name in zip(axes[line], ("chain", "prediction"), strict=True):
            ax.set(title=f"{name} loss, k = {k}", ylim=(0, 1.05))
    for ax in axes[-1]:
        ax.set_xlabel("step")
    axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
    return figure


_TABLE = table_of(
    TableColumn("k", lambda row: row.config.k),
    TableColumn("method", lambda row: row.config.variant),
    TableColumn("examples", lambda row: row.config.examples, ","),
    TableColumn("steps", lambda row: row.config.steps),
    TableColumn("chain loss", lambda row: row.numbers.chain_loss, ".4f"),
    TableColumn("prediction loss", lambda row: row.numbers.answer_loss, ".4f"),
    TableColumn("right on fresh inputs", lambda row: row.numbers.accuracy, ".3f"),
    TableColumn(
        "levels open from step", lambda row: ", ".join("–" if one is None else str(one) for one in row.numbers.opened)
    ),
)
_TEXT = (
    "The chain's loss (2), divided by k − 1, and the loss of the answer, before every step of full-batch descent with "
    "K's own rates (15, 50, 100 for k = 8, 16, 32; a hundredth for the direct model). Dashed lines: steps at which the "
    "filter of a level opened. The experiments' initialisation is not printed: here W starts at 0, as in K's theorems, "
    "and a level opens when every node below has a softmax score above 0.4 (our reading)."
)
FIGURES = (
    FigureSpec(
        ID="K-figure-4",
        TITLE="Four ways to train the chain, k = 32",
        TEXT=_TEXT,
        COST={"smoke": 0.5, "demo": 3, "reference": 140},
        CONFIGS=_configs(32),
        plot=_plot,
        table=_TABLE,
    ),
    FigureSpec(
        ID="K-figure-5",
        TITLE="Four ways to train the chain, k = 32, 16 and 8",
        TEXT=_TEXT + " The panels for k = 32 are those of Figure 4.",
        COST={"smoke": 1, "demo": 3, "reference": 130},
        CONFIGS=_configs(32, 16, 8),
        plot=_plot,
        table=_TABLE,
    ),
)
