"""What a claim is: a statement of a paper, a check that computes its verdict, and the evidence behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from parityscope.experiments.contract import Row, Scale

Verdict = Literal["holds", "holds in part", "fails", "not testable here"]
VERDICTS: tuple[Verdict, ...] = ("holds", "holds in part", "fails", "not testable here")


def _no_rows(experiment_id: str) -> Sequence[Row]:
    return ()


@dataclass(frozen=True)
class Context:
    """What a check may use: how hard to try, and the stored rows of an experiment (none when nothing is stored)."""

    scale: Scale = "laptop"
    rows: Callable[[str], Sequence[Row]] = _no_rows

    def at(self, *, smoke: int, laptop: int, paper: int | None = None) -> int:
        """Return a count by scale; paper is ten times laptop unless given.

        >>> Context("smoke").at(smoke=3, laptop=100), Context("paper").at(smoke=3, laptop=100)
        (3, 1000)
        """
        return {"smoke": smoke, "laptop": laptop, "paper": 10 * laptop if paper is None else paper}[self.scale]


class Check(NamedTuple):
    """What a check found: the verdict, one number that says it shortest, all numbers, and how they were computed."""

    verdict: Verdict
    number: str
    evidence: Mapping[str, Any]
    how: str


@dataclass(frozen=True)
class Claim:
    """One statement and its check.

    `experiment` names the figure of the report that shows it, if there is one; `reads_rows` says that the check looks
    at stored rows, so that it runs where the store is.
    """

    id: str
    statement: str
    check: Callable[[Context], Check]
    seconds: float  # what the check costs at laptop scale on two idle cores
    experiment: str | None = None
    reads_rows: bool = False

    @property
    def paper(self) -> str:
        """The paper's short name: H1, H2, W, or P for the project's own."""
        return self.id.split("-")[0]


@dataclass(frozen=True)
class CheckedClaim:
    """A claim with the outcome of its check."""

    claim: Claim
    outcome: Check
    seconds: float = field(default=0.0)

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
