"""What W's figures share: one decoder's training as a row, the paper's settings, curves, maps and a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from parityscope.cot import CROSSINGS, CotTraining, train_on_sequences
from parityscope.experiments.contract import Config, Result, Row, Table
from parityscope.figures import HEAT, colour
from parityscope.sequences import ParitySequences

PAPER_RATES = (6e-5, 8e-5, 1e-4)
PAPER_BUDGET = 10**7
_CHANCE = 0.5


class Decoder(Config):
    """One training; `label` says what it stands for in its figure."""

    label: str
    training: CotTraining


def smoke(n: int = 6, k: int = 2, **changes: Any) -> CotTraining:
    """Return a training of a second."""
    settings = {"width": 16, "batch": 32, "steps": 20, "held_out": 16, "evaluate_every": 5, "learning_rate": 3e-3}
    return CotTraining(n=n, k=k, **{**settings, **changes})


def laptop(n: int, k: int, **changes: Any) -> CotTraining:
    """Return W's training at a width a laptop trains in seconds: 64 instead of 720, at ten times the rate."""
    settings = {"width": 64, "learning_rate": 1e-3, "batch": 256, "held_out": 1024, "evaluate_every": 10}
    return CotTraining(n=n, k=k, **{**settings, **changes})


def paper(n: int, k: int, **changes: Any) -> CotTraining:
    """Return W's own settings (Appendix C.1): width 720, MLP 3072, Adam, linear decay, batch 512."""
    settings = {
        "width": 720,
        "mlp_width": 3072,
        "learning_rate": 1e-4,
        "batch": 512,
        "steps": PAPER_BUDGET // 512,
        "evaluate_every": 20,
    }
    return CotTraining(n=n, k=k, **{**settings, **changes})


def run(config: Decoder) -> Result:
    """Train one decoder; figures that share a training share its result within a process."""
    return _trained(config.training)


@lru_cache(maxsize=256)
def _trained(training: CotTraining) -> Result:
    outcome = train_on_sequences(training)
    secret_attention = outcome.secret_attention().amax((0, 1))
    numbers = {
        "samples": [outcome.samples_to(accuracy) for accuracy in CROSSINGS],
        "steps": outcome.history.step[-1],
        "accuracy": outcome.accuracy,
        "free_running": outcome.free_running,
        "secret": list(outcome.task.secret),
        "secret_attention": float(secret_attention.mean()) if training.chain_of_thought else None,
        "final_entropy": float(outcome.history.entropy[-1].min()),
        "parameters": sum(p.numel() for p in outcome.model.parameters()),
    }
    arrays = {name: tensor.float() for name, tensor in outcome.history.tensors().items()}
    arrays |= {"attention": outcome.attention.float(), "one_attention": outcome.one_attention.float()}
    return Result(numbers, arrays)


def settings(row: Row) -> dict[str, Any]:
    """Return a row's training settings."""
    return row.config["training"]


def samples(row: Row) -> int | None:
    """Return the examples seen when every held-out token was right for the first time: W's sample complexity."""
    return row.numbers["samples"][-1]


def budget(row: Row) -> int:
    """Return the examples a training may see."""
    return settings(row)["steps"] * settings(row)["batch"]


def solved(rows: Iterable[Row]) -> list[Row]:
    """Return the rows whose decoder got everything right."""
    return [row for row in rows if samples(row) is not None]


def with_chain(rows: Iterable[Row], chain: bool) -> list[Row]:
    """Return the rows with (or without) chain of thought."""
    return [row for row in rows if settings(row)["chain_of_thought"] is chain]


def best_by(rows: Sequence[Row], *names: str) -> dict[tuple[Any, ...], Row]:
    """Return, for every value of the named settings, the row with the fewest samples: W picks the best rate."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(settings(row)[name] for name in names)
        if key not in best or (samples(row) or math.inf) < (samples(best[key]) or math.inf):
            best[key] = row
    return dict(sorted(best.items()))


def growth(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the factor per unit of x of the least-squares exponential through (x, y); none for fewer than two points.

    >>> round(growth([(1, 3.0), (2, 6.0), (3, 12.0)]), 6)
    2.0
    """
    if len({x for x, _ in pairs}) < 2:
        return None
    x = torch.tensor([float(x) for x, _ in pairs], dtype=torch.float64)
    y = torch.tensor([math.log(y) for _, y in pairs], dtype=torch.float64)
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return math.exp(float(slope))


def fell_before_jump(row: Row) -> tuple[int | None, int | None]:
    """Return the steps at which the lowest head's entropy has made half its fall, and accuracy half its rise."""
    steps = row.arrays["step"].int().tolist()
    entropy = row.arrays["entropy"].flatten(1).amin(1)
    accuracy = row.arrays["accuracy"]
    half_fall = (entropy[0] + entropy.min()) / 2
    half_rise = (_CHANCE + accuracy.max()) / 2
    fallen = [s for s, value in zip(steps, entropy.tolist(), strict=True) if value <= half_fall]
    risen = [s for s, value in zip(steps, accuracy.tolist(), strict=True) if value >= half_rise]
    return (fallen[0] if fallen else None), (risen[0] if risen else None)


def draw_progress(axes: Axes, row: Row, index: int, label: str) -> None:
    """Draw accuracy (solid) and the lowest head's entropy (dashed) of one training."""
    step = row.arrays["step"].numpy()
    axes.plot(step, row.arrays["accuracy"].numpy(), color=colour(index), label=f"{label}: accuracy")
    lowest = row.arrays["entropy"].flatten(1).amin(1).numpy()
    axes.plot(step, lowest, color=colour(index), linestyle="--", linewidth=1.3, label=f"{label}: entropy")


def draw_map(axes: Axes, row: Row, layer: int = 0, head: int = 0) -> AxesImage:
    """Draw the attention of the predicting positions (rows) and mark each one's secret bit."""
    task = ParitySequences(settings(row)["n"], tuple(row.numbers["secret"]), settings(row)["chain_of_thought"])
    attention = row.arrays["one_attention"][layer, head, task.n :].numpy()
    image = axes.imshow(attention, aspect="auto", cmap=HEAT, vmin=0, vmax=1, interpolation="nearest")
    axes.scatter(task.secret, range(task.k), s=26, marker="s", facecolors="none", edgecolors=colour(1), linewidths=1.1)
    axes.set(xlabel="attended position", ylabel="chain position")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.axvline(task.n - 0.5, color=colour(0), linewidth=0.8)
    return image


def training_table(rows: Sequence[Row]) -> Table:
    """Return every training with the samples at which it crossed each accuracy."""
    header = ["label", "n", "k", "chain", "layers × heads", "width", "pool", "rate", "accuracy", "free-running"]
    header += [f"samples to {accuracy:g}" for accuracy in CROSSINGS] + ["entropy"]
    return Table(header, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    training = settings(row)
    return [
        row.config["label"],
        str(training["n"]),
        str(training["k"]),
        "yes" if training["chain_of_thought"] else "no",
        f"{training['layers']} × {training['heads']}",
        str(training["width"]),
        "fresh" if training["pool"] is None else f"{training['pool']:,}",
        f"{training['learning_rate']:g}",
        f"{row.numbers['accuracy']:.4f}",
        f"{row.numbers['free_running']:.4f}",
        *("–" if count is None else f"{count:,}" for count in row.numbers["samples"]),
        f"{row.numbers['final_entropy']:.3f}",
    ]


def spoken(count: int | None, limit: int) -> str:
    """Return a sample count for people, or the budget it exceeded.

    >>> spoken(None, 1000), spoken(512, 1000)
    ('more than 1,000', '512')
    """
    return f"more than {limit:,}" if count is None else f"{count:,}"
