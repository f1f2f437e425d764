"""`reproduce`: run what is not done, redraw what is missing, write one report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from parityscope.atomic_files import write_atomically
from parityscope.claims import all_claims, check, named_claims
from parityscope.claims.contract import Claim, Context
from parityscope.errors import InvalidInput
from parityscope.experiments import load_experiment
from parityscope.experiments.contract import Config, Experiment, Result, Row, Scale, Stage
from parityscope.store import Store
from parityscope.sweep import InProcess, KeptOpen, Launcher, Progress, Work, run_sweep
from parityscope.sweep.spec import Runnable, spec_module
from parityscope.training.checkpoint import checkpoints_in

if TYPE_CHECKING:
    from parityscope.report import Section

CLAIMS_ID = "claims"


def pending(experiment: Experiment, scale: Scale, store: Store) -> list[Config]:
    """Return the configs of an experiment that have no row yet.

    >>> import tempfile
    >>> len(pending(load_experiment("H1-figure-1"), "smoke", Store(Path(tempfile.mkdtemp()))))
    1
    """
    return [config for config in experiment.CONFIGS[scale] if (experiment.ID, config) not in store]


def reproduce(
    experiment_ids: Sequence[str],
    scale: Scale,
    out: Path,
    *,
    claims: Sequence[Claim] = (),
    launcher: Launcher | None = None,
    on_stage: Callable[[Stage], None] = lambda stage: None,
) -> Path:
    """Run, draw and report the named experiments, check the claims; return the path of the report.

    Configs and claims run in this process, or where `launcher` takes them; timings are always taken here, with nothing
    beside them.

    Everything lands in `out`: `store/` with the rows, `figures/` with PNG and SVG, and `report.html`. Rows that are
    there are not computed again, so an interrupted reproduction goes on where it stopped. The report's table shows
    every claim that was ever checked in `out` at this scale.

    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp())
    >>> reproduce(["H1-figure-1"], "smoke", out).name, sorted(path.name for path in out.iterdir())
    ('report.html', ['figures', 'report.html', 'store'])
    """
    # Here, not above: checking a claim needs no template library; and not below, where hours would be lost without it.
    from parityscope.report import render_report

    experiments = [load_experiment(name) for name in experiment_ids]
    store = Store(out / "store")
    workers = None if launcher is None else KeptOpen(launcher)
    try:
        for index, experiment in enumerate(experiments):
            later = sum(_cost(other, scale, store) for other in experiments[index + 1 :]) + _claims_cost(claims, scale)
            _run(experiment, scale, store, workers, later, on_stage)
        if claims:
            _check(claims, scale, store, workers, on_stage)
    finally:
        if workers is not None:
            workers.end()
    sections = [_section(experiment, scale, store, out) for experiment in experiments]
    report = out / "report.html"
    write_atomically(report, render_report(sections, scale, stored_claims(scale, store)).encode())
    return report


class _CheckedAt(Config):
    """The address of a checked claim in the store."""

    claim: str
    scale: Scale


class _CheckedWith(_CheckedAt):
    """The same for a claim about rows that another command stores: with every new row it is checked again."""

    rows: int


def _address(claim: Claim, scale: Scale, store: Store) -> _CheckedAt:
    experiment = None if claim.experiment is None else load_experiment(claim.experiment)
    if experiment is None or experiment.CONFIGS[scale]:
        return _CheckedAt(claim=claim.id, scale=scale)
    return _CheckedWith(claim=claim.id, scale=scale, rows=len(store.rows(experiment.ID)))


def stored_claims(scale: Scale, store: Store) -> list[dict[str, Any]]:
    """Return what `claims --json` would print of the claims checked in this store, in the order of the report.

    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp())
    >>> report = reproduce([], "smoke", out, claims=named_claims(["H1-lemma-19"]))
    >>> [(one["id"], one["verdict"]) for one in stored_claims("smoke", Store(out / "store"))]
    [('H1-lemma-19', 'fails')]
    """
    found = [store.row(CLAIMS_ID, _address(claim, scale, store)) for claim in all_claims()]
    return [row.numbers for row in found if row is not None]


def claims_context(scale: Scale, out: Path) -> Context:
    """Return what checks may use: the scale, and the rows of `out` if there are any.

    >>> claims_context("smoke", Path("nowhere")).rows("H1-figure-1")
    ()
    """
    if not (out / "store").is_dir():
        return Context(scale)
    return _context(scale, Store(out / "store"))


def _context(scale: Scale, store: Store) -> Context:
    return Context(scale, lambda name: stored_rows(load_experiment(name), scale, store))


def _claims_cost(claims: Sequence[Claim], scale: Scale) -> float:
    return sum(claim.seconds for claim in claims) if scale != "smoke" else 0.0


# Checks that read no rows are a sweep like any other; this is its spec.
_CHECKS = f"""
from parityscope.reproduce import check_without_rows as run
ID = {CLAIMS_ID!r}
"""


def check_without_rows(address: _CheckedAt) -> Result:
    """Check a claim where no store is at hand.

    >>> check_without_rows(_CheckedAt(claim="H1-lemma-19", scale="smoke")).numbers["verdict"]
    'fails'
    """
    (claim,) = named_claims([address.claim])
    return Result(check(claim, Context(address.scale, _no_rows_at_hand)).to_json())


def _no_rows_at_hand(experiment_id: str) -> Sequence[Row]:
    raise AssertionError(f"a check asked for the rows of {experiment_id}, but its claim does not say reads_rows")


def _check(
    claims: Sequence[Claim],
    scale: Scale,
    store: Store,
    launcher: Launcher | None,
    on_stage: Callable[[Stage], None],
) -> None:
    """Check what has no stored verdict yet: first what needs no rows, where the launcher says, then the rest here."""
    alone = [claim for claim in claims if not claim.reads_rows]
    alone.sort(key=lambda claim: claim.seconds, reverse=True)  # the longest first, so that no worker ends with it

    def show(progress: Progress) -> None:
        share_left = 1 - progress.done / max(1, progress.total)
        on_stage(Stage(CLAIMS_ID, progress.done, len(claims), _claims_cost(claims, scale) * share_left))

    addresses = tuple(_address(claim, scale, store) for claim in alone)
    work = Work(cast(Runnable, spec_module(_CHECKS, CLAIMS_ID)), addresses, _CHECKS)
    _sweep(work, store, launcher or InProcess(), show)
    for claim in claims:
        address = _address(claim, scale, store)
        if claim.reads_rows and (CLAIMS_ID, address) not in store:
            checked = check(claim, _context(scale, store))
            store.add(CLAIMS_ID, address, checked.to_json(), {}, seconds=checked.seconds)
    on_stage(Stage(CLAIMS_ID, len(claims), len(claims), 0.0))


def _cost(experiment: Experiment, scale: Scale, store: Store) -> float:
    """Return the declared seconds of what is still to be run."""
    share = len(pending(experiment, scale, store)) / max(1, len(experiment.CONFIGS[scale]))
    return experiment.COST[scale] * share


def _run(
    experiment: Experiment,
    scale: Scale,
    store: Store,
    launcher: Launcher | None,
    seconds_later: float,
    on_stage: Callable[[Stage], None],
) -> None:
    def show(progress: Progress) -> None:
        share_left = 1 - progress.done / max(1, progress.total)
        seconds_left = experiment.COST[scale] * share_left + seconds_later
        on_stage(Stage(experiment.ID, progress.done, progress.total, seconds_left))

    timed = getattr(experiment, "TIMED", False)
    place = InProcess(threads="all") if launcher is None or timed else launcher
    work = Work(experiment, tuple(experiment.CONFIGS[scale]))
    checkpoints = store.path / "checkpoints"
    with checkpoints_in(checkpoints):  # long trainings go on where a kill left them
        _sweep(work, store, place, show)
    shutil.rmtree(checkpoints, ignore_errors=True)


def _sweep(work: Work, store: Store, launcher: Launcher, on_progress: Callable[[Progress], None]) -> None:
    """Run what has no row; a failure is one sentence, and what is finished stays."""
    summary = run_sweep(work, store, launcher, retry_failed=True, on_progress=on_progress)
    if summary.failed:
        name = work.experiment.ID
        reason = store.rows(name, failed=True)[-1].traceback.strip().splitlines()[-1]
        raise InvalidInput(
            f"{summary.failed} configs of {name} failed, the last one with {reason} "
            f"(parityscope rows {store.path} --failed shows more); the same command runs them again"
        )


def stored_rows(experiment: Experiment, scale: Scale, store: Store) -> list[Row]:
    """Return the rows of an experiment in the order of its configs.

    An experiment without configs draws what another command stored under its name.

    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp())
    >>> report = reproduce(["H1-figure-1"], "smoke", out)
    >>> [row.experiment for row in stored_rows(load_experiment("H1-figure-1"), "smoke", Store(out / "store"))]
    ['H1-figure-1']
    """
    if not experiment.CONFIGS[scale]:
        return store.rows(experiment.ID)
    found = [store.row(experiment.ID, config) for config in experiment.CONFIGS[scale]]
    return [row for row in found if row is not None]


def _section(experiment: Experiment, scale: Scale, store: Store, out: Path) -> Section:
    """Draw an experiment from disk alone and return its part of the report."""
    from parityscope.figures import png, themed, write_figure
    from parityscope.report import Section

    rows = stored_rows(experiment, scale, store)
    light, dark = (themed(experiment.plot, rows, theme=theme) for theme in ("light", "dark"))
    write_figure(light, out / "figures", experiment.ID)
    return Section(
        experiment_id=experiment.ID,
        title=experiment.TITLE,
        text=experiment.TEXT,
        light=png(light, dpi=130),
        dark=png(dark, dpi=130),
        width=round(96 * light.get_figwidth()),
        table=experiment.table(rows),
        findings=list(experiment.findings(rows)),
        command=getattr(experiment, "COMMAND", f"parityscope reproduce {experiment.ID} --scale {scale}"),
        seconds=sum(row.seconds for row in rows),
        finished=max((row.finished for row in rows), default=0.0),
        versions=rows[-1].versions if rows else {},
    )
