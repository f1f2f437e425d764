"""Both notebooks run from top to bottom as plain scripts; their own assertions and what they print are the check."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("marimo", reason="needs marimo: pip install 'parityscope[docs]'")

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
PRINTS = {
    "heads_find_the_bits.py": (
        r"repaired: n = 12, hidden (\(.+?\)), recovered \1, risk 0\.00\d+, accuracy 1\.0000, \d+ steps",
        r"landscape: risk between 0\.\d+ and [01]\.\d+",
    ),
    "is_theorem_5_true.py": (
        r"promises risk 0\.01 after 2454 steps",
        r"2454 steps: [1-6] of 8 seeds below 0\.01",
        r"the risk never rose: True; [2-7] seeds stand above",
        r"the part without B is \de\+0[3-7] times longer",
        r"H1-lemma-17: fails",
    ),
}


def test_every_notebook_is_tested():
    assert {path.name for path in NOTEBOOKS.glob("*.py")} == set(PRINTS)


@pytest.mark.parametrize("name", PRINTS)
def test_the_rendered_page_is_of_this_notebook(name):
    render = runpy.run_path(str(NOTEBOOKS.parent / "render_notebooks.py"))
    page = (NOTEBOOKS / name).with_suffix(".html").read_text()
    assert f'content="{render["fingerprint"](NOTEBOOKS / name)}"' in page, "render it again: make docs-results"
    assert "<marimo-" not in page
    assert page.count("<img") >= 2
    for pattern in PRINTS[name]:
        assert re.search(pattern, page)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTS)
def test_runs_top_to_bottom(name, tmp_path):
    done = subprocess.run(
        [sys.executable, NOTEBOOKS / name],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "checked"
    for pattern in PRINTS[name]:
        assert re.search(pattern, done.stdout), f"{pattern} is not in\n{done.stdout}"
