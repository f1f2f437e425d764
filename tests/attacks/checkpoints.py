"""Damaged checkpoints: bits flipped, bytes cut, and tensors and configs that a training cannot have left."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

import torch
from safetensors.torch import load, save
from torch import Tensor

from parityscope.records.tensors import _checksum

LEARN = ("learn", "--n", "10", "--k", "2", "--runs", "3", "--recipe", "bounded", "--steps", "30", "--out", "run")
Content = tuple[dict[str, Tensor], dict[str, str]]


def damaged(content: bytes, flips: int = 40) -> list[tuple[str, bytes]]:
    """Return damaged copies of a checkpoint, each with what was done to it."""
    return [*_by_accident(content, flips), *_forged(content)]


def _by_accident(content: bytes, flips: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(3)
    header = 8 + int.from_bytes(content[:8], "little")
    for part, places in (("header", range(header)), ("tensors", range(header, len(content)))):
        for _ in range(flips if part == "tensors" else flips // 2):
            place, bit = chance.choice(places), chance.randrange(8)
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            yield f"bit {bit} of byte {place} in the {part} flipped", bytes(changed)
    for length in (0, 1, 7, 8, 9, header // 2, header, header + 1, len(content) // 2, len(content) - 1):
        yield f"cut after {length} bytes", content[:length]
    yield "a byte more", content + b"\0"
    yield "twice", content * 2
    yield "zeros", bytes(len(content))
    yield "text", b"nothing of use" * 99
    yield "a header of 2^60 bytes", (2**60).to_bytes(8, "little") + content[8:]


def _forged(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield files whose checksum is left as it was, left out, or computed anew."""
    length = 8 + int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8:length])["__metadata__"]
    for name, change in CHANGES.items():
        tensors = load(content)
        change(tensors)
        yield name, save(tensors, metadata)
        yield f"{name}, no checksum", save(tensors, {"config": metadata["config"]})
        yield f"{name}, its own checksum", _signed(tensors, metadata["config"])
    tensors = load(content)
    for config in ("", "{", "[]", "3", "null", '"x"', "[" * 5000, "{}", '{"n": NaN}', "[" * 50 + "]" * 50):
        yield f"config {config[:9]}", save(tensors, {"config": config})
        yield f"config {config[:9]}, its own checksum", _signed(tensors, config)
    yield "no metadata", save(tensors)


def _signed(tensors: dict[str, Tensor], config: str) -> bytes:
    """Return a file with the right checksum, which only a look at what is in it can refuse."""
    return save(tensors, {"config": config, "checksum": _checksum(tensors, config)})


def _set(name: str, change: Callable[[Tensor], Tensor]) -> Callable[[dict[str, Tensor]], None]:
    def set_(tensors: dict[str, Tensor]) -> None:
        tensors[name] = change(tensors[name]).contiguous()

    return set_


MODEL = "model._directions"
MOMENT = "optimiser.0.exp_avg"
CHANGES: dict[str, Callable[[dict[str, Tensor]], object]] = {
    "no model": lambda tensors: tensors.pop(MODEL),
    "one run's model for all": _set(MODEL, lambda one: one[:1]),
    "a model of one number": _set(MODEL, lambda one: one.flatten()[:1]),
    "a model of other type": _set(MODEL, lambda one: one.half()),
    "a model of whole numbers": _set(MODEL, lambda one: one.long()),
    "a model turned": _set(MODEL, lambda one: one.transpose(-1, -2)),
    "a model without dimensions": _set(MODEL, lambda one: one.flatten()[0]),
    "no step": lambda tensors: tensors.pop("state.step"),
    "a negative step": _set("state.step", lambda one: one - 99),
    "a step of two numbers": _set("state.step", lambda one: torch.stack([one, one])),
    "a step of a fraction": _set("state.step", lambda one: one + 0.5),
    "ends of one run": _set("state.finished_at", lambda one: one[:1]),
    "ends after the last step": _set("state.finished_at", lambda one: one + 10**6),
    "ends of other type": _set("state.finished_at", lambda one: one.double()),
    "no ends": lambda tensors: tensors.pop("state.finished_at"),
    "divergence as numbers": _set("state.diverged", lambda one: one.double()),
    "best steps in the future": _set("state.best_step", lambda one: one + 10**6),
    "best risks of one run": _set("state.best_risk", lambda one: one[:1]),
    "a history without steps": _set("state.history_steps", lambda one: one[:0]),
    "a history of other length": _set("state.history_risk", lambda one: one[:-1]),
    "a history of one run": _set("state.history_risk", lambda one: one[:, :1]),
    "a history without runs": _set("state.history_risk", lambda one: one[:, 0]),
    "a step beyond the last": _set("state.step", lambda one: one + 2**62),
    "a moment of one run": _set(MOMENT, lambda one: one[:1]),
    "a moment of other type": _set(MOMENT, lambda one: one.float()),
    "a moment without dimensions": _set(MOMENT, lambda one: one.flatten()[0]),
    "no moment": lambda tensors: tensors.pop(MOMENT),
    "a moment more": lambda tensors: tensors.update({"optimiser.0.other": torch.ones(())}),
    "an optimiser of no parameter": lambda tensors: tensors.update({"optimiser.x.step": torch.ones(())}),
    "an optimiser of a far parameter": lambda tensors: tensors.update({"optimiser.99.step": torch.ones(())}),
    "an optimiser of a negative parameter": lambda tensors: tensors.update({"optimiser.-1.step": torch.ones(())}),
}
