"""`reproduce`: run what is not done, draw every figure as soon as its rows are there, keep one report up to date."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import parityscope
from parityscope.apps.reference import RECHECKED, reference_picture
from parityscope.apps.report import Section, render_report
from parityscope.core.drawing import Pictures, drawn, write_pictures
from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.core.files import remove_leftovers, write_atomically
from parityscope.papers.claim import Claim
from parityscope.papers.figure import PaperFigure, Scale, Stage
from parityscope.papers.registry import load_figure
from parityscope.papers.rendering import figure_markdown
from parityscope.papers.results import check_with_rows, checks_of, needs_of, stored_claims, stored_rows, work_of
from parityscope.records import Row, Store
from parityscope.records.code import code_of_value
from parityscope.records.export import write_numbers
from parityscope.runs import InProcess, Launcher, SweepProgress, Work, run_together
from parityscope.training.checkpoint import checkpoints_in

with naming_the_extra():
    from matplotlib import __version__ as matplotlib_version

_DRAWN = ".drawn"  # what is kept of drawn figures, in the folder of the report


_REPORT_SECONDS = 5.0  # a report of 36 figures takes a moment to write


def reproduce(
    figure_ids: Sequence[str],
    scale: Scale,
    out: Path,
    *,
    claims: Sequence[Claim] = (),
    launcher: Launcher | None = None,
    on_stage: Callable[[Stage], None] = lambda stage: None,
) -> Path:
    """Run, draw and report the named figures, check the claims; return the path of the report.

    Configs and claims run in this process, or where `launcher` takes them; timings are always taken here, with nothing
    beside them.

    Everything lands in `out`: `store/` with the rows, `figures/` with PNG, SVG and the numbers that were drawn, and
    `report.html`, which is there from the first figure on and says what is still to come. Rows that are there are not
    computed again, and figures that were drawn from the same rows by the same code are not drawn again, so an
    interrupted reproduction goes on where it stopped, however often it is. The report's table shows every claim that
    was ever checked in `out` at this scale.
    """
    whole = _Reproduction([load_figure(name) for name in figure_ids], scale, out, list(claims), on_stage)
    checkpoints = whole.store.path / "checkpoints"
    try:
        with checkpoints_in(checkpoints):  # long trainings go on where a kill left them
            whole.run(launcher or InProcess(threads="all"))
    finally:
        if whole.finished:  # of what was refused there is nothing to tell
            whole.write_report()
    shutil.rmtree(checkpoints, ignore_errors=True)
    return whole.report


@dataclass
class _Part:
    """What is finished, drawn and told of as one: a figure, or the claims of a paper."""

    name: str
    work: Work
    seconds: float  # declared, of what is still to be run
    figure: PaperFigure | None = None
    pending: int = 0  # configs of the figure that had no row

    @property
    def timed(self) -> bool:
        return bool(getattr(self.figure, "TIMED", False))

    @property
    def seconds_of_one(self) -> float:
        return self.seconds / max(1, len(self.work.configs))


@dataclass
class _Reproduction:
    figures: list[PaperFigure]
    scale: Scale
    out: Path
    claims: list[Claim]
    on_stage: Callable[[Stage], None]
    sections: dict[str, Section] = field(default_factory=dict)
    finished: list[_Part] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = Store(self.out / "store")
        self.store.check_writable()
        for folder in (self.out, self.out / "figures", self.out / _DRAWN, self.store.path / "checkpoints"):
            remove_leftovers(folder)
        self.report = self.out / "report.html"
        self.parts = [self._part_of(figure) for figure in self.figures]
        for paper in dict.fromkeys(claim.paper for claim in self.claims):
            of_paper = [claim for claim in self.claims if claim.paper == paper and not claim.reads_rows]
            seconds = sum(claim.seconds for claim in of_paper) * (self.scale != "smoke")
            if of_paper:
                self.parts.append(_Part(f"claims {paper}", checks_of(of_paper, self.scale), seconds))
        needed = needs_of(self.claims, self.scale)
        if needed.configs:
            self.parts.append(
                _Part(needed.name, needed, sum(claim.seconds for claim in self.claims if claim.reads_rows))
            )
        self.total = len(self.parts) + any(claim.reads_rows for claim in self.claims)
        self.started = time.monotonic()
        self.written = 0.0

    def run(self, launcher: Launcher) -> None:
        """Run what takes a moment first, for an early report, then the longest; timings alone at the end.

        What was complete from the start is drawn last: a run that is stopped every minute has then computed meanwhile.
        """
        together = [part for part in self.parts if not part.timed]
        together.sort(key=lambda part: -part.seconds_of_one if part.seconds > 1 else -math.inf)
        self._sweep(together, launcher)
        self._sweep([part for part in self.parts if part.timed], InProcess(threads="all"))
        self._check_rows()
        for part in self.finished:
            if part.figure is not None and part.name not in self.sections:
                self.sections[part.name] = _section(part.figure, self.scale, self.store, self.out)
        failed = [part for part in self.parts if part not in self.finished]
        if failed:
            reason = self.store.failures(failed[0].work.configs)[-1].strip().splitlines()[-1]
            raise InvalidInput(
                f"configs of {', '.join(part.name for part in failed)} failed, the last one with {reason} "
                f"(parityscope rows {self.store.path} --failed shows more); the same command runs them again"
            )

    def write_report(self) -> None:
        """Write the report of what is there."""

        missing = [figure.TITLE for figure in self.figures if figure.ID not in self.sections]
        shown = [self.sections[one.ID] for one in self.figures if one.ID in self.sections]
        page = render_report(shown, self.scale, stored_claims(self.scale, self.store), missing)
        write_atomically(self.report, page.encode())
        self.written = time.monotonic()

    def _part_of(self, figure: PaperFigure) -> _Part:
        work = work_of(figure, self.scale)
        pending = [config for config in work.configs if config not in self.store]
        seconds = figure.COST[self.scale] * len(pending) / max(1, len(work.configs))
        return _Part(figure.ID, work, seconds, figure, len(pending))

    def _sweep(self, parts: list[_Part], launcher: Launcher) -> None:
        by_work = {id(part.work): part for part in parts}

        def show(progress: SweepProgress) -> None:
            self.on_stage(self._stage(None, progress))

        def finish(work: Work) -> None:
            self._finish(by_work[id(work)])

        if parts:
            works = [part.work for part in parts]
            run_together(works, self.store, launcher, retry_failed=True, on_progress=show, on_finished=finish)

    def _finish(self, part: _Part) -> None:
        if part.figure is not None and (part.pending or _is_drawn(part.figure, self.scale, self.store, self.out)):
            self.sections[part.name] = _section(part.figure, self.scale, self.store, self.out)
        self.finished.append(part)
        if time.monotonic() - self.written > _REPORT_SECONDS:
            self.write_report()
        self.on_stage(self._stage(part.name))

    def _check_rows(self) -> None:
        """Check, here, the claims that read rows; those whose own rows failed wait for them."""
        done = self.store.keys()
        reading = [claim for claim in self.claims if claim.reads_rows]
        for claim in (one for one in reading if {config.key for config in needs_of([one], self.scale).configs} <= done):
            check_with_rows(claim, self.scale, self.store)
        if reading:
            self.on_stage(self._stage("claims about figures", done=self.total))

    def _stage(self, name: str | None, progress: SweepProgress | None = None, done: int | None = None) -> Stage:
        """Say where it stands; the time left follows from the declared seconds and the pace so far."""
        spent, elapsed = sum(part.seconds for part in self.finished), time.monotonic() - self.started
        left = sum(part.seconds for part in self.parts if part not in self.finished)
        pace = elapsed / spent if spent > 0.05 * (spent + left) else 1.0
        counts = (None, None) if progress is None else (progress.done, progress.total)
        return Stage(name, len(self.finished) if done is None else done, self.total, left * pace, *counts)


def _section(figure: PaperFigure, scale: Scale, store: Store, out: Path) -> Section:
    """Draw a figure from disk alone, write it with the numbers it shows, and return its part of the report.

    One that was drawn of the same rows by the same code is taken as it is.
    """
    rows = stored_rows(figure, scale, store)
    pictures = _pictures(figure, rows, out)
    if pictures is None:
        pictures = drawn(figure.plot, rows)
        write_pictures(pictures, out / "figures", figure.ID)
        write_numbers(rows, out / "figures", figure.ID)
        _remember(figure, rows, pictures, out)
    codes = ", ".join(f"`{code}`" for code in sorted({row.code for row in rows}))
    kept = "; ".join(sorted({row.versions[RECHECKED] for row in rows if RECHECKED in row.versions}))
    made_by = (f", by code {codes}." if codes else "") + (f" Kept from older code: {kept}." if kept else "")
    return Section(
        figure_id=figure.ID,
        title=figure.TITLE,
        markdown=lambda claims: figure_markdown(figure, rows, scale, claims) + made_by,
        scale=scale,
        pictures=pictures,
        reference=reference_picture(figure, scale),
        seconds=sum(row.seconds for row in rows),
        finished=max((row.finished for row in rows), default=0.0),
        versions=dict(rows[-1].versions) if rows else {},
    )


def _is_drawn(figure: PaperFigure, scale: Scale, store: Store, out: Path) -> bool:
    return _pictures(figure, stored_rows(figure, scale, store), out) is not None


def _pictures(figure: PaperFigure, rows: Sequence[Row[Any, Any]], out: Path) -> Pictures | None:
    """Return the pictures of a figure as they were drawn, if they are all there and nothing they depend on changed."""
    folder = out / "figures"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads((out / _DRAWN / f"{figure.ID}.json").read_text())
        light, vector = ((folder / f"{figure.ID}.{kind}").read_bytes() for kind in ("png", "svg"))
        pictures = Pictures(light, vector, known["width"])
        if known["of"] == _origin(figure, rows, pictures) and (folder / f"{figure.ID}.csv").is_file():
            return pictures
    return None


def _remember(figure: PaperFigure, rows: Sequence[Row[Any, Any]], pictures: Pictures, out: Path) -> None:
    """Keep what a report needs of a drawn figure besides its files."""
    with suppress(InvalidInput):  # what code draws it cannot be told: it is drawn every time
        origin = _origin(figure, rows, pictures)
        known = {"of": origin, "width": pictures.width}
        write_atomically(out / _DRAWN / f"{figure.ID}.json", json.dumps(known).encode())


def _origin(figure: PaperFigure, rows: Sequence[Row[Any, Any]], pictures: Pictures) -> str:
    """Return a hash of everything that decides a picture, and of the picture."""
    of_rows = [(str(row.config), row.code, row.finished) for row in rows]
    decides = [figure.ID, code_of_value(figure.plot), of_rows, matplotlib_version, parityscope.__version__]
    digest = hashlib.sha256(json.dumps(decides).encode())
    for part in pictures[:2]:
        digest.update(part)
    return digest.hexdigest()
