"""What the README shows is what is there: the source tree, and a Python example that runs."""

import re
from pathlib import Path

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
            r"<tr><td>([^<]*)</td><td>(\d+)</td><td>(\d+)</td><td>([^<]*)</td><td>(\d+ of \d+)</td>", page
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
