"""The work a search may do, and what it has done: a budget as people write it, what is left of it, every attempt."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from parityscope.core.errors import InvalidInput
from parityscope.fit.interactions.interaction import Candidate, Solver

Progress = Callable[[float, str], None]
_DEFAULT_SECONDS = 30.0
EMERGENCY = 12.0  # times its seconds, and a minute: so much processor time a search may take on a slow machine
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-z]*)\s*")


def seconds_of(budget: Any) -> float:
    """Return a budget in seconds: a number, or text such as "30s", "2m" or "1.5h"; None is 30 seconds.

    >>> seconds_of("2m"), seconds_of(5), seconds_of(None)
    (120.0, 5.0, 30.0)
    >>> seconds_of("soon")
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: budget must be a time such as "30s", "2m" or a number of seconds, got 'soon'
    """
    if budget is None:
        return _DEFAULT_SECONDS
    seconds = math.nan
    written = _WRITTEN.fullmatch(str(budget).lower())
    if written is not None and not isinstance(budget, bool) and written[2] in _UNITS:
        seconds = float(written[1]) * _UNITS[written[2]]
    if not (0 < seconds < math.inf):
        raise InvalidInput(f'budget must be a time such as "30s", "2m" or a number of seconds, got {budget!r}')
    return seconds


def time_text(seconds: float) -> str:
    """Return how long something takes, as people say it.

    >>> time_text(0.02), time_text(42), time_text(400), time_text(7300), time_text(9e9)
    ('under 0.1 seconds', '42 seconds', '7 minutes', '2 hours', '285 years')
    """
    if seconds < 0.1:
        return "under 0.1 seconds"
    for unit, size, until in (("second", 1, 120), ("minute", 60, 7200), ("hour", 3600, 172_800), ("day", 86_400, 6e7)):
        if seconds < until:
            amount = f"{seconds / size:.1f}" if seconds < 10 else f"{seconds / size:.0f}"
            return f"{amount} {unit}{'' if amount == '1' else 's'}"
    years = seconds / 31_557_600
    return f"{years:.0f} years" if years < 1e6 else "longer than the age of mankind"


@dataclass
class Budget:
    """Work that a search may do, in nominal seconds; `report` tells a listener how much is used and what is going on.

    Every step is charged what it costs on a processor of fixed speed, from the sizes of what it does. So a table and a
    seed have one answer, on a busy or slow machine too. The clock stops a search only in an emergency, when the same
    work takes many times as long (`EMERGENCY`), and the answer then says so.

    >>> heard = []
    >>> budget = Budget(60.0, lambda share, doing: heard.append((share, doing)))
    >>> budget.charge(15.0)
    >>> budget.report("pairs of 40 columns")
    >>> heard, budget.left
    ([(0.25, 'pairs of 40 columns')], 45.0)
    """

    seconds: float
    progress: Progress | None = None
    spent: float = 0.0
    stopped_by_clock: bool = False
    started: float = field(default_factory=lambda: time.process_time())  # noqa: PLW0108  looked up when called

    def charge(self, seconds: float) -> None:
        """Count work that was done."""
        self.spent += seconds

    @property
    def left(self) -> float:
        """Nominal seconds that are left, negative when nothing is."""
        if time.process_time() - self.started > EMERGENCY * self.seconds + 60:
            self.stopped_by_clock = True
        return -1.0 if self.stopped_by_clock else self.seconds - self.spent

    def report(self, doing: str) -> None:
        """Tell the listener, if there is one."""
        if self.progress is not None:
            self.progress(min(1.0, self.spent / self.seconds), doing)


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
    pairs_budget: float = 0.0  # seconds that would have paid for all pairs, where the budget did not
    full: bool = False  # so many terms were found that the search ended
    left_over: Candidate | None = None  # what would have been the next term then
    nearest: Candidate | None = None  # the smallest corrected p-value that was not significant

    def note(self, solver: Solver, k: int | None, outcome: str, started: float | None = None) -> None:
        """Write a line; `started` is what the budget had spent before."""
        self.attempts.append(Attempt(solver, k, outcome, 0.0 if started is None else self.budget.spent - started))

    def rejected(self, candidate: Candidate) -> None:
        """Remember a candidate that came near."""
        if self.nearest is None or candidate.log_p < self.nearest.log_p:
            self.nearest = candidate
