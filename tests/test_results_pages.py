"""The stored results pages are complete and those of the current code: claims, statements, figures."""

import json
import re
import subprocess
import sys

import pytest

from documentation import PAGES, ROOT
from parityscope.papers.claim import VERDICTS
from parityscope.papers.registry import FIGURE_IDS, all_claims, load_figure
from parityscope.records import Result, Store

RESULTS = PAGES / "results"
STORED = json.loads((RESULTS / "claims.json").read_text())
MOST_BYTES = 130_000


def test_the_stored_claims_are_the_current_ones():
    stored = [(claim["id"], claim["statement"]) for claim in STORED["claims"]]
    assert stored == [(claim.id, claim.statement) for claim in all_claims()], "run `make docs-results`"


def test_every_claim_stands_in_a_table_and_unfolds():
    page = (RESULTS / "claims.md").read_text()
    for claim in STORED["claims"]:
        (line,) = re.findall(rf"^\| \[{claim['id']}\]\(#{claim['id']}\) \|.*$", page, flags=re.M)
        assert claim["verdict"].replace(" ", "&nbsp;") in line
        assert f'<details id="{claim["id"]}">' in page
        assert f"parityscope claims {claim['id']} --json" in page


def test_the_counts_on_top_are_those_of_the_table():
    page = (RESULTS / "claims.md").read_text()
    (total,) = re.findall(r"^\| all \| (.*) \|$", page, flags=re.M)
    verdicts = [claim["verdict"] for claim in STORED["claims"]]
    assert [int(count) for count in total.split(" | ")] == [verdicts.count(verdict) for verdict in VERDICTS]


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


def test_pages_that_count_verdicts_count_the_stored_ones():
    found = (PAGES / "what-we-found.md").read_text()
    for paper in ("H1", "H2", "P", "W"):
        verdicts = [claim["verdict"] for claim in STORED["claims"] if claim["paper"] == paper]
        (line,) = re.findall(rf"^\| {paper}[ ,][^|]*\|(.*)\|$", found, flags=re.M)
        assert [int(cell) for cell in line.split("|")] == [len(verdicts), *(verdicts.count(one) for one in VERDICTS)]
    h1 = [claim["verdict"] for claim in STORED["claims"] if claim["paper"] == "H1"]
    hold, part, fail = (h1.count(verdict) for verdict in VERDICTS[:3])
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"checks {len(STORED['claims'])} statements" in readme
    assert f"of H1's {len(h1)}, {hold} hold, {part} hold in part and {fail} fail" in readme
