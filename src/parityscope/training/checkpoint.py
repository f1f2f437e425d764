"""Checkpoints as safetensors, replaced atomically: a kill at any moment leaves the old one or the new one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from parityscope.errors import InvalidInput
from parityscope.training.descent import TrainingState


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is either the old one or the whole new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


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
    """Return the folder given by `checkpoints_in`, if any."""
    return _folder.get()


def save_tensors(
    path: Path,
    config: dict[str, Any],
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    state: Mapping[str, Tensor],
) -> None:
    """Store parameters, optimiser moments and the tensors of a training's state, with the config they belong to."""
    tensors = {
        **{f"model.{name}": p.detach() for name, p in model.named_parameters()},
        **_optimiser_tensors(optimiser),
        **{f"state.{name}": tensor for name, tensor in state.items()},
    }
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(contiguous, {"config": json.dumps(config, sort_keys=True)}))


def load_tensors(
    path: Path, config: dict[str, Any], model: nn.Module, optimiser: torch.optim.Optimizer
) -> dict[str, Tensor]:
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


def save_checkpoint(
    path: Path,
    config: dict[str, Any],
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    state: TrainingState,
) -> None:
    """Store a descent on many runs."""
    tensors = {
        "step": torch.tensor(state.step),
        "finished_at": state.finished_at,
        "diverged": state.diverged,
        "best_risk": state.best_risk,
        "best_step": state.best_step,
        "history_steps": torch.tensor(state.history_steps, dtype=torch.int64),
    }
    if state.history_risk:
        tensors["history_risk"] = torch.stack(state.history_risk)
    save_tensors(path, config, model, optimiser, tensors)


def load_checkpoint(
    path: Path, config: dict[str, Any], model: nn.Module, optimiser: torch.optim.Optimizer
) -> TrainingState:
    """Restore model and optimiser in place and return the training state; the config must be the stored one."""
    tensors = load_tensors(path, config, model, optimiser)
    return TrainingState(
        int(tensors["step"]),
        tensors["finished_at"],
        tensors["diverged"],
        tensors["best_risk"],
        tensors["best_step"],
        tensors["history_steps"].tolist(),
        list(tensors["history_risk"].unbind()) if "history_risk" in tensors else [],
    )


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a checkpoint and the config stored with them."""
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, json.loads(file.metadata()["config"])
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise InvalidInput(f"{path} is not a readable checkpoint ({error}): move it away to start afresh") from None


def _optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimiser.state_dict()["state"]
    return {
        f"optimiser.{index}.{key}": value
        for index, entries in state.items()
        for key, value in entries.items()
        if isinstance(value, Tensor)
    }


def _restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    full = optimiser.state_dict()
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "optimiser":
            index, _, key = rest.partition(".")
            full["state"].setdefault(int(index), {})[key] = tensor
    optimiser.load_state_dict(full)
