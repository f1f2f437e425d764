"""What every figure must pass: a new one is tested by being listed by its paper.

Its rows at smoke scale come from a store that all tests share, so that nothing is computed twice.
"""

import json
from contextlib import ExitStack
from unittest.mock import patch

from matplotlib.figure import Figure

from parityscope.papers.figure import SCALES, Finding, PaperFigure, ResultTable
from parityscope.papers.registry import all_claims, load_figure
from parityscope.papers.results import stored_rows, work_of
from parityscope.records import LooseNumbers, Store
from parityscope.records.code import reached
from parityscope.records.export import write_numbers
from parityscope.runs import InProcess, Work, run_sweep
from parityscope.runs.spec import check_configs_travel

_LISTED = 100  # configs of each scale that are looked at one by one


def check_figure(name, store, folder):
    """Compute a figure's smoke rows and show them from the store alone."""
    figure = load_figure(name)
    check_contract(figure, name)
    rows = smoke_rows(figure, store)
    assert len(rows) == len(figure.CONFIGS["smoke"])
    for row in rows:
        _check_numbers(row)
    with ExitStack() as stack:
        stack.enter_context(patch("parityscope.training.learning.descend", None))
        for kind in {type(row.config.row_config()) for row in rows}:
            for method in ("run", "run_batch"):
                stack.enter_context(patch.object(kind, method, side_effect=AssertionError("drawing computes nothing")))
        _check_shown(figure, rows)
    if rows:
        write_numbers(rows, folder, name)
        assert len((folder / f"{name}.csv").read_text().splitlines()) >= 1 + len(rows)


def smoke_rows(figure, store):
    """Return a figure's rows at smoke scale, read from disk; what is not there yet is run."""
    summary = run_sweep(work_of(figure, "smoke"), store, InProcess())
    assert summary.failed == 0, store.rows(failed=True)[-1].traceback
    return stored_rows(figure, "smoke", Store(store.path))


def check_contract(figure, name):
    """Hold what a figure's file says, before anything is run."""
    assert isinstance(figure, PaperFigure)
    assert name == figure.ID
    assert len(figure.TEXT) > 100
    assert set(figure.CONFIGS) == set(figure.COST) == set(SCALES)
    of_a_command = hasattr(figure, "STORED")  # its rows are stored by a command of their own
    assert hasattr(figure, "COMMAND") == of_a_command
    for scale in SCALES:
        configs = figure.CONFIGS[scale]
        assert figure.COST[scale] >= 0
        assert (len(configs) > 0) != of_a_command
        assert len(set(map(str, configs))) == len(configs), "a config is shown once"
        some = configs[:: max(1, len(configs) // _LISTED)]
        check_configs_travel(Work(name, tuple(some)))
        by_key = {config.row_config().key: config.row_config() for config in some}
        assert len(by_key) == len({str(config.row_config()) for config in some}), "another config has another address"
        _check_kinds({type(config.row_config()) for config in some})


def _check_kinds(kinds):
    for kind in kinds:
        assert kind.NUMBERS is not LooseNumbers, f"{kind.__name__} should say which numbers it has"
        # Otherwise an edit of any recipe, figure or claim would make these rows stale.
        lists = {("parityscope.training.recipes", "RECIPES"), ("parityscope.papers.registry", "PAPERS")}
        assert not lists & reached(kind.__module__, kind.__qualname__).keys()


def _check_numbers(row):
    """Numbers are of their declared type, and the same after a journey through JSON."""
    kind = row.config.row_config().NUMBERS
    assert type(row.numbers) is kind
    text = json.dumps(row.numbers.model_dump())
    assert json.dumps(kind.model_validate(json.loads(text)).model_dump()) == text
    assert row.code == row.config.row_config().code()
    assert all(bool(array.isfinite().all()) or array.is_floating_point() for array in row.arrays.values())


def _check_shown(figure, rows):
    picture = figure.plot(rows)
    assert isinstance(picture, Figure)
    assert picture.axes
    table = figure.table(rows)
    assert isinstance(table, ResultTable)
    assert all(len(line) == len(table.header) for line in table.rows)
    assert all(isinstance(cell, str) for line in (table.header, *table.rows) for cell in line)
    findings = figure.findings(rows)
    assert all(isinstance(finding, Finding) and finding.paper and finding.here for finding in findings)
    if rows:
        assert table.rows
        assert findings or any(claim.figure == figure.ID for claim in all_claims())
