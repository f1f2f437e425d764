"""The worlds in which H1's statements are false, and those in which they are true."""

from harness.planted import Planted, World
from parityscope import theory


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
        false=World("the softmax at twice the temperature", {"parityscope.theory.softmax_derivative_as_printed": (
            lambda gamma, wave, tau: theory.softmax_derivative(gamma, wave, 2 * tau))}),
        true=World("the right derivative printed", {
            "parityscope.theory.softmax_derivative_as_printed": theory.softmax_derivative}),
    ),
    "H1-lemma-15": _constant("lipschitz_of_prediction", "15"),
    "H1-lemma-16": _constant("lipschitz_of_prediction_times_gradient", "16"),
}
