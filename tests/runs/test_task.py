"""What a worker does with a pack: the same as the sender would, and loudly when it cannot."""

import subprocess
import sys
from dataclasses import replace

import pytest

from parityscope import InvalidInput
from parityscope.records import Config, Numbers, Result, Store
from parityscope.runs import InProcess, Work, load_spec, run_sweep
from parityscope.runs.spec import Pack, packs_of
from parityscope.runs.task import run_task, task_of
from sweep_specs import PACKED, TROUBLE, written


def tasks(tmp_path, text, configs):
    return [task_of(pack) for pack in packs_of(load_spec(written(tmp_path / "spec.py", text, configs)))]


def test_a_task_is_plain_text_and_gives_what_its_configs_give(tmp_path):
    (task,) = tasks(tmp_path, TROUBLE, "[Point(x=3)]")
    assert all(isinstance(part, str) for config in task.configs for part in config)
    (outcome,) = run_task(task)
    assert (outcome.numbers["square"], outcome.numbers["threads"], outcome.traceback) == (9, 1, "")


def test_a_worker_with_other_source_refuses(tmp_path):
    """It was edited meanwhile, or another version is installed there: the row would not be what its address says."""
    (task,) = tasks(tmp_path, TROUBLE, "[Point(x=3)]")
    other = replace(task, configs=tuple((*config[:3], "5d41402abc4b2a76") for config in task.configs))
    with pytest.raises(InvalidInput, match=r"the source of Point is not the same here .*, not 5d41402abc4b2a76"):
        run_task(other)


def test_a_sweep_stores_that_refusal_as_a_failure(tmp_path, monkeypatch):
    work, store = load_spec(written(tmp_path / "spec.py", TROUBLE, "[Point(x=3)]")), Store(tmp_path / "store")
    sent = task_of(packs_of(work)[0])
    edited = replace(sent, configs=tuple((*config[:3], "an earlier one") for config in sent.configs))
    monkeypatch.setattr("parityscope.runs.loop.task_of", lambda pack: edited)
    assert run_sweep(work, store, InProcess()).failed == 1
    assert "is not the same here as where the work was handed out" in store.rows(failed=True)[0].traceback


class Typed(Numbers):
    """One number."""

    square: int


class Mistyped(Config):
    """A config whose run does not keep its word."""

    ROWS = "mistyped"
    NUMBERS = Typed
    x: int

    def run(self):
        """Return something else."""
        return Result({"cube": self.x**3})


def test_numbers_of_another_type_fail_where_they_are_made():
    (outcome,) = run_task(task_of(Pack((Mistyped(x=2),), ("key",))))
    assert outcome.traceback.splitlines()[-1].endswith(
        "what Mistyped returned does not have the numbers of Typed: square: field required; cube: extra inputs are not"
        " permitted"
    )


def test_a_pack_that_fails_is_run_one_by_one_with_a_warning_that_says_why(tmp_path, caplog):
    (even,) = tasks(tmp_path, PACKED, '[Point(x=x, what="raise" if x == 4 else "") for x in range(0, 10, 2)]')
    outcomes = run_task(even)
    assert [bool(outcome.traceback) for outcome in outcomes] == [False, False, True, False, False]
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == "5 configs of Point failed together and are run one by one:"
    assert "RuntimeError: one of them is in trouble" in caplog.text


def test_a_pack_that_works_warns_of_nothing(tmp_path, caplog):
    (even,) = tasks(tmp_path, PACKED, "[Point(x=x) for x in range(0, 10, 2)]")
    assert [outcome.numbers["together"] for outcome in run_task(even)] == [5] * 5
    assert not caplog.records


def test_a_pack_that_returns_too_few_results_is_run_one_by_one(tmp_path, caplog):
    short = PACKED.replace("for config in configs]", "for config in configs[1:]]")
    (even,) = tasks(tmp_path, short, "[Point(x=x) for x in range(0, 6, 2)]")
    assert [outcome.numbers["square"] for outcome in run_task(even)] == [0, 4, 16]
    assert "failed together" in caplog.text


PLAIN_RUN = """
import sys
from pathlib import Path
from parityscope.records import Store
from parityscope.runs import InProcess, Processes, load_spec, run_sweep
if __name__ == "__main__":
    launcher = Processes(1) if sys.argv[3] == "processes" else InProcess()
    run_sweep(load_spec(Path(sys.argv[1])), Store(Path(sys.argv[2])), launcher)
"""


@pytest.mark.parametrize("place", ["here", pytest.param("processes", marks=pytest.mark.slow)])
def test_people_see_the_warning_on_stderr(tmp_path, place):
    """Without any set-up of logging, in this process and from workers."""
    spec = written(tmp_path / "spec.py", PACKED, '[Point(x=0), Point(x=2, what="raise")]')
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_RUN, spec, tmp_path / "store", place],
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    assert "2 configs of Point failed together and are run one by one:" in done.stderr
    assert "RuntimeError: one of them is in trouble" in done.stderr
    assert done.stdout == ""


def test_a_work_without_configs_is_nothing_to_do(tmp_path):
    summary = run_sweep(Work("none", ()), Store(tmp_path), InProcess())
    assert (summary.done, summary.failed, summary.run_now) == (0, 0, 0)
