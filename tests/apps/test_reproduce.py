"""`reproduce`: figures at smoke scale, what lands in the folder, what is shared, what a stop leaves."""

import csv
import html
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from parityscope import InvalidInput
from parityscope.apps.reference import RECHECKED, reference_picture
from parityscope.apps.report import render_report
from parityscope.apps.reproduce import reproduce
from parityscope.papers.claim import ClaimCheck, Context, check
from parityscope.papers.registry import FIGURE_IDS, figures_and_claims, load_figure, named_claims
from parityscope.papers.results import claims_context, stored_claims, stored_rows, work_of
from parityscope.records import Store
from parityscope.runs import InProcess, Processes, run_together

OF_COMMANDS = ("W-figure-6", "W-figure-7")  # their rows are what `parityscope entropy` stores


LEADING = (
    "H1-where-it-ends",
    "H2-one-step",
    "W-figure-1",
    "K-where-it-begins",
    "P-faces",
)  # shown open, with an answer
SHOWN = ("H1-figure-1", "H1-success", "H2-softmax", "W-figure-1", "W-figure-6", "engine-cost")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory, smoke_store):
    """Some figures at smoke scale, from the rows that all tests share."""
    run_together([work_of(load_figure(name), "smoke") for name in SHOWN], smoke_store, InProcess())
    out = tmp_path_factory.mktemp("smoke")
    Store(out / "store").add_rows(smoke_store.rows())
    reproduce(SHOWN, "smoke", out)
    return out


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_the_report_is_one_file_with_every_figure_and_no_outside_reference(smoke):
    check_report(smoke, SHOWN)


@pytest.mark.slow
def test_all_figures_fit_into_one_report(tmp_path):
    reproduce(FIGURE_IDS, "smoke", tmp_path)
    check_report(tmp_path, FIGURE_IDS)


def check_report(out, figures):
    page = (out / "report.html").read_text()
    tags = Tags()
    tags.feed(page)
    images = [attributes["src"] for tag, attributes in tags.found if tag == "img"]
    open_ones = [name for name in LEADING if name in figures]
    weaker = [name for name in open_ones if reference_picture(load_figure(name), "smoke")]
    with_rows = [name for name in figures if stored(out, name) or (out / "figures" / f"{name}.png").exists()]
    assert len(images) == len(with_rows) + len(weaker) + 1  # one beside the answer
    assert page.count("from the reference run") == len(weaker) > 0
    first, last = page.index("<h2>The findings"), page.index("<h2>Everything else")
    assert page[first:last].count("<h3>") == len(open_ones)
    assert page[last:].count("<h3>") == len(figures) - len(open_ones)
    assert all(source.startswith("data:image/png;base64,") for source in images)
    links = [a.get("href") or a.get("src") or a.get("srcset") or "" for _, a in tags.found]
    assert not any(re.match(r"(https?:)?//", link) for link in links)
    assert len(page.encode()) < 6e6
    for name in figures:  # every section carries the command that makes its rows, and the code that made them
        assert (f"parityscope reproduce {name} --scale smoke" in page) == (name not in OF_COMMANDS)
        assert all(f"<code>{row.code}</code>" in page for row in stored(out, name))


def stored(out, name, scale="smoke"):
    return stored_rows(load_figure(name), scale, Store(out / "store"))


def test_figures_are_there_as_pictures_and_as_numbers(smoke):
    names = {path.name for path in (smoke / "figures").iterdir()}
    with_arrays = [name for name in SHOWN if any(row.arrays for row in stored(smoke, name))]
    pictures = {f"{name}.{kind}" for name in SHOWN for kind in ("png", "svg", "csv")}
    assert names == pictures | {f"{name}.npz" for name in with_arrays}


def test_the_numbers_of_a_figure_are_those_of_its_rows(smoke):
    with (smoke / "figures" / "H1-success.csv").open() as file:
        table = list(csv.DictReader(file))
    rows = stored(smoke, "H1-success")
    assert [line["config.label"] for line in table] == [row.config.label for row in rows]
    assert [line["config.training.recipe.name"] for line in table] == [row.config.training.recipe.name for row in rows]
    assert [int(line["numbers.parameters"]) for line in table] == [row.numbers.parameters for row in rows]
    (row,) = stored(smoke, "H1-figure-1")
    with np.load(smoke / "figures" / "H1-figure-1.npz") as arrays:
        assert {f"0.{name}" for name in row.arrays} == set(arrays)
        assert np.array_equal(arrays["0.attention"], row.arrays["attention"].numpy())


def test_deleted_figures_are_redrawn_without_training(smoke, tmp_path, monkeypatch):
    some, out = SHOWN[::3], tmp_path / "copy"
    shutil.copytree(smoke, out)
    before = {path.name: path.read_bytes() for path in (out / "figures").iterdir()}
    for path in (out / "figures").iterdir():
        if path.stem in some:
            path.unlink()

    def never(*_, **__):
        raise AssertionError("computed again")

    for kind in {type(config) for name in some for config in work_of(load_figure(name), "smoke").configs}:
        monkeypatch.setattr(kind, "run", never)
    reproduce(some, "smoke", out)
    assert {path.name: path.read_bytes() for path in (out / "figures").iterdir()} == before


def test_rows_carry_their_full_config_their_code_and_versions(smoke):
    for row in Store(smoke / "store").rows():
        assert row.config
        assert re.fullmatch(r"[0-9a-f]{16}", row.code)
        assert row.versions["torch"] == torch.__version__


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=f"unknown figure 'H9': choose one of {FIGURE_IDS[0]}"):
        reproduce(["H9"], "smoke", tmp_path)
    with pytest.raises(InvalidInput, match="unknown figure or claim 'H9': choose from H1, "):
        figures_and_claims(["H9"])


def test_progress_counts_configs_and_time_left(tmp_path):
    stages = []
    reproduce(["H1-figure-1", "H2-parameters"], "smoke", tmp_path, on_stage=stages.append)
    assert [(s.name, s.done, s.total) for s in stages if s.name] == [("H1-figure-1", 1, 2), ("H2-parameters", 2, 2)]
    assert stages[0].seconds_left > stages[-1].seconds_left == 0
    assert stages[0].configs_done == 0
    last = [stage for stage in stages if stage.configs_total is not None][-1]
    assert last.configs_done == last.configs_total > 2


def test_a_stopped_reproduction_leaves_a_report_of_what_it_has(tmp_path):
    """Ctrl-C after the first figure: the page shows it and names the other; the same call goes on."""

    def stop(stage):
        if stage.name:
            raise KeyboardInterrupt

    wanted = ["H1-figure-1", "H2-parameters"]
    with pytest.raises(KeyboardInterrupt):
        reproduce(wanted, "smoke", tmp_path, on_stage=stop)
    page = (tmp_path / "report.html").read_text()
    later = load_figure("H2-parameters").TITLE
    assert "1 of 2 figures so far" in page
    assert f"when\nthis page was written: {later}" in page
    assert 'id="H1-figure-1"' in page
    assert "figures so far" not in reproduce(wanted, "smoke", tmp_path).read_text()


def test_figures_that_need_the_same_training_share_its_row(tmp_path):
    reproduce(["W-figure-10", "W-figure-5"], "smoke", tmp_path)
    figures = [load_figure(name) for name in ("W-figure-5", "W-figure-10")]
    needed = {config.row_config().key for figure in figures for config in figure.CONFIGS["smoke"]}
    rows = Store(tmp_path / "store").rows("decoder-training")
    assert {row.key for row in rows} == needed
    assert len(needed) < sum(len(figure.CONFIGS["smoke"]) for figure in figures)
    assert stored(tmp_path, "W-figure-5")[0].config.label == "pool"


def test_rows_of_older_code_that_were_kept_say_so_in_the_report(tmp_path):
    reproduce(["H1-figure-1"], "smoke", tmp_path / "first")
    (row,) = Store(tmp_path / "first" / "store").rows("H1-figure-1")
    note = "2 of 64 rows of code 5d41402abc4b2a76 recomputed and equal"
    Store(tmp_path / "store").add_rows([replace(row, versions={**row.versions, RECHECKED: note})])
    page = reproduce(["H1-figure-1"], "smoke", tmp_path).read_text()
    assert f"Kept from older code: {note}." in page
    assert page.count(note) == 1


# Claims


def test_a_name_brings_a_figure_with_its_claims_or_a_claim_with_its_figure():
    figures, claims = figures_and_claims(["H1-success"])
    assert figures == ["H1-success"]
    assert {claim.figure for claim in claims} == {"H1-success"}
    figures, claims = figures_and_claims(["H1-theorem-11"])
    assert (figures, [claim.id for claim in claims]) == (["H1-frozen-attention"], ["H1-theorem-11"])
    figures, claims = figures_and_claims(["W-lemma-6", "W-lemma-6"])
    assert (figures, [claim.id for claim in claims]) == ([], ["W-lemma-6"])
    figures, claims = figures_and_claims(["H2"])
    assert {name for name in FIGURE_IDS if name.startswith("H2")} <= set(figures)
    assert {claim.id for claim in named_claims(["H2"])} <= {claim.id for claim in claims}
    figures, claims = figures_and_claims()
    assert (figures, len(claims)) == (list(FIGURE_IDS), len(named_claims([])))


def test_reproducing_a_figure_checks_its_claims(tmp_path, said):
    code, _, errors = said("reproduce", "H2-parameters", "W-lemma-6", "--scale", "smoke", "--out", tmp_path)
    assert code == 0, errors
    checked = {claim.id: claim for claim in stored_claims("smoke", Store(tmp_path / "store"))}
    shown = [claim.id for claim in figures_and_claims(["H2-parameters"])[1]]
    assert list(checked) == [*shown, "W-lemma-6"]
    assert all(f'id="{name}"' in (tmp_path / "report.html").read_text() for name in checked)


def test_claims_are_stored_once_and_stand_in_the_report(tmp_path, monkeypatch):
    claims = named_claims(["H1-lemma-14-derivative", "W-lemma-9"])
    report = reproduce(["H1-figure-1"], "smoke", tmp_path, claims=claims)
    page = report.read_text()
    assert all(f'id="{claim.id}"' in page and claim.statement in page and claim.where in page for claim in claims)
    for claim, verdict in zip(claims, ("fails", "misprint"), strict=True):
        assert f'{claim.id}</strong> <span class="verdict {verdict}">' in page
    assert "what is true instead (ours): holds" in page
    assert "as meant: holds" in page
    assert "parityscope claims W-lemma-9 --replay --scale smoke" in page

    def never(*_, **__):
        raise AssertionError("checked again")

    monkeypatch.setattr("parityscope.papers.claim.check", never)
    monkeypatch.setattr("parityscope.papers.results.check", never)
    assert reproduce(["H1-figure-1"], "smoke", tmp_path, claims=claims).read_text() == page


def test_the_report_has_every_clause_and_counts_apart_what_cannot_be_refuted():
    (lemma,) = named_claims(["H1-lemma-14-derivative"])
    never = tuple(replace(clause, refuted_if="never") for clause in lemma.clauses)
    claims = [lemma, replace(lemma, id="P-safe", clauses=never), replace(lemma, id="P-proved", proof="what-we-found")]
    checked = [check(claim, Context("smoke")) for claim in claims]
    checked[2] = checked[2].model_copy(update={"verdict": "proved"})
    page = " ".join(html.unescape(re.sub("<[^>]+>", " ", render_report([], "smoke", checked))).split())
    assert "H1 1 0 0 0 0 1 0 0 our own 2 1 0 0 0 0 0 1" in page
    assert page.count("cannot be refuted here") == 5  # the column twice, its meaning, the claim and its verdict
    for clause in lemma.clauses:
        assert re.search(rf"{re.escape(clause.says)}: \w+ ; {re.escape(clause.quantity)}: ", page)
        assert clause.source in page
    assert "proof: docs/what-we-found.md" in page
    assert "value 2." in page  # the counterexample, by its names


def test_the_answer_stands_first_with_the_verdicts_of_this_run():
    (lemma,) = named_claims(["H1-lemma-14-derivative"])
    checked = check(lemma, Context("smoke"))
    told = [
        checked.model_copy(update={"id": "H1-theorem-5", "verdict": "fails"}),
        checked.model_copy(update={"id": "H2-one-step", "verdict": "open"}),
    ]
    page = render_report([], "smoke", told)
    answers = page[page.index("<ol>") : page.index("</ol>")].split("<li>")[1:]
    refuted, contrary, *others = (" ".join(re.sub("<[^>]+>", " ", answer).split()) for answer in answers)
    assert "strict local minimum. H1-theorem-5 fails" in refuted
    assert "the reference run says" not in refuted
    assert "H2-one-step open This run does not show it: the reference run says holds" in contrary
    assert len(others) == 3
    assert all("was not checked here" in other for other in others)
    assert page.index("</ol>") < page.index("<details")


def test_a_claim_whose_rows_fail_waits_and_the_failure_is_named(tmp_path, monkeypatch):
    claim = next(claim for claim in named_claims(["H1"]) if claim.needs(Context("smoke")))
    lemma = named_claims(["W-lemma-6"])

    def broken(*_):
        raise RuntimeError("a cable was pulled")

    with monkeypatch.context() as patch:
        for kind in {type(config) for config in claim.needs(Context("smoke"))}:
            patch.setattr(kind, "run", broken)
        with pytest.raises(InvalidInput, match="failed, the last one with RuntimeError: a cable was pulled"):
            reproduce([], "smoke", tmp_path, claims=[claim, *lemma])
    assert [one.id for one in stored_claims("smoke", Store(tmp_path / "store"))] == ["W-lemma-6"]


@pytest.mark.slow
def test_workers_serve_every_figure_and_the_claims(tmp_path, monkeypatch):
    started = []
    start = Processes.start
    monkeypatch.setattr(Processes, "start", lambda self: started.append(1) or start(self))
    claims = named_claims(["H1-remark-12", "H1-lemma-19", "W-figure-7"])
    figures = ["H1-figure-1", "H1-input-laws"]
    reproduce(figures, "smoke", tmp_path / "there", claims=claims, launcher=Processes(2))
    assert started == [1]
    reproduce(figures, "smoke", tmp_path / "here", claims=claims)
    here, there = ({row.key: row for row in Store(tmp_path / place / "store").rows()} for place in ("here", "there"))
    assert here.keys() == there.keys()
    for key, row in here.items():
        if row.experiment == ClaimCheck.ROWS:
            assert {**there[key].numbers, "seconds": 0} == {**row.numbers, "seconds": 0}


def test_a_check_that_reads_rows_says_so(tmp_path):
    (claim,) = named_claims(["W-figure-7"])
    assert claim.reads_rows
    with pytest.raises(AssertionError, match="says neither reads_figure nor needs"):
        ClaimCheck(claim="W-figure-7", scale="smoke").run()


def test_checks_see_the_stored_rows(tmp_path):
    assert claims_context("smoke", tmp_path).rows("H1-figure-1") == ()
    reproduce(["H1-figure-1"], "smoke", tmp_path)
    (row,) = claims_context("smoke", tmp_path).rows("H1-figure-1")
    assert row.numbers.label == 1
