"""The loop in one process, and on executors that misbehave on purpose."""

import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress

import pytest
import torch

from parityscope.records import Store
from parityscope.runs import InProcess, Work, load_spec, run_sweep
from parityscope.runs.spec import run_task
from sweep_specs import PACKED, TROUBLE, contents, written


def swept(tmp_path, text, configs, launcher=None, **options):
    work = load_spec(written(tmp_path / "spec.py", text, configs), options.pop("pack", None))
    return run_sweep(work, Store(tmp_path / "store"), launcher or InProcess(), **options)


def test_a_failing_config_is_a_failed_row_and_stops_nothing(tmp_path):
    configs = '[Point(x=1), Point(x=2, what="raise"), Point(x=3, what="unstorable"), Point(x=4)]'
    summary = swept(tmp_path, TROUBLE, configs)
    assert (summary.done, summary.failed, summary.run_now) == (2, 2, 4)
    failed = {row.config["x"]: row.traceback for row in Store(tmp_path / "store").rows("trouble", failed=True)}
    assert "ValueError: no answer for 2" in failed[2]
    assert 'raise ValueError(f"no answer for {self.x}")' in failed[2]  # the line itself
    assert "TypeError" in failed[3]


def test_what_is_done_or_failed_is_not_run_again_unless_asked(tmp_path):
    configs = '[Point(x=1), Point(x=2, what="raise")]'
    assert swept(tmp_path, TROUBLE, configs).run_now == 2
    assert swept(tmp_path, TROUBLE, configs).run_now == 0
    assert swept(tmp_path, TROUBLE, configs, retry_failed=True).run_now == 1
    # Mended: the same config, another run, so another address.
    mended = TROUBLE.replace('== "raise"', '== "nothing"')
    summary = swept(tmp_path, mended, configs)
    assert (summary.done, summary.failed, summary.run_now) == (2, 0, 2)


def test_a_longer_list_runs_only_what_is_new(tmp_path):
    swept(tmp_path, TROUBLE, "[Point(x=x) for x in range(3)]")
    assert swept(tmp_path, TROUBLE, "[Point(x=x) for x in range(5)]").run_now == 2


def test_one_bad_config_in_a_pack_fails_alone(tmp_path):
    summary = swept(tmp_path, PACKED, '[Point(x=x, what="raise" if x == 4 else "") for x in range(0, 10)]')
    assert (summary.done, summary.failed) == (9, 1)
    rows = {row.config["x"]: row.numbers for row in Store(tmp_path / "store").rows("trouble")}
    assert {x: numbers["square"] for x, numbers in rows.items()} == {x: x**2 for x in range(10) if x != 4}
    together = {x: numbers.get("together") for x, numbers in rows.items()}
    assert together[1] == 5  # the odd ones were one program
    assert together[0] is None  # the even ones fell apart


def test_runs_are_on_one_thread(tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        swept(tmp_path, TROUBLE, "[Point(x=1)]")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert Store(tmp_path / "store").rows("trouble")[0].numbers["threads"] == 1


def test_progress_ends_with_everything_accounted_for(tmp_path):
    seen = []
    swept(tmp_path, TROUBLE, '[Point(x=1, seconds=0.3), Point(x=2, what="raise"), Point(x=3)]', on_progress=seen.append)
    assert (seen[0].done, seen[0].failed, seen[0].total, seen[0].seconds_left) == (0, 0, 3, None)
    assert (seen[-1].done, seen[-1].failed, seen[-1].running, seen[-1].seconds_left) == (2, 1, 0, 0)
    assert seen[-1].per_second > 0


class Threads:
    """An executor of threads, to show that any Executor will do; `mortal` work breaks it as a dead process would."""

    run = staticmethod(run_task)
    worker_died = (BrokenExecutor,)
    breaks_as_a_whole = True

    def __init__(self, fatal=lambda task: False):
        self.fatal, self.starts = fatal, 0

    def start(self):
        self.starts += 1
        return _Breakable(self.fatal)

    def in_flight(self):
        return 3

    def stop(self, *, now):
        pass


class _Breakable(Executor):
    """Runs in threads until a fatal task arrives, then loses everything that is out, as a process pool does."""

    def __init__(self, fatal):
        self.fatal, self.pool, self.broken, self.out = fatal, ThreadPoolExecutor(2), False, []
        self.lock = threading.Lock()

    def submit(self, function, task):
        with self.lock:
            if self.broken:
                raise BrokenExecutor("broken before")
            outer = Future()
            self.out.append(outer)
        if self.fatal(task):
            with self.lock:
                self.broken = True
                for future in self.out:
                    if not future.done():
                        future.set_exception(BrokenExecutor("a worker died"))
            return outer

        def finish(inner):
            with self.lock:
                if not outer.done():
                    outer.set_result(inner.result())

        self.pool.submit(function, task).add_done_callback(finish)
        return outer


def test_any_executor_gives_the_same_rows(tmp_path):
    (tmp_path / "other").mkdir()
    swept(tmp_path, TROUBLE, "[Point(x=x) for x in range(8)]")
    swept(tmp_path / "other", TROUBLE, "[Point(x=x) for x in range(8)]", Threads())
    assert contents(tmp_path / "store") == contents(tmp_path / "other" / "store")


def test_a_config_that_always_kills_its_worker_is_found_and_given_up_and_no_other_is(tmp_path):
    launcher = Threads(lambda task: any('"what":"die"' in fields for _, _, fields, _ in task.configs))
    configs = '[Point(x=x, seconds=0.02, what="die" if x == 4 else "") for x in range(9)]'
    summary = swept(tmp_path, TROUBLE, configs, launcher)
    assert (summary.done, summary.failed) == (8, 1)
    (failed,) = Store(tmp_path / "store").rows("trouble", failed=True)
    assert failed.config["x"] == 4
    assert "its worker died twice, the second time while nothing else was running" in failed.traceback


def test_a_pack_with_a_killer_in_it_is_taken_apart(tmp_path):
    launcher = Threads(lambda task: any('"what":"die"' in fields for _, _, fields, _ in task.configs))
    configs = '[Point(x=x, what="die" if x == 4 else "") for x in range(9)]'
    summary = swept(tmp_path, TROUBLE, configs, launcher, pack=3)
    assert (summary.done, summary.failed) == (8, 1)
    assert {row.config["x"] for row in Store(tmp_path / "store").rows("trouble", failed=True)} == {4}


def test_a_worker_that_dies_once_costs_nothing(tmp_path):
    deaths = iter([True])
    summary = swept(
        tmp_path, TROUBLE, "[Point(x=x, seconds=0.02) for x in range(9)]", Threads(lambda task: next(deaths, False))
    )
    assert (summary.done, summary.failed) == (9, 0)


def test_ctrl_c_keeps_what_is_finished_and_gives_back_the_rest(tmp_path):
    def interrupt(progress):
        if progress.done:
            raise KeyboardInterrupt

    configs = "[Point(x=x, seconds=0.25) for x in range(6)]"
    with pytest.raises(KeyboardInterrupt):
        swept(tmp_path, TROUBLE, configs, on_progress=interrupt)
    done = len(Store(tmp_path / "store").rows("trouble"))
    assert 0 < done < 6
    assert swept(tmp_path, TROUBLE, configs).run_now == 6 - done


def test_ctrl_c_is_not_lost_when_a_library_swallows_it(tmp_path):
    """As in the clean-up of an object, where Python prints an exception and goes on."""
    before = signal.getsignal(signal.SIGINT)

    def swallow(progress):
        with suppress(KeyboardInterrupt):
            if progress.done == 0:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        swept(tmp_path, TROUBLE, "[Point(x=x, seconds=0.3) for x in range(20)]", Threads(), on_progress=swallow)
    assert signal.getsignal(signal.SIGINT) is before
    assert len(Store(tmp_path / "store").keys()) < 20


def at_once(*sweeps):
    """Run functions in threads of their own and return what they gave; one that does not end is a failure."""
    given = []
    threads = [threading.Thread(target=lambda one=one: given.append(one()), daemon=True) for one in sweeps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive(), "a sweep waits for another one"
    return given


def test_two_sweeps_on_one_folder_share_the_work(tmp_path):
    work = load_spec(written(tmp_path / "spec.py", TROUBLE, "[Point(x=x, seconds=0.1) for x in range(12)]"))
    summaries = at_once(*[lambda: run_sweep(work, Store(tmp_path / "store"), InProcess())] * 2)
    assert [summary.done for summary in summaries] == [12, 12]
    assert 12 <= sum(summary.run_now for summary in summaries) <= 13  # whoever is first does not wait for the last one
    assert all(summary.run_now > 1 for summary in summaries)
    assert len(Store(tmp_path / "store").rows("trouble")) == 12


def test_sweeps_that_find_each_others_rows_done_do_not_wait_for_each_other(tmp_path):
    """Two sweeps walk two packs in opposite orders, and both packs are finished before they look at the first."""
    one, other = load_spec(written(tmp_path / "spec.py", TROUBLE, "[Point(x=1), Point(x=2)]")).configs
    meeting = threading.Barrier(2)

    class Meeting(Store):
        """A store whose sweep looks at its first pack when the other one does."""

        begun = False

        def keys(self, *arguments, among=None, **options):
            if self.begun and among is not None:
                self.begun = False
                meeting.wait(timeout=20)
            return super().keys(*arguments, among=among, **options)

    def sweep(*configs):
        store = Meeting(tmp_path / "store")

        def begin(progress):
            if progress.done == 0:
                meeting.wait(timeout=20)  # nothing is done for either
                store.add(configs[0], configs[0].run(), seconds=0.0)
                meeting.wait(timeout=20)  # now everything is
                store.begun = True

        return run_sweep(Work("both", configs), store, InProcess(), on_progress=begin)

    summaries = at_once(lambda: sweep(one, other), lambda: sweep(other, one))
    assert [(summary.done, summary.run_now) for summary in summaries] == [(2, 0), (2, 0)]


def test_what_a_killed_sweep_had_begun_comes_last_and_is_run(tmp_path):
    work = load_spec(written(tmp_path / "spec.py", TROUBLE, "[Point(x=x) for x in range(4)]"))
    store = Store(tmp_path / "store")
    assert store.hint([config.key for config in work.configs[:2]], "a sweep that is no more")
    assert run_sweep(work, store, InProcess()).run_now == 4
    order = [row.config["x"] for row in store.rows("trouble")]
    assert (order[:2], sorted(order[2:])) == ([2, 3], [0, 1])
