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


def test_python_examples_run(capsys):
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.S):
        exec(compile(block, "README.md", "exec"), {})
    assert "32/32 (89%–100%) [7, 10, 17]" in capsys.readouterr().out


def test_contributing_stays_short():
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) < 50
