"""The evidence that is shipped with the project: rows of the reference run as text, and the figures drawn from them.

python -m parityscope.apps.reference unpack FOLDER    # the shipped rows into FOLDER/store, where `reproduce` finds them
python -m parityscope.apps.reference recheck FOLDER   # keeps stale rows there where recomputing some gives the same
python -m parityscope.apps.reference measure FOLDER   # language models that FOLDER/store has no rows of, where it can
python -m parityscope.apps.reference pack FOLDER      # the rows in FOLDER/store into reference/, to be shipped
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from parityscope.apps.recheck import Recheck, recheck
from parityscope.papers.figure import PaperFigure, Scale
from parityscope.papers.registry import FIGURE_IDS, all_claims, load_figure
from parityscope.papers.results import claim_check, needs_of, work_of
from parityscope.records import Store, read_text, rows_in, write_text
from parityscope.runs import Work

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
    """Ship those rows of the store in `folder` that the reference run asks for, as of today; return how many.

    >>> import tempfile
    >>> pack_reference(Path(tempfile.mkdtemp()), into=Path(tempfile.mkdtemp()))
    0
    """
    store = Store(folder / "store")
    wanted = {config.key for work in _works() for config in work.configs}
    wanted |= {claim_check(claim, "reference", store).key for claim in all_claims()}
    for figure in (load_figure(name) for name in FIGURE_IDS):
        if hasattr(figure, "STORED"):  # what another command measured
            wanted |= {row.config.key for row in store.rows_of(figure.STORED)}
    return write_text(store, into, among=wanted)


def _works(*, timed: bool = True) -> list[Work]:
    """Return what the reference run computes for figures and claims; timings only if asked for."""
    figures = [load_figure(name) for name in FIGURE_IDS]
    works = [work_of(figure, "reference") for figure in figures if timed or not getattr(figure, "TIMED", False)]
    return [*works, needs_of(all_claims(), "reference")]


def recheck_reference(folder: Path) -> Iterator[Recheck]:
    """Recheck the stale rows in `folder` that the reference run asks for; timings are no evidence of another code.

    >>> import tempfile
    >>> list(recheck_reference(Path(tempfile.mkdtemp())))  # nothing is there, nothing is stale
    []
    """
    configs = (config for work in _works(timed=False) for config in work.configs)
    return recheck(Store(folder / "store"), configs)


def stale_rows() -> dict[str, int]:
    """Return how many configs of the reference run have no row made by this code, by figure; empty when all is well.

    >>> set(stale_rows()) <= set(FIGURE_IDS)
    True
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
    parser.add_argument("what", choices=("unpack", "recheck", "measure", "pack"))
    parser.add_argument("folder", type=Path, help="the --out folder of `parityscope reproduce --scale reference`")
    arguments = parser.parse_args()
    if arguments.what == "unpack":
        print(f"{unpack_reference(arguments.folder)} shipped rows in {arguments.folder}")
    elif arguments.what == "pack":
        print(f"{pack_reference(arguments.folder)} rows of {arguments.folder} are shipped now")
    elif arguments.what == "measure":
        from parityscope.apps.reference_models import measure_models

        for line in measure_models(arguments.folder):
            print(line, flush=True)
    else:
        for found in recheck_reference(arguments.folder):
            print(found, flush=True)


if __name__ == "__main__":
    _main()
