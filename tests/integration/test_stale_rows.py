"""A recipe, an engine and a claim are edited in a copy of the project: which addresses change, of all there are."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[2] / "src"
# For every config of the figures at reference scale the name of its rows, its address, and the recipes within it.
LISTING = """
import json
from parityscope.papers.registry import FIGURE_IDS, all_claims, load_figure

def recipes(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    is_recipe = isinstance(value, dict) and {"name", "positions", "learning_rate"} <= value.keys()
    own = [[value["name"], value["learning_rate"]]] if is_recipe else []
    return own + [recipe for one in inner for recipe in recipes(one)]

rows = {}
for name in FIGURE_IDS:
    for index, config in enumerate(load_figure(name).CONFIGS["reference"]):
        stored = config.row_config()
        rows[f"{name} {index}"] = [stored.ROWS, stored.key, recipes(stored.model_dump(mode="json"))]
print(json.dumps({"rows": rows, "claims": {claim.id: claim.code() for claim in all_claims()}}))
"""
EDITS = {
    "recipe": ("training/recipes.py", "learning_rate=0.21,", "learning_rate=0.22,"),
    "engine": ("risk/engines/split/sums.py", "_CHUNK = 1 << 16", "_CHUNK = 1 << 17"),
    "claim": ("papers/h1/claims/constants.py", "step = 1e-6 *", "step = 2e-6 *"),
    "comment": ("risk/engines/split/sums.py", "_CHUNK = 1 << 16  #", "_CHUNK = 1 << 16  # The"),
}


@cache
def copied(folder):
    shutil.copytree(SOURCE / "parityscope", folder / "parityscope", ignore=shutil.ignore_patterns("__pycache__"))


@cache
def listed(folder, edit=None):
    copied(folder)
    if edit is not None:
        name, old, new = EDITS[edit]
        path = folder / "parityscope" / name
        before = path.read_text()
        assert before.count(old) == 1, f"{old!r} should be in {name} once"
        path.write_text(before.replace(old, new))
    done = subprocess.run(
        [sys.executable, "-c", LISTING],
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if edit is not None:
        path.write_text(before)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def stale(tmp_path_factory):
    """Return what an edit makes stale: the rows, by figure and number, and the claims."""
    folder = tmp_path_factory.mktemp("copy")

    def after(edit):
        first, second = listed(folder), listed(folder, edit)
        rows = {name for name, row in first["rows"].items() if second["rows"][name][1] != row[1]}
        claims = {name for name, code in first["claims"].items() if second["claims"][name] != code}
        print(f"an edit of a {edit}: stale claims {sorted(claims)}; stale rows by figure:")
        for figure, count in Counter(name.split()[0] for name in first["rows"]).items():
            print(f"  {figure}: {sum(name.split()[0] == figure for name in rows)} of {count}")
        return first["rows"], rows, claims

    return after


def cells_of_the_table(rows, changed):
    """The cells of the comparison of methods that changed: each depends on its own method, and not all of them may."""
    cells = {name for name in rows if rows[name][0] == "compare"}
    assert 0 < len(cells & changed) < len(cells)
    return cells


def test_a_recipe_makes_exactly_the_trainings_stale_that_use_it(stale):
    rows, changed, claims = stale("recipe")
    # Trainings that take another rate, from examples for instance, do not use what was edited.
    using = {name for name, (_, _, recipes) in rows.items() if ["repaired", 0.21] in recipes}
    assert changed - cells_of_the_table(rows, changed) == using
    assert 0 < len(using) < len(rows)
    assert not any(name.startswith(("W-", "H1-lemma")) for name in claims)


def test_an_engine_makes_exactly_the_rows_stale_that_can_reach_it(stale):
    rows, changed, claims = stale("engine")
    cells = cells_of_the_table(rows, changed)
    rows, changed = {name: row for name, row in rows.items() if name not in cells}, changed - cells
    kinds = {rows[name][0] for name in rows}
    reaching = {rows[name][0] for name in changed}
    assert {name for name, row in rows.items() if row[0] in reaching} == changed
    assert {"training", "engine-cost"} <= reaching
    alone = {"decoder-training", "estimator-benchmark", "H1-figure-1", "H1-frozen-attention-hard", "H1-other-functions"}
    plain_loops = {"H1-full-matrix", "H1-where-it-ends"}  # they visit all inputs themselves
    alone |= {"P-three-heads", "P-heads-rate"}  # flows in closed form
    alone |= {"P-proved-examples", "K-trials", "K-experiment"}  # they draw examples
    assert kinds - reaching == alone | plain_loops | {"H2-parameters", "H2-samples", "H2-softmax"}
    assert {"H1-proposition-3-ffnn", "H1-remark-9", "H2-one-step", "P-one-step"} <= claims
    assert not any(name.startswith(("W-", "H1-lemma")) for name in claims)
    assert not {"P-closed-form", "P-worst-loss", "P-concavity", "H2-samples", "H1-remark-13"} & claims


def test_a_claim_makes_itself_stale_and_nothing_else(stale):
    _, changed, claims = stale("claim")
    assert (changed, claims) == (set(), {"H1-lemma-14-derivative"})


def test_a_comment_makes_nothing_stale(stale):
    _, changed, claims = stale("comment")
    assert (changed, claims) == (set(), set())
