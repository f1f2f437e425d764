"""Checkpoints: model, optimiser and state of a training, from which it goes on to the same numbers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.records.tensors import read_tensors, unreadable, write_tensors
from parityscope.training.steps.first_order import Optimiser

_SECONDS_BETWEEN = 2.0  # two checkpoints of one training
_folder: ContextVar[Path | None] = ContextVar("checkpoint folder", default=None)


@contextmanager
def checkpoints_in(folder: Path | None) -> Iterator[None]:
    """Give the long trainings within a place for their checkpoints, so that a killed one goes on where it was."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def checkpoint_folder() -> Path | None:
    """Return the folder given by `checkpoints_in`, if any.

    >>> with checkpoints_in(Path("runs")):
    ...     inside = checkpoint_folder()
    >>> inside.name, checkpoint_folder()
    ('runs', None)
    """
    return _folder.get()


def _tensors(model: nn.Module, optimiser: Optimiser, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return parameters, optimiser moments and the tensors of a training's state under one name each."""
    return {
        **{f"model.{name}": p for name, p in model.named_parameters()},
        **_optimiser_tensors(optimiser),
        **{f"state.{name}": tensor for name, tensor in state.items()},
    }


def _restore(
    path: Path, config: dict[str, Any], model: nn.Module, optimiser: Optimiser, like: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Restore model and optimiser in place and return the tensors of the state; the config must be the stored one.

    What has another shape or type than it should is refused before anything is restored: a copy would broadcast and
    convert it. `like` has the tensors that the state must have; an empty one stands for any length.
    """
    tensors, stored = read_tensors(path)
    if stored != json.loads(json.dumps(config)):
        changed = sorted(key for key in {*stored, *config} if stored.get(key) != config.get(key))
        raise InvalidInput(f"{path} belongs to another run (differs in {', '.join(changed)}): use another --out folder")
    wanted = _tensors(model, optimiser, like) | {f"model.{name}": p for name, p in model.named_parameters()}
    for name, tensor in wanted.items():
        found = tensors.get(name)
        shape = found.shape if found is not None and not tensor.numel() else tensor.shape
        if found is None or (found.shape, found.dtype) != (shape, tensor.dtype):
            said = "nothing" if found is None else f"{found.dtype} of shape {tuple(found.shape)}"
            raise unreadable(path, f"{name} is {said}, not {tensor.dtype} of shape {tuple(tensor.shape)}")
    _restore_optimiser(path, optimiser, tensors, list(model.parameters()))
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(tensors[f"model.{name}"])
    return {name.removeprefix("state."): value for name, value in tensors.items() if name.startswith("state.")}


@dataclass
class Keeper:
    """Keeps a training on disk, if it has a place there: model, optimiser and the tensors of its state."""

    path: Path | None
    config: dict[str, Any]
    model: nn.Module
    optimiser: Optimiser
    seconds: float | None = None  # between two checkpoints; none: two
    saved: float = field(default_factory=time.monotonic)
    started: float = field(default_factory=time.monotonic)  # earlier by what was spent before a kill

    def spent(self) -> float:
        """Return the seconds of this training, those before a kill included."""
        return time.monotonic() - self.started

    def stored(self, like: Mapping[str, Tensor] | None = None) -> dict[str, Tensor] | None:
        """Return the state on disk, model and optimiser restored; None when nothing is there yet.

        Its tensors have the shapes and types of those in `like`, or are refused.
        """
        if self.path is None or not self.path.exists():
            return None
        wanted = {**(like or {}), "seconds": torch.zeros((), dtype=torch.float64)}
        state = _restore(self.path, self.config, self.model, self.optimiser, wanted)
        self.started -= float(state.pop("seconds"))
        return state

    def due(self) -> bool:
        """Say whether the last checkpoint is so many seconds ago."""
        seconds = _SECONDS_BETWEEN if self.seconds is None else self.seconds
        return self.path is not None and time.monotonic() - self.saved >= seconds

    def save(self, state: Mapping[str, Tensor]) -> None:
        """Store the state now."""
        if self.path is not None:
            known = {**state, "seconds": torch.tensor(self.spent(), dtype=torch.float64)}
            write_tensors(self.path, _tensors(self.model, self.optimiser, known), self.config)
            self.saved = time.monotonic()


def _optimiser_tensors(optimiser: Optimiser) -> dict[str, Tensor]:
    state = optimiser.state_dict()["state"]
    return {
        f"optimiser.{index}.{key}": value
        for index, entries in state.items()
        for key, value in entries.items()
        if isinstance(value, Tensor)
    }


def _restore_optimiser(
    path: Path, optimiser: Optimiser, tensors: Mapping[str, Tensor], parameters: Sequence[Tensor]
) -> None:
    full = optimiser.state_dict()
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "optimiser":
            index, _, key = rest.partition(".")
            if not index.isdecimal() or int(index) >= len(parameters):
                raise unreadable(path, f"{name} is of no parameter")
            like = torch.zeros(()) if key == "step" else parameters[int(index)]
            # torch's own optimisers would convert it without a word.
            if isinstance(optimiser, torch.optim.Optimizer) and (tensor.shape, tensor.dtype) != (
                like.shape,
                like.dtype,
            ):
                raise unreadable(path, f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)}")
            full["state"].setdefault(int(index), {})[key] = tensor
    try:
        optimiser.load_state_dict(full)
    except (IndexError, KeyError, ValueError) as error:
        raise unreadable(path, f"its optimiser: {error}") from None
