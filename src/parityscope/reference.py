"""The evidence that is shipped with the project: rows of the reference run as text, and the figures drawn from them.

python -m parityscope.reference unpack FOLDER    # the shipped rows into FOLDER/store, where `reproduce` finds them
python -m parityscope.reference pack FOLDER      # the rows in FOLDER/store into reference/, to be shipped
"""

from __future__ import annotations

import argparse
from pathlib import Path

from parityscope.experiments import EXPERIMENT_IDS, load_experiment
from parityscope.experiments.contract import Experiment, Scale
from parityscope.results import work_of
from parityscope.store import Store, config_key, key_of, read_text, rows_in, write_text

_PROJECT, _PACKAGE = Path(__file__).parents[2], Path(__file__).parent / "_reference"


def _shipped(in_project: str, in_package: str) -> Path:
    """Return a shipped folder: of the clone this runs from, or else of the installed package."""
    place = _PROJECT / in_project
    return place if place.is_dir() else _PACKAGE / in_package


def reference_picture(experiment: Experiment, scale: Scale) -> bytes | None:
    """Return the shipped figure as PNG where a run at this scale shows less than the reference run.

    >>> [reference_picture(load_experiment("H1-success"), scale) is None for scale in ("demo", "reference")]
    [False, True]
    """
    weaker = scale in ("smoke", "demo") and experiment.CONFIGS[scale] != experiment.CONFIGS["reference"]
    path = _shipped("docs/results/figures", "figures") / f"{experiment.ID}.png"
    return path.read_bytes() if weaker and path.is_file() else None


def unpack_reference(folder: Path) -> int:
    """Add the shipped rows to the store in `folder`; return how many there are.

    >>> import tempfile
    >>> unpack_reference(Path(tempfile.mkdtemp())) > 500
    True
    """
    return read_text(_shipped("reference", "rows"), Store(folder / "store"))


def pack_reference(folder: Path, into: Path = _PROJECT / "reference") -> int:
    """Ship the rows of the store in `folder` with the clone this runs from; return how many there are.

    >>> import tempfile
    >>> pack_reference(Path(tempfile.mkdtemp()), into=Path(tempfile.mkdtemp()))
    0
    """
    return write_text(Store(folder / "store"), into)


def stale_rows() -> dict[str, int]:
    """Return how many configs of the reference run have no shipped row, by experiment; empty when all is well.

    >>> stale_rows()
    {}
    """
    shipped = {key_of(row.experiment, row.config) for row in rows_in(_shipped("reference", "rows"))}
    missing: dict[str, int] = {}
    for name in EXPERIMENT_IDS:
        work = work_of(load_experiment(name), "reference")
        without = [config for config in work.configs if config_key(work.experiment.ID, config) not in shipped]
        missing |= {name: len(without)} if without else {}
    return missing


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("unpack", "pack"))
    parser.add_argument("folder", type=Path, help="the --out folder of `parityscope reproduce --scale reference`")
    arguments = parser.parse_args()
    if arguments.what == "unpack":
        print(f"{unpack_reference(arguments.folder)} shipped rows in {arguments.folder}")
    else:
        print(f"{pack_reference(arguments.folder)} rows of {arguments.folder} are shipped now")


if __name__ == "__main__":
    _main()
