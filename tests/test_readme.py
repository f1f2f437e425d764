"""What the README shows is what is there: the source tree, and a Python example that runs."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from parityscope.apps.reference import unpack_reference

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_source_tree_is_the_real_one():
    listed = set(re.findall(r"^      (\w+(?:\.py|/)) ", README, flags=re.M))
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
    lines = re.findall(r"^\| (\d+), (\d+) \| (.*) \|$", README, flags=re.M)
    assert len(lines) >= 8
    for n, k, cells in lines:
        for recipe, cell in zip(RECIPES, cells.split(" | "), strict=True):
            samples, counts = stored.get((recipe, n, k), ("", "–"))
            if recipe == "bounded, N examples" and counts != "–":
                counts += f" (N = {samples})"
            assert cell.replace("16 000", "16000") == counts, f"{recipe} at ({n}, {k})"


def test_python_examples_run(capsys):
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.S):
        exec(compile(block, "README.md", "exec"), {})
    assert "32/32 (89%–100%) [7, 10, 17]" in capsys.readouterr().out


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
    assert len(told) > 20
    assert quoting.differing(re.sub(r"\(docs/[^)]*\)", "", plain), told) == []
    assert quoting.unsupported(README, told) == []


@pytest.mark.parametrize("planted", ["It also took 47 s.", "At 12 of 13 sizes it wins.", "(96 %)"])
def test_a_number_without_a_row_is_found(quoting, planted):
    text = README.replace("## What learns", f"{planted}\n\n## What learns")
    assert quoting.unsupported(text, listed(quoting)) == re.findall(r"\d+", planted)


def test_its_examples_are_right(quoting):
    assert doctest.testmod(quoting).failed == 0


@pytest.mark.slow
def test_the_list_is_what_the_shipped_rows_say(quoting, tmp_path):
    unpack_reference(tmp_path)
    told = quoting.quotes(import_module("evidence").Evidence(tmp_path))
    assert quoting.PAGE.read_text() == quoting.page(told), "run `make docs-results`"
    assert quoting.differing(README, told) == []
