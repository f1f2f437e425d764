"""The methods on the table: each a function `solve(x, y, task)` of about twenty lines, and a line of `METHODS`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import largest
from parityscope.fit.classifier import NothingFound, SparseParityClassifier, TiedColumns
from parityscope.fit.solvers import elimination
from parityscope.models import GPT, ParityTransformer
from parityscope.papers.k.chain import COSINE, QUADRATIC, ChainTransformer, ParityTree
from parityscope.papers.k.training import (
    Variant,
    experiment,
    experiment_rate,
    learn_end_to_end,
    learn_log_correlation,
    one_step_rate,
    stepped,
    summed_gradient,
)
from parityscope.papers.own.compare.method import Answer, Method, Task
from parityscope.problems import Parity, seeded_generator
from parityscope.training.attention_path import named_set, path_gradients
from parityscope.training.build import build_model
from parityscope.training.descent import TrainingState, descend, make_optimiser
from parityscope.training.learning import learn
from parityscope.training.recipes import named_recipe
from parityscope.training.sources import sample_objective


def _parity_of(n: int, support: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    return Parity(n, support).label if support else lambda x: torch.ones(len(x))


def _elimination(x: Tensor, y: Tensor, task: Task) -> Answer:
    """Gaussian elimination over GF(2): exact without noise."""
    bits, labels = x.numpy().astype(np.uint8)[None], (y.numpy() < 0).astype(np.uint8)[None]
    (solution,), _, _ = elimination.solve(bits, labels)
    support = tuple(np.flatnonzero(solution).tolist())
    return Answer(_parity_of(task.n, support), multiply_adds=float(len(x)) * task.n**2)


def _fit(x: Tensor, y: Tensor, task: Task) -> Answer:
    """`parityscope fit`, told k, with 5 nominal seconds to search."""
    model = SparseParityClassifier(task.k, budget=5, random_state=task.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingFound)
        warnings.simplefilter("ignore", TiedColumns)
        model.fit(x.numpy(), y.numpy())
    return Answer(lambda fresh: torch.from_numpy(model.predict(fresh.numpy()).astype(np.float32)))


def _descended(x: Tensor, y: Tensor, task: Task, *, recipe: str) -> Answer:
    """Train one of the recipes of `learn` on the examples."""
    chosen = named_recipe(recipe).adapted(task.k, from_examples=True).resolved(task.n, task.k)
    model, state = build_model(chosen, task.n, task.k, [task.seed]), TrainingState.fresh(1)
    objective = sample_objective(model, x[None], y[None], chosen.loss, wide_phase=chosen.wide_phase)
    # A run is on its way once its risk is six standard deviations below chance.
    patience = 1 - 6 / len(x) ** 0.5
    descend(model, objective, chosen, state, make_optimiser(model, chosen), patience_below=patience)
    parameters = model.trained_parameters()
    each = 2.0 * len(x) * task.n + 2.0 * task.n * parameters  # S = c·x and its gradient; c = c(Pq)
    return Answer(lambda fresh: _read(model, fresh), state.step, parameters, state.step * each)


def _read(model: ParityTransformer, x: Tensor) -> Tensor:
    return model(x[None] if model.directions.dim() > 2 else x).flatten()


def _concave(x: Tensor, y: Tensor, task: Task) -> Answer:
    """Follow n paths of attention, then train the concave head on the set that the labels support best."""
    n, k = task.n, task.k
    trained = learn(Parity(n, named_set(x, y, k).support), "concave", seeds=[task.seed])
    steps, parameters = int(trained.steps[0]), trained.model.trained_parameters()
    paths = 2.0 * len(x) * n * n * (k - 1)
    return Answer(
        lambda fresh: _read(trained.model, fresh), k * n + steps, parameters, paths + steps * n * parameters**2
    )


def _one_gradient(x: Tensor, y: Tensor, task: Task) -> Answer:
    """Take the k largest entries of one gradient at uniform attention."""
    gradient = path_gradients(x, y, torch.zeros(1, 0, dtype=torch.int64), task.k)[0]
    support = tuple(largest(gradient, task.k).tolist())
    return Answer(_parity_of(task.n, support), 1, task.n, 2.0 * len(x) * task.n)


def _pairs(x: Tensor, y: Tensor, task: Task) -> Answer:
    """Take every value that is shown for the product of the two earlier ones, or of one and 1, which agrees best."""
    assert task.steps is not None
    shown = torch.cat([torch.ones(len(x), 1), 1 - 2 * x, task.steps], 1)
    pairs, operations = list[tuple[int, int]](), 0.0
    for end in range(1 + task.n, shown.shape[1]):
        agreement = (shown[:, :end] * shown[:, end, None]).T @ shown[:, :end]
        pairs.append(divmod(int(agreement.fill_diagonal_(-math.inf).argmax()), end))
        operations += float(len(x)) * end**2

    def predict(fresh: Tensor) -> Tensor:
        made = functional.pad(1 - 2.0 * fresh, (1, 0), value=1.0)
        for one, other in pairs:
            made = torch.cat([made, (made[:, one] * made[:, other])[:, None]], 1)
        return made[:, -1]

    return Answer(predict, multiply_adds=operations)


_DECODER_BATCH = 256


def _decoder(x: Tensor, y: Tensor, task: Task) -> Answer:
    """Train W's decoder once over the examples: bits, 0, then the chain, or at once the label."""
    width, steps = 128, y[:, None] if task.steps is None else task.steps
    tokens = torch.cat([x, torch.zeros(len(x), 1, dtype=x.dtype), (steps < 0).to(x.dtype)], 1).long()
    links = steps.shape[1]
    written = torch.arange(task.n, task.n + links)
    gain = math.sqrt(720 / width)  # as wide for this width as W's matrices are for its own
    model = GPT(tokens.shape[1], 1, 8, width, start_gain=gain, generator=seeded_generator(task.seed, "start"))
    optimiser = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
    for rows in tokens.split(_DECODER_BATCH):
        optimiser.zero_grad()
        functional.cross_entropy(model(rows, written).flatten(0, 1), rows[:, written + 1].flatten()).backward()
        optimiser.step()

    def predict(fresh: Tensor) -> Tensor:
        prompt = functional.pad(fresh.long(), (0, 1))
        return 1.0 - 2.0 * model.generate(prompt, links)[:, -1]

    # Of each written token: 9 matrices of width², and attention to all tokens before it; backward twice that.
    each = links * (9.0 * width**2 + 4.0 * width * tokens.shape[1])
    parameters = sum(one.numel() for one in model.parameters())
    return Answer(predict, -(-len(x) // _DECODER_BATCH), parameters, 3 * len(x) * each)


@dataclass(frozen=True, eq=False)
class _ShownTree(ParityTree):
    """A tree of which only sizes are known, and the values of its nodes on some examples."""

    shown: Tensor  # (N, d + k − 1)

    @classmethod
    def of(cls, x: Tensor, task: Task) -> _ShownTree:
        assert task.steps is not None
        return cls(Parity(task.n, tuple(range(task.k))), torch.cat([1 - 2 * x, task.steps], 1).float())

    def draw(self, count: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the inputs of the examples; of other numbers of strings, random ones."""
        return self.shown[:, : self.d] if count == len(self.shown) else super().draw(count, generator, dtype)

    def chain(self, x: Tensor) -> Tensor:
        """Return what was shown."""
        return self.shown

    def answer(self, model: ChainTransformer, steps: int, *, passes: float = 3.0) -> Answer:
        """Return the answer of the trained chain; every step goes over all examples, forward and backward."""
        parameters = model.trained_parameters()
        return Answer(
            lambda fresh: model(1 - 2.0 * fresh)[:, -1],
            steps,
            parameters,
            passes * steps * len(self.shown) * parameters,
        )


def _k_one_step(x: Tensor, y: Tensor, task: Task) -> Answer:
    """Theorem 5 of K: one gradient step from W = 0 with teacher forcing."""
    tree = _ShownTree.of(x, task)
    gradient = summed_gradient(tree, tree.shown, QUADRATIC) / len(x)
    return tree.answer(stepped(tree, QUADRATIC, -one_step_rate(tree, QUADRATIC) * gradient), 1, passes=2.0)


def _k_experiment(x: Tensor, y: Tensor, task: Task, *, variant: Variant, steps: int) -> Answer:
    """Train as in K's Section 4."""
    tree = _ShownTree.of(x, task)
    model = ChainTransformer(tree, QUADRATIC, block=variant == "CoT + self-consistency")
    experiment(variant, model, tree.shown[:, : tree.d], experiment_rate(tree), steps)
    return tree.answer(model, steps)


def _k_rounded(x: Tensor, y: Tensor, task: Task) -> Answer:
    """Theorem 7 of K: log₂ k rounded steps end to end, with filter and block mask."""
    tree = _ShownTree.of(x, task)
    return tree.answer(learn_end_to_end(tree, len(x), task.seed), tree.height)


def _log_correlation(x: Tensor, y: Tensor, task: Task) -> Answer:
    """K's chain with −cos πt, ascending every node's log-correlation, end to end."""
    tree = _ShownTree.of(x, task)
    model = learn_log_correlation(tree, len(x), task.seed, COSINE, forced=False)
    return tree.answer(model, 61 * tree.height, passes=3.0 / tree.height)


_MLP_WIDTH, _MLP_BATCH, _MLP_RATE = 512, 128, 0.3


def _mlp(x: Tensor, y: Tensor, task: Task) -> Answer:
    """Two layers of ReLUs by plain SGD on the hinge loss, once over the examples (Barak and others, 2022)."""
    torch.manual_seed(task.seed)
    model = nn.Sequential(nn.Linear(task.n, _MLP_WIDTH), nn.ReLU(), nn.Linear(_MLP_WIDTH, 1))
    optimiser = torch.optim.SGD(model.parameters(), _MLP_RATE)
    for bits, labels in zip(x.split(_MLP_BATCH), y.split(_MLP_BATCH), strict=True):
        optimiser.zero_grad()
        (1 - labels * model(1 - 2.0 * bits)[:, 0]).relu().mean().backward()
        optimiser.step()
    parameters = sum(one.numel() for one in model.parameters())
    return Answer(
        lambda fresh: model(1 - 2.0 * fresh)[:, 0], -(-len(x) // _MLP_BATCH), parameters, 3.0 * len(x) * parameters
    )


def fourier_gap(n: int, k: int) -> float:
    """Return the Fourier gap of a threshold neuron, exactly: by how much its first gradient is larger on hidden bits.

    With weights ±1 and bias −θ a ReLU passes the gradient where Σs > θ. The label times that is correlated with a
    hidden bit by the Fourier coefficient ξ_{k−1} of this threshold function, and with any other bit by ξ_{k+1}. The gap
    is |ξ_{k−1}| − |ξ_{k+1}| at the best θ (Barak and others, 2022, Section 4, for θ = 0).

    >>> fourier_gap(5, 2), round(1 / fourier_gap(20, 3) ** 2)
    (0.125, 7687)
    """
    lower, upper = _threshold_coefficients(n, k - 1), _threshold_coefficients(n, k + 1)
    return max(abs(one) - abs(other) for one, other in zip(lower, upper, strict=True))


def _threshold_coefficients(n: int, m: int) -> list[float]:
    """Return E[1{at most c signs are −1}·s_1 ⋯ s_m] for every c."""
    by_count = [
        sum((-1) ** j * math.comb(m, j) * math.comb(n - m, c - j) for j in range(min(m, c) + 1)) for c in range(n + 1)
    ]
    return [total / 2**n for total in accumulate(by_count)]


_SIGN_STEPS, _SIGN_RATE, _DEAD_ZONE = 12, 0.3, 0.5
_MOST_POWER = 8


def _sign_sgd(x: Tensor, y: Tensor, task: Task) -> Answer:
    """Sign-SGD with a dead zone on z^k units with a ±1 start (Kou and others, 2024), once over the examples.

    The correlation's gradient is ±k! on the hidden bits of a unit and 0 elsewhere; half of k! is our dead zone.
    """
    k = min(task.k, _MOST_POWER)
    width = 4 * k * 2**k
    generator = seeded_generator(task.seed, "start")
    w, a = (torch.randint(0, 2, shape, generator=generator) * 2.0 - 1 for shape in ((width, task.n), (width, 1)))
    zone = _DEAD_ZONE * math.factorial(k)
    for bits, labels in zip(x.tensor_split(_SIGN_STEPS), y.tensor_split(_SIGN_STEPS), strict=True):
        signs = 1 - 2.0 * bits
        gradient = a * (k * (w @ signs.T) ** (k - 1) * labels) @ signs / max(1, len(bits))
        w = (1 - _SIGN_RATE) * w + _SIGN_RATE * gradient.sign() * (gradient.abs() > zone)
    return Answer(
        lambda fresh: (a.T @ (w @ (1 - 2.0 * fresh).T) ** k)[0],
        _SIGN_STEPS,
        w.numel(),
        2.0 * len(x) * w.numel(),
    )


METHODS: dict[str, Method] = {
    "GF(2) elimination": Method(_elimination),
    "fit": Method(_fit),
    "concave, n paths": Method(_concave),
    "bounded": Method(partial(_descended, recipe="bounded")),
    "H1 as coded": Method(partial(_descended, recipe="as-coded")),
    "H2, one gradient": Method(_one_gradient),
    "MLP, SGD": Method(_mlp),
    "sign-SGD, z^k": Method(_sign_sgd),
    "W's decoder": Method(_decoder),
    "pairs by search, chain": Method(_pairs, "labels and a chain"),
    "W's decoder, chain": Method(_decoder, "labels and a chain"),
    "pairs by search, tree": Method(_pairs, "labels and a tree"),
    "K, one step": Method(_k_one_step, "labels and a tree"),
    "K, log₂ k rounded steps": Method(_k_rounded, "labels and a tree"),
    "K, teacher forcing": Method(
        partial(_k_experiment, variant="CoT + teacher forcing", steps=350), "labels and a tree"
    ),
    "K, self-consistency": Method(
        partial(_k_experiment, variant="CoT + self-consistency", steps=1000), "labels and a tree"
    ),
    "log-correlation chain": Method(_log_correlation, "labels and a tree"),
}


def named_method(name: str) -> Method:
    """Return the method called `name`."""
    if name not in METHODS:
        raise InvalidInput(f"unknown method {name!r}: choose one of {'; '.join(METHODS)}")
    return METHODS[name]
