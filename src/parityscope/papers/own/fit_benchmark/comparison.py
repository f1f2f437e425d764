"""One method on one kind of table: its setting is chosen on some tables, then it is counted and timed on others."""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from parityscope.core.errors import InvalidInput
from parityscope.papers.own.fit_benchmark.methods import Asked, Method, Refused, Setting
from parityscope.papers.own.fit_benchmark.planted import TableKind
from parityscope.records import Numbers

# Settings are chosen on tables of the seeds 0, 1, …; methods are counted on 2000, 2001, … Those from 1000 were seen
# while this comparison was made: on them the quickest of equal settings was taken, which cost PLINK answers.
FIRST_FRESH = 2000
_FEWEST = 3


class _TookTooLong(InvalidInput):
    """A method needed more CPU time for one table than it was given.

    >>> issubclass(_TookTooLong, InvalidInput)
    True
    """


class MethodScore(Numbers):
    """How one method did: tables with exactly the planted columns named, of how many, CPU seconds a table (mean)."""

    found: int
    silent: int  # tables in which it named nothing rather than something wrong
    tables: int
    seconds: float
    setting: dict[str, Any]
    chosen_on: int  # tables that every setting saw before one was chosen; 0 where there was no choice


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of the programs it has waited for (not on Windows).

    >>> _cpu_seconds() > 0
    True
    """
    if sys.platform == "win32":
        return time.process_time()
    import resource

    waited_for = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + waited_for.ru_utime + waited_for.ru_stime


def compare_on(
    kind: TableKind, method: Method, *, tables: int, others: int, budget: float = math.inf, limit: float | None = None
) -> MethodScore:
    """Choose the setting with most answers on `others` tables, of equals the first; count it on `tables` fresh ones.

    Parameters
    ----------
    budget : float
        CPU seconds to be counted in, half of them before that to choose: whoever has used them up stops, but not
        before 1 table of the first part and 3 of the second.
    limit : float or None
        CPU seconds for one table: whoever needs more has not found it, and a setting that does is not tried again.
    """
    setting, chosen_on = choose_setting(kind.twin(), method, others, budget / 2, limit)
    results: list[_Outcome] = []
    while len(results) < tables and (len(results) < _FEWEST or sum(one.seconds for one in results) < budget):
        results.append(_one(kind, FIRST_FRESH + len(results), method, setting, limit))
    return MethodScore(
        found=sum(one.right for one in results),
        silent=sum(one.silent for one in results),
        tables=len(results),
        seconds=sum(one.seconds for one in results) / len(results),
        setting=dict(setting),
        chosen_on=chosen_on,
    )


def choose_setting(
    kind: TableKind, method: Method, others: int, budget: float, limit: float | None
) -> tuple[Setting, int]:
    """Return the setting with most answers on tables of the first seeds, and how many tables it was chosen on."""
    if len(method.settings) == 1:
        return method.settings[0], 0
    left = list(range(len(method.settings)))
    found, spent, seen = [0] * len(left), 0.0, 0
    while left and seen < others and (seen == 0 or spent < budget):
        for place in tuple(left):
            outcome = _one(kind, seen, method, method.settings[place], limit)
            found[place] += outcome.right
            spent += outcome.seconds
            if limit is not None and outcome.seconds >= limit:
                left.remove(place)
        seen += 1
    if not left:
        raise Refused(f"more than {limit:g} s for a table, by every setting")
    return method.settings[max(left, key=lambda place: found[place])], seen


class _Outcome(NamedTuple):
    right: bool
    silent: bool
    seconds: float


def _one(kind: TableKind, seed: int, method: Method, setting: Setting, limit: float | None) -> _Outcome:
    """Return whether exactly the planted columns of one table were named, or none, and the CPU seconds it took."""
    table = kind.draw(seed)
    asked = Asked(kind.k, kind.interactions, seed)
    started = _cpu_seconds()
    try:
        with _at_most(limit):
            named = method.find(table.X, table.y, asked, **setting)
    except (_TookTooLong, SystemError) as reason:
        # Compiled code turns what it does not expect into a SystemError.
        if limit is None or (isinstance(reason, SystemError) and _cpu_seconds() - started < 0.9 * limit):
            raise
        return _Outcome(False, True, max(limit, _cpu_seconds() - started))
    return _Outcome(named == table.columns, not named, _cpu_seconds() - started)


@contextmanager
def _at_most(seconds: float | None) -> Iterator[None]:
    """Stop what runs here after so much CPU time of this process; in the main thread only, and None is no limit.

    >>> try:
    ...     with _at_most(0.01):
    ...         while True:
    ...             pass
    ... except _TookTooLong as reason:
    ...     print(reason)
    more than 0.01 s of CPU time
    """
    if seconds is None:
        yield
        return

    def stop(*_: object) -> None:
        raise _TookTooLong(f"more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
