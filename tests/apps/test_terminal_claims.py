"""Claims on a terminal: nothing is cut at any usual width, brackets stay, every part of a page is there."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from parityscope.apps.terminal.tables import show_claim, show_claims, show_replays
from parityscope.papers.claim import Again, Claim, Context, Measurement, Replay, Replayed, check
from parityscope.papers.criterion import Clause, at_least, at_most

PRINTED = Clause("the sum is [at most] one", "sum of the terms", at_most(1), "the lemma's own constant")
APART = Clause("for every n", "largest n", at_least(1e9), "asymptotic: no finite n decides", "never")
MEANT = Clause("the sum is at most two", "sum of the terms", at_most(2), "the proof", corrected=True)
POINT = {"n": 4, "heads": [[1.0, 0.0], [0.5, 0.25]], "largest_at": {"seed": 7}}
CLAIM = Claim(
    "H1-lemma-0",
    "Σ_j [a_j] ≤ 1 for every n " + "and every choice of terms that anybody has ever thought of " * 4 + "(Lemma 0).",
    (PRINTED, APART, MEANT),
    lambda context: Measurement(
        {"sum of the terms": 1.5, "largest n": None},
        "1.5 at n = 4",
        "2,000 draws",
        {},
        "Added.",
        {"sum of the terms": POINT},
    ),
    "Section 9, Lemma 0",
    seconds=1,
    corrected="Σ_j [a_j] ≤ 2 for every n.",
    misprint="its proof has 2",
    replay={"sum of the terms": lambda point: Again(1.5, "adding")},
    printed="the terms add up to 1",
    hypotheses="n large enough",
    ours="the terms are drawn",
)
UNTESTED = replace(
    CLAIM,
    id="P-unknown",
    clauses=(APART,),
    measure=lambda context: Measurement(
        {"sum of the terms": 1.5, "largest n": None}, "none", "2,000 draws", {}, "Added."
    ),
    corrected=None,
    misprint="",
    replay=None,
)
PROVED = replace(
    UNTESTED, id="W-lemma-0", clauses=(replace(MEANT, corrected=False),), proof="explanation/bounded-readout"
)


def printed(width, show, *arguments):
    console = Console(file=io.StringIO(), width=width)
    show(console, *arguments)
    return console.file.getvalue()


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_blocks_keep_every_word_at_every_width(width):
    claims = [check(claim, Context("smoke")) for claim in (CLAIM, UNTESTED, PROVED)]
    text = printed(width, show_claims, claims)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= min(width, 118)
    said = words(text)
    for claim in claims:
        assert words(claim.statement) in said
        assert f"tried: {claim.tried}" in said
        assert claim.where in said
    assert "H1-lemma-0 misprint · as meant: holds, where tested · Section 9, Lemma 0" in said
    assert "P-unknown open · cannot be refuted here" in said
    assert "W-lemma-0 proved" in said
    assert "refuted if nothing that is computed here" in said
    assert said.endswith("cannot be refuted here, counted apart: P-unknown (open)")


def test_counts_are_of_each_paper_of_all_papers_and_of_ours():
    claims = [check(claim, Context("smoke")) for claim in (CLAIM, UNTESTED, PROVED)]
    lines = [words(line) for line in printed(120, show_claims, claims).splitlines()]
    assert "statements proved holds misprint in part fails open cannot be refuted here" in lines
    assert {"H1 1 0 0 1 0 0 0 0", "W 1 1 0 0 0 0 0 0", "the papers 2 1 0 1 0 0 0 0", "our own 1 0 0 0 0 0 0 1"} <= set(
        lines
    )


def test_a_page_has_every_clause_with_its_limits_and_source():
    checked = check(CLAIM, Context("smoke")).model_copy(update={"figure": "H1-figure-1"})
    said = words(printed(100, show_claim, checked, "smoke"))
    assert said.startswith(
        "H1-lemma-0 misprint · as meant: holds, where tested · Section 9, Lemma 0 Printed: “the terms add up to 1”"
    )
    assert "(n large enough) Tested: Σ_j [a_j] ≤ 1 for every n" in said
    assert "ours: the terms are drawn" in said
    assert (
        "1 the sum is [at most] one: fails; sum of the terms: 1.5 (holds if ≤ 1, refuted if > 1; "
        "the lemma's own constant)"
    ) in said
    assert "2 for every n: open; largest n: not measured" in said
    assert "refuted if nothing that is computed here; asymptotic: no finite n decides)" in said
    assert "As meant: holds, where tested. Σ_j [a_j] ≤ 2 for every n. Why it is meant: its proof has 2" in said
    assert "Why: a counterexample sum of the terms n 4 heads (1, 0) (0.5, 0.25) largest at seed 7" in said
    assert "figure: parityscope reproduce H1-figure-1 --scale smoke" in said
    assert "replay: parityscope claims H1-lemma-0 --replay --scale smoke" in said


def test_a_page_leaves_out_what_there_is_not():
    said = words(printed(100, show_claim, check(UNTESTED, Context()), "demo"))
    assert "It cannot be refuted here: no outcome of this computation would have spoken against it." in said
    assert not re.search("As meant|figure:|proof:|replay|--scale", said)
    said = words(printed(100, show_claim, check(PROVED, Context()), "demo"))
    assert "proof: docs/explanation/bounded-readout.md" in said


def test_replays_show_both_numbers_and_whether_they_refute():
    both = [Replay("risk", 1.781699531, 1.7816995, "40 digits", True), Replay("slope", 0.0, 2.5, "differences", False)]
    replayed = [
        Replayed("H1-a", "demo", stored=True, replays=both),
        Replayed("H1-b", "demo", False, missing="H1-b has none"),
    ]
    said = words(printed(100, show_replays, replayed))
    assert "risk 1.7817 1.7817 40 digits yes slope 0 2.5 differences no" in said
    assert said.endswith("H1-b has none")
