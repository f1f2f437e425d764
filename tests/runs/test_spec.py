"""A spec is a list of configs: how it is read, packed and refused, and what a worker does with a pack."""

import subprocess
import sys
from dataclasses import replace

import pytest

from parityscope import InvalidInput
from parityscope.records import Config, Numbers, Result, Store
from parityscope.runs import InProcess, Work, load_spec, run_sweep, training
from parityscope.runs.spec import Pack, packs_of, run_task, spec_module, task_of
from sweep_specs import PACKED, TROUBLE, written

POINTS = "[Point(x=x) for x in range(10)]"


def sizes(path, pack=None):
    return [[config.x for config in pack.configs] for pack in packs_of(load_spec(path, pack))]


def test_every_config_is_its_own_pack_unless_its_class_or_the_user_says_otherwise(tmp_path):
    spec = written(tmp_path / "a.py", TROUBLE, POINTS)
    assert sizes(spec) == [[x] for x in range(10)]
    assert sizes(spec, 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_packs_have_one_shape_and_at_most_the_given_size(tmp_path):
    spec = written(tmp_path / "a.py", PACKED, POINTS)
    assert sizes(spec) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert sizes(spec, 3) == [[0, 2, 4], [6, 8], [1, 3, 5], [7, 9]]
    small = PACKED.replace("PACK = 100", "PACK = 4")
    assert sizes(written(tmp_path / "b.py", small, POINTS)) == [[0, 2, 4, 6], [8], [1, 3, 5, 7], [9]]
    with pytest.raises(InvalidInput, match="a pack holds at least 1 config, got 0"):
        sizes(spec, 0)


def test_a_config_that_is_listed_twice_is_run_once(tmp_path):
    assert sizes(written(tmp_path / "a.py", TROUBLE, "[Point(x=1), Point(x=2), Point(x=1, seconds=0.0)]")) == [[1], [2]]


def test_configs_of_several_classes_are_packed_apart():
    from parityscope.papers.h1.figures.figure_1 import WorkedExample

    configs = (training("bounded", 8, 2), WorkedExample(), training("bounded", 8, 2, seeds=[1]))
    assert [[type(one).__name__ for one in pack.configs] for pack in packs_of(Work("both", configs))] == [
        ["Training", "Training"],
        ["WorkedExample"],
    ]


def test_a_spec_may_list_trainings_and_the_configs_of_a_figure(tmp_path):
    text = """
from parityscope.papers.h1.figures.figure_1 import CONFIGS as OF_FIGURE
from parityscope.runs import training
CONFIGS = [*OF_FIGURE["smoke"], *(training("bounded", 8, 2, seeds=[seed], steps=5) for seed in range(3))]
"""
    work, store = load_spec(written(tmp_path / "a.py", text)), Store(tmp_path / "store")
    assert run_sweep(work, store, InProcess()).done == 4
    assert len(store.rows("H1-figure-1")) == 1
    assert len(store.rows("training")) == 3
    # Others that ask for the same training find it.
    assert training("bounded", 8, 2, seeds=[1], steps=5) in store


def test_what_else_is_in_a_spec_does_not_change_the_address_of_its_rows(tmp_path):
    specs = [
        written(tmp_path / "a.py", TROUBLE, "[Point(x=1)]"),
        written(tmp_path / "b.py", "# A longer list.\n" + TROUBLE, "[Point(x=x) for x in range(3)]"),
        written(tmp_path / "c.py", TROUBLE.replace("self.x**2", "self.x**3"), "[Point(x=1)]"),
    ]
    keys = [next(config.key for config in load_spec(path).configs if config.x == 1) for path in specs]
    assert keys[0] == keys[1] != keys[2]


def test_the_code_of_a_spec_is_that_of_the_text_that_was_read(tmp_path):
    """Its file may be edited before anybody asks, or be another one of that name on the machine of a worker."""
    spec = written(tmp_path / "a.py", TROUBLE, "[Point(x=5)]")
    (first,) = load_spec(spec).configs
    written(spec, TROUBLE.replace("self.x**2", "self.x**5"), "[Point(x=5)]")
    (edited,) = load_spec(spec).configs
    again = spec_module(TROUBLE + "\nCONFIGS = [Point(x=5)]\n", "elsewhere").CONFIGS[0]
    assert first.key == again.key != edited.key


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("CONFIGS = []", "needs CONFIGS, a list of at least one config"),
        ("CONFIGS = [1]", "needs CONFIGS, a list of at least one config"),
        ("", "needs CONFIGS"),
        (TROUBLE.replace('ROWS = "trouble"', "") + "\nCONFIGS = [Point(x=1)]", "Point in .* needs ROWS, the name"),
        ("1 / 0", r"cannot be run: ZeroDivisionError"),
        ("def", r"cannot be run: SyntaxError"),
        (TROUBLE + "\nCONFIGS = [Point(x=1, colour=2)]", r"cannot be run: ValidationError"),
    ],
)
def test_a_bad_spec_is_one_sentence(tmp_path, text, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        load_spec(written(tmp_path / "a.py", text))


def test_a_config_that_json_would_change_is_refused(tmp_path):
    work = load_spec(written(tmp_path / "a.py", TROUBLE, '[Point(x=1, seconds=float("inf"))]'))
    with pytest.raises(InvalidInput, match="changes when written as JSON"):
        run_sweep(work, Store(tmp_path / "store"), InProcess())


# What a worker does


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


@pytest.mark.parametrize("text", [TROUBLE, PACKED])
def test_a_row_says_what_the_clock_and_what_the_processor_took(tmp_path, text):
    work, store = (
        load_spec(written(tmp_path / "a.py", text, "[Point(x=x, seconds=0.5) for x in (2, 4)]")),
        Store(tmp_path),
    )
    run_sweep(work, store, InProcess())
    for row in store.rows("trouble"):  # which sleep
        assert 0 <= float(row.versions["processor_seconds"]) < 0.4 < row.seconds


@pytest.mark.parametrize("text", [TROUBLE, PACKED])
@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("exit(0)", "SystemExit: 0"),
        ("raise BaseException('odd')", "BaseException: odd"),
        ("raise ValueError('\\ud800')", "ValueError: \\ud800"),
    ],
)
def test_a_config_that_exits_or_says_half_a_letter_fails_alone(tmp_path, caplog, text, trouble, said):
    text = text.replace('raise ValueError(f"no answer for {self.x}")', trouble).replace(
        'raise RuntimeError("one of them is in trouble")', trouble
    )
    work = load_spec(written(tmp_path / "a.py", text, '[Point(x=0), Point(x=2, what="raise"), Point(x=4)]'))
    store = Store(tmp_path / "store")
    assert run_sweep(work, store, InProcess()).failed == 1
    assert [row.numbers["square"] for row in store.rows("trouble")] == [0, 16]
    (failed,) = store.rows("trouble", failed=True)
    assert failed.traceback.strip().endswith(said)
    caplog.text.encode()  # what was logged can be printed


def test_a_pack_that_fails_is_run_one_by_one_with_a_warning_that_says_why(tmp_path, caplog):
    (even,) = tasks(tmp_path, PACKED, '[Point(x=x, what="raise" if x == 4 else "") for x in range(0, 10, 2)]')
    outcomes = run_task(even)
    assert [bool(outcome.traceback) for outcome in outcomes] == [False, False, True, False, False]
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("5 configs of Point failed together and are run one by one:\nTraceback")
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


@pytest.mark.slow
@pytest.mark.parametrize("place", ["here", "processes"])
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
