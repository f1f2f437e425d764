"""What a claim is: a paper's statement, the criterion it is judged by, its check, and a counterexample's replay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from parityscope.core.errors import MissingExtra, naming_the_extra
from parityscope.core.threads import single_threaded
from parityscope.papers import paper_of
from parityscope.papers.criterion import (
    Clause,
    ClauseVerdict,
    Criterion,
    Measured,
    Verdict,
    fails,
    judge,
    rule,
    shown,
)
from parityscope.papers.figure import Scale
from parityscope.papers.registry import figure_of, named_claims
from parityscope.records import Config, Numbers, Result, Row
from parityscope.records.code import code_of_value

WHERE_TESTED = "where tested"  # what stands beside a verdict where not every clause could be decided


def _no_rows(figure_id: str) -> Sequence[Row[Any, Any]]:
    return ()


def computed(config: Config) -> Row[Any, Any]:
    """Return the row of a config, computed now."""
    started = time.perf_counter()
    result = config.run()
    return Row.of(config, result, time.perf_counter() - started)


@dataclass(frozen=True)
class Context:
    """What a check may use.

    Parameters
    ----------
    scale : str
        How much to compute.
    rows : callable
        The stored rows of a figure, by its id; none when nothing is stored.
    row : callable
        The row of a config: stored where there is a store, computed otherwise.
    """

    scale: Scale = "demo"
    rows: Callable[[str], Sequence[Row[Any, Any]]] = _no_rows
    row: Callable[[Config], Row[Any, Any]] = computed

    def at(self, *, smoke: int, reference: int, demo: int | None = None) -> int:
        """Return a count by scale; the demo's is that of the reference unless given."""
        counts: dict[Scale, int] = {
            "smoke": smoke,
            "demo": reference if demo is None else demo,
            "reference": reference,
        }
        return counts[self.scale]


class Measurement(NamedTuple):
    """What a check measured; the clauses of its claim make a verdict of it.

    Parameters
    ----------
    measured : mapping of str to float, Between, Share or None
        The quantities that the claim's clauses name; None where it could not be measured here.
    number : str
        The one number that says it shortest.
    tried : str
        How it was tested: draws, ascents, inputs, seeds.
    evidence : mapping
        Everything else that was computed.
    how : str
        What was computed, in a sentence or two.
    points : mapping of str to mapping or None
        By quantity, the point at which it was measured, with all that a replay needs; none where there is none. Where
        the quantity fails its clause, the point is a counterexample. Its `value` is the number there, that of the
        quantity unless given.
    """

    measured: Mapping[str, Measured]
    number: str
    tried: str
    evidence: Mapping[str, Any]
    how: str
    points: Mapping[str, Mapping[str, Any] | None] = MappingProxyType({})

    def counterexample(self, clauses: Sequence[Clause]) -> dict[str, dict[str, Any]]:
        """Return the points of the quantities that fail some clause."""
        return {
            quantity: {**point, "value": point.get("value", self.measured[quantity])}
            for quantity, point in self.points.items()
            if point is not None and fails(quantity, self.measured[quantity], clauses)
        }


class Again(NamedTuple):
    """The number of a counterexample by a second method; the clause says whether it still refutes the statement.

    Parameters
    ----------
    value : float
        The number, to be compared with the `value` of the point.
    route : str
        How it was computed.
    judged : float, Between or None
        What the clause is asked about, where that is not the number itself: the count or share of this one point, an
        interval that the route cannot resolve; not a number where the point does not meet the statement's premise.
    what : str or None
        What the number is, where it is not the clause's quantity.
    """

    value: float
    route: str
    judged: Measured = None
    what: str | None = None


SecondRoute = Callable[[Mapping[str, Any]], Again]


class PaperSizes(NamedTuple):
    """The sizes and settings at which a paper drew a figure, and how the rows that are read here differ from them.

    Parameters
    ----------
    printed : str
        The sizes and settings, as the paper gives them.
    differing : callable
        Given the context, says in a few words what is not the paper's ("n = 14 for 20, width 128 for 720"); an empty
        text where the rows are of the paper's own sizes, or where there are none.
    """

    printed: str
    differing: Callable[[Context], str]


def _no_configs(context: Context) -> Sequence[Config]:
    return ()


@dataclass(frozen=True)
class Claim:
    """One statement, its criterion and its check.

    Parameters
    ----------
    id : str
        Paper, kind, number as printed.
    statement : str
        What is tested, in the project's notation.
    clauses : sequence of Clause
        What is measured of it, what confirms and what refutes it.
    measure : callable
        Measures the clauses' quantities, given a `Context`.
    where : str
        Where the paper says it.
    seconds : float
        What the check costs at demo scale on an idle core, where that is more than one.
    reads_figure : bool
        Whether the check looks at the stored rows of figures.
    needs : callable
        The configs whose rows the check asks for, by context: trainings that may be shared with others.
    corrected : str or None
        A form that is true where the printed one is not; its clauses are marked `corrected`. It is what the authors
        meant if `misprint` is given, and otherwise ours: what is true instead.
    reading : str
        What the other form is, where it is neither: another reading of the printed words, such as "read with “or”".
    misprint : str
        Why the authors plainly meant the corrected form, by their own text: a use of it, a proof of it. Only then is a
        statement that fails as printed, and holds as corrected, a misprint.
    qualifier : str
        What stands beside every verdict on it: whose reading was tested, of what it speaks, what it leaves unjudged.
    hangs_on : str or None
        The quantity of the clause that carries the statement: while it is open the statement does not hold.
    sizes : PaperSizes or None
        Of a statement about a figure, the paper's sizes; rows of other sizes leave the statement open.
    proof : str or None
        The page with the proof; then a statement that holds is "proved".
    replay : mapping of str to callable, or None
        By quantity, the second method that computes the number of a counterexample again. A check runs it at once:
        without its confirmation nothing fails.
    printed : str
        The statement as printed: the paper's own words or formula, verbatim and short; empty where it is ours.
    hypotheses : str
        The hypotheses the paper puts on it, verbatim or nearly so: sizes, probability, temperature, initialisation.
    ours : str
        What in the test is ours and not the paper's: a reading, a threshold, a size.
    """

    id: str
    statement: str
    clauses: Sequence[Clause]
    measure: Callable[[Context], Measurement]
    where: str
    seconds: float = 1.0
    reads_figure: bool = False
    needs: Callable[[Context], Sequence[Config]] = _no_configs
    corrected: str | None = None
    reading: str = ""
    misprint: str = ""
    qualifier: str = ""
    hangs_on: str | None = None
    sizes: PaperSizes | None = None
    proof: str | None = None
    replay: Mapping[str, SecondRoute] | None = None
    printed: str = ""
    hypotheses: str = ""
    ours: str = ""

    @property
    def paper(self) -> str:
        """The paper's short name: H1, H2, W, or P for the project's own."""
        return paper_of(self.id)

    @property
    def figure(self) -> str | None:
        """The figure of the report that shows it, as its paper lists it."""
        return figure_of(self.id)

    @property
    def reads_rows(self) -> bool:
        """Whether the check looks at rows, so that it runs where the store is."""
        return self.reads_figure or self.needs is not _no_configs

    @property
    def refutable(self) -> bool:
        """Whether something that can be computed here would refute the statement."""
        return any(clause.refuting is not None for clause in self.clauses if not clause.corrected)

    def code(self) -> str:
        """Return a hash of the statement, its criterion and all source that decides its verdict."""
        words = [self.statement, self.corrected, self.proof, self.where, self.figure]
        words += [self.printed, self.hypotheses, self.ours, self.misprint]
        words += [one for one in (self.reading, self.qualifier, self.hangs_on) if one]
        decided_by = [rule, judge, self.measure, self.needs, list((self.replay or {}).items()), self.sizes]
        return code_of_value([words, list(self.clauses), decided_by])


class ClauseNumbers(Numbers):
    """One clause with what was measured of it."""

    says: str
    quantity: str
    measured: str
    holds_if: str
    refuted_if: str | None
    source: str
    verdict: ClauseVerdict
    corrected: bool


class CorrectedNumbers(Numbers):
    """A form of the statement that is true where the printed one is not, with its own verdict."""

    statement: str
    verdict: Verdict
    as_meant: bool  # by the authors' own text; otherwise it is ours, or
    reading: str = ""  # another reading of the printed words
    qualifier: str = ""  # "where tested", where clauses of it are only seen


class ClaimNumbers(Numbers):
    """The object that `claims --json` prints of a claim."""

    id: str
    paper: str
    statement: str
    where: str
    printed: str = ""
    hypotheses: str = ""
    ours: str = ""
    verdict: Verdict
    qualifier: str = ""  # what stands beside the verdict: "in our reading", "where tested", "at these sizes: …"
    misprint: str = ""
    sizes: str = ""
    criterion: Criterion
    refutable: bool
    clauses: tuple[ClauseNumbers, ...]
    corrected: CorrectedNumbers | None
    proof: str | None
    number: str
    tried: str
    evidence: dict[str, Any]
    how: str
    figure: str | None
    seconds: float


def check(claim: Claim, context: Context) -> ClaimNumbers:
    """Compute the verdict of one claim; what seems to refute it is computed again by its second route."""
    started = time.perf_counter()
    found, refuted, differing = _measured(claim, context)
    verdicts = rule(claim.clauses, found.measured, refuted["counterexample"], own_sizes=not differing)
    judged = list(zip(claim.clauses, verdicts, strict=True))
    printed = [one for clause, one in judged if not clause.corrected]
    corrected = [one for clause, one in judged if clause.corrected]
    verdict = _verdict(claim, judged)
    return ClaimNumbers(
        id=claim.id,
        paper=claim.paper,
        statement=claim.statement,
        where=claim.where,
        printed=claim.printed,
        hypotheses=claim.hypotheses,
        ours=claim.ours,
        verdict=verdict,
        qualifier=", ".join(filter(None, (claim.qualifier, _qualifier(verdict, printed, differing)))),
        misprint=claim.misprint,
        sizes="" if claim.sizes is None else claim.sizes.printed,
        criterion=Criterion.of([clause for clause in claim.clauses if not clause.corrected]),
        refutable=claim.refutable,
        clauses=tuple(_clause_numbers(clause, found.measured[clause.quantity], one) for clause, one in judged),
        corrected=None
        if claim.corrected is None
        else CorrectedNumbers(
            statement=claim.corrected,
            verdict=judge(corrected),
            as_meant=bool(claim.misprint),
            reading=claim.reading,
            # What both forms say, and was only seen, stands among the printed clauses.
            qualifier=WHERE_TESTED if any(one.refuting is None for one in claim.clauses) else "",
        ),
        proof=claim.proof,
        number=found.number,
        tried=found.tried,
        evidence={**found.evidence, **{name: points for name, points in refuted.items() if points}},
        how=found.how,
        figure=claim.figure,
        seconds=round(time.perf_counter() - started, 2),
    )


_Refuted = dict[Literal["counterexample", "unconfirmed"], dict[str, dict[str, Any]]]


def _measured(claim: Claim, context: Context) -> tuple[Measurement, _Refuted, str]:
    """Measure a claim; return also the points that refute it, by whether a second route confirms, and other sizes."""
    try:
        with single_threaded(), naming_the_extra():
            found = claim.measure(context)
            differing = "" if claim.sizes is None else claim.sizes.differing(context)
            points = {} if differing else found.counterexample(claim.clauses)
            confirmed = {quantity: again for quantity, again in _replays(claim, points) if again.confirms}
    except MissingExtra as missing:
        nothing = untested(claim.clauses, "an extra is missing", f"{missing}.")
        return nothing, {"counterexample": {}, "unconfirmed": {}}, ""
    refuted: _Refuted = {
        "counterexample": {
            quantity: {**points[quantity], "confirmed": {"value": again.again, "by": again.route}}
            for quantity, again in confirmed.items()
        },
        "unconfirmed": {quantity: point for quantity, point in points.items() if quantity not in confirmed},
    }
    return found, refuted, differing


def _verdict(claim: Claim, judged: Sequence[tuple[Clause, ClauseVerdict]]) -> Verdict:
    """Return the verdict on the printed form, where a proof and the authors' evidence for a misprint count."""
    printed = [one for clause, one in judged if not clause.corrected]
    if claim.proof and set(printed) == {"holds"}:
        return "proved"
    refuted = "fails" in printed and "unconfirmed" not in printed
    if claim.misprint and refuted and {one for clause, one in judged if clause.corrected} == {"holds"}:
        return "misprint"
    found = judge(printed)
    undecided = any(clause.quantity == claim.hangs_on and one == "open" for clause, one in judged)
    return "open" if found == "holds" and undecided else found


def _qualifier(verdict: Verdict, printed: Sequence[ClauseVerdict], differing: str) -> str:
    """Say what must stand beside the verdict: that clauses are open or only seen, or what other sizes showed.

    >>> _qualifier("holds", ["holds", "open"], ""), _qualifier("open", ["seen", "not seen", "seen"], "n = 14 for 20")
    ('where tested', 'at these sizes (n = 14 for 20): of 3 clauses 2 seen, 1 not seen')
    >>> _qualifier("holds", ["holds", "seen"], "")
    'where tested'
    """
    if differing:
        counts = {one: printed.count(one) for one in ("seen", "not seen", "open")}
        said = [f"{count} {one}" for one, count in counts.items() if count]
        return f"at these sizes ({differing}): of {len(printed)} clause{'s' * (len(printed) > 1)} {', '.join(said)}"
    return WHERE_TESTED if {"open", "seen"} & {*printed} and verdict in ("holds", "in part") else ""


def _clause_numbers(clause: Clause, measured: Measured, verdict: ClauseVerdict) -> ClauseNumbers:
    return ClauseNumbers(
        says=clause.says,
        quantity=clause.quantity,
        measured=shown(measured),
        holds_if=str(clause.holds_if),
        refuted_if=None if clause.refuting is None else str(clause.refuting),
        source=clause.source,
        verdict=verdict,
        corrected=clause.corrected,
    )


class Replay(NamedTuple):
    """One number of a stored counterexample, beside the same number computed again by a second method."""

    what: str
    stored: float
    again: float
    route: str
    confirms: bool  # whether the second number fails the clause too


@dataclass(frozen=True)
class Replayed:
    """What a counterexample of a claim came to when it was computed again; `missing` says why there is none."""

    id: str
    scale: Scale
    stored: bool  # or else found by a check just now
    replays: Sequence[Replay] = ()
    missing: str | None = None

    @property
    def confirms(self) -> bool:
        """Whether every second number still refutes the statement."""
        return all(replay.confirms for replay in self.replays)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "replays": [replay._asdict() for replay in self.replays]}


def replay(claim: Claim, found: ClaimNumbers | None, scale: Scale, context: Context) -> Replayed:
    """Compute the counterexample of a verdict that was `found` again, or of the one that the claim gets now."""
    if claim.replay is None:
        return Replayed(
            claim.id, scale, found is not None, missing=f"{claim.id} has no counterexample that can be replayed"
        )
    checked = check(claim, context) if found is None else found
    points = {**checked.evidence.get("counterexample", {}), **checked.evidence.get("unconfirmed", {})}
    if not points:
        reason = f"{claim.id} has no counterexample to replay: at scale {scale} it is {checked.verdict!r}"
        return Replayed(claim.id, scale, found is not None, missing=reason)
    with single_threaded(), naming_the_extra():
        replays = tuple(found for _, found in _replays(claim, points))
    return Replayed(claim.id, scale, found is not None, replays)


def _replays(claim: Claim, points: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Replay]]:
    """Yield the number at every point that has a second route, by its quantity."""
    routes = claim.replay or {}
    for quantity, point in points.items():
        if quantity in routes:
            yield quantity, _again(claim, quantity, point, routes[quantity])


def _again(claim: Claim, quantity: str, point: Mapping[str, Any], route: SecondRoute) -> Replay:
    """Compute the number at a point by its second method, and ask the claim's clauses about it."""
    again = route(point)
    judged = again.value if again.judged is None else again.judged
    confirms = fails(quantity, judged, claim.clauses)
    return Replay(again.what or quantity, point["value"], again.value, again.route, confirms)


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
        (claim,) = named_claims([self.claim])
        return claim


def _none_at_hand(asked: object) -> Any:
    raise AssertionError(f"a check asked for rows of {asked}, but its claim says neither reads_figure nor needs")


def untested(clauses: Sequence[Clause], number: str, how: str) -> Measurement:
    """Return what a check says that could measure nothing here.

    >>> untested([], "no rows", "No rows are stored.").tried
    'nothing'
    """
    return Measurement({clause.quantity: None for clause in clauses}, number, "nothing", {}, how)


def needs_rows(clauses: Sequence[Clause], figure_id: str) -> Measurement:
    """Return what a check says when the rows it judges are not stored.

    >>> needs_rows([], "W-figure-1").number
    'no rows'
    """
    return untested(
        clauses,
        "no rows",
        f"No rows of this figure are stored here: run `parityscope reproduce {figure_id}` with the same --out first.",
    )
