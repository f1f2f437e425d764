"""The folder that `learn --out` writes: run.json, the weights, and two figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parityscope.core.errors import InvalidInput
from parityscope.core.files import remove_leftovers, write_atomically
from parityscope.core.strict_json import strict_json
from parityscope.training.learning import LearnedRuns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEADS_APART = 40  # that have a line of their own in the heat map; more are drawn closer together


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
        remove_leftovers(path)
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
        write_atomically(self.summary, strict_json(run.to_json(), indent=1).encode())
        from parityscope.core.drawing import png, themed

        write_atomically(self.path / "attention.png", png(themed(_attention_figure, run)))
        write_atomically(self.path / "risk.png", png(themed(_risk_figure, run)))

    def contents(self) -> list[str]:
        """Return the names of the files in the folder."""
        return sorted(file.name for file in self.path.iterdir() if not file.name.startswith("."))


def _attention_figure(run: LearnedRuns, row: int = 0) -> Figure:
    """Return the heat map of one run's attention, hidden bits marked above it.

    >>> from parityscope import Parity, learn
    >>> drawn = _attention_figure(learn(Parity(8, (1, 4)), "as-coded", seeds=[3], steps=2))
    >>> drawn.axes[0].get_title(), drawn.axes[0].lines[0].get_xdata().tolist()
    ('as-coded, seed 3: ▼ hidden bits', [1, 4])
    """
    from parityscope.core.drawing import HEAT, colour, new_figure

    heads, n = run.attention[row].shape
    figure, axes = new_figure(min(14.0, max(6.0, 0.25 * n + 2)), 1.6 + 0.45 * min(heads, _HEADS_APART))
    image = axes.imshow(run.attention[row].numpy(), aspect="auto", cmap=HEAT, vmin=0, vmax=1, interpolation="nearest")
    support = run.problems[row].support
    axes.plot(support, [-0.5] * len(support), "v", color=colour(1), markersize=8, clip_on=False, zorder=5)
    axes.set(xlabel="position", ylabel="head", xlim=(-0.5, n - 0.5))
    if heads <= _HEADS_APART:
        axes.set_yticks(range(heads))
    axes.locator_params(axis="x", integer=True)
    axes.spines[["left", "bottom"]].set_visible(False)
    figure.colorbar(image, ax=axes, label="attention", shrink=0.9, pad=0.02)
    axes.set_title(f"{run.recipe.name}, seed {run.seeds[row]}: ▼ hidden bits", pad=12)
    return figure


def _risk_figure(run: LearnedRuns) -> Figure:
    """Return the risk of every run during training.

    >>> from parityscope import Parity, learn
    >>> drawn = _risk_figure(learn(Parity(8, (1, 4)), "as-coded", seeds=range(4), steps=2))
    >>> len(drawn.axes[0].lines), drawn.axes[0].get_ylabel()
    (4, 'population risk')
    """
    from parityscope.core.drawing import colour, new_figure

    figure, axes = new_figure(7, 4)
    learned = run.learned
    for row in range(len(run.seeds)):
        line = colour(2) if learned[row] else colour(1)
        risk = run.history_risk[:, row].clamp(min=1e-6).numpy()
        axes.plot(run.history_steps.numpy(), risk, color=line, alpha=0.5, linewidth=1.2)
    axes.set(xlabel="step", ylabel="population risk" if run.samples is None else "risk on the examples", yscale="log")
    axes.set_title(f"{run.recipe.name}: {run.success} learned (green), the rest orange")
    return figure
