"""Rows that older code made: recompute the cheapest, and where they agree keep the others for today's code too."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from parityscope.core.threads import single_threaded
from parityscope.papers.claim import computed
from parityscope.records import Config, Outcome, Result, Row, Store, StoredRow

RECHECKED = "rechecked"  # stands among a row's versions
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12  # what is smaller than the second is rounding
_FEWEST, _SECONDS = 2, 20.0


@dataclass(frozen=True)
class Recheck:
    """What became of the rows of one kind that one older code made.

    >>> print(Recheck("training", "5d41", rows=64, recomputed=2))
    training of code 5d41: 2 of 64 rows recomputed and equal, all are kept
    >>> print(Recheck("training", "5d41", rows=64, recomputed=2, difference="risk is 0.5, was 0.25"))
    training of code 5d41: its 64 rows stay stale, since risk is 0.5, was 0.25
    """

    experiment: str
    code: str
    rows: int
    recomputed: int
    difference: str | None = None

    def __str__(self) -> str:
        kind = f"{self.experiment} of code {self.code or 'unknown'}"
        if self.difference is None:
            return f"{kind}: {self.recomputed} of {self.rows} rows recomputed and equal, all are kept"
        return f"{kind}: its {self.rows} rows stay stale, since {self.difference}"


class _Pair(NamedTuple):
    """A config and the row that older code made of it."""

    config: Config
    row: StoredRow


def recheck(store: Store, configs: Iterable[Config], *, seconds: float = _SECONDS) -> Iterator[Recheck]:
    """Go through the configs that have a row of older code only; yield what became of each kind and code.

    The rows that took least are computed anew: two at least, and as many as fit into `seconds`. They are stored as what
    they are, rows of today's code. If all are as they were (floats to 1e-9, anything else exactly), the others of their
    kind and code are copied to today's address with a note about it; otherwise they stay stale.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> store, configs = Store(Path(tempfile.mkdtemp())), [WorkedExample(temperature=t) for t in (0.1, 0.2, 0.3)]
    >>> for config in configs:
    ...     store.add(config, config.run(), seconds=0.1)
    >>> older = [replace(row, code="5d41") for row in store.rows()]
    >>> store.forget(store.keys())
    >>> store.add_rows(older)
    >>> print(*recheck(store, configs, seconds=0.2))
    H1-figure-1 of code 5d41: 2 of 3 rows recomputed and equal, all are kept
    >>> [store.row(config).versions.get(RECHECKED) for config in configs]
    [None, None, '2 of 3 rows of code 5d41 recomputed and equal']
    """
    for pairs in _older(store, configs):
        yield _recheck(store, sorted(pairs, key=lambda pair: pair.row.seconds), seconds)


def _older(store: Store, configs: Iterable[Config]) -> list[list[_Pair]]:
    """Return the newest older row of every config without one of today, by kind and code."""
    done = store.keys()
    wanted = {
        _identity(config.ROWS, config.VERSION, config.model_dump(mode="json")): config
        for config in configs
        if config.key not in done
    }
    newest = {}
    for row in store.rows():
        identity = _identity(row.experiment, row.version, row.config)
        if identity in wanted:
            newest[identity] = _Pair(wanted[identity], row)
    groups: dict[tuple[str, str], list[_Pair]] = {}
    for pair in newest.values():
        groups.setdefault((pair.row.experiment, pair.row.code), []).append(pair)
    return list(groups.values())


def _identity(rows: str, version: int, fields: Mapping[str, Any]) -> str:
    return json.dumps([rows, version, dict(fields)], sort_keys=True)


def _recheck(store: Store, pairs: Sequence[_Pair], seconds: float) -> Recheck:
    """Recheck the rows of one kind and code, given from the cheapest on."""
    spent, recomputed, difference = 0.0, 0, None
    for pair in pairs:
        spent += pair.row.seconds
        if difference is not None or (recomputed >= _FEWEST and spent > seconds):
            break
        difference = _difference_now(store, pair)
        recomputed += 1
    experiment, code = pairs[0].row.experiment, pairs[0].row.code
    if difference is None:
        note = f"{recomputed} of {len(pairs)} rows of code {code or 'unknown'} recomputed and equal"
        store.add_rows(_kept(pair, note) for pair in pairs[recomputed:])
    return Recheck(experiment, code, len(pairs), recomputed, difference)


def _kept(pair: _Pair, note: str) -> StoredRow:
    before = pair.row.versions.get(RECHECKED)
    notes = note if before is None else f"{before}; {note}"
    return replace(pair.row, code=pair.config.code(), versions={**pair.row.versions, RECHECKED: notes})


def _difference_now(store: Store, pair: _Pair) -> str | None:
    """Compute a row anew, store it, and say where it differs from the older one."""
    config, row = pair
    try:
        with single_threaded():
            fresh = computed(config)
    except Exception as error:
        return f"row {row.key} fails now: {type(error).__name__}: {error}"
    outcome = Outcome.of(Result(fresh.numbers, fresh.arrays), fresh.seconds)
    store.add_all([(config, outcome)])
    numbers = json.loads(json.dumps(outcome.numbers))
    place = first_difference(row.numbers, numbers) or _first_difference_of_arrays(row, fresh)
    return None if place is None else f"{place} in row {row.key}"


def first_difference(was: Any, now: Any, place: str = "numbers") -> str | None:
    """Return the first place where two JSON values differ: floats by more than 1e-9 of their size, others at all.

    >>> first_difference({"risk": [0.1, 0.2], "steps": 3}, {"risk": [0.1, 0.2 + 1e-15], "steps": 3})
    >>> first_difference({"risk": [0.1, 0.2], "steps": 3}, {"risk": [0.1, 0.2], "steps": 4})
    'numbers.steps is 4, was 3'
    """
    if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        found = (first_difference(was[name], now[name], f"{place}.{name}") for name in was)
        return next((one for one in found if one is not None), None)
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        found = (first_difference(*both, f"{place}[{index}]") for index, both in enumerate(zip(was, now, strict=True)))
        return next((one for one in found if one is not None), None)
    if isinstance(was, float) and isinstance(now, float):
        same = math.isclose(was, now, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE) or (math.isnan(was) and math.isnan(now))
    else:
        same = type(was) is type(now) and was == now
    return None if same else f"{place} is {_short(now)}, was {_short(was)}"


def _first_difference_of_arrays(row: StoredRow, fresh: Row[Any, Any]) -> str | None:
    if row.arrays.keys() != fresh.arrays.keys():
        return f"the arrays are {', '.join(fresh.arrays)}, were {', '.join(row.arrays)}"
    different = (name for name, was in row.arrays.items() if not _same(was, fresh.arrays[name]))
    return next((f"the array {name} differs" for name in different), None)


def _same(was: Tensor, now: Tensor) -> bool:
    if was.shape != now.shape or was.dtype != now.dtype:
        return False
    if not was.dtype.is_floating_point:
        return torch.equal(was, now)
    return torch.allclose(was.double(), now.double(), rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 40 else text[:37] + "…"
