"""The evidence that is shipped with the project: rows of the reference run as text, and the figures drawn from them."""

from __future__ import annotations

from pathlib import Path

from parityscope.experiments.contract import Experiment, Scale

_PROJECT, _PACKAGE = Path(__file__).parents[2], Path(__file__).parent / "_reference"


def _shipped(in_project: str, in_package: str) -> Path:
    """Return a shipped folder: of the clone this runs from, or else of the installed package."""
    place = _PROJECT / in_project
    return place if place.is_dir() else _PACKAGE / in_package


def reference_picture(experiment: Experiment, scale: Scale) -> bytes | None:
    """Return the shipped figure as PNG where a run at this scale shows less than the reference run.

    >>> from parityscope.experiments import load_experiment
    >>> [reference_picture(load_experiment("H1-success"), scale) is None for scale in ("demo", "reference")]
    [False, True]
    """
    weaker = scale in ("smoke", "demo") and experiment.CONFIGS[scale] != experiment.CONFIGS["reference"]
    path = _shipped("docs/results/figures", "figures") / f"{experiment.ID}.png"
    return path.read_bytes() if weaker and path.is_file() else None
