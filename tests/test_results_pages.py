"""The stored results pages are complete and those of the current code: claims, statements, figures."""

import json
import re
import subprocess
import sys
from importlib import import_module

import pytest

from documentation import PAGES, ROOT
from harness.planted import all_planted
from parityscope.papers.claim import ClaimNumbers
from parityscope.papers.registry import FIGURE_IDS, all_claims, load_figure
from parityscope.papers.rendering import plain, tallies, whose
from parityscope.records import Result, Store

RESULTS = PAGES / "results"
STORED = json.loads((RESULTS / "claims.json").read_text())
CHECKED = [ClaimNumbers.model_validate(claim) for claim in STORED["claims"]]
MOST_BYTES = 150_000  # two language models in one picture are the largest


def test_the_stored_claims_are_the_current_ones():
    stored = [(claim["id"], claim["statement"]) for claim in STORED["claims"]]
    assert stored == [(claim.id, claim.statement) for claim in all_claims()], "run `make docs-results`"


def test_every_claim_stands_with_its_verdict_and_unfolds():
    page = (RESULTS / "claims.md").read_text()
    for claim in CHECKED:
        _, _, article = page.partition(f'<article class="claim" id="{claim.id}" markdown="1">')
        article, _, _ = article.partition("</article>")
        line = article.strip().splitlines()[0]
        assert f">{claim.verdict}</span>" in line
        assert ("cannot be refuted here" in line) == (not claim.refutable)
        assert article.count("<details") == 2
        assert f"parityscope claims {claim.id} --json --scale {STORED['scale']}" in article


def test_the_counts_on_top_are_those_of_the_table():
    page = (RESULTS / "claims.md").read_text()
    for tally in tallies(CHECKED):
        assert f"\n| {tally.name} | {' | '.join(tally.cells())} |\n" in page
    papers, others, ours = whose(CHECKED)
    assert (others, papers + ours) == (3, len(CHECKED) - 3)
    assert f"{papers} statements of the papers, {others} of a machine-written page on H2 and {ours} of our own" in page


def test_no_page_shows_the_escape_of_an_escape():
    for page in RESULTS.glob("*.md"):
        assert "&&#" not in page.read_text()


def test_the_planted_page_has_the_worlds_of_the_tests():
    page = (RESULTS / "planted.md").read_text()
    for claim_id, worlds in all_planted().items():
        false, true = (plain(world.what) for world in (worlds.false, worlds.true))
        link = f"[{claim_id}](claims.md#{claim_id})"
        row = re.search(rf"\n\| {re.escape(f'{link} | {false}')} \| (.+?) \| {re.escape(true)} \| (.+?) \|\n", page)
        assert row is not None, "run `make docs-results`"
        assert row[1] in ("fails", "misprint", "open: refuted, but not by a second route"), row[0]
        assert row[2].startswith("holds"), row[0]
    _, _, apart = page.partition("## What cannot be refuted here")
    assert set(re.findall(r"^\| \[([\w-]+)\]", apart, flags=re.M)) == {
        one.id for one in all_claims() if not one.refutable
    }


@pytest.mark.parametrize("name", FIGURE_IDS)
def test_every_figure_is_there_with_its_command(name):
    page = (RESULTS / "figures.md").read_text()
    assert f"{{ #{name} }}" in page
    assert f"](figures/{name}.png)" in page
    command = getattr(load_figure(name), "COMMAND", f"parityscope reproduce {name} --scale {STORED['scale']}")
    assert f"`{command}`" in page
    picture = (RESULTS / "figures" / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < MOST_BYTES


def test_no_figure_is_left_over():
    assert {path.stem for path in (RESULTS / "figures").glob("*.png")} == set(FIGURE_IDS)


@pytest.mark.slow
def test_an_unfinished_reproduction_is_refused(tmp_path):
    command = [sys.executable, str(ROOT / "docs" / "results.py"), str(tmp_path), "--out", str(tmp_path / "out")]
    nothing = subprocess.run(command, capture_output=True, text=True, check=False)
    assert nothing.returncode == 1
    assert "holds no rows" in nothing.stderr
    Store(tmp_path / "store").add(load_figure("phase-n-k").CONFIGS["smoke"][0].training, Result({}), seconds=0.1)
    unfinished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert unfinished.returncode == 1
    assert f"not finished at scale reference: {FIGURE_IDS[0]}" in unfinished.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture
def results(monkeypatch):
    """The file that writes the results pages."""
    monkeypatch.syspath_prepend(str(PAGES))
    return import_module("results")


def test_pages_that_quote_say_what_the_stored_claims_and_figures_say(results):
    figures = (RESULTS / "figures.md").read_text()
    for page in results.QUOTING:
        text = page.read_text()
        # Rows are not at hand here, so a figure's findings are looked for on the page that has them.
        written = results.BLOCK.finditer(results.quoting(text, CHECKED, lambda name: ()))
        for old, new in zip(results.BLOCK.finditer(text), written, strict=True):
            if old[1] == "claims":
                assert old[0] == new[0], f"{page.name}: run `make docs-results`"
            else:
                lines = old[0].splitlines()[3:]
                assert lines
                assert not [line for line in lines if f"\n{line}\n" not in figures], f"{page.name}: `make docs-results`"


@pytest.mark.parametrize(
    "page", ["what-we-found.md", "explanation/three-answers.md", "explanation/what-does-it-take.md"]
)
def test_no_measured_number_stands_outside_of_a_table(results, monkeypatch, page):
    monkeypatch.syspath_prepend(str(ROOT / "paper"))
    readme = import_module("readme")

    def loose(text):
        prose = re.sub(r"<!-- frontier:begin.*?<!-- frontier:end", " ", results.BLOCK.sub(" ", text), flags=re.S)
        return readme.unsupported(re.sub(r"^\|", "", prose, flags=re.M), [])

    text = (PAGES / page).read_text().partition("\n## Methods\n")[0]  # with their settings, which nobody measured
    assert loose(text) == []
    assert loose(f"{text}\n\nIt took 47 s.\n\n| 12 of 13 |\n") == ["47", "12", "13"]
