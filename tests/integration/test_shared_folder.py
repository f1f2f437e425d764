"""Four sweeps and two reproductions at once on one folder: all end, and the rows are those of one after the other."""

import json

import pytest

from commands import finished, started
from sweep_specs import TROUBLE, contents, written

pytestmark = pytest.mark.slow

REPRODUCE = ("reproduce", "H1-figure-1", "phase-heads-noise", "--scale", "smoke")


def test_four_sweeps_and_two_reproductions_share_a_folder(tmp_path):
    spec = written(tmp_path / "spec.py", TROUBLE, "[Point(x=x, seconds=0.1) for x in range(120)]")
    sweep, together, apart = ("sweep", spec, "--json"), tmp_path / "together", tmp_path / "apart"
    sweeps = [started(*sweep, "--out", together, *options) for options in ((), (), (), ("--workers", 2))]
    reproductions = [started(*REPRODUCE, "--out", together) for _ in range(2)]
    summaries = [json.loads(finished(process)) for process in sweeps]
    for process in reproductions:
        finished(process)
    assert [(one["done"], one["failed"]) for one in summaries] == [(120, 0)] * 4
    assert (
        sum(one["run_now"] for one in summaries) <= 1.5 * 120
    )  # the last packs may be run by several; unshared it would be 4
    finished(started(*REPRODUCE, "--out", apart))
    finished(started(*sweep, "--out", apart))
    for experiment, rows in (("trouble", 120), ("training", 6)):
        stored = contents(together / "store", experiment)
        assert len(stored) == rows
        assert stored == contents(apart / "store", experiment)
