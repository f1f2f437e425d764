"""What the README and its neighbours show is what is there: what commands print, the numbers, the source tree."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from documentation import run_page
from parityscope.apps.reference import unpack_reference

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
WHAT_LEARNS = (ROOT / "docs" / "results" / "what-learns.md").read_text()


def test_the_source_tree_is_the_real_one():
    listed = set(re.findall(r"^      (\w+(?:\.py|/)) ", CONTRIBUTING, flags=re.M))
    real = {
        path.name + ("/" if path.is_dir() else "")
        for path in (ROOT / "src" / "parityscope").iterdir()
        if path.name not in ("__init__.py", "__pycache__", "py.typed")
    }
    assert listed == real


RECIPES = ("H1 as written", "H1 as coded", "repaired", "bounded", "bounded, N examples")


def test_the_table_of_what_learned_is_the_stored_one():
    page = (ROOT / "docs" / "results" / "figures.md").read_text()
    stored = {
        (recipe, n, k): (samples, counts.replace(" of ", "/"))
        for recipe, n, k, samples, counts in re.findall(
            r"^\| ([^|]*) \| (\d+) \| (\d+) \| ([^|]*) \| (\d+ of \d+) \|", page, flags=re.M
        )
    }
    lines = re.findall(r"^\| (\d+), (\d+) \| (.*) \|$", WHAT_LEARNS, flags=re.M)
    assert len(lines) >= 8
    for n, k, cells in lines:
        for recipe, cell in zip(RECIPES, cells.split(" | "), strict=True):
            samples, counts = stored.get((recipe, n, k), ("", "–"))
            if recipe == "bounded, N examples" and counts != "–":
                counts += f" (N = {samples})"
            assert cell.replace("16 000", "16000") == counts, f"{recipe} at ({n}, {k})"


@pytest.mark.slow
def test_its_commands_and_examples_print_what_it_shows(tmp_path):
    first = "    .venv/bin/parityscope learn --n 20 --support 7,10,17"
    assert first in README
    command = f"```bash\n{first.strip().removeprefix('.venv/bin/')}\n```\n\n```text\n"
    page = re.sub(r"^    make install.*?```text\n", command, README, count=1, flags=re.M | re.S)
    page = page.replace("  61  learned\n```", "  61  learned\n\n…\n```")
    assert run_page(page, tmp_path) == []


def test_every_file_that_it_links_is_there():
    linked = re.findall(r"\]\((?!http|#)([^)#]*)", README)
    assert len(linked) > 20
    assert [one for one in linked if not (ROOT / one).exists()] == []


@pytest.fixture
def quoting(monkeypatch):
    """The file that counts the README's numbers."""
    monkeypatch.syspath_prepend(str(ROOT / "paper"))
    return import_module("readme")


def listed(quoting):
    """The quotes of the list that is shipped."""
    lines = re.findall(r"^\| (.*) \| (`.*) \|$", quoting.PAGE.read_text(), flags=re.M)
    return [quoting.Quote(*line) for line in lines]


def test_every_listed_number_is_in_the_readme_and_every_number_is_listed(quoting):
    told = listed(quoting)
    plain = README.replace("[", "").replace("]", "")
    assert len(told) >= 10
    assert quoting.differing(re.sub(r"\(docs/[^)]*\)", "", plain), told) == []
    assert quoting.unsupported(README, told) == []


@pytest.mark.parametrize("planted", ["It also took 47 s.", "At 12 of 13 sizes it wins.", "(96 %)"])
def test_a_number_without_a_row_is_found(quoting, planted):
    text = README.replace("## What we found", f"{planted}\n\n## What we found")
    assert quoting.unsupported(text, listed(quoting)) == re.findall(r"\d+", planted)


def test_its_examples_are_right(quoting):
    assert doctest.testmod(quoting).failed == 0


@pytest.mark.slow
def test_the_list_is_what_the_shipped_rows_say(quoting, tmp_path):
    unpack_reference(tmp_path)
    told = quoting.quotes(import_module("evidence").Evidence(tmp_path))
    assert quoting.PAGE.read_text() == quoting.page(told), "run `make docs-results`"
    assert quoting.differing(README, told) == []
