"""H1, Section 3: how many parameters express k-parity, and how many an FFNN needs to learn it."""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar

import torch

from parityscope.core.statistics import wilson_share
from parityscope.models import FFNN1, ParityTransformer, parity_ffnn, parity_transformer
from parityscope.papers.claim import Check, Claim, Context
from parityscope.problems import Parity, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import population_risk
from parityscope.runs.training import Training, training
from parityscope.theory import parity_ffnn_parameters, parity_transformer_parameters
from parityscope.training.learning import train
from parityscope.training.optimisers import Adam


def _proposition_3_ffnn(context: Context) -> Check:
    """Visit every input for every support of every size."""
    n = context.at(smoke=6, reference=9, paper=12)
    worst, supports = 0.0, 0
    for k in range(1, n + 1):
        for support in combinations(range(n), k):
            worst = max(worst, float(population_risk(parity_ffnn(n, support), Parity(n, support)).value.detach()))
            supports += 1
    net = parity_ffnn(n, range(3))
    # One input weight shared by all edges, and then biases, output weights and the output bias.
    distinct = sum(len(torch.unique(p.detach()[p.detach() != 0])) for p in (net.beta, net.hidden_bias, net.alpha))
    counted = distinct + net.bias.numel()
    holds = worst == 0 and counted == parity_ffnn_parameters(3)
    return Check(
        "holds" if holds else "fails",
        f"risk {worst:g} for all {supports} supports",
        {"n": n, "supports": supports, "inputs": 2**n, "largest_risk": worst, "distinct_at_k_3": counted},
        f"h_B was evaluated on all 2^{n} inputs for every support of every size; its distinct numbers were counted.",
    )


def _risk(model: ParityTransformer, problem: Parity, engine: str) -> float:
    with torch.no_grad():
        return float(population_risk(model, problem, engine=engine).value)


def _proposition_3_transformer(context: Context) -> Check:
    """Follow the risk of the construction towards τ → 0 and b → 0."""
    n, support = 8, (1, 4, 6)
    problem = Parity(n, support)
    path = [
        {"tau": tau, "b": b, "risk": _risk(parity_transformer(n, support, tau, b), problem, "enumerate")}
        for tau, b in ((1 / n, 0.01), (1 / n, 0.0), (0.01, 0.01), (0.01, 1e-6), (0.001, 1e-12), (0.001, 0.0))
    ]
    others = [
        _risk(parity_transformer(n, chosen, 0.001, 0.0), Parity(n, chosen), "enumerate")
        for k in range(1, context.at(smoke=2, reference=n, paper=n) + 1)
        for chosen in combinations(range(n), k)
    ]
    at_stated, in_the_limit = path[0]["risk"], max(others)
    # The same number by the engine that never visits an input.
    again = _risk(parity_transformer(n, support, 1 / n, 0.0), problem, "split")
    matrix = ParityTransformer(n, 3, full_matrix=True)
    counted = sum(p.numel() for p in matrix.parameters()) + parity_ffnn_parameters(3)
    right_count = counted == parity_transformer_parameters(3)
    exact_limit = in_the_limit < 1e-12 and right_count
    return Check(
        "holds" if exact_limit and at_stated < 1e-12 else "holds in part" if exact_limit else "fails",
        f"risk {at_stated:.2g} at τ = 1/n, b = 0.01; {in_the_limit:.0e} in the limit τ, b → 0",
        {
            "counterexample": {"n": n, "support": list(support), **path[0]},
            "towards_the_limit": path,
            "risk_at_tau_1/n_b_0_by_split": again,
            "supports_in_the_limit": len(others),
            "largest_risk_in_the_limit": in_the_limit,
            "parameters_counted_at_k_3": counted,
        },
        "The construction's risk over all inputs: with finite τ and b > 0 it is not 0; with τ = 0.001 and b = 0 it is, "
        "for every support tried, and the parameters number 18k + 2.",
    )


class MissingInputNumbers(Numbers):
    """The lowest risk of any start at any step."""

    lowest_risk: float


class MissingInput(Config):
    """Trainings of FFNNs without the edges of one hidden bit."""

    ROWS: ClassVar[str] = "H1-missing-input"
    NUMBERS: ClassVar[type[Numbers]] = MissingInputNumbers

    starts: int
    steps: int

    def run(self) -> Result:
        """Descend from all starts at once."""
        n, support = 6, (1, 4)
        net = FFNN1(n, 8, runs=(self.starts,), generator=seeded_generator(0, "start"))
        seen = torch.ones(n, dtype=torch.float64)
        seen[support[0]] = 0.0
        x, y = next(Parity(n, support).enumerate())
        optimiser = Adam(net.parameters(), 0.02)
        lowest = torch.inf
        for _ in range(self.steps):
            optimiser.zero_grad()
            risk = (1 - y.double() * net(x.double() * seen)).relu().square().mean(-1)
            lowest = min(lowest, float(risk.detach().min()))
            risk.sum().backward()
            optimiser.step()
        return Result(MissingInputNumbers(lowest_risk=lowest))


class TiedNetworkNumbers(Numbers):
    """What was learned with how many numbers, and how far network and transformer are apart on drawn inputs."""

    learned: tuple[bool, ...]
    trained_numbers: int
    difference_to_the_transformer: float


class TiedNetwork(Config):
    """A training of the bounded readout, its outcome read as an FFNN-1 whose n weights are tied to few numbers."""

    ROWS: ClassVar[str] = "H1-tied-network"
    NUMBERS: ClassVar[type[Numbers]] = TiedNetworkNumbers

    training: Training

    def run(self) -> Result:
        """Train, and compare both readings."""
        config = self.training
        trained = train(config.problems(), [config.recipe], config.seeds)
        drawn = (torch.rand(1000, config.n, generator=seeded_generator(0, "data")) < 0.5).double()
        with torch.no_grad():
            weights = trained.model.score_weights()
            # FFNN-1 with q = 1 neuron, σ = cos, β = πc and α = 1
            as_network = (torch.pi * drawn @ weights.unsqueeze(-1)).squeeze(-1).cos()
            difference = float((as_network - trained.model(drawn)).abs().max())
        numbers = TiedNetworkNumbers(
            learned=tuple(trained.learned.tolist()),
            trained_numbers=trained.model.trained_parameters(),
            difference_to_the_transformer=difference,
        )
        return Result(numbers)


def _proposition_4_trainings(context: Context) -> tuple[MissingInput, TiedNetwork]:
    missing = MissingInput(starts=context.at(smoke=8, reference=64), steps=context.at(smoke=100, reference=600))
    seeds = range(context.at(smoke=4, reference=16))
    return missing, TiedNetwork(training=training("repaired", 100, 3, seeds=seeds))


def _proposition_4(context: Context) -> Check:
    """Train FFNNs that miss an input, and show an FFNN-1 whose n weights are tied to 2k numbers learning."""
    missing_input, tied_network = _proposition_4_trainings(context)
    missing: Row[MissingInput, MissingInputNumbers] = context.row(missing_input)
    tied: Row[TiedNetwork, TiedNetworkNumbers] = context.row(tied_network)
    lowest, starts, n = missing.numbers.lowest_risk, missing.config.starts, tied.config.training.n
    numbers, difference = tied.numbers.trained_numbers, tied.numbers.difference_to_the_transformer
    share = wilson_share(sum(tied.numbers.learned), len(tied.numbers.learned))
    edges_needed = lowest >= 1 - 1e-9
    tied_learns = all(tied.numbers.learned) and difference < 1e-9 and numbers < n
    return Check(
        "fails" if not edges_needed else "holds in part" if tied_learns else "holds",
        f"a missing edge: risk ≥ {lowest:.4f}; {numbers} tied numbers learn n = {n} on {share}",
        {
            "lowest_risk_without_an_input": lowest,
            "random_evaluations": starts,
            "optimised_evaluations": starts * missing.config.steps,
            "tied_ffnn": {
                "n": n,
                "k": tied.config.training.k,
                "edges": n,
                "trained_numbers": numbers,
                "learned": share._asdict(),
                "difference_to_the_transformer": difference,
            },
        },
        "FFNNs without one hidden input's edge were trained from many starts and never beat risk 1, so n edges are "
        "needed; but edges may share numbers: position attention is itself an FFNN-1 whose n weights come from 2k.",
    )


CLAIMS = (
    Claim(
        "H1-proposition-3-ffnn",
        "FFNNs with one hidden layer of exactly k neurons and 2k + 2 distinct parameters express k-parity.",
        _proposition_3_ffnn,
        seconds=2,
    ),
    Claim(
        "H1-proposition-3-transformer",
        "Transformers with k heads, k neurons and 18k + 2 distinct parameters express k-parity.",
        _proposition_3_transformer,
        seconds=1,
    ),
    Claim(
        "H1-proposition-4",
        "To learn k-parity by gradient descent an FFNN needs Ω(n) parameters.",
        _proposition_4,
        seconds=3,
        figure="H1-parameter-efficiency",
        needs=_proposition_4_trainings,
    ),
)
