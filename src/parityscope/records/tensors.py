"""Tensors in a safetensors file, with the config they belong to and a checksum of both; replaced as a whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.files import write_atomically


def write_tensors(path: Path, tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Store tensors and their config; a kill at any moment leaves the old file or the new one.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> write_tensors(path, {"x": torch.ones(2)}, {"n": 3})
    >>> read_tensors(path)
    ({'x': tensor([1., 1.])}, {'n': 3})
    """
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(config, sort_keys=True)
    write_atomically(path, save(contiguous, {"config": text, "checksum": _checksum(contiguous, text)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a file and their config; refuse a file in which a bit is not as it was written."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors, said = {name: file.get_tensor(name) for name in list(file.keys())}, file.metadata() or {}
        config = json.loads(said["config"])
        if not isinstance(config, dict):
            raise ValueError("its config is no JSON object")
        if said["checksum"] != _checksum(tensors, said["config"]):
            raise ValueError("its checksum does not fit")
    except KeyError as error:
        raise unreadable(path, f"it has no {error.args[0]}") from None
    except (SafetensorError, TypeError, ValueError, RuntimeError, RecursionError) as error:
        raise unreadable(path, error) from None
    return tensors, config


def unreadable(path: Path, reason: object) -> InvalidInput:
    """Return the sentence that refuses a file."""
    return InvalidInput(f"{path} is not a readable checkpoint ({reason}): move it away to start afresh")


def _checksum(tensors: Mapping[str, Tensor], config: str) -> str:
    """Return a hash of every name, type, shape and byte."""
    digest = hashlib.sha256(config.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\0{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
