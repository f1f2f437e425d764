"""K's experiments: what the text says about the curves of Figures 4 and 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parityscope.papers.claim import Claim, Context, Measurement, PaperSizes, needs_rows
from parityscope.papers.criterion import Clause, Measured, above, at_least, at_most
from parityscope.papers.k.figures.experiments import OWN_SIZE, ExperimentRow, at_own_size
from parityscope.papers.k.training import VARIANTS, Variant

_DIRECT, _PLAIN, _FORCED, _CONSISTENT = VARIANTS
_SOLVED = 0.99
_GUESSING = 0.6
_RIGHT = "a share of fresh inputs; our threshold"


def _share(variant: Variant, k: int) -> str:
    return f"share right, {variant}, k = {k}"


def _solves(variant: Variant, k: int, says: str) -> Clause:
    return Clause(says, _share(variant, k), at_least(_SOLVED), _RIGHT)


def _guesses(variant: Variant, k: int, says: str) -> Clause:
    return Clause(says, _share(variant, k), at_most(_GUESSING), _RIGHT)


_STUCK, _FALLEN = "distance of the direct model's prediction loss from ½", "least chain loss, CoT, over the first"
_NEVER, _RISE, _ZERO = (
    "least prediction loss, CoT",
    "largest rise of the chain loss in a step, CoT",
    "chain loss, forced",
)
_FIGURE_4 = (
    _guesses(_DIRECT, 32, "the direct model fails to learn the target"),
    Clause("its prediction error is stuck at 0.5", _STUCK, at_most(0.05), "our tolerance"),
    Clause("basic CoT significantly decreases the chain loss", _FALLEN, at_most(0.5), "half; our threshold"),
    _guesses(_PLAIN, 32, "but does not solve the problem"),
    Clause("and eventually becomes unstable", _RISE, above(0.001), "our threshold"),
    Clause("its prediction loss never improves beyond 0.5", _NEVER, at_least(0.45), "our tolerance"),
    _solves(_FORCED, 32, "teacher forcing solves it"),
    Clause("its chain loss decreases to nearly zero", _ZERO, at_most(0.01), "our threshold"),
    _solves(_CONSISTENT, 32, "self-consistency solves it"),
)
_SIZES = (8, 16, 32)
_FIGURE_5 = (
    *(_guesses(_DIRECT, k, f"the direct model fails, k = {k}") for k in _SIZES),
    *(_solves(_FORCED, k, f"teacher forcing learns, k = {k}") for k in _SIZES),
    *(_solves(_CONSISTENT, k, f"self-consistency learns, k = {k}") for k in _SIZES),
    _solves(_PLAIN, 8, "basic CoT fully solves k = 8"),
    *(_guesses(_PLAIN, k, f"basic CoT does not solve k = {k}") for k in _SIZES[1:]),
)


def _measure(figure: str, clauses: Sequence[Clause]) -> Callable[[Context], Measurement]:
    def measure(context: Context) -> Measurement:
        """Read the curves off the stored rows."""
        rows: Sequence[ExperimentRow] = context.rows(figure)
        if not rows:
            return needs_rows(clauses, figure)
        found = {_share(row.config.variant, row.config.k): row.numbers.accuracy for row in rows}
        curves = {row.config.variant: row for row in rows if row.config.k == 32}
        direct, plain, forced = curves[_DIRECT], curves[_PLAIN], curves[_FORCED]
        chain = plain.arrays["chain"]
        measured: dict[str, Measured] = {
            **found,
            _STUCK: abs(direct.numbers.answer_loss - 0.5),
            _FALLEN: plain.numbers.least_chain_loss / float(chain[0]),
            _RISE: float(chain.diff().max()),
            _NEVER: plain.numbers.least_answer_loss,
            _ZERO: forced.numbers.chain_loss,
        }
        shown = "; ".join(f"{what.removeprefix('share right, ')}: {value:.2f}" for what, value in found.items())
        return Measurement(
            {clause.quantity: measured[clause.quantity] for clause in clauses},
            f"share of fresh inputs answered right: {shown}",
            f"{len(rows)} trainings, one seed",
            {f"{row.config.variant}, k = {row.config.k}": row.numbers.model_dump() for row in rows},
            "Full-batch descent with K's rates, link, masks and losses, and what Appendix D adds: the chain's loss "
            "divided by k − 1, 0.01η for the direct model, and with self-consistency 10 % of the gradient of the "
            "prediction loss once the answer is not filtered. The initialisation is not printed and is W = 0 here, "
            "and a level opens when every node below has a score above 0.4. A curve that differs from the text may "
            "differ because of these, so it refutes nothing.",
        )

    return measure


def _differing(figure: str) -> Callable[[Context], str]:
    def differing(context: Context) -> str:
        rows = context.rows(figure)
        if not rows or all(at_own_size(row.config) for row in rows):
            return ""
        config = rows[0].config
        return f"{config.examples:,} examples for 100 000, {config.steps} steps for 350"

    return differing


_OURS = (
    "W = 0 at the start; a level's filter opens when all nodes below have a score above 0.4 (Appendix D: it “checks "
    "if any softmax score exceeds a threshold value, here set to 0.4”); one seed; thresholds"
)


def _claim(figure: str, statement: str, clauses: Sequence[Clause], where: str, printed: str) -> Claim:
    return Claim(
        figure,
        statement,
        clauses,
        _measure(figure, clauses),
        where,
        reads_figure=True,
        sizes=PaperSizes(OWN_SIZE, _differing(figure)),
        printed=printed,
        hypotheses="64-bit inputs, 100K samples, full-batch gradient descent, η = 15, 50, 100 for k = 8, 16, 32",
        ours=_OURS,
    )


CLAIMS = (
    _claim(
        "K-figure-4",
        "At k = 32 the direct model and basic CoT do not learn; teacher forcing and self-consistency do.",
        _FIGURE_4,
        "Section 4 and Figure 4",
        "the direct model … completely fails to learn the target … the prediction error is stuck at 0.5. … The basic "
        "CoT model … is able to significantly decrease CoT loss but fails to fully solve the problem and eventually "
        "becomes unstable. … CoT with teacher forcing … solves parity efficiently … CoT with self-consistency … is "
        "also able to solve parity efficiently",
    ),
    _claim(
        "K-figure-5",
        "For k = 8, 16, 32 teacher forcing and self-consistency learn, basic CoT for k = 8, the direct model never.",
        _FIGURE_5,
        "Appendix D and Figure 5",
        "The direct model fails to learn parity in all cases, while CoT with teacher forcing always learns "
        "efficiently. For CoT with self-consistency, a similar analysis as in Section 4 can be applied for k = 8, 16 "
        "with two or three distinct learning stages. We also observe that the basic CoT model manages to fully solve "
        "the problem for k = 8 … but not for k = 16, 32",
    ),
)
