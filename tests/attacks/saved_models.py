"""Damaged models of `fit --save`: other types, ranges, places and words, and bits that flipped."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from parityscope.fit.saved import _NO_CHECKSUM, _checksum

VALUES = (None, True, -1, 10**6, 1e308, "", "x", [], {}, [[]], float("nan"), 10**400)


def damaged(content: bytes, flips: int = 40) -> list[tuple[str, bytes]]:
    """Return damaged copies of a model, each with what was done to it."""
    return [*_by_accident(content, flips), *_forged(content)]


def _by_accident(content: bytes, flips: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(5)
    for _ in range(flips):
        place, bit = chance.randrange(len(content) - 1), chance.randrange(8)
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        yield f"bit {bit} of byte {place} flipped", bytes(changed)
    for length in (0, 1, 2, len(content) // 2, len(content) - 3):
        yield f"cut after {length} bytes", content[:length]
    for other in (b"null", b"[]", b"3", b'"x"', b"[" * 10_000, b"\xff" * 99, b"{}", content + content):
        yield f"{other[:5]!r}", other


def _forged(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield models that were edited, with the checksum as it was and without one."""
    model = json.loads(content)
    for path in _paths(model):
        for value in VALUES:
            changed = copy.deepcopy(model)
            _set(changed, path, value)
            yield f"{path} = {str(value)[:9]}", json.dumps(changed).encode()
    for name, change in CHANGES.items():
        for kept in (True, False):
            changed = copy.deepcopy(model)
            change(changed)
            if not kept:
                changed.pop("checksum", None)
            yield f"{name}{'' if kept else ', no checksum'}", json.dumps(changed).encode()
        if name not in SOUND:
            yield f"{name}, its own checksum", _signed(changed)


def edited(content: bytes) -> list[tuple[str, bytes]]:
    """Return models in which a value is another one, with the right checksum: some are sound, the others refused."""
    model, copies = json.loads(content), []
    for path in _paths(model):
        for value in VALUES:
            changed = copy.deepcopy(model)
            _set(changed, path, value)
            copies.append((f"{path} = {str(value)[:9]}", _signed(changed)))
    return copies


def _signed(model: dict[str, Any]) -> bytes:
    content = json.dumps({**model, "checksum": _NO_CHECKSUM}).encode()
    return content.replace(_NO_CHECKSUM.encode(), _checksum(content, _NO_CHECKSUM).encode())


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _paths(inner, (*path, key))


def _set(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def _factor(model: dict[str, Any]) -> dict[str, Any]:
    return model["features"][0]["factors"][0]


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a column that is not there": lambda model: _factor(model).update(column=99),
    "a column from behind": lambda model: _factor(model).update(column=-1),
    "a factor without a question": lambda model: [_factor(model).pop(name, 0) for name in ("threshold", "levels")],
    "two questions in one": lambda model: _factor(model).update(threshold=0.5, levels=[1.0], ramp=[0.0, 1.0]),
    "a ramp that falls": lambda model: _factor(model).update(ramp=[1.0, 0.0], threshold=None, levels=None),
    "a ramp without a slope": lambda model: _factor(model).update(ramp=[1.0, 1.0], threshold=None, levels=None),
    "no columns": lambda model: model.update(columns=[]),
    "a column twice": lambda model: model["columns"].append(model["columns"][0]),
    "one class": lambda model: model.update(classes=["0", "0"]),
    "three classes": lambda model: model.update(classes=["0", "1", "2"]),
    "a share of two": lambda model: model.update(share=2.0),
    "an accuracy of two": lambda model: model.update(held_out_accuracy=2.0),
    "fewer rows than none": lambda model: model.update(rows=-5),
    "a word twice": lambda model: model["columns"][0].update(words=[[0.0, "x"], [0.0, "y"]], kind="text"),
    "words without words": lambda model: model["columns"][0].update(words=None, kind="text"),
    "a genotype without words": lambda model: model["columns"][0].update(words=None, kind="genotype"),
    "the target as a column": lambda model: model["columns"][0].update(name=model["target"]),
    "another version": lambda model: model.update(version=99),
    "a field more": lambda model: model.update(more=1),
    "no features": lambda model: model.update(features=[]),
    "a factor of nothing": lambda model: model["features"][0].update(factors=[]),
    "a million features": lambda model: model.update(features=model["features"] * 100_000),
}
SOUND = ("the target as a column", "no features", "a million features")  # odd, and a model all the same
