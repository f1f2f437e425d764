"""What a claim is: a statement of a paper, a check that computes its verdict, and the evidence behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from parityscope.core.errors import MissingExtra, naming_the_extra
from parityscope.core.threads import single_threaded
from parityscope.papers.figure import Scale
from parityscope.papers.paper import paper_of
from parityscope.records import Config, Numbers, Result, Row
from parityscope.records.code import code_of_value

Verdict = Literal["holds", "holds in part", "fails", "not testable here"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


def _no_rows(figure_id: str) -> Sequence[Row[Any, Any]]:
    return ()


def computed(config: Config) -> Row[Any, Any]:
    """Return the row of a config, computed now.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> computed(WorkedExample()).numbers.label
    1
    """
    started = time.perf_counter()
    result = config.run()
    return Row.of(config, result, time.perf_counter() - started)


@dataclass(frozen=True)
class Context:
    """What a check may use.

    Parameters
    ----------
    scale : str
        How hard to try.
    rows : callable
        The stored rows of a figure, by its id; none when nothing is stored.
    row : callable
        The row of a config: stored where there is a store, computed otherwise.
    """

    scale: Scale = "demo"
    rows: Callable[[str], Sequence[Row[Any, Any]]] = _no_rows
    row: Callable[[Config], Row[Any, Any]] = computed

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


def _no_configs(context: Context) -> Sequence[Config]:
    return ()


@dataclass(frozen=True)
class Claim:
    """One statement and its check.

    Parameters
    ----------
    id : str
        Paper, kind, number as printed.
    statement : str
        What the paper says.
    check : callable
        Computes the verdict from a `Context`.
    seconds : float
        What the check costs at demo scale on an idle core.
    figure : str or None
        The figure of the report that shows it.
    reads_figure : bool
        Whether the check looks at the stored rows of figures.
    needs : callable
        The configs whose rows the check asks for, by context: trainings that may be shared with others.

    >>> def halves(context):
    ...     return Check("holds", "1/2 + 1/2 = 1", {"sum": 0.5 + 0.5}, "Added.")
    >>> claim = Claim("P-halves", "Two halves are one.", halves, seconds=0.1)
    >>> claim.paper, claim.check(Context()).verdict
    ('P', 'holds')
    """

    id: str
    statement: str
    check: Callable[[Context], Check]
    seconds: float
    figure: str | None = None
    reads_figure: bool = False
    needs: Callable[[Context], Sequence[Config]] = _no_configs

    @property
    def paper(self) -> str:
        """The paper's short name: H1, H2, W, or P for the project's own."""
        return paper_of(self.id)

    @property
    def reads_rows(self) -> bool:
        """Whether the check looks at rows, so that it runs where the store is."""
        return self.reads_figure or self.needs is not _no_configs

    def code(self) -> str:
        """Return a hash of the statement and of all source that decides its verdict."""
        return code_of_value([self.statement, self.figure, self.check, self.needs])


class ClaimNumbers(Numbers):
    """The object that `claims --json` prints of a claim."""

    id: str
    paper: str
    statement: str
    verdict: Verdict
    number: str
    evidence: dict[str, Any]
    how: str
    figure: str | None
    seconds: float


def check(claim: Claim, context: Context) -> ClaimNumbers:
    """Compute the verdict of one claim.

    >>> from parityscope.papers.registry import named_claims
    >>> (lemma,) = named_claims(["W-lemma-6"])
    >>> check(lemma, Context("smoke")).number
    'conditional mean exactly 0 in 162 events'
    """
    started = time.perf_counter()
    try:
        with single_threaded(), naming_the_extra():
            outcome = claim.check(context)
    except MissingExtra as missing:
        outcome = Check("not testable here", "an extra is missing", {}, f"{missing}.")
    return ClaimNumbers(
        id=claim.id,
        paper=claim.paper,
        statement=claim.statement,
        verdict=outcome.verdict,
        number=outcome.number,
        evidence=dict(outcome.evidence),
        how=outcome.how,
        figure=claim.figure,
        seconds=round(time.perf_counter() - started, 2),
    )


class ClaimCheck(Config):
    """A claim checked at a scale; `rows` are the addresses of the rows it reads, so that new rows are judged anew."""

    ROWS: ClassVar[str] = "claims"
    NUMBERS: ClassVar[type[Numbers]] = ClaimNumbers

    claim: str
    scale: Scale
    rows: tuple[str, ...] = ()

    def run(self) -> Result:
        """Check the claim where no store is at hand."""
        return Result(check(self._claim(), Context(self.scale, _none_at_hand, _none_at_hand)))

    def code(self) -> str:
        """Return the hash of the claim's own code."""
        return self._claim().code()

    def _claim(self) -> Claim:
        from parityscope.papers.registry import named_claims

        (claim,) = named_claims([self.claim])
        return claim


def _none_at_hand(asked: object) -> Any:
    raise AssertionError(f"a check asked for rows of {asked}, but its claim says neither reads_figure nor needs")


def equality_check(error: float, allowed: float, what: str, how: str) -> Check:
    """Return the check of a printed equation: it holds where both sides differ by at most `allowed`.

    >>> equality_check(2e-3, 1e-9, "gradient", "autograd and the printed sum")[:2]
    ('fails', 'gradient: 2e-03')
    """
    return Check("holds" if error <= allowed else "fails", f"{what}: {error:.0e}", {"largest_error": error}, f"{how}.")


def needs_rows(figure_id: str) -> Check:
    """Return what a check says when the rows it judges are not stored.

    >>> needs_rows("W-figure-1").verdict
    'not testable here'
    """
    return Check(
        "not testable here",
        "no rows",
        {},
        f"No rows of this figure are stored here: run `parityscope reproduce {figure_id}` with the same --out first.",
    )
