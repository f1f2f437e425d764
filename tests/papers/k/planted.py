"""The worlds in which K's statements are false, and those in which they are true."""

from fractions import Fraction

import torch

from harness.planted import Planted, World, rows_saying
from parityscope.papers.attack import Attack
from parityscope.papers.claim import Context
from parityscope.papers.k.chain import QUADRATIC
from parityscope.papers.k.claims import hardness
from parityscope.papers.k.figures.examples_needed import TrialNumbers
from parityscope.papers.k.figures.experiments import FIGURES, ExperimentNumbers
from parityscope.papers.k.training import VARIANTS
from parityscope.records import Result, Row

_AS_IT_IS = World("as it is")
_HARDNESS, _LEARNING = "parityscope.papers.k.claims.hardness", "parityscope.papers.k.claims.learning"


def _trials(error):
    """Return a context in which every seed of every training has this error on its worst input."""

    def said(config):
        lines = len(config.counts), len(config.seeds)
        return TrialNumbers(
            right=((error < 1,) * lines[1],) * lines[0], certified_error=((error,) * lines[1],) * lines[0]
        )

    return rows_saying(said)


def curves(solved, *, scale="reference", chain=(0.9, 0.2, 0.3), answer=0.5):
    """Return a context with the rows of K's figures, in which the given (method, k) are solved."""
    rows = {}
    for figure in FIGURES:
        rows[figure.ID] = [
            Row.of(
                config,
                Result(
                    ExperimentNumbers(
                        chain_loss=0.0 if (config.variant, config.k) in solved else chain[-1],
                        answer_loss=answer,
                        least_chain_loss=min(chain),
                        least_answer_loss=answer,
                        opened=(),
                        accuracy=1.0 if (config.variant, config.k) in solved else 0.5,
                    ),
                    {"chain": torch.tensor(chain), "answer": torch.full((3,), answer)},
                ),
                0.0,
            )
            for config in figure.CONFIGS[scale]
        ]
    return Context("smoke", rows=rows.__getitem__)


def _everything_moves(tree, link, *, block):
    return torch.full((tree.k - 1, tree.tokens), -1.0, dtype=torch.float64)


_DIRECT, _PLAIN, _FORCED, _CONSISTENT = VARIANTS
AS_PRINTED = {*((name, k) for name in (_FORCED, _CONSISTENT) for k in (8, 16, 32)), (_PLAIN, 8)}
_REVERSED = {(name, k) for name in VARIANTS for k in (8, 16, 32)} - AS_PRINTED
_CURVES = Planted(
    false=World(
        "what is said to fail succeeds, and the reverse", context=curves(_REVERSED, chain=(0.9, 0.8, 0.7), answer=0.1)
    ),
    true=World("curves as the text has them", context=curves(AS_PRINTED)),
)
PLANTED = {
    "K-theorem-2": Planted(
        false=_AS_IT_IS,
        true=World("a loss of 1 at k = d", {f"{_HARDNESS}.loss_without_queries": lambda d: 1.0}),
    ),
    "K-proposition-3": Planted(
        false=_AS_IT_IS,
        true=World(
            "a tenth of the variance",
            {f"{_HARDNESS}._attacked_variance": lambda *a, **b: Attack(0.1, torch.zeros(1), 0, 1, 1)},
        ),
    ),
    "K-lemma-8": Planted(
        false=_AS_IT_IS,
        true=World(
            "a mean of 4^{−d}",
            {
                f"{_HARDNESS}.mean_parity": lambda d, k, minus: Fraction(1, 4**d),
            },
        ),
    ),
    "K-separation": Planted(
        false=World(
            "one more power of d",
            {f"{_HARDNESS}.theorem_2_exponent": lambda *nu, exact=hardness.theorem_2_exponent: exact(*nu) + 1},
        ),
        true=_AS_IT_IS,
    ),
    "K-lemma-4": Planted(
        false=World("a thousandth of the bound", {f"{_LEARNING}.forced_bound": lambda steepest, k: 1e-3}),
        true=_AS_IT_IS,
    ),
    "K-theorem-5": Planted(
        false=World("a remainder of d^{−3/2}", {f"{_LEARNING}.remainder": lambda d, k: d**-1.5}, _trials(2.0)),
        true=World("one step that is always right", context=_trials(0.1)),
        confirmed="holds, where tested",
    ),
    "K-lemma-6": Planted(
        false=World(
            "a thousandth of the bound, and a flat link",
            {
                f"{_LEARNING}.generated_bound": lambda steepest, k: 1e-3,
                f"{_LEARNING}.LINKS": {QUADRATIC.name: QUADRATIC._replace(steepest=1.5)},
            },
        ),
        true=_AS_IT_IS,
    ),
    "K-theorem-7": Planted(
        false=World(
            "a gradient that moves every weight", {f"{_LEARNING}.uniform_gradient": _everything_moves}, _trials(2.0)
        ),
        true=World("steps that always learn", context=_trials(0.1)),
        confirmed="holds, where tested",
    ),
    "K-theorem-7-filter": Planted(
        false=_AS_IT_IS,
        true=World("a filter that nothing passes", {f"{_LEARNING}._passing_levels": lambda d, k, threshold: 0}),
    ),
    "K-lemma-9": Planted(
        false=World("κ = 0", {f"{_LEARNING}.interaction_bound": lambda N, d, p: 0.0}),
        true=_AS_IT_IS,
    ),
    "K-figure-4": _CURVES,
    "K-figure-5": _CURVES,
}
