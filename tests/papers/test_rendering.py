"""Claims in words: counts, remarks, criteria in short, counterexamples by line."""

import json

import pytest

from parityscope.papers.claim import Again, Claim, Context, Measurement, check
from parityscope.papers.criterion import VERDICTS, Clause, at_most
from parityscope.papers.rendering import (
    AS_TESTED,
    MEANINGS,
    TALLIED,
    counterexample_of,
    meaning_of,
    page_of,
    point_lines,
    refuted_by,
    remarks,
    tallies,
)


def checked(claim_id="H1-lemma-0", numbers=(0.0,), *, refuted_if="otherwise", evidence=None, **more):
    """Return a claim that was checked: a clause "≤ 1" for every number."""
    clauses = [Clause(f"clause {i}", f"number {i}", at_most(1), "the text", refuted_if) for i in range(len(numbers))]
    measured = {clause.quantity: number for clause, number in zip(clauses, numbers, strict=True)}
    points = {quantity: {"value": number} for quantity, number in measured.items()}
    found = Measurement(measured, "a number", "32 seeds", evidence or {}, "Counted.", points)
    routes = dict.fromkeys(measured, lambda point: Again(point["value"], "reading"))
    claim = Claim(
        claim_id, "Numbers are small.", clauses, lambda context: found, "Section 1", seconds=1, replay=routes, **more
    )
    return check(claim, Context("smoke"))


def test_the_papers_are_counted_together_and_ours_apart():
    claims = [checked("H1-a"), checked("H1-b", [2.0]), checked("W-a", [0.0, 2.0]), checked("P-a"), checked("P-b")]
    rows = {tally.name: dict(zip(TALLIED, map(int, tally.cells()), strict=True)) for tally in tallies(claims)}
    assert list(rows) == ["H1", "W", "the papers", "our own"]
    assert [row["statements"] for row in rows.values()] == [2, 1, 3, 2]
    assert (rows["the papers"]["holds"], rows["the papers"]["fails"], rows["our own"]["holds"]) == (1, 1, 2)
    assert [tally.name for tally in tallies([checked("P-a")])] == ["our own"]
    quoting_others = [checked("H2-ffnn"), checked("H2-temperature")]
    assert [(one.name, one.statements) for one in tallies(quoting_others)] == [
        ("H2", 1),
        ("H2's page, machine-written", 1),
    ]
    assert tallies([]) == []


def test_what_cannot_be_refuted_is_in_no_other_column():
    (tally,) = tallies(
        [checked("H1-a"), checked("H1-b", refuted_if="never"), checked("H1-c", [2.0], refuted_if="never")]
    )
    assert tally.cells() == ["3", "0", "1", "0", "0", "0", "0", "2"]
    assert sum(map(int, tally.cells()[1:])) == tally.statements


def test_every_verdict_has_a_meaning():
    assert tuple(MEANINGS) == VERDICTS


@pytest.mark.parametrize(
    ("numbers", "meaning"),
    [
        ([0.0, 2.0, None], f"{MEANINGS['in part']}: of 3 clauses 1 holds, 1 fails, 1 is left open"),
        ([0.0, 0.0, 2.0, 2.0], f"{MEANINGS['in part']}: of 4 clauses 2 hold, 2 fail"),
        ([0.0, None], f"where tested: {AS_TESTED}, and not refuted: of 2 clauses 1 holds, 1 is left open"),
        ([2.0], MEANINGS["fails"]),
    ],
)
def test_a_divided_verdict_says_how(numbers, meaning):
    assert meaning_of(checked(numbers=numbers)) == meaning


def test_remarks_stand_beside_a_verdict():
    assert remarks(checked()) == []
    assert remarks(checked(numbers=[0.0, None])) == ["where tested"]
    assert remarks(checked(refuted_if="never")) == ["cannot be refuted here"]


def test_a_criterion_is_shortened_clause_by_clause():
    assert refuted_by(checked(numbers=[0.0, 0.0])) == "number 0: > 1; or number 1: > 1"
    assert refuted_by(checked(numbers=[0.0] * 5)).endswith("number 2: > 1; or one of 2 more")
    assert refuted_by(checked(refuted_if="never")) == "nothing that is computed here"


POINT = {
    "n": 4,
    "tau": 0.25,
    "largest_at": {"b": 1e8, "deeper": {"seed": 3}},
    "heads": [[1.0, 0.0], [0.5, 2 / 3]],
    "x": [0, 1, 1],
    "runs": [{"seed": 1}, {"seed": 2}],
    "converged": True,
    "limit": None,
    "digits": "1.78169953144",
    "many": list(range(100)),
    "rows": [[i, i] for i in range(40)],
    "nothing": [],
}


def test_a_counterexample_is_laid_out_with_its_names():
    assert counterexample_of(checked()) is None
    assert list(counterexample_of(checked(numbers=[2.0]))) == ["number 0"]
    point = counterexample_of(checked(evidence={"counterexample": POINT}))
    lines = [" ".join(line.split()) for line in point_lines(json.loads(json.dumps(point)))]
    assert lines[:6] == ["n 4", "tau 0.25", "largest at", "b 1e+08", "deeper", "seed 3"]
    assert lines[lines.index("heads (1, 0)") + 1] == "(0.5, 0.666667)"
    assert lines[lines.index("runs 1 of 2") + 1] == "seed 1"
    assert {"x (0, 1, 1)", "converged yes", "limit none", "digits 1.78169953144", "nothing ()"} <= set(lines)
    assert any(line.startswith("many (0, 1, ") and line.endswith("… 100 in all)") for line in lines)
    rows = lines.index("rows (0, 0)")
    assert lines[rows + 11 : rows + 13] == ["(11, 11)", "… 40 in all"]
    assert {"  b        1e+08", "  deeper", "    seed   3"} <= set(point_lines(point))


@pytest.mark.parametrize("proof", ["explanation/sums", "docs: explanation/sums", "docs/explanation/sums.md"])
def test_a_proof_names_a_page_in_one_of_the_usual_ways(proof):
    assert page_of(proof) == "docs/explanation/sums.md"
    assert page_of(f"{proof}#halves") == "docs/explanation/sums.md#halves"
