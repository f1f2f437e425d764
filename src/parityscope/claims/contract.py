"""What a claim is: a statement of a paper, a check that computes its verdict, and the evidence behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from parityscope.experiments.contract import Row, Scale

Verdict = Literal["holds", "holds in part", "fails", "not testable here"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


def paper_of(claim_id: str) -> str:
    """Return the short name of the paper that a claim is from.

    >>> paper_of("H1-lemma-19")
    'H1'
    """
    return claim_id.split("-", maxsplit=1)[0]


def _no_rows(experiment_id: str) -> Sequence[Row]:
    return ()


@dataclass(frozen=True)
class Context:
    """What a check may use: how hard to try, and the stored rows of an experiment (none when nothing is stored)."""

    scale: Scale = "demo"
    rows: Callable[[str], Sequence[Row]] = _no_rows

    def at(self, *, smoke: int, reference: int, demo: int | None = None, paper: int | None = None) -> int:
        """Return a count by scale; the demo's is that of the reference unless given, the paper's ten times as large.

        >>> [Context(scale).at(smoke=3, reference=100) for scale in ("smoke", "demo", "reference", "paper")]
        [3, 100, 100, 1000]
        """
        counts: dict[Scale, int] = {
            "smoke": smoke,
            "demo": reference if demo is None else demo,
            "reference": reference,
            "paper": 10 * reference if paper is None else paper,
        }
        return counts[self.scale]


class Check(NamedTuple):
    """What a check found: the verdict, one number that says it shortest, all numbers, and how they were computed.

    >>> Check("fails", "3 of 4 below the bound", {"below": 3, "tried": 4}, "Four points were tried.").verdict
    'fails'
    """

    verdict: Verdict
    number: str
    evidence: Mapping[str, Any]
    how: str


@dataclass(frozen=True)
class Claim:
    """One statement and its check.

    `experiment` names the figure of the report that shows it, if there is one; `reads_rows` says that the check looks
    at stored rows, so that it runs where the store is.

    >>> def halves(context):
    ...     return Check("holds", "1/2 + 1/2 = 1", {"sum": 0.5 + 0.5}, "Added.")
    >>> claim = Claim("P-halves", "Two halves are one.", halves, seconds=0.1)
    >>> claim.paper, claim.check(Context()).verdict
    ('P', 'holds')
    """

    id: str
    statement: str
    check: Callable[[Context], Check]
    seconds: float  # what the check costs at demo scale on an idle core
    experiment: str | None = None
    reads_rows: bool = False

    @property
    def paper(self) -> str:
        """The paper's short name: H1, H2, W, or P for the project's own."""
        return paper_of(self.id)


@dataclass(frozen=True)
class CheckedClaim:
    """A claim with the outcome of its check, and the seconds it took.

    >>> claim = Claim("H1-lemma-0", "0 = 0.", lambda context: Check("holds", "0", {}, "Compared."), seconds=1)
    >>> CheckedClaim(claim, claim.check(Context())).to_json()["paper"]
    'H1'
    """

    claim: Claim
    outcome: Check
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the object that `claims --json` prints."""
        return {
            "id": self.claim.id,
            "paper": self.claim.paper,
            "statement": self.claim.statement,
            "verdict": self.outcome.verdict,
            "number": self.outcome.number,
            "evidence": dict(self.outcome.evidence),
            "how": self.outcome.how,
            "experiment": self.claim.experiment,
            "seconds": round(self.seconds, 2),
        }


def equality_check(error: float, allowed: float, what: str, how: str) -> Check:
    """Return the check of a printed equation: it holds where both sides differ by at most `allowed`.

    >>> equality_check(2e-3, 1e-9, "gradient", "autograd and the printed sum")[:2]
    ('fails', 'gradient: 2e-03')
    """
    return Check("holds" if error <= allowed else "fails", f"{what}: {error:.0e}", {"largest_error": error}, f"{how}.")


def needs_rows(experiment_id: str) -> Check:
    """Return what a check says when the rows it judges are not stored.

    >>> needs_rows("W-figure-1").verdict
    'not testable here'
    """
    return Check(
        "not testable here",
        "no rows",
        {},
        "No rows of this figure are stored here: "
        f"run `parityscope reproduce {experiment_id}` with the same --out first.",
    )
