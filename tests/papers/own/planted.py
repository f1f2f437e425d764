"""The worlds in which our own statements are false, and those in which they are true."""

import math

import torch

from harness.planted import Planted, World, rows_saying
from harness.rows import trained
from papers.own.planted_concave import PLANTED as PLANTED_CONCAVE
from parityscope.papers.own.claims.learning import DescentRate, DescentRateNumbers
from parityscope.risk.engines.closed_form import closed_form_mean
from parityscope.theory import one_gradient_samples
from parityscope.training.steps.log_attention import log_correlation

_CLAIMS = "parityscope.papers.own.claims"
_AS_IT_IS = World("as it is")


def _depending_on_position(score, law, loss):
    """Return a risk to which every hidden position adds a little of its own; the square adds something else."""
    added = 1e-3 * (law.mask * torch.arange(law.n)).sum(-1)
    return closed_form_mean(score, law, loss) + (added if loss.name == "hinge" else 0)


def _upside_down(weights, law):
    return -log_correlation(weights, law)


def _flat(weights, law):
    return 1e-30 * weights.square().sum(-1) - 1


def _wrong_slope(module):
    return {f"{_CLAIMS}.{module}.log_correlation": _upside_down}


def _rows(*, learned, ratio=2.0, **outcome):
    """Return a context in which all trainings come out alike, and plain descent slows down by a ratio."""

    def said(config):
        if isinstance(config, DescentRate):
            return DescentRateNumbers(quarter=(0.5,), half=(0.25,), end=(0.25 * 0.5**ratio,))
        return trained(config, learned=learned, **outcome)

    return rows_saying(said)


def _losses(right):
    """Return a context in which trainings learn by some losses only."""
    return rows_saying(lambda config: trained(config, learned=config.recipe.loss in right))


def _examples(needed):
    """Return a world in which so many examples are needed to name B."""

    def named(n, k, trials, counts, noise=0.0):
        return (torch.tensor(counts) >= needed(n, k, noise)).expand(trials, len(counts))

    return {f"{_CLAIMS}.examples.named_in_trials": named}


def _formula(n, k, noise):
    return one_gradient_samples(n, k) / (1 - 2 * noise) ** 2


def _theorem(n, k, noise):
    """Return n^{k−1} log n, with the formula's constant at n = 20."""
    return _formula(20, k, noise) * (n / 20) ** (k - 1) * math.log(n) / math.log(20)


PLANTED = {
    "P-closed-form": Planted(
        false=World(
            "products that are a tenth too large",
            {
                f"{_CLAIMS}.bounded.closed_form_mean": (
                    lambda score, law, loss: 1.1 * closed_form_mean(score, law, loss)
                )
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-worst-loss": Planted(
        false=World(
            "inputs that lose twice as much",
            {
                "parityscope.models.readouts.Cosine.worst_loss": (
                    lambda readout, distance, k: 1 - torch.cos(torch.pi * distance / 4)
                )
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-concavity": Planted(false=World("log C upside down", _wrong_slope("bounded")), true=_AS_IT_IS),
    "P-gradient-signs": Planted(false=World("log C upside down", _wrong_slope("bounded")), true=_AS_IT_IS),
    "P-one-head": Planted(
        false=World("a log C that is flat at −1", {"parityscope.papers.own.flow.log_correlation": _flat}),
        true=_AS_IT_IS,
    ),
    "P-one-step": Planted(
        false=World("a step down log C", _wrong_slope("learning"), context=_rows(learned=False, worst_loss=2.0)),
        true=World("exact trainings", context=_rows(learned=True)),
    ),
    "P-few-steps": Planted(
        false=World("five steps each", context=_rows(learned=True, steps=5)),
        true=World("two steps each", context=_rows(learned=True, steps=2)),
    ),
    "P-squared-hinge": Planted(
        false=World(
            "a term that knows B, and losses swapped",
            {f"{_CLAIMS}.learning.closed_form_mean": _depending_on_position},
            context=_losses({"squared-hinge"}),
        ),
        true=World("squared hinge learns nothing", context=_losses({"hinge", "log-correlation"})),
    ),
    "P-theorem-5-circle": Planted(
        false=World("no seed learns, and descent falls like 1/t", context=_rows(learned=False, ratio=1.0)),
        true=World("every seed learns, and descent is linear", context=_rows(learned=True, ratio=2.0)),
    ),
    "P-samples": Planted(
        false=World("a gradient that never names B", _examples(lambda n, k, noise: math.inf)),
        true=World("n^{k−1} log n exactly", _examples(_theorem)),
    ),
    "P-noise-and-bias": Planted(
        false=World(
            "nothing found, and noise that costs nothing",
            _examples(lambda n, k, noise: one_gradient_samples(n, k)),
            context=_rows(learned=False),
        ),
        true=World("noise costs what it must", _examples(_formula), context=_rows(learned=True)),
    ),
    **PLANTED_CONCAVE,
}
