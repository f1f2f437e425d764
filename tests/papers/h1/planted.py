"""The worlds in which H1's statements are false, and those in which they are true."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import torch

from harness.planted import Planted, World, rows_saying
from parityscope import theory
from parityscope.models import FFNN1, ParityTransformer
from parityscope.models.positions import circle
from parityscope.papers.claim import Context
from parityscope.papers.h1.circle import example_gradients
from parityscope.papers.h1.claims.constants import _sum_at
from parityscope.papers.h1.claims.frozen_attention import HardHeadSearchNumbers
from parityscope.papers.h1.claims.parameters import MissingInputNumbers
from parityscope.papers.h1.descents import Ends, EndsNumbers, FullMatrix, FullMatrixNumbers
from parityscope.papers.h1.minima import MinimumNumbers
from parityscope.papers.h1.own_starts import own_starts
from parityscope.problems import Parity
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs.training import TrainingNumbers
from parityscope.theory import score_gradient_bound, smoothness_of_risk

_CLAIMS = "parityscope.papers.h1.claims"
_AS_IT_IS = World("the world as it is")


def _constant(name: str, lemma: str) -> Planted:
    """Divide a lemma's constant by so much that it must break, and multiply it so that it must not."""
    path, usual = f"parityscope.theory.{name}", getattr(theory, name)
    return Planted(
        false=World(f"Lemma {lemma}'s constant divided by 10⁶", {path: lambda *at: usual(*at) / 1e6}),
        true=World("the constant multiplied by 10⁶", {path: lambda *at: usual(*at) * 1e6}),
    )


def _shifted_heads(n, support, tau, b):
    """Return Eq. (2)'s transformer with each head one position on, and of several one head and neuron too few."""
    heads = list(support[1:] or support)
    return ParityTransformer(n, len(heads), temperature=tau, smoothing=b, directions=circle(n).roll(-1, 0)[heads])


def _half_told(scores, x):
    """Stand in for heads that tell the first half of the bits, and the rest up to its complement."""
    powers = 2 ** torch.arange(x.shape[1])
    rest = torch.where(x[:, -1:] == 1, 1 - x, x)
    mixed = torch.where(torch.arange(x.shape[1]) < x.shape[1] // 2, x, rest)
    return (mixed @ powers)[:, None].expand(-1, len(scores))


_FROZEN_HARD = Planted(
    false=World(
        "heads that tell half of the bits, and the rest up to its complement; none has a risk",
        {f"{_CLAIMS}.frozen_attention._attended": _half_told},
        rows_saying(lambda config: HardHeadSearchNumbers(lowest_bayes_risk=(0.0,) * len(config.sizes))),
    ),
    true=_AS_IT_IS,
)


class _WrongWhenHard(ParityTransformer):
    """Hard attention one position off."""

    def attention(self, x=None, *, hard=False):
        return super().attention(x, hard=hard).roll(int(hard), -1)


class _SharedWhenTied(ParityTransformer):
    """Hard attention that shares itself out among equals."""

    def attention(self, x=None, *, hard=False):
        scores = self.scores(x)
        ties = scores > scores.amax(-1, keepdim=True) - 1e-9
        return ties.double() / ties.sum(-1, keepdim=True) if hard else super().attention(x)


def _figure_2(seeds: int, learned: int, *, as_printed: bool, astray: int = 0) -> Context:
    """Return trainings of some seeds whose heads do what the caption says, or the reverse, some positions on."""

    def row(config):
        a, b, c = config.support
        neighbours = c == b + 1
        attention = torch.zeros(seeds, 3, config.n)
        # As printed: two heads shared out between neighbours, or one on each bit; otherwise the other way round.
        between = [(a, a), (b, c), (b, c)] if neighbours else [(a, a), (a, b), (b, c)]
        for head, places in enumerate(between if neighbours == as_printed else [(a, a), (b, b), (c, c)]):
            for place in places:
                attention[:, head, (place + astray) % config.n] += 0.5
        found = [seed < learned for seed in range(seeds)]
        numbers = TrainingNumbers(
            supports=(config.support,) * seeds,
            found=(config.support,) * seeds,
            recovered=found,
            learned=found,
            risk=(0.0,) * seeds,
            accuracy=(1.0,) * seeds,
            accuracy_is="exact",
            worst_loss=None,
            steps=(config.recipe.steps,) * seeds,
            diverged=(False,) * seeds,
            parameters=6,
            engine="none",
        )
        return Row.of(config, Result(numbers, {"attention": attention}), 0.0)

    return Context("reference", row=row)  # rows cost nothing here, and only there is every clause measured


class _FirstBitForgotten(Parity):
    """Labels that do not depend on the first hidden bit."""

    def label(self, x):
        return Parity(self.n, self.support[1:]).label(x) if len(self.support) > 1 else torch.ones(len(x))


def _apart(n: int, c1: float, offset: float) -> torch.Tensor:
    """Return attention on the second position and on the opposite one, next to nothing at the peak; all there at 64."""
    weights = torch.full((n,), 1e-12)
    weights[[0] if n == 64 else [1, n // 2]] = 1.0
    return weights


def _one(n: int, c1: float, offset: float) -> torch.Tensor:
    """Return attention on the first position, and next to nothing on the others."""
    return torch.cat([torch.full((1,), 0.9), torch.full((n - 1,), 1e-12)])


_SHARE = "parityscope.theory.h1.fixed_attention_share"
_SCORES = "parityscope.theory.score_gradient_bound"

PLANTED = {
    "H1-proposition-3-ffnn": Planted(
        false=World(
            "a random network of k + 1 neurons",
            {
                f"{_CLAIMS}.parameters.parity_ffnn": lambda n, support: FFNN1(
                    n, len(support) + 1, generator=torch.Generator().manual_seed(0)
                )
            },
        ),
        true=_AS_IT_IS,
    ),
    "H1-proposition-3-transformer": Planted(
        false=World(
            "heads one position on, one too few, and numbers that are counted as 17k + 2",
            {
                f"{_CLAIMS}.parameters.parity_transformer": _shifted_heads,
                f"{_CLAIMS}.parameters.parity_transformer_parameters": lambda k: 17 * k + 2,
            },
        ),
        true=_AS_IT_IS,
    ),
    "H1-proposition-4": Planted(
        false=World(
            "a row of networks that learn without an edge",
            context=rows_saying(lambda config: MissingInputNumbers(lowest_risk=0.0)),
        ),
        true=World(
            "a row of networks that do not", context=rows_saying(lambda config: MissingInputNumbers(lowest_risk=1.0))
        ),
    ),
    "H1-section-3": Planted(
        false=World(
            "a random network, and a label that no unseen bit changes",
            {
                f"{_CLAIMS}.parameters.parity_ffnn": lambda n, support: FFNN1(
                    n, len(support), generator=torch.Generator().manual_seed(0)
                ),
                f"{_CLAIMS}.parameters.Parity": _FirstBitForgotten,
            },
        ),
        true=_AS_IT_IS,
    ),
    "H1-figure-2": Planted(
        false=World(
            "few seeds learn, heads share separate bits and not neighbours", context=_figure_2(24, 4, as_printed=False)
        ),
        true=World("all seeds do as the caption says", context=_figure_2(100, 100, as_printed=True)),
    ),
    "H1-theorem-11": Planted(
        false=World("the first factor is 100", {_SHARE: lambda n, m: 100.0}),
        true=World("the first factor is 0", {_SHARE: lambda n, m: 0.0}),
    ),
    "H1-theorem-11-norms": Planted(
        false=World("the first factor is 100", {_SHARE: lambda n, m: 100.0}),
        true=World("the first factor is 0", {_SHARE: lambda n, m: 0.0}),
    ),
    "H1-appendix-b": Planted(
        false=World("heads that share separate bits", context=_figure_2(24, 24, as_printed=False)),
        true=World("a head on every separate bit", context=_figure_2(24, 24, as_printed=True)),
    ),
    "H1-section-5": Planted(
        false=World("heads that look one position on", context=_figure_2(24, 24, as_printed=True, astray=1)),
        true=World("heads that look at the hidden bits", context=_figure_2(24, 24, as_printed=True)),
    ),
    "H1-remark-12": Planted(
        false=World(
            "a first factor of 0.5, and a second that does not fall with n",
            {
                "parityscope.theory.fixed_attention_share": lambda n, m: 0.5,
                "parityscope.theory.fixed_attention_norm_term": lambda n, m, alpha, beta: 5.0,
            },
        ),
        true=World(
            "a first factor of 1, and a head that tells nothing",
            {
                "parityscope.theory.fixed_attention_share": lambda n, m: 1.0,
                "parityscope.papers.h1.large_embeddings.codes": lambda n: [Fraction(1)] * 2**n,
            },
        ),
    ),
    "H1-remark-13": _FROZEN_HARD,
    "H1-corollary-20": _FROZEN_HARD,
    "H1-proposition-21": Planted(
        false=World("hard attention one position off", {f"{_CLAIMS}.soft_and_hard.ParityTransformer": _WrongWhenHard}),
        true=World(
            "hard attention that is shared among equals",
            {f"{_CLAIMS}.soft_and_hard.ParityTransformer": _SharedWhenTied},
        ),
    ),
    "H1-lemma-6": _constant("smoothness_of_prediction", "14"),
    "H1-lemma-7": Planted(
        false=World(
            "l₁, l₂, C and B divided by 10⁶",
            {
                "parityscope.theory.smoothness_of_risk": lambda *at: smoothness_of_risk(*at) / 1e6,
                f"{_CLAIMS}.constants._sum_at": lambda *at: _sum_at(*at) / 1e6,
            },
        ),
        true=_AS_IT_IS,
    ),
    "H1-lemma-14": _constant("smoothness_of_prediction", "14"),
    "H1-lemma-14-derivative": Planted(
        false=World(
            "the softmax at twice the temperature",
            {
                "parityscope.theory.softmax_derivative_as_printed": (
                    lambda gamma, wave, tau: theory.softmax_derivative(gamma, wave, 2 * tau)
                )
            },
        ),
        true=World(
            "the right derivative printed",
            {"parityscope.theory.softmax_derivative_as_printed": theory.softmax_derivative},
        ),
    ),
    "H1-lemma-15": _constant("lipschitz_of_prediction", "15"),
    "H1-lemma-16": _constant("lipschitz_of_prediction_times_gradient", "16"),
    "H1-equation-7": Planted(
        false=World(
            "a readout that is flat, and a hinge that is not squared",
            {
                "parityscope.models.ZigZag.value_and_slope": lambda readout, S: (0 * S, 0 * S),
                "torch.Tensor.square": lambda values: 0.1 * values * values,
            },
        ),
        true=World(
            "a readout of slope 16 everywhere",
            {"parityscope.models.ZigZag.value_and_slope": lambda readout, S: (16 * S, 16 + 0 * S)},
        ),
    ),
    "H1-appendix-a": Planted(
        false=World("heads that look across the circle", {f"{_CLAIMS}.gradients._wheel": _apart}),
        true=World("heads that look at one position, and a little at the next", {f"{_CLAIMS}.gradients._wheel": _one}),
    ),
    "H1-lemma-17": Planted(
        false=_AS_IT_IS,
        true=World(
            "gradients without their signs",
            {f"{_CLAIMS}.gradients.example_gradients": lambda *at: example_gradients(*at).abs()},
        ),
    ),
    "H1-lemma-18": Planted(
        false=World("the bound times 10⁶", {_SCORES: lambda *at: 1e6 * score_gradient_bound(*at)}),
        true=World("the bound divided by 10¹⁰⁰", {_SCORES: lambda *at: 1e-100 * score_gradient_bound(*at)}),
    ),
    "H1-lemma-19": Planted(
        false=_AS_IT_IS,
        true=World("a factor of 0", {"parityscope.theory.loss_gradient_bound": lambda n, k, c2: 0.0}),
    ),
}


def _all_learn(config: Config) -> Numbers:
    """Return the rows of a world in which every start learns, from risk 1."""
    if isinstance(config, Ends):
        starts = len(config.seeds)
        return EndsNumbers(
            risk_at_start=(1.0,) * starts,
            risk=(0.0,) * starts,
            learned=(True,) * starts,
            accuracy=(1.0,) * starts,
            in_strict_minimum=(False,) * starts,
            in_proved_basin=(False,) * starts,
            proved_from_start=(False,) * starts,
            largest_rise=0.0,
            minima=(),
        )
    if isinstance(config, FullMatrix):
        gradients = {"gradient_of_other_rows": 0.0, "gradient_of_a11_a12": 0.0, "gradient_of_a13_a14": 1.0}
        return FullMatrixNumbers(
            first_row=(0.0, 0.0, 1.0, 1.0), risk=(0.0,) * len(config.seeds), largest_rise=0.0, **gradients
        )
    return _training_numbers(config, learned=True)


def _none_learn(config: Config) -> Numbers:
    """Return the rows of a world in which no start learns, one of them in a certified minimum."""
    if isinstance(config, Ends):
        starts = len(config.seeds)
        return EndsNumbers(
            risk_at_start=(3.0,) * starts,
            risk=(1.5,) * starts,
            learned=(False,) * starts,
            accuracy=(0.5,) * starts,
            in_strict_minimum=(True,) * starts,
            in_proved_basin=(True,) * starts,
            proved_from_start=(False,) * starts,
            largest_rise=0.0,
            minima=(_MINIMUM,),
        )
    if isinstance(config, FullMatrix):
        gradients = {"gradient_of_other_rows": 1.0, "gradient_of_a11_a12": 1.0, "gradient_of_a13_a14": 1.0}
        return FullMatrixNumbers(first_row=(1.0,) * 4, risk=(1.5,) * len(config.seeds), largest_rise=0.0, **gradients)
    return _training_numbers(config, learned=False)


_MINIMUM = MinimumNumbers(
    n=6,
    support=(0, 1),
    tau="1/6",
    b="0.01",
    seed=0,
    heads=(("0", "1"), ("0", "-1")),
    risk="1.5",
    gradient=1e-40,
    eigenvalues=(1.0,) * 4,
    radius=1e-3,
    least_curvature=0.5,
    fastest_rate=0.5,
)


def _training_numbers(config: Config, *, learned: bool) -> TrainingNumbers:
    runs = len(config.seeds)
    return TrainingNumbers(
        parameters=2 * config.k if learned else 10 * config.n,
        engine="closed-form",
        risk=(0.0 if learned else 1.0,) * runs,
        accuracy=(1.0 if learned else 0.5,) * runs,
        accuracy_is="exact",
        worst_loss=None,
        learned=(learned,) * runs,
        recovered=(learned,) * runs,
        diverged=(False,) * runs,
        steps=(10,) * runs,
        supports=tuple(problem.support for problem in config.problems()),
        found=tuple(problem.support for problem in config.problems()),
    )


def _bowl(circle, heads, support):
    """Return a risk with the PL property: a bowl around one point."""
    return heads.square().sum()


_NO_BASIN = {  # at no temperature do starts lie in one, and with all of A trained they lead to none
    f"{_CLAIMS}.convergence.own_starts": lambda setting: replace(own_starts(setting), probability=0.0),
    f"{_CLAIMS}.convergence.whole_minimum": lambda: {"proved_risk": 0.0},
}
_ROWS = Planted(
    false=World("rows in which no start learns, and one ends in a certified minimum", context=rows_saying(_none_learn)),
    true=World("rows in which every start learns, from risk 1", context=rows_saying(_all_learn)),
)
PLANTED |= {
    "H1-theorem-5": Planted(
        false=_ROWS.false,
        true=World("every start learns, from risk 1, and no start lies in a basin", _NO_BASIN, _ROWS.true.context),
    ),
    "H1-theorem-5-entries": _ROWS,
    "H1-lemma-8": Planted(
        false=_ROWS.false,
        true=World(
            "rows without minima, and a bowl for a risk",
            {"parityscope.papers.h1.circle.Circle.risk": _bowl},
            context=rows_saying(_all_learn),
        ),
    ),
    "H1-remark-9": Planted(
        false=World(
            "rows in which no start learns, and a transformer of 10⁶ parameters",
            {"parityscope.theory.parity_transformer_parameters": lambda k: 10**6},
            _ROWS.false.context,
        ),
        true=_ROWS.true,
        confirmed="holds, where tested",
    ),
    "H1-remark-10": Planted(
        false=World(
            "such rows, networks that err, and a label that an unseen bit does not change",
            {
                f"{_CLAIMS}.convergence.excess_risks": lambda *at: (1.0, 0.0),
                f"{_CLAIMS}.convergence.worst_support": lambda cells, k: SimpleNamespace(risk=0.0),
            },
            context=_ROWS.false.context,
        ),
        true=_ROWS.true,
    ),
}
