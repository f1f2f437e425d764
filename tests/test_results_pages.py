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


def test_the_page_of_changed_verdicts_is_that_of_the_stored_claims(results):
    page = (RESULTS / "verdicts-changed.md").read_text()
    assert page == "\n".join(results.changed_page(CHECKED)) + "\n", "run `make docs-results`"
    unsaid = [one.model_copy(update={"verdict": "fails"}) if one.id == "H1-lemma-15" else one for one in CHECKED]
    with pytest.raises(SystemExit, match="why the verdict changed: H1-lemma-15"):
        list(results.changed_page(unsaid))


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


# What letters say outside of their tables, and the words of a claim, or of the page of figures, that it is taken from.
IN_LETTERS = {
    "h1": [
        ("τ = 0.0662823 (c₁ = 0.663)", "H1-theorem-5", "τ = 0.662823/n"),
        ("strict minimum with risk 1.78 ", "H1-theorem-5", "provably end at risk 1.78 with its own rate 2.4e-08"),
        ("at any rate up to 0.2, your η = 2.4·10⁻⁸", "H1-theorem-5", '"proved_up_to_rate": 0.218'),
        ("of at least 7·10⁻⁹", "H1-theorem-5", "a share of at least 7.6e-09"),
        ("c₁ = 1.037", "H1-theorem-5", '"259249/1500000"'),  # τ at n = 6
        ("it is at least 2·10⁻⁷", "H1-theorem-5", '"share_of_starts": 2.7'),
        ("at rate 0.04 from your start ω = (2.574781762, 2.137607218)", "H1-theorem-5", "(2.574781762, 2.137607218)"),
        ("within 2·10⁻¹⁰ of it", "H1-theorem-5", "within 2·10⁻¹⁰ of it"),
        ("minimum of risk 1.3452", "H1-theorem-5", "strict minimum of risk 1.3452"),
        ("At these 672 starts the mean risk is 2.5", "H1-theorem-5", '"mean_risk_at_start": 2.5'),
        ("themselves have risk 1.5 ", "H1-proposition-3-transformer", "Eq. (2)'s own class has risk 1.53 at τ = 1/n"),
        ("the risk is 2.36 ", "H1-lemma-8", "2.36 at b = 0.01"),
        ("4 at S = 0.75 and −16 at S = 1.75", "H1-lemma-17", "4 at S = 0.75 and −16 at S = 1.75"),
        ("weight is 0.29, and c₁τ is 0.016", "H1-appendix-a", "weight is 0.29, where c₁τ is 0.016"),
        ("16 of 16 seeds each at n = 12, 20 and 100", "H1-remark-9", "at n = 12, 20, 100 on 16/16"),
        ("62 of 64 at temperatures below 1", "figures.md", "repaired 62/64"),
    ],
    "h2": [],
    "k": [
        ("7 of 16 seeds learn", "K-theorem-7", "131,072 examples 7/16"),
        ("14 of 16 do", "K-theorem-7", "524,288 examples 14/16"),
        ("a score above 0.4", "K-figure-5", "a score above 0.4"),
    ],
    "w": [("while k ≤ 0.41n", "W-lemma-31", "k ≤ 0.41n")],
}
MEASURED = re.compile(r"\d+ of \d+|\d+\.\d+|\d·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")


@pytest.mark.parametrize("letter", IN_LETTERS)
def test_a_letter_says_the_numbers_of_the_claims(results, letter):
    prose = results.BLOCK.sub(" ", (PAGES / "letters" / f"{letter}.md").read_text())
    stored = {claim["id"]: json.dumps(claim, ensure_ascii=False) for claim in STORED["claims"]}
    stored["figures.md"] = (RESULTS / "figures.md").read_text()
    for words, source, taken_from in IN_LETTERS[letter]:
        assert taken_from in stored[source]
        assert words in prose
        prose = prose.replace(words, " ")
    settings = r"arXiv [\d.v]+|b = 0\.01( and rate 0\.01)?"
    assert MEASURED.findall(re.sub(settings, " ", prose)) == [], "say where it is taken from"


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
