"""Planted worlds: every claim must be refuted where its statement is false and hold where it is true.

And a planted claim for every rule of what may be called how: no "fails" without a confirmed counterexample, and so on.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import pytest

from parityscope.papers.claim import Again, Claim, ClaimNumbers, Context, Measurement, PaperSizes, check
from parityscope.papers.criterion import Clause, at_most
from parityscope.papers.registry import PAPERS, named_claims
from parityscope.records import Config, Numbers, Result, Row


@dataclass(frozen=True)
class World:
    """A world in which a statement is plainly false, or plainly true.

    `patches` replace what the check computes with, by dotted path; `context` replaces the rows it reads.
    """

    what: str  # one phrase for the table: "Lemma 15's constant divided by 10⁴"
    patches: Mapping[str, Any] = field(default_factory=dict)
    context: Context = field(default_factory=lambda: Context("smoke"))


@dataclass(frozen=True)
class Planted:
    """The two worlds of a claim: one must refute it, one must confirm it."""

    false: World
    true: World
    confirmed: str = "holds"  # what it says in the true world, where a clause is beyond every computation


def all_planted() -> dict[str, Planted]:
    """Return the worlds of every claim, by its id."""
    modules = (importlib.import_module(f"papers.{paper.folder}.planted") for paper in PAPERS)
    return {claim_id: worlds for module in modules for claim_id, worlds in module.PLANTED.items()}


UNCONFIRMED = "open: refuted, but not by a second route"
REFUTED = {"fails", "misprint", UNCONFIRMED}


@cache
def found_in(claim_id: str, planted: Literal["false", "true"]) -> ClaimNumbers:
    """Return what a claim comes to in one of its planted worlds, computed once per process."""
    (claim,) = named_claims([claim_id])
    world: World = getattr(all_planted()[claim_id], planted)
    with pytest.MonkeyPatch.context() as patch:
        for path, value in world.patches.items():
            patch.setattr(path, value)
        return check(claim, world.context)


def verdict_in(claim_id: str, planted: Literal["false", "true"]) -> str:
    """Return the verdict on a claim in a planted world; of a proved claim, what its numbers say.

    What is planted fools the first route. Where the second route does not confirm, or there is none, a claim that was
    refuted in all its decided clauses stays open.
    """
    (claim,), found = named_claims([claim_id]), found_in(claim_id, planted)
    if found.verdict == "proved":
        return "holds"
    printed = {clause.verdict for clause in found.clauses if not clause.corrected}
    if found.verdict == "open" and "unconfirmed" in printed and "holds" not in printed:
        return UNCONFIRMED
    beside = found.qualifier.removeprefix(claim.qualifier).removeprefix(", ")  # what stands there in every world
    return f"{found.verdict}, {beside}" if beside else found.verdict


SMALL = Clause("it is small", "number", at_most(1), "the text")
LESS = Clause("it is below three", "number", at_most(3), "the proof", corrected=True)
OTHER, NEVER = (Clause("so is another", name, at_most(1), "the text") for name in ("another", "not measured"))
NEGATIVE = Clause("another is below zero", "another", at_most(-1), "the text")
SEEN = Clause("it is so small", "another", at_most(1), "the text", refuted_if="never")


@dataclass(frozen=True)
class Rule:
    """One rule of what may be called how: what is planted, and the verdict it must get."""

    what: str
    verdict: str
    clauses: Sequence[Clause] = (SMALL,)
    point: bool = True  # whether the check names where it measured 2, for a clause that says "at most 1"
    again: float | None = 2.0  # what the second route finds there; none: there is no second route
    corrected: str | None = None
    misprint: str = ""
    differing: str = ""
    hangs_on: str | None = None

    def found(self) -> ClaimNumbers:
        """Check the planted claim."""
        measured = {"number": 2.0, "another": 0.0, "not measured": None}
        points = {"number": {"at": 0}} if self.point else {}
        return check(
            Claim(
                "P-small",
                "Numbers are small.",
                self.clauses,
                lambda context: Measurement(measured, "2", "once", {}, "Read.", points),
                "nowhere",
                corrected=self.corrected,
                misprint=self.misprint,
                sizes=PaperSizes("n = 20", lambda context: self.differing),
                hangs_on=self.hangs_on,
                replay=None if self.again is None else {"number": lambda point: Again(self.again, "reading again")},
            ),
            Context("smoke"),
        )


_IN_TWO = {"clauses": (SMALL, LESS), "corrected": "Numbers are below three."}
RULES = (
    Rule("a counterexample that a second route confirms", "fails"),
    Rule("a number beyond its limit, and no counterexample", "open", point=False),
    Rule("a counterexample without a second route", "open", again=None),
    Rule("a counterexample that the second route does not confirm", "open", again=0.5),
    Rule("the same, beside a clause that holds", "open", (SMALL, OTHER), again=0.5),
    Rule("the same, beside one that holds and one that is open", "open", (SMALL, OTHER, NEVER), again=0.5),
    Rule("a clause that fails beside one that holds", "in part", (SMALL, OTHER)),
    Rule("a clause that fails beside one that is open", "fails", (SMALL, NEVER)),
    Rule("a clause that holds beside one that is open", "holds, where tested", (OTHER, NEVER)),
    Rule("the same, and the statement hangs on the open one", "open", (OTHER, NEVER), hangs_on="not measured"),
    Rule("a clause that holds beside one that nothing could refute", "holds, where tested", (OTHER, SEEN)),
    Rule("a clause that fails beside one that nothing could refute", "fails", (SMALL, SEEN)),
    Rule("a clause that nothing could refute alone", "open", (SEEN,)),
    Rule("a corrected form that holds, and the authors' text has it", "misprint", **_IN_TWO, misprint="the proof"),
    Rule("a corrected form that holds, and is ours", "fails", **_IN_TWO),
    Rule(
        "a corrected form that holds, as the printed one does",
        "holds",
        (OTHER, LESS),
        corrected="Numbers are below three.",
        misprint="the proof",
    ),
    Rule(
        "a misprint with a second counterexample that is not confirmed",
        "fails",
        (SMALL, NEGATIVE, LESS),
        corrected="Numbers are below three.",
        misprint="the proof",
    ),
    Rule(
        "a corrected form that fails too",
        "fails",
        (SMALL, replace(SMALL, corrected=True)),
        corrected="Numbers are small.",
        misprint="the proof",
    ),
    Rule("a misprint whose counterexample is not confirmed", "open", **_IN_TWO, misprint="the proof", again=0.5),
    Rule(
        "a figure that was not run at the paper's sizes, and does not show it",
        "open, at these sizes (n = 14): of 1 clause 1 not seen",
        differing="n = 14",
    ),
    Rule(
        "a figure that was not run at the paper's sizes, and shows it",
        "open, at these sizes (n = 14): of 1 clause 1 seen",
        (OTHER,),
        differing="n = 14",
    ),
    Rule(
        "a figure that was not run at the paper's sizes, and shows half of it",
        "open, at these sizes (n = 14): of 2 clauses 1 seen, 1 not seen",
        (OTHER, SMALL),
        differing="n = 14",
    ),
)


def rows_saying(numbers: Callable[[Config], Numbers]) -> Context:
    """Return a context in which the row of every config has the given numbers."""
    return Context("smoke", row=lambda config: Row.of(config, Result(numbers(config)), 0.0))
