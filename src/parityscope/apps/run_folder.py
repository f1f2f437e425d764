"""The folder that `learn --out` writes: run.json, the weights, and figures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from parityscope.core.errors import InvalidInput
from parityscope.core.files import write_atomically
from parityscope.training.learning import LearnedRuns


@dataclass(frozen=True)
class RunFolder:
    """One training on disk.

    >>> import tempfile
    >>> folder = RunFolder.prepare(Path(tempfile.mkdtemp()) / "run", resume=False)
    >>> folder.checkpoint.name, folder.summary.name, folder.contents()
    ('weights.safetensors', 'run.json', [])
    """

    path: Path

    @classmethod
    def prepare(cls, path: Path | None, resume: bool) -> RunFolder | None:
        """Create the folder, refusing to overwrite a run that is already there."""
        if path is None:
            if resume:
                raise InvalidInput("--resume needs --out: the folder of the run to go on with")
            return None
        folder = cls(path)
        if not resume and (folder.checkpoint.exists() or folder.summary.exists()):
            raise InvalidInput(f"{path} already holds a run: add --resume to go on with it, or choose another --out")
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"--out {path} is a file, not a folder")
        path.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def checkpoint(self) -> Path:
        """Weights and training state."""
        return self.path / "weights.safetensors"

    @property
    def summary(self) -> Path:
        """The JSON object that `learn --json` prints."""
        return self.path / "run.json"

    def write(self, run: LearnedRuns) -> None:
        """Write the summary, and then the figures: a missing plotting library must not lose the numbers."""
        write_atomically(self.summary, json.dumps(run.to_json(), indent=1).encode())
        from parityscope.apps.training_figures import attention_figure, risk_figure
        from parityscope.core.drawing import png, themed

        write_atomically(self.path / "attention.png", png(themed(attention_figure, run)))
        write_atomically(self.path / "risk.png", png(themed(risk_figure, run)))

    def contents(self) -> list[str]:
        """Return the names of the files in the folder."""
        return sorted(file.name for file in self.path.iterdir() if not file.name.startswith("."))
