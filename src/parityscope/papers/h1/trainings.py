"""Trainings that H1's figures and claims share: Figure 2's heads, and networks of any kind on fresh examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from parityscope.core.threads import single_threaded
from parityscope.models import FFNN1
from parityscope.papers.figure import Scale
from parityscope.problems import seeded_generator
from parityscope.risk.losses import named_loss
from parityscope.runs import Training, training
from parityscope.training.descent import Evaluation, TrainingState, descend, shares_of
from parityscope.training.sources import FreshMean
from parityscope.training.steps.first_order import Adam

SEPARATE, NEIGHBOURS = (7, 10, 17), (4, 15, 16)  # the paper's 8, 11, 18 and its neighbours 16, 17
# Seeds and steps of Figure 2 as coded: 2000 steps, the published code's own number, leave attention too blunt.
FIGURE_2: dict[Scale, tuple[int, int]] = {"demo": (4, 800), "reference": (8, 4000)}
WATCHED: dict[str, Any] = {"watch": ("attention", "weights")}


def coded_heads(n: int, support: tuple[int, ...], seeds: int, steps: int, **kept: Any) -> Training:
    """Return Figure 2's training with the published code's recipe, at the rate that it prefers in a comment.

    `kept` says what to record instead of what the figure draws.

    >>> coded_heads(20, NEIGHBOURS, *FIGURE_2["demo"]).recipe.learning_rate
    0.2
    """
    return training(
        "as-coded",
        n,
        len(support),
        seeds=range(seeds),
        support=support,
        learning_rate=0.2,
        steps=steps,
        **{"record_every": max(2, steps // 200), **WATCHED, **kept},  # as many columns as the picture can show
    )


_DRAWN_AT_ONCE = 32  # steps
Network = TypeVar("Network", bound=nn.Module)
Target = Callable[[Tensor], Tensor]  # bits (runs, batch, n) -> labels ±1 (runs, batch)


@dataclass(frozen=True)
class FreshTraining:
    """How a network trains on fresh uniform bits: Adam on `loss`, `batch` examples per step."""

    steps: int
    batch: int = 256
    loss: str = "hinge"
    stop_risk: float | None = 0.01  # for the hinge this proves an accuracy above 0.99
    patience: int | None = None


def seeded_ffnn(inputs: int, width: int, seeds: Sequence[int]) -> FFNN1:
    """Return one FFNN-1 per seed on a run axis, each with the start of its own seed."""
    return stacked([FFNN1(inputs, width, generator=seeded_generator(seed, "start")) for seed in seeds])


def stacked(networks: Sequence[Network]) -> Network:
    """Return the first network with the parameters of all of them on a leading run axis."""
    first = networks[0]
    with torch.no_grad():
        together = {
            name: torch.stack([dict(network.named_parameters())[name] for network in networks])
            for name, _ in first.named_parameters()
        }
    for name, values in together.items():
        owner, _, own = name.rpartition(".")
        trains = first.get_parameter(name).requires_grad
        setattr(first.get_submodule(owner), own, nn.Parameter(values, requires_grad=trains))
    return first


def train_on_fresh_examples(
    network: nn.Module, target: Target, n: int, seeds: Sequence[int], rates: Sequence[float], training: FreshTraining
) -> TrainingState:
    """Train every run on examples of its own seed's data stream, at its own learning rate; return where each stopped.

    `network` maps bits (runs, batch, n) to predictions (runs, batch). A run stops once the mean loss over its last
    thousand examples, none seen before, falls below `stop_risk`.
    """
    batches = _fresh_bits(n, seeds, training.batch)
    loss, watched = named_loss(training.loss), FreshMean(len(seeds), training.batch)
    trainable = [parameter for parameter in network.parameters() if parameter.requires_grad]
    dtype = trainable[0].dtype

    def objective() -> Evaluation:
        x = next(batches).to(dtype)
        mean = loss.of_margin(target(x) * network(x)).mean(-1)
        return Evaluation(mean, watched.watch(mean))

    optimiser, shares = Adam(trainable, max(rates)), shares_of(rates, max(rates))
    state = TrainingState.fresh(len(seeds))
    with single_threaded():
        return descend(network, objective, training, state, optimiser, scale=lambda step: shares, record_every=100)


def _fresh_bits(n: int, seeds: Sequence[int], batch: int) -> Iterator[Tensor]:
    """Yield uniform bits (runs, batch, n) for ever, every run's from its own stream."""
    generators = [seeded_generator(seed, "data") for seed in seeds]
    while True:
        # Many small draws cost more than one long one.
        drawn = [torch.randint(0, 2, (_DRAWN_AT_ONCE, batch, n), generator=g, dtype=torch.int8) for g in generators]
        yield from torch.stack(drawn, dim=1)
