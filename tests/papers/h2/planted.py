"""The worlds in which H2's statements are false, and those in which they are true."""

import math
from types import SimpleNamespace

import torch

from harness.planted import Planted, World, rows_saying
from harness.rows import trained
from parityscope.papers.claim import Context
from parityscope.papers.h2.claims import substitutes
from parityscope.papers.h2.claims.ffnn import network_risk
from parityscope.papers.h2.claims.one_step import InputSearch, InputSearchNumbers, PairAttention, PairAttentionNumbers
from parityscope.papers.h2.claims.samples import Trials
from parityscope.theory import initial_score_variance, one_gradient_samples


def _rows(loss, *, excess=0.0):
    """Return a context in which the worst input of every training loses `loss(training)`."""

    def said(config):
        if isinstance(config, PairAttention):
            lost = loss(config.training)
            seeds = len(config.training.seeds)
            return PairAttentionNumbers(worst_loss=(lost,) * seeds, recovered=(lost < 1,) * seeds, least_on_pair=0.5)
        if isinstance(config, InputSearch):
            lost = loss(config.training)
            return InputSearchNumbers(found=(lost + excess,), certified=(lost,))
        return trained(config, worst_loss=loss(config))

    return rows_saying(said)


def _codes(smallest):
    """Return a context in which the rows of H2-parameters name these smallest codes."""
    sizes = (1000, 10_000, 100_000)
    rows = [
        SimpleNamespace(config=SimpleNamespace(n=n), numbers=SimpleNamespace(smallest=(smallest(n),) * 9))
        for n in sizes
    ]
    return Context("smoke", rows={"H2-parameters": rows}.__getitem__)


def _best_steps(loss):
    """Return patches of a world in which the best step loses so much with every code."""
    return {"parityscope.papers.h2.claims.one_step.best_step_loss": lambda n, r, seed: loss}


def _variance(training):
    """Return the variance of a training's initial scores, in units of 1/log d."""
    return training.recipe.start_radius**2 / training.recipe.numbers_per_head / initial_score_variance(training.n)


def _step_trials(needed, teaching):
    """Return a world in which so many examples are needed to name a pair, and so many to learn it."""

    def trials_at(n, r, counts, trials):
        many = torch.tensor(counts).expand(trials, len(counts))
        return Trials(tuple(counts), many >= needed(n, r), torch.where(many >= teaching(n, r), 0.0, 2.0).double())

    return {"parityscope.papers.h2.claims.samples.one_step_trials": trials_at}


def _predicted(n, r):
    return one_gradient_samples(n, 2, r, two_neuron=True)


def _swapped(scores, shift):
    return substitutes._linear(scores, shift)


def _never(scores, shift):
    return 2 * (1 + scores.tanh()) / scores.shape[-1]


_SUBSTITUTES = "parityscope.papers.h2.claims.substitutes"
PLANTED = {
    "H2-one-step": Planted(
        false=World("every seed loses 2 and finds nothing", context=_rows(lambda training: 2.0)),
        true=World("every seed loses 0.01", context=_rows(lambda training: 0.01)),
    ),
    "H2-parameters": Planted(
        false=World("every code loses 2", _best_steps(2.0), _codes(lambda n: n // 10)),
        true=World("every code loses 0.01", _best_steps(0.01), _codes(lambda n: 20)),
    ),
    "H2-every-input": Planted(
        false=World(
            "a loss that grows like √d, and an input that loses more than certified",
            context=_rows(lambda training: 0.01 * math.sqrt(training.n), excess=0.5),
        ),
        true=World("a loss of 1/√d", context=_rows(lambda training: training.n**-0.5)),
    ),
    "H2-initial-variance": Planted(
        false=World(
            "the range turned inside out", context=_rows(lambda training: 2.0 * (0.1 < _variance(training) < 10))
        ),
        true=World(
            "lost outside of the range", context=_rows(lambda training: 2.0 * (not 0.1 < _variance(training) < 10))
        ),
    ),
    "H2-softmax": Planted(
        false=World(
            "softmax and its substitutes swapped",
            {
                f"{_SUBSTITUTES}._ATTENTION": {
                    name: _swapped if name == "softmax" else substitutes._softmax for name in substitutes._ATTENTION
                }
            },
        ),
        true=World(
            "substitutes that cannot exceed 4/d",
            {
                f"{_SUBSTITUTES}._ATTENTION": {
                    name: substitutes._softmax if name == "softmax" else _never for name in substitutes._ATTENTION
                },
            },
        ),
        confirmed="holds, where tested",
    ),
    "H2-temperature": Planted(
        false=World(
            "isolated at every temperature but the usual ones",
            {f"{_SUBSTITUTES}._isolates": lambda scores, stable: not 10 < float(scores.max()) < 40},
        ),
        true=World("as it is, at the demo's d", context=Context("demo")),
    ),
    "H2-samples": Planted(
        false=World("no number of examples is enough", _step_trials(lambda n, r: math.inf, lambda n, r: math.inf)),
        true=World("the predicted number names and teaches", _step_trials(_predicted, _predicted)),
    ),
    "H2-ffnn": Planted(
        false=World(
            "a network that sees the bit all the same",
            {
                "parityscope.papers.h2.claims.ffnn.network_risk": lambda numbers, seen: network_risk(
                    numbers, torch.ones_like(seen)
                )
            },
        ),
        true=World("the world as it is"),
    ),
}
