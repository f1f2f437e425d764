"""What a search has done so far: every attempt, which sizes are complete, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from parityscope.fit.clock import Budget
from parityscope.fit.interactions.interaction import Candidate, Solver


@dataclass(frozen=True)
class Attempt:
    """One line of the diary: what was tried, or why it was not.

    >>> Attempt("exhaustive", 5, "not tried: would take 9 hours").seconds
    0.0
    """

    solver: Solver
    k: int | None
    outcome: str
    seconds: float = 0.0  # nominal


@dataclass
class Diary:
    """The attempts of a search, and how far it came given the terms that it ended with.

    >>> diary = Diary(Budget(30.0))
    >>> diary.note("exhaustive", 2, "nothing significant")
    >>> diary.attempts[0].outcome
    'nothing significant'
    """

    budget: Budget
    attempts: list[Attempt] = field(default_factory=list)
    complete: set[int] = field(default_factory=set)  # sizes of which every set was scored, given all terms
    reached: dict[int, float] = field(default_factory=dict)  # sampled sizes: from which correlation on, surely
    found_after: float | None = None  # nominal seconds until the first term of a wanted size
    left_out: dict[int, float] = field(default_factory=dict)  # sizes that are not finished, and their seconds
    full: bool = False  # so many terms were found that the search ended
    nearest: Candidate | None = None  # the smallest corrected p-value that was not significant

    def note(self, solver: Solver, k: int | None, outcome: str, started: float | None = None) -> None:
        """Write a line; `started` is what the budget had spent before."""
        self.attempts.append(Attempt(solver, k, outcome, 0.0 if started is None else self.budget.spent - started))

    def rejected(self, candidate: Candidate) -> None:
        """Remember a candidate that came near."""
        if self.nearest is None or candidate.log_p < self.nearest.log_p:
            self.nearest = candidate
