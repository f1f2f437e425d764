"""Checkpoints as safetensors, replaced atomically: a kill at any moment leaves the old one or the new one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.core.files import write_atomically
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


def _save_tensors(
    path: Path, config: dict[str, Any], model: nn.Module, optimiser: Optimiser, state: Mapping[str, Tensor]
) -> None:
    """Store parameters, optimiser moments and the tensors of a training's state, with the config they belong to."""
    tensors = {
        **{f"model.{name}": p.detach() for name, p in model.named_parameters()},
        **_optimiser_tensors(optimiser),
        **{f"state.{name}": tensor for name, tensor in state.items()},
    }
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(contiguous, {"config": json.dumps(config, sort_keys=True)}))


def _load_tensors(path: Path, config: dict[str, Any], model: nn.Module, optimiser: Optimiser) -> dict[str, Tensor]:
    """Restore model and optimiser in place and return the tensors of the state; the config must be the stored one."""
    tensors, stored = read_tensors(path)
    if stored != json.loads(json.dumps(config)):
        changed = sorted(key for key in {*stored, *config} if stored.get(key) != config.get(key))
        raise InvalidInput(f"{path} belongs to another run (differs in {', '.join(changed)}): use another --out folder")
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(tensors[f"model.{name}"])
    _restore_optimiser(optimiser, tensors)
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

    def stored(self) -> dict[str, Tensor] | None:
        """Return the state on disk, model and optimiser restored; None when nothing is there yet."""
        if self.path is None or not self.path.exists():
            return None
        return _load_tensors(self.path, self.config, self.model, self.optimiser)

    def due(self) -> bool:
        """Say whether the last checkpoint is so many seconds ago."""
        seconds = _SECONDS_BETWEEN if self.seconds is None else self.seconds
        return self.path is not None and time.monotonic() - self.saved >= seconds

    def save(self, state: Mapping[str, Tensor]) -> None:
        """Store the state now."""
        if self.path is not None:
            _save_tensors(self.path, self.config, self.model, self.optimiser, state)
            self.saved = time.monotonic()


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a checkpoint and the config stored with them."""
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, json.loads(file.metadata()["config"])
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise InvalidInput(f"{path} is not a readable checkpoint ({error}): move it away to start afresh") from None


def _optimiser_tensors(optimiser: Optimiser) -> dict[str, Tensor]:
    state = optimiser.state_dict()["state"]
    return {
        f"optimiser.{index}.{key}": value
        for index, entries in state.items()
        for key, value in entries.items()
        if isinstance(value, Tensor)
    }


def _restore_optimiser(optimiser: Optimiser, tensors: dict[str, Tensor]) -> None:
    full = optimiser.state_dict()
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "optimiser":
            index, _, key = rest.partition(".")
            full["state"].setdefault(int(index), {})[key] = tensor
    optimiser.load_state_dict(full)
