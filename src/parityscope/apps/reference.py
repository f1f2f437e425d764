"""The evidence that is shipped with the project: rows of the reference run as text, and the figures drawn from them.

python -m parityscope.apps.reference unpack FOLDER    # the shipped rows into FOLDER/store, where `reproduce` finds them
python -m parityscope.apps.reference pack FOLDER      # the rows in FOLDER/store into reference/, to be shipped
"""

from __future__ import annotations

import argparse
from pathlib import Path

from parityscope.papers.figure import PaperFigure, Scale
from parityscope.papers.registry import FIGURE_IDS, load_figure
from parityscope.papers.results import work_of
from parityscope.records import Store, read_text, rows_in, write_text

_PROJECT, _PACKAGE = Path(__file__).parents[3], Path(__file__).parents[1] / "_reference"


def _shipped(in_project: str, in_package: str) -> Path:
    """Return a shipped folder: of the clone this runs from, or else of the installed package."""
    place = _PROJECT / in_project
    return place if place.is_dir() else _PACKAGE / in_package


def reference_picture(figure: PaperFigure, scale: Scale) -> bytes | None:
    """Return the shipped figure as PNG where a run at this scale shows less than the reference run.

    >>> [reference_picture(load_figure("H1-success"), scale) is None for scale in ("demo", "reference")]
    [False, True]
    """
    weaker = scale in ("smoke", "demo") and figure.CONFIGS[scale] != figure.CONFIGS["reference"]
    path = _shipped("docs/results/figures", "figures") / f"{figure.ID}.png"
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
    """Return how many configs of the reference run have no row made by this code, by figure; empty when all is well.

    >>> stale_rows()
    {}
    """
    shipped = {row.key for row in rows_in(_shipped("reference", "rows"))}
    missing: dict[str, int] = {}
    for name in FIGURE_IDS:
        work = work_of(load_figure(name), "reference")
        without = [config for config in work.configs if config.key not in shipped]
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
