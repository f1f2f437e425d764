"""Loading a causal language model so that its attention can be read, and saying which weights it has."""

from __future__ import annotations

import copy
import hashlib
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput, naming_the_extra

with naming_the_extra():
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_WEIGHTS_FIELD = "parityscope_weights"  # in config.json: where converted weights come from
_FINGERPRINT_VALUES = 1024


@dataclass(frozen=True)
class LanguageModel:
    """A causal language model in evaluation mode with its tokeniser, and what results say about it.

    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> network = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=32, n_embd=4, n_layer=1, n_head=2))
    >>> model = LanguageModel("tiny", network, lambda text: {"input_ids": list(text.encode())}, "float32")
    >>> model.max_tokens, model.encode("2 + 3")
    (32, [50, 32, 43, 32, 51])
    """

    name: str
    network: Any  # a transformers PreTrainedModel
    tokenizer: Any  # a transformers tokeniser
    weights: str  # how the numbers came to be, such as "float32" or "GGUF (most numbers Q4_1), unpacked to float32"

    @property
    def max_tokens(self) -> int | None:
        """The longest text the model has positions for, where its config says so."""
        return getattr(self.network.config, "max_position_embeddings", None)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, with whatever the tokeniser puts in front of it."""
        return list(self.tokenizer(text)["input_ids"])

    def save(self, folder: Path) -> None:
        """Write the model as safetensors, with what its weights were packed as in its config."""
        config = copy.deepcopy(self.network.config)
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        with _quiet():
            # A model that was read from GGUF refuses to be saved; a plain one with the same numbers does not.
            plain = AutoModelForCausalLM.from_config(config, dtype=self.network.dtype)
            plain.load_state_dict(self.network.state_dict())
            plain.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)


def load_language_model(name: str, *, dtype: str = "float32", device: str = "cpu") -> LanguageModel:
    """Return the model in a folder, in a GGUF file, or of a name on the Hugging Face hub.

    Attention is computed in the open (`eager`): the fused kernels never form the weights that are measured here.
    """
    if dtype not in _DTYPES:
        raise InvalidInput(f"unknown dtype {dtype!r}: choose one of {', '.join(_DTYPES)}")
    if not name:
        raise InvalidInput("the name of the model is empty: give a folder, a .gguf file or a name on the hub")
    place, options = _place(name)
    if "gguf_file" in options:
        with naming_the_extra():
            import gguf  # noqa: F401  transformers names no extra of ours
    where = _device(device)
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(place, **options)
            network = AutoModelForCausalLM.from_pretrained(
                place, dtype=_DTYPES[dtype], attn_implementation="eager", **options, **_unpacking(options)
            )
    except (OSError, ValueError, KeyError, ImportError, struct.error) as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InvalidInput(f"cannot load a causal language model from {name}: {first_line}") from None
    if "gguf_file" in options:
        setattr(network.config, _WEIGHTS_FIELD, _gguf_weights(Path(place) / options["gguf_file"]))
    packed = getattr(network.config, _WEIGHTS_FIELD, None)
    weights = f"{packed}, unpacked to {dtype}" if packed else dtype
    return LanguageModel(_short_name(name), network.to(where).eval(), tokenizer, weights)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from drawing bars of its own and from warning about what is done on purpose."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _place(name: str) -> tuple[str, dict[str, Any]]:
    """Return what transformers is asked for: a folder, a folder and a GGUF file in it, or a name on the hub."""
    path = Path(name).expanduser()
    if path.is_file():
        if path.suffix != ".gguf":
            raise InvalidInput(f"{path} is not a model: expected a folder, a .gguf file or a name on the hub")
        return str(path.parent), {"gguf_file": path.name}
    if path.is_dir():
        if (path / "config.json").is_file():
            return str(path), {}
        packed = sorted(path.glob("*.gguf"))
        if len(packed) != 1:
            held = f"{len(packed)} .gguf files" if packed else "neither config.json nor a .gguf file"
            raise InvalidInput(f"folder {path} holds no model: {held} in it")
        return str(path), {"gguf_file": packed[0].name}
    if name.startswith((".", "~", os.sep)) or name.count("/") > 1:
        raise InvalidInput(f"there is no model folder {path}")
    return name, {}


def _short_name(name: str) -> str:
    """Return the name of a folder or file without the path to it, and a name on the hub as it is."""
    path = Path(name).expanduser()
    return path.resolve().name.removesuffix(".gguf") if path.exists() else name


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidInput(f"device {name!r} is not available: {str(error).splitlines()[0]}") from None
    return device


def _unpacking(options: dict[str, Any]) -> dict[str, Any]:
    """Return what asks for plain weights: some versions of transformers leave those of GGUF files packed otherwise."""
    kind = getattr(transformers, "GgufConfig", None)
    return {"quantization_config": kind(dequantize=True)} if kind is not None and "gguf_file" in options else {}


def _gguf_weights(path: Path) -> str:
    """Return how the weights of a GGUF file are packed: the type that most of its numbers have."""
    from gguf import GGUFReader

    sizes: Counter[str] = Counter()
    for tensor in GGUFReader(path).tensors:
        sizes[tensor.tensor_type.name] += int(tensor.n_elements)
    kind = max((name for name in sizes if name.startswith("Q")), key=lambda name: sizes[name], default=None)
    if kind is None:
        return f"GGUF ({sizes.most_common(1)[0][0]})"
    return f"GGUF (most numbers {kind})"


def fingerprint(network: torch.nn.Module) -> str:
    """Return a hash of the names, shapes and up to 1024 evenly spaced values of every parameter."""
    digest = hashlib.sha256()
    for name, p in network.named_parameters():
        digest.update(f"{name} {tuple(p.shape)} {p.dtype}".encode())
        digest.update(_spread(p.detach()).float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _spread(values: Tensor) -> Tensor:
    flat = values.flatten()
    return flat[:: max(1, flat.numel() // _FINGERPRINT_VALUES)]
