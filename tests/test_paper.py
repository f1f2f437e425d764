"""Both texts build from the shipped rows, and hold no number that none of them supports."""

import doctest
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from parityscope.records import Store

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "paper"


def written():
    """Return the sources of both texts, one after another."""
    return "".join(path.read_text() for path in [*PAPER.glob("theory/*.typ"), *PAPER.glob("report/*.typ")])


@pytest.fixture
def part(monkeypatch):
    """Import a file of the paper's folder."""
    monkeypatch.syspath_prepend(str(PAPER))
    return import_module


def test_the_prose_has_no_number_of_its_own(part):
    prose = part("prose")
    assert len(prose.SOURCES) > 10
    found = [str(one) for path in prose.SOURCES for one in prose.unsupported(path.read_text(), path.name)]
    assert not found, "give these a name in paper/named_numbers.py and quote it: " + "; ".join(found)


@pytest.mark.parametrize(
    ("planted", "number"),
    [
        ("Of the starts 177 end in minima.", "177"),
        ("This takes 3.5 seconds.", "3.5"),
        ("Training agrees in $1504$ runs.", "1504"),
        ("The risk is $1.53$.", "1.53"),
        ('The share is #n("ends.minima"), about 26%.', "26"),
        ("#figure(rect(), caption: [Here $n = 640$.]) <planted>", "640"),
        ("*Theorem 5* fails on 9 of them.", "9"),
    ],
)
def test_a_planted_literal_is_found(part, planted, number):
    prose = part("prose")
    clean = (PAPER / "report" / "h1.typ").read_text()
    (found,) = prose.unsupported(f"{clean}\n{planted}\n", "h1.typ")
    assert found.number == number
    assert found.line == clean.count("\n") + 2


@pytest.mark.parametrize(
    "sound",
    [
        "H1 states in its Theorem 5 that $2^n$ inputs cost $pi^2 slash 8$.",
        '#n("margins.12") of #c("h1", "kou") by #s("face") // 177 is a comment',
        "= Numbers <section-12>\nSee @section-12 and `n = 640`.",
    ],
)
def test_what_is_no_measurement_is_let_pass(part, sound):
    assert not list(part("prose").unsupported(sound))


def test_no_constant_is_listed_in_vain(part):
    prose = part("prose")
    formulas = " ".join(prose.parted(path.read_text())[1] for path in prose.SOURCES)
    used = set(re.findall(r"\d+(?:\.\d+)?", formulas))
    assert set(prose.CONSTANTS) <= used


def test_numbers_are_spelled_as_their_examples_say(part):
    for name in ("spelling", "prose", "named_numbers"):
        assert doctest.testmod(part(name)).failed == 0


def test_every_citation_is_in_the_list_and_none_is_idle():
    listed = re.findall(r"^- \{key: ([\w-]+),", (PAPER / "references.yml").read_text(), flags=re.M)
    cited = {key for call in re.findall(r"#c\(([^)]*)\)", written()) for key in re.findall(r'"([\w-]+)"', call)}
    assert len(listed) == len(set(listed))
    assert set(listed) == cited


def test_a_missing_row_is_an_error_that_names_the_figure(part, tmp_path):
    Store(tmp_path / "store")
    evidence = part("evidence")
    with pytest.raises(evidence.NoEvidence, match=r"P-faces has 0 of \d+ rows made by this code"):
        evidence.Evidence(tmp_path).rows("P-faces")
    with pytest.raises(evidence.NoEvidence, match="no measurement risk: 'split n=7'"):
        evidence.Evidence(tmp_path).benchmark("risk", "split n=7")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the paper from the shipped rows as `make paper` does; return the folder with its pages."""
    pytest.importorskip("typst", reason="needs typst: pip install 'parityscope[paper]'")
    rows, out = tmp_path_factory.mktemp("rows"), PAPER / "build" / "tests"  # Typst reads nothing outside of paper/
    unpack = [sys.executable, "-m", "parityscope.apps.reference", "unpack", rows]
    write = [sys.executable, PAPER / "write.py", rows, "--out", out, "--pages"]
    for command in (unpack, write):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.mark.slow
def test_it_builds_from_the_shipped_rows(built):
    for text, most in (("theory", 13), ("report", 9)):
        assert (built / f"{text}.pdf").read_bytes().startswith(b"%PDF")
        assert 7 <= len(list(built.glob(f"{text}-*.png"))) <= most


@pytest.mark.slow
def test_every_named_number_is_quoted_and_every_quoted_one_named(built):
    found = json.loads((built / "numbers.json").read_text())
    assert not found["draft"]
    for kind, door in (("numbers", "n"), ("tables", "cells"), ("pictures", "picture")):
        quoted = set(re.findall(rf'\b{door}\("([^"]+)"\)', written()))
        assert quoted == set(found[kind]), kind


@pytest.mark.slow
def test_a_number_without_a_name_stops_the_build(built):
    typst = pytest.importorskip("typst")
    planted = built / "planted.typ"
    planted.write_text('#import "/template.typ": n\n#n("ends.no-such-number")\n')
    with pytest.raises(typst.TypstError, match=r"no row supports the number ends\.no-such-number"):
        typst.compile(str(planted), root=str(PAPER), sys_inputs={"build": "build/tests"})


@pytest.mark.slow
def test_the_certified_errors_are_those_of_the_code(part):
    certified = part("certified")
    stored = json.loads(certified.STORED.read_text())
    every = {
        "series": certified.by_series(certified.LARGE),
        "large": certified.certified(certified.LARGE),
        "beside": certified.certified(certified.BESIDE_SPLIT),
    }
    for name, again in every.items():
        for error in ("proved", "proved_gradient"):
            assert again[error] == pytest.approx(stored[name][error], rel=0.02)
    assert again["error"] <= again["proved"]
    assert again["gradient_error"] <= again["proved_gradient"]
