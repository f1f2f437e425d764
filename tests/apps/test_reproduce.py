import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch

from parityscope import InvalidInput
from parityscope.apps.reference import reference_picture
from parityscope.apps.reproduce import reproduce
from parityscope.papers.figure import SCALES
from parityscope.papers.registry import FIGURE_IDS, load_figure, named_claims
from parityscope.papers.results import CLAIMS_ID, claims_context, stored_rows, work_of
from parityscope.papers.w.measured_studies import FIGURE_IDS
from parityscope.records import Store
from parityscope.runs import Processes


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """Every experiment at smoke scale, once."""
    out = tmp_path_factory.mktemp("smoke")
    reproduce(FIGURE_IDS, "smoke", out)
    return out


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", FIGURE_IDS)
def test_every_experiment_keeps_the_contract(name):
    experiment = load_figure(name)
    assert isinstance(experiment, Experiment)
    assert name == experiment.ID
    assert set(experiment.CONFIGS) == set(experiment.COST) == set(SCALES)
    assert all(len(set(map(str, experiment.CONFIGS[scale]))) == len(experiment.CONFIGS[scale]) for scale in SCALES)
    # Those without configs draw what `parityscope entropy` stores; their own tests store something.
    assert all(len(experiment.CONFIGS[scale]) > 0 for scale in SCALES) == (name not in FIGURE_IDS)
    assert len(experiment.TEXT) > 100


def test_the_report_is_one_file_with_every_figure_and_no_outside_reference(smoke):
    page = (smoke / "report.html").read_text()
    tags = Tags()
    tags.feed(page)
    images = [attributes["src"] for tag, attributes in tags.found if tag == "img"]
    weaker = [name for name in FIGURE_IDS if reference_picture(load_figure(name), "smoke")]
    assert len(images) == len(FIGURE_IDS) + len(weaker)
    assert page.count("from the reference run") == len(weaker) > 0
    assert all(source.startswith("data:image/png;base64,") for source in images)
    links = [a.get("href") or a.get("src") or a.get("srcset") or "" for _, a in tags.found]
    assert not any(re.match(r"(https?:)?//", link) for link in links)
    assert len(page) < 15e6
    for name in FIGURE_IDS:  # every section carries the command that makes its rows
        assert (f"parityscope reproduce {name} --scale smoke" in page) == (name not in FIGURE_IDS)


def test_figures_are_there_as_png_and_svg(smoke):
    names = {path.name for path in (smoke / "figures").iterdir()}
    assert names == {f"{name}.{kind}" for name in FIGURE_IDS for kind in ("png", "svg")}


def test_deleted_figures_are_redrawn_without_training(smoke, tmp_path, monkeypatch):
    some, out = FIGURE_IDS[1::12], tmp_path / "copy"
    shutil.copytree(smoke, out)
    before = {path.name: path.read_bytes() for path in (out / "figures").iterdir()}
    for path in (out / "figures").iterdir():
        if path.stem in some:
            path.unlink()

    def never(*_, **__):
        raise AssertionError("trained again")

    for name in some:
        monkeypatch.setattr(work_of(load_figure(name), "smoke").experiment, "run", never)
    reproduce(some, "smoke", out)
    assert {path.name: path.read_bytes() for path in (out / "figures").iterdir()} == before


def test_plots_never_train(smoke, monkeypatch):
    monkeypatch.setattr("parityscope.training.learning.descend", None)
    store = Store(smoke / "store")
    for name in FIGURE_IDS:
        experiment = load_figure(name)
        rows = stored_rows(experiment, "smoke", store)
        assert len(rows) == len(experiment.CONFIGS["smoke"])
        experiment.plot(rows)
        header, lines = experiment.table(rows)
        assert all(len(line) == len(header) for line in lines)
        assert all(finding.here for finding in experiment.findings(rows))


def test_rows_carry_their_full_config_and_versions(smoke):
    for row in Store(smoke / "store").rows():
        assert row.config
        assert row.versions["torch"] == torch.__version__


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=f"unknown experiment 'H9': choose one of {FIGURE_IDS[0]}"):
        reproduce(["H9"], "smoke", tmp_path)


def test_progress_counts_configs_and_time_left(tmp_path):
    stages = []
    reproduce(["H1-figure-1", "H2-parameters"], "smoke", tmp_path, on_stage=stages.append)
    assert [(s.name, s.done, s.total) for s in stages if s.name] == [("H1-figure-1", 1, 2), ("H2-parameters", 2, 2)]
    assert stages[0].seconds_left > stages[-1].seconds_left == 0
    assert stages[0].configs.done == 0
    last = [stage.configs for stage in stages if stage.configs][-1]
    assert last.done == last.total > 2


def test_a_stopped_reproduction_leaves_a_report_of_what_it_has(tmp_path, monkeypatch):
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
    store = Store(tmp_path / "store")
    needed = {
        str(config.training) for name in ("W-figure-5", "W-figure-10") for config in load_figure(name).CONFIGS["smoke"]
    }
    assert len(store.rows("W-training")) == len(needed) < 4
    (row,) = stored_rows(load_figure("W-figure-5"), "smoke", store)[:1]
    assert (row.experiment, row.config["label"]) == ("W-figure-5", "pool")


def test_claims_are_stored_once_and_stand_in_the_report(tmp_path, monkeypatch):
    claims = named_claims(["H1-remark-12", "H1-lemma-19"])
    report = reproduce(["H1-figure-1"], "smoke", tmp_path, claims=claims)
    page = report.read_text()
    assert all(claim.id in page and claim.statement.split("‖")[0] in page for claim in claims)
    assert "holds in part" in page
    assert "parityscope claims H1-lemma-19" in page

    def never(*_, **__):
        raise AssertionError("checked again")

    monkeypatch.setattr("parityscope.papers.results.check", never)
    assert reproduce(["H1-figure-1"], "smoke", tmp_path, claims=claims).read_text() == page


@pytest.mark.slow
def test_workers_serve_every_experiment_and_the_claims(tmp_path, monkeypatch):
    started = []
    start = Processes.start
    monkeypatch.setattr(Processes, "start", lambda self: started.append(1) or start(self))
    claims = named_claims(["H1-remark-12", "H1-lemma-19", "W-figure-7"])
    experiments = ["H1-figure-1", "H1-input-laws"]
    reproduce(experiments, "smoke", tmp_path / "there", claims=claims, launcher=Processes(2))
    assert started == [1]
    reproduce(experiments, "smoke", tmp_path / "here", claims=claims)
    here, there = (
        {(row.experiment, str(row.config)): row.numbers for row in Store(tmp_path / place / "store").rows()}
        for place in ("here", "there")
    )
    assert here.keys() == there.keys()
    for name in here:
        if name[0] == CLAIMS_ID:
            assert {**there[name], "seconds": 0} == {**here[name], "seconds": 0}


def test_a_check_that_reads_rows_says_so(tmp_path):
    (claim,) = named_claims(["W-figure-7"])
    silent = replace(claim, reads_rows=False)
    assert claim.reads_rows
    with pytest.raises(InvalidInput, match="does not say reads_rows"):
        reproduce([], "smoke", tmp_path, claims=[silent])


def test_checks_see_the_stored_rows(tmp_path):
    assert claims_context("smoke", tmp_path).rows("H1-figure-1") == ()
    reproduce(["H1-figure-1"], "smoke", tmp_path)
    (row,) = claims_context("smoke", tmp_path).rows("H1-figure-1")
    assert row.experiment == "H1-figure-1"
