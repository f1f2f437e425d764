"""The worlds in which H1's statements are false, and those in which they are true."""

from harness.planted import Planted, World, rows_saying
from parityscope import theory
from parityscope.papers.h1.ends import Ends, EndsNumbers
from parityscope.papers.h1.full_matrix import FullMatrix, FullMatrixNumbers
from parityscope.papers.h1.minima import MinimumNumbers
from parityscope.records import Config, Numbers
from parityscope.runs.training import TrainingNumbers


def _constant(name: str, lemma: str) -> Planted:
    """Divide a lemma's constant by so much that it must break, and multiply it so that it must not."""
    path, usual = f"parityscope.theory.{name}", getattr(theory, name)
    return Planted(
        false=World(f"Lemma {lemma}'s constant divided by 10⁶", {path: lambda *at: usual(*at) / 1e6}),
        true=World("the constant multiplied by 10⁶", {path: lambda *at: usual(*at) * 1e6}),
    )


PLANTED = {
    "H1-lemma-7": _constant("smoothness_of_risk", "7"),
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
}


def _all_learn(config: Config) -> Numbers:
    """Return the rows of a world in which every start learns, from risk 1."""
    if isinstance(config, Ends):
        starts = len(config.seeds)
        return EndsNumbers(
            risk_at_start=(1.0,) * starts,
            risk=(0.0,) * starts,
            learned=(True,) * starts,
            in_strict_minimum=(False,) * starts,
            largest_rise=0.0,
            minima=(),
        )
    if isinstance(config, FullMatrix):
        gradients = {"gradient_of_other_rows": 0.0, "gradient_of_a11_a12": 0.0, "gradient_of_a13_a14": 1.0}
        return FullMatrixNumbers(first_row=(0.0,) * 4, risk=(0.0,) * len(config.seeds), largest_rise=0.0, **gradients)
    return _training_numbers(config, learned=True)


def _none_learn(config: Config) -> Numbers:
    """Return the rows of a world in which no start learns, one of them in a certified minimum."""
    if isinstance(config, Ends):
        starts = len(config.seeds)
        return EndsNumbers(
            risk_at_start=(3.0,) * starts,
            risk=(1.5,) * starts,
            learned=(False,) * starts,
            in_strict_minimum=(True,) * starts,
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


_ROWS = Planted(
    false=World("rows in which no start learns, and one ends in a certified minimum", context=rows_saying(_none_learn)),
    true=World("rows in which every start learns, from risk 1", context=rows_saying(_all_learn)),
)
PLANTED |= {
    "H1-theorem-5": _ROWS,
    "H1-theorem-5-entries": _ROWS,
    "H1-lemma-8": Planted(
        false=_ROWS.false,
        true=World(
            "rows without minima, and a bowl for a risk",
            {"parityscope.papers.h1.circle.Circle.risk": _bowl},
            context=rows_saying(_all_learn),
        ),
    ),
    "H1-remark-9": _ROWS,
    "H1-remark-10": _ROWS,
}
