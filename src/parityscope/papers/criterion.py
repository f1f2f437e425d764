"""Criteria as data: what confirms a clause of a statement, what refutes it, and where the limit comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.statistics import Share
from parityscope.records import Numbers

Verdict = Literal["proved", "holds", "misprint", "in part", "fails", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
# "unconfirmed": the number refutes the clause, but no second route confirms a counterexample. "seen" and "not seen"
# stand for holds and fails where a figure was not run at the paper's own sizes; "seen" also for a clause that nothing
# computed could have refuted.
ClauseVerdict = Literal["holds", "fails", "open", "unconfirmed", "seen", "not seen"]
CLAUSE_VERDICTS: tuple[ClauseVerdict, ...] = get_args(ClauseVerdict)


class Between(NamedTuple):
    """A number that is known up to an interval."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.3g} … {self.high:.3g}"


Measured = float | Between | Share | None


def _ends(measured: float | Between | Share) -> tuple[float, float]:
    return (measured.low, measured.high) if isinstance(measured, Between | Share) else (measured, measured)


def shown(measured: Measured) -> str:
    """Return what was measured in a few characters."""
    if measured is None:
        return "not measured"
    return str(measured) if isinstance(measured, Between | Share) else f"{measured:.3g}"


_OPPOSITES: dict[str, str] = {"≤": ">", ">": "≤", "≥": "<", "<": "≥"}


class Limit(NamedTuple):
    """A comparison with a number; of an interval, every point must satisfy it."""

    relation: str
    value: float

    def admits(self, measured: Measured) -> bool:
        """Return whether what was measured satisfies the comparison, its whole interval where it has one."""
        if measured is None:
            return False
        low, high = _ends(measured)
        if math.isnan(low) or math.isnan(high):
            return False
        tests = {"≤": high <= self.value, "<": high < self.value, "≥": low >= self.value, ">": low > self.value}
        return tests[self.relation]

    def __invert__(self) -> Limit:
        return Limit(_OPPOSITES[self.relation], self.value)

    def __str__(self) -> str:
        return f"{self.relation} {self.value:.4g}"


def at_most(value: float) -> Limit:
    """Return the comparison "≤ value"."""
    return Limit("≤", value)


def below(value: float) -> Limit:
    """Return the comparison "< value"."""
    return Limit("<", value)


def at_least(value: float) -> Limit:
    """Return the comparison "≥ value"."""
    return Limit("≥", value)


def above(value: float) -> Limit:
    """Return the comparison "> value"."""
    return Limit(">", value)


@dataclass(frozen=True)
class Clause:
    """One part of a statement and how it is judged.

    Parameters
    ----------
    says : str
        What this part says.
    quantity : str
        The name of the measured number it is judged by.
    holds_if : Limit
        What confirms it.
    source : str
        Where the limit comes from: the paper's own constant, a stated tolerance, a confidence interval.
    refuted_if : Limit, "otherwise" or "never"
        What refutes it: a limit of its own, the opposite of `holds_if`, or nothing that can be computed here.
    corrected : bool
        Whether it belongs to the corrected form of a misprinted statement, which is judged apart.
    """

    says: str
    quantity: str
    holds_if: Limit
    source: str
    refuted_if: Limit | Literal["otherwise", "never"] = "otherwise"
    corrected: bool = False

    @property
    def refuting(self) -> Limit | None:
        """The limit that refutes, if any does."""
        if isinstance(self.refuted_if, Limit):
            return self.refuted_if
        return ~self.holds_if if self.refuted_if == "otherwise" else None

    def verdict(self, measured: Measured) -> Literal["holds", "fails", "open"]:
        """Say what the number says alone; between two limits, and without a measurement, the clause stays open."""
        if self.holds_if.admits(measured):
            return "holds"
        return "fails" if self.refuting is not None and self.refuting.admits(measured) else "open"


def fails(quantity: str, measured: Measured, clauses: Sequence[Clause]) -> bool:
    """Say whether what was measured of a quantity refutes a clause on it."""
    return any(clause.quantity == quantity and clause.verdict(measured) == "fails" for clause in clauses)


class Criterion(Numbers):
    """Clauses in words, as tables and `claims --json` show them."""

    refuted_if: str
    holds_if: str
    source: str

    @classmethod
    def of(cls, clauses: Sequence[Clause]) -> Criterion:
        """Say in words what refutes and what confirms a statement of these clauses."""
        refuting = [f"{clause.quantity} {clause.refuting}" for clause in clauses if clause.refuting is not None]
        confirming = [f"{clause.quantity} {clause.holds_if}" for clause in clauses]
        return cls(
            refuted_if="; or ".join(refuting) or "nothing that can be computed here",
            holds_if="; and ".join(confirming) or "nothing computed here",
            source="; ".join(dict.fromkeys(clause.source for clause in clauses)),
        )


def rule(
    clauses: Sequence[Clause], measured: Mapping[str, Measured], confirmed: Collection[str], *, own_sizes: bool = True
) -> list[ClauseVerdict]:
    """Return the verdict on every clause.

    A clause fails only if its quantity is among the `confirmed`, those with a counterexample that a second route
    confirms. A figure whose rows are not of the paper's own sizes shows a clause or does not; it decides nothing. Nor
    does a number that could not have refuted its clause.
    """
    missing = [clause.quantity for clause in clauses if clause.quantity not in measured]
    if missing:
        raise InvalidInput(f"a check must measure {missing[0]!r}, got {sorted(measured)}")
    found: list[ClauseVerdict] = [clause.verdict(measured[clause.quantity]) for clause in clauses]
    if not own_sizes:
        seen: dict[ClauseVerdict, ClauseVerdict] = {"holds": "seen", "fails": "not seen"}
        return [seen.get(one, one) for one in found]
    return [_ruled(one, clause, clause.quantity in confirmed) for clause, one in zip(clauses, found, strict=True)]


def _ruled(found: ClauseVerdict, clause: Clause, confirmed: bool) -> ClauseVerdict:
    if found == "holds" and clause.refuting is None:
        return "seen"
    return "unconfirmed" if found == "fails" and not confirmed else found


def judge(found: Collection[ClauseVerdict]) -> Verdict:
    """Return the verdict on a statement by those on its clauses.

    It fails only with a clause that fails, in part only if another one holds. Clauses that are open or only seen leave
    a statement that otherwise holds as it is; a refutation that is not confirmed leaves it open.

    >>> judge(["fails", "seen"]), judge(["fails", "holds"]), judge(["holds", "open"]), judge(["holds", "unconfirmed"])
    ('fails', 'in part', 'holds', 'open')
    """
    if "fails" in found:
        return "in part" if "holds" in found else "fails"
    return "holds" if "holds" in found and "unconfirmed" not in found else "open"


_DRAWS = 200


def bootstrap(groups: Sequence[Tensor], statistic: Callable[[list[Tensor]], float]) -> Between:
    """Return the central 95 % of a statistic over groups of trials that are drawn again with replacement.

    The first axis of every group counts its trials. Where some draw leaves the statistic undefined, nothing is known.

    >>> heights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> low, high = bootstrap([heights], lambda groups: float(groups[0].mean()))
    >>> 1 < low < 2.5 < high < 4
    True
    """
    generator = torch.Generator().manual_seed(0)
    values = []
    for _ in range(_DRAWS):
        drawn = [group[torch.randint(len(group), (len(group),), generator=generator)] for group in groups]
        values.append(statistic(drawn))
    if any(math.isnan(value) for value in values):
        return Between(-math.inf, math.inf)
    values.sort()
    outside = _DRAWS // 40
    return Between(values[outside], values[-1 - outside])
