"""Claims in words: what a verdict means and how many there are of each, criteria in short, counterexamples by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from parityscope.papers import own
from parityscope.papers.claim import ClaimNumbers
from parityscope.papers.criterion import VERDICTS, Verdict
from parityscope.papers.registry import PAPERS

MEANINGS: Mapping[Verdict, str] = {
    "proved": "there is a written proof, and computation agrees with it",
    "holds": "attacked here and not broken, which is no proof",
    "holds in part": "some clauses hold, others fail or are left open",
    "fails": "refuted within its own hypotheses",
    "not testable here": "nothing that was computed decides it",
}
IRREFUTABLE = "cannot be refuted here"
OURS = own.PAPER.name
_MOST_CLAUSES, _MOST_NUMBERS, _MOST_ROWS = 3, 24, 12


class Tally(NamedTuple):
    """How many statements of a paper got which verdict; those that cannot be refuted here are counted apart.

    >>> Tally("H1", {"holds": 2, "fails": 1}, apart=1).cells()
    ['4', '0', '2', '0', '1', '0', '1']
    """

    name: str
    verdicts: Mapping[Verdict, int]  # of statements that something computed here could have refuted
    apart: int

    @property
    def statements(self) -> int:
        """How many there are."""
        return sum(self.verdicts.values()) + self.apart

    def cells(self) -> list[str]:
        """Return the row of a table with the columns `TALLIED`."""
        return [str(count) for count in (self.statements, *(self.verdicts.get(one, 0) for one in VERDICTS), self.apart)]

    @classmethod
    def of(cls, name: str, claims: Sequence[ClaimNumbers]) -> Tally:
        """Count claims."""
        refutable = [claim for claim in claims if claim.refutable]
        return cls(name, Counter(claim.verdict for claim in refutable), len(claims) - len(refutable))


TALLIED = ("statements", *VERDICTS, IRREFUTABLE)


def tallies(claims: Sequence[ClaimNumbers]) -> list[Tally]:
    """Count the claims of each paper, of all papers together, and apart from them our own.

    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> [tally.name for tally in tallies([check(*named_claims(["H1-lemma-15"]), Context("smoke"))])]
    ['H1']
    """
    by_paper = {paper.name: [claim for claim in claims if claim.paper == paper.name] for paper in PAPERS}
    ours = by_paper.pop(OURS)
    found = [Tally.of(name, own) for name, own in by_paper.items() if own]
    if len(found) > 1:
        found.append(Tally.of("the papers", [claim for own in by_paper.values() for claim in own]))
    return [*found, Tally.of("our own", ours)] if ours else found


def meaning_of(claim: ClaimNumbers) -> str:
    """Return what a claim's verdict means, of a divided one how many clauses are on each side.

    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> meaning_of(check(*named_claims(["H1-lemma-16"]), Context("smoke")))
    'of 2 clauses 1 holds, 1 fails'
    """
    if claim.verdict != "holds in part":
        return MEANINGS[claim.verdict]
    counts: Counter[str] = Counter(clause.verdict for clause in claim.clauses if not clause.corrected)
    sides = {"holds": ("holds", "hold"), "fails": ("fails", "fail"), "open": ("is left open", "are left open")}
    said = [f"{counts[side]} {words[counts[side] > 1]}" for side, words in sides.items() if counts[side]]
    return f"of {counts.total()} clauses {', '.join(said)}"


def remarks(claim: ClaimNumbers) -> list[str]:
    """Return what stands beside a verdict: that nothing here can refute the statement, how its corrected form fares.

    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> remarks(check(*named_claims(["H1-lemma-14-derivative"]), Context("smoke")))
    ['as meant: holds']
    """
    meant = [] if claim.corrected is None else [f"as meant: {claim.corrected.verdict}"]
    return [*([] if claim.refutable else [IRREFUTABLE]), *meant]


def refuted_by(claim: ClaimNumbers) -> str:
    """Return in short what would refute the statement as printed.

    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> refuted_by(check(*named_claims(["H1-lemma-14-derivative"]), Context("smoke")))
    'largest distance of the printed derivative from autograd: > 1e-06'
    """
    printed = [clause for clause in claim.clauses if not clause.corrected]
    refuting = [f"{clause.quantity}: {clause.refuted_if}" for clause in printed if clause.refuted_if is not None]
    more = len(refuting) - _MOST_CLAUSES
    shown = refuting if more <= 1 else [*refuting[:_MOST_CLAUSES], f"one of {more} more"]
    return "; or ".join(shown) or "nothing that is computed here"


def counterexample_of(claim: ClaimNumbers) -> Mapping[str, Any] | None:
    """Return the points at which a claim was refuted by the quantity that fails there, if it was.

    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> list(counterexample_of(check(*named_claims(["H1-lemma-14-derivative"]), Context("smoke"))))
    ['largest distance of the printed derivative from autograd']
    """
    return claim.evidence.get("counterexample")


class Entry(NamedTuple):
    """One named value of a counterexample, and how deep it lies within others.

    >>> Entry(0, "seed", "3").value
    '3'
    """

    depth: int
    name: str
    value: str


def entries(values: Mapping[str, Any], depth: int = 0) -> Iterator[Entry]:
    """Yield nested values as lines that people read; a table of numbers has one line per row.

    >>> for entry in entries({"n": 4, "largest_at": {"tau": 0.25}, "heads": [[1.0, 0.0], [0.5, 2 / 3]]}):
    ...     print(entry)
    Entry(depth=0, name='n', value='4')
    Entry(depth=0, name='largest at', value='')
    Entry(depth=1, name='tau', value='0.25')
    Entry(depth=0, name='heads', value='(1, 0)\\n(0.5, 0.666667)')
    """
    for key, value in values.items():
        name = key.replace("_", " ")
        if isinstance(value, Mapping):
            yield Entry(depth, name, "")
            yield from entries(value, depth + 1)
        elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
            for place, one in enumerate(value, start=1):
                yield from entries({f"{name} {place} of {len(value)}": one}, depth)
        else:
            yield Entry(depth, name, _written(value))


def _written(value: Any) -> str:
    """Return a number, a text, a list or a table of numbers as people write them, the beginning of a long one.

    >>> _written([0, 1, 1]), _written(True), _written(None), _written(list(range(40)))
    ('(0, 1, 1)', 'yes', 'none', '(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … 40 in all)')
    """
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if not isinstance(value, list | tuple):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    table = any(isinstance(one, list | tuple) for one in value)
    most = _MOST_ROWS if table else _MOST_NUMBERS
    written = [_written(one) for one in (value if len(value) <= most else value[:_MOST_ROWS])]
    if len(value) > most:
        written.append(f"… {len(value)} in all")
    return "\n".join(written) if table else f"({', '.join(written)})"


def page_of(proof: str) -> str:
    """Return the file of the documentation that has a proof, with the heading if one is named.

    >>> page_of("explanation/bounded-readout"), page_of("docs/explanation/engines.md#error")
    ('docs/explanation/bounded-readout.md', 'docs/explanation/engines.md#error')
    """
    path, mark, heading = proof.removeprefix("docs").lstrip(":/ ").partition("#")
    return f"docs/{path.removesuffix('.md')}.md{mark}{heading}"
