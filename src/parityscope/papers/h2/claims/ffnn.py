"""H2 (our reading): what a feed-forward network needs for the same problem."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models import FFNN1
from parityscope.papers.attack import Attack, maximise, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least, below
from parityscope.papers.h2.one_gradient import fitted_exponent
from parityscope.papers.h2.trainings import ISOLATED, one_step_training, seed_at, share_below, step_again
from parityscope.problems import Parity, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs.training import Training
from parityscope.training.learning import train

_BITS, _WIDTH, _SEED = 7, 4, 0
_HIDDEN = (0, 1)  # the network sees neither or one of them; which positions they are does not matter


@cache
def _all_inputs() -> tuple[Tensor, Tensor]:
    x, y = next(Parity(_BITS, _HIDDEN).enumerate())
    return x.double(), y.double()


def network_risk(numbers: Float[Tensor, "batch numbers"], seen: Float[Tensor, " n"]) -> Float[Tensor, " batch"]:
    """Return the hinge risk over all inputs of ReLU networks with one hidden layer that see some of the bits."""
    x, y = _all_inputs()
    beta, hidden_bias, alpha, bias = numbers.split([_WIDTH * _BITS, _WIDTH, _WIDTH, 1], dim=-1)
    z = (x * seen) @ beta.reshape(-1, _WIDTH, _BITS).mT + hidden_bias[:, None]
    return (1 - y * ((z.relu() @ alpha[..., None]).squeeze(-1) + bias)).relu().mean(-1)


def _least_risk(seen: Tensor, context: Context) -> Attack:
    """Minimise the risk over networks that see some of the bits; the value is minus that risk."""
    generator = torch.Generator().manual_seed(_SEED)
    count = context.at(smoke=40, reference=200)
    starts = torch.randn(count, _WIDTH * (_BITS + 2) + 1, generator=generator, dtype=torch.float64)
    steps = context.at(smoke=40, reference=150)
    return maximise(lambda points, index: -network_risk(points, seen), starts, keep=16, steps=steps)


class TiedPairNumbers(Numbers):
    """What H2's own model lost with how many parameters, and how far it is from a ReLU network with d inputs."""

    worst_loss: tuple[float, ...]
    trained_numbers: int
    edges: int
    difference_to_the_network: float


class TiedPair(Config):
    """H2's transformer after its step, read as the ReLU network ŷ = |v| − 1 = ReLU(v) + ReLU(−v) − 1 that it is."""

    ROWS: ClassVar[str] = "H2-tied-pair"
    NUMBERS: ClassVar[type[Numbers]] = TiedPairNumbers

    training: Training

    def run(self) -> Result:
        """Train, build the network, and compare both on drawn inputs."""
        config = self.training
        trained = train(config.problems(), [config.recipe], config.seeds)
        assert trained.worst_loss is not None
        weights = trained.model.score_weights().detach()
        network = FFNN1(config.n, 2, runs=(len(weights),))
        with torch.no_grad():
            # v = Σ_l c_l (1 − 2x_l) = 2 − 2Σ_l c_l x_l
            network.beta.copy_(torch.stack([-2 * weights, 2 * weights], 1))
            network.hidden_bias.copy_(torch.tensor([2.0, -2.0]).expand_as(network.hidden_bias))
            network.alpha.fill_(1.0)
            network.bias.fill_(-1.0)
            drawn = (torch.rand(200, config.n, generator=seeded_generator(0, "data")) < 0.5).double()
            difference = float((network(drawn) - trained.model(drawn)).abs().max())
        numbers = TiedPairNumbers(
            worst_loss=tuple(trained.worst_loss.tolist()),
            trained_numbers=trained.model.trained_parameters(),
            edges=2 * config.n,
            difference_to_the_network=difference,
        )
        return Result(numbers)


_UNSEEN = "least hinge risk of a network without an edge from one of the pair"
_GROWTH = "exponent in d of the parameters with which a network whose edges share parameters learns"
_CLAUSES = (
    Clause("an edge from every bit is needed", _UNSEEN, at_least(1 - 1e-9), "the label is a fair coin; rounding"),
    Clause(
        "Ω(d) free parameters are needed",
        _GROWTH,
        at_least(0.95),
        "Ω(d) has exponent 1 or more; halfway to none at all refutes it",
        refuted_if=below(0.5),
    ),
)


def _tied_pairs(context: Context) -> list[TiedPair]:
    sizes = (1000, 3000) if context.scale == "smoke" else (1000, 3000, 10_000)
    return [TiedPair(training=one_step_training(n, 9, 0.0)) for n in sizes]


def _ffnn(context: Context) -> Measurement:
    """Optimise networks that miss a bit, and count the parameters of one that ties its edges."""
    seen = torch.ones(_BITS, dtype=torch.float64)
    control = _least_risk(seen, context)
    seen[_HIDDEN[0]] = 0.0
    unseen = _least_risk(seen, context)
    rows: list[Row[TiedPair, TiedPairNumbers]] = [context.row(config) for config in _tied_pairs(context)]
    numbers, shares = {}, {}
    for row in rows:
        n, found = row.config.training.n, row.numbers
        shares[n] = share_below(found.worst_loss, ISOLATED)
        same = found.difference_to_the_network < 1e-9
        # A network that ties its edges and does not learn says nothing: then every edge needs its own.
        numbers[n] = found.trained_numbers if same and at_least(0.5).admits(shares[n]) else found.edges
    growth = fitted_exponent([float(n) for n in numbers], [float(count) for count in numbers.values()])
    return Measurement(
        {_UNSEEN: -unseen.value, _GROWTH: growth},
        f"a bit without an edge: risk ≥ {-unseen.value:.4f}; with shared edges {rows[-1].numbers.trained_numbers}"
        f" parameters learn d = {rows[-1].config.training.n} on {shares[rows[-1].config.training.n]}",
        f"{tried_by([unseen])} on networks without an edge; {len(rows[0].config.training.seeds)} seeds at"
        f" {len(rows)} sizes",
        {
            "bits_of_the_attacked_network": _BITS,
            "seed": _SEED,
            "least_risk_with_an_ignored_bit": -unseen.value,
            "least_risk_with_all_bits_seen": -control.value,
            "tied_network": {
                n: {"edges": row.numbers.edges, "numbers": row.numbers.trained_numbers, "learned": shares[n]._asdict()}
                for n, row in zip(numbers, rows, strict=True)
            },
        },
        "Given the other bits the label of a pair with an unseen bit is a fair coin, so an edge from every bit is"
        " needed. But edges may share parameters: H2's own transformer is a network of two ReLUs with d edges each,"
        " whose 2d weights come from 2⌈log² d⌉ trained parameters.",
        {_GROWTH: {"steps": [seed_at(row.config.training, row.numbers.worst_loss, 0) for row in (rows[0], rows[-1])]}},
    )


def _growth_again(point: Mapping[str, Any]) -> Again:
    """Count two heads of r parameters where the network with tied edges learns, and all its edges where it does not."""
    steps = point["steps"]
    counts = [2.0 * (one["r"] if _tied_loss(one) < ISOLATED else one["n"]) for one in steps]
    route = "parameters counted at two sizes; the gradient as an integral, two ReLUs in numpy"
    return Again(fitted_exponent([float(one["n"]) for one in steps], counts), route)


def _tied_loss(point: Mapping[str, Any]) -> float:
    """Take the step by the second route and evaluate the network with its tied edges in plain numpy."""
    again = step_again(point)
    edges = np.stack([again.weights(), -again.weights()])  # of x in ±1
    i, j = again.pair
    losses = []
    for signs in ((1, -1), (1, 1)):
        x = np.full(point["n"], -1.0 if signs == (1, 1) or edges[0, i] < edges[0, j] else 1.0)
        x[[i, j]] = signs
        output = np.maximum(edges @ x, 0).sum() - 1  # the parity of the pair
        losses.append(max(0.0, 1 - float(x[i] * x[j] * output)))
    return max(losses)


CLAIMS = (
    Claim(
        "H2-ffnn",
        "Feed-forward networks need Ω(d) parameters for this problem.",
        _CLAUSES,
        _ffnn,
        "Abstract",
        seconds=2,
        needs=_tied_pairs,
        replay={_GROWTH: _growth_again},
    ),
)
