"""The finite-sample learner on a table: near-uniform start, bounded readout, minibatches, restarts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Int8
from numpy import ndarray
from torch import Tensor

from parityscope.core.threads import single_threaded
from parityscope.fit.clock import Budget
from parityscope.fit.evidence.evidence import correlation
from parityscope.fit.solvers.scan import BitSet
from parityscope.measures import found_support
from parityscope.models import ParityTransformer
from parityscope.risk.losses import named_loss
from parityscope.training.build import build_model
from parityscope.training.descent import Evaluation, Objective, TrainingState, descend, make_optimiser
from parityscope.training.recipes import BOUNDED, Recipe
from parityscope.training.sources import widened_score

RESTARTS = 4
_BATCH_NUMBERS = 2**24  # bits per minibatch: 16 MB, and as many rows as that allows
_WORTH_A_THREAD = 2**22
_COMBINATIONS = 1024
_NUMBER_SECONDS = 2e-9  # nominal, per bit of a minibatch and step


class AttentionFit(NamedTuple):
    """What a training found, and how its heads attend to the bits."""

    scored: BitSet
    attention: Float[ndarray, "heads bits"]


def find(
    signs: Int8[ndarray, "bits rows"],
    labels: Int8[ndarray, " rows"],
    k: int,
    seed: int,
    *,
    owner: Int[ndarray, " bits"] | None = None,
    budget: Budget | None = None,
) -> Iterator[AttentionFit]:
    """Yield what each of RESTARTS trainings found: the caller stops at the first it believes.

    Bits of one column (`owner`) share its weight: attention names the k columns, and of their bits the combination
    that agrees best with the labels is taken.
    """
    owner = np.arange(len(signs)) if owner is None else owner
    x = torch.from_numpy((signs < 0).astype(np.int8).T)  # (rows, bits)
    y = torch.from_numpy(np.ascontiguousarray(labels))
    recipe = BOUNDED.adapted(k, from_examples=True).resolved(len(signs), k)
    for restart in range(RESTARTS):
        if budget is not None and budget.left < 0:
            return
        model = _trained(x, y, recipe, k, seed + restart, budget or Budget(math.inf))
        with torch.no_grad():
            by_column = torch.zeros(2, int(owner.max()) + 1).index_add_(
                1, torch.from_numpy(owner), model.score_weights()
            )
            columns = found_support(by_column, k).tolist()
            attention = model.attention().double().numpy()
        found = [
            AttentionFit(_best_bits(signs, labels, owner, some), a) for some, a in zip(columns, attention, strict=True)
        ]
        yield max(found, key=lambda one: abs(one.scored.strength))


def summed_by_column(
    attention_to_bits: Float[ndarray, "heads bits"], owner: Int[ndarray, " bits"], columns: int
) -> Float[ndarray, "heads columns"]:
    """Return the attention to every column: that of its bits together.

    >>> summed_by_column(np.array([[0.25, 0.25, 0.5]]), np.array([0, 0, 3]), 4).tolist()
    [[0.5, 0.0, 0.0, 0.5]]
    """
    summed = np.zeros((len(attention_to_bits), columns))
    np.add.at(summed.T, owner, attention_to_bits.T)
    return summed


def _trained(x: Tensor, y: Tensor, recipe: Recipe, k: int, seed: int, budget: Budget) -> ParityTransformer:
    """Train two runs from one start: on the labels, and on the labels negated, since either may be the parity."""
    model = build_model(recipe, x.shape[1], k, (seed, seed)).float()
    state = TrainingState.fresh(2)
    state.best_risk = state.best_risk.float()
    rows = min(len(x), _batch_rows(x.shape[1]))

    def stop_together(state: TrainingState, risk: Tensor) -> None:
        # One of the two chases the wrong sign: once the other is done there is nothing to wait for.
        budget.charge(_NUMBER_SECONDS * rows * x.shape[1])
        budget.report(f"attention with {k} heads")
        if not bool(state.active.all()) or budget.left < 0:
            state.stop(state.active)

    with single_threaded(x.shape[1] * rows < _WORTH_A_THREAD):
        descend(
            model,
            _minibatches(model, x, y, recipe, seed),
            recipe,
            state,
            make_optimiser(model, recipe),
            after_step=stop_together,
            # A run is on its way once its risk is six standard deviations below chance.
            patience_below=1 - 6 / rows**0.5,
        )
    return model


def _batch_rows(bits: int) -> int:
    return max(1024, _BATCH_NUMBERS // bits)


def _minibatches(model: ParityTransformer, x: Tensor, y: Tensor, recipe: Recipe, seed: int) -> Objective:
    """Return the risk on the next minibatch at each call: all rows where they fit, passes in random order otherwise."""
    loss = named_loss(recipe.loss)
    batches = _batches(x, y, torch.Generator().manual_seed(seed))

    def evaluate() -> Evaluation:
        bits, labels = next(batches)
        score = widened_score(model)
        S = score.weights @ bits.T + score.offset.unsqueeze(-1)  # (2, rows)
        margin = torch.stack([labels, -labels]) * score.readout(S)
        risk = loss.of_mean(loss.of_margin(margin).mean(-1))
        return Evaluation(risk, risk)

    return evaluate


def _batches(x: Tensor, y: Tensor, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    rows = _batch_rows(x.shape[1])
    if len(x) <= rows:
        whole = x.float(), y.float()
        while True:
            yield whole
    while True:
        order = torch.randperm(len(x), generator=generator)
        for chosen in order[: len(x) // rows * rows].split(rows):
            yield x[chosen].float(), y[chosen].float()


def _best_bits(signs: ndarray, labels: ndarray, owner: ndarray, columns: list[int]) -> BitSet:
    """Return the strongest parity with one bit of each column; of a column with many bits the first few are tried."""
    each = int(_COMBINATIONS ** (1 / len(columns)))
    choices = [np.flatnonzero(owner == column)[: max(1, each)].tolist() for column in columns]
    scored = [
        BitSet(some, correlation(np.prod(signs[list(some)], axis=0, dtype=np.int8), labels))
        for some in product(*choices)
    ]
    return max(scored, key=lambda one: abs(one.strength))
