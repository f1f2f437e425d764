"""`reproduce`: run what is not done, redraw what is missing, write one report."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from parityscope.claims import all_claims, check
from parityscope.claims.contract import Claim, Context
from parityscope.experiments import load_experiment
from parityscope.experiments.contract import Config, Experiment, Row, Scale, Stage
from parityscope.figures import png, svg, themed
from parityscope.report import Section, render_report
from parityscope.store import Store
from parityscope.training.checkpoint import checkpoints_in, write_atomically

CLAIMS_ID = "claims"


def pending(experiment: Experiment, scale: Scale, store: Store) -> list[Config]:
    """Return the configs of an experiment that have no row yet."""
    return [config for config in experiment.CONFIGS[scale] if (experiment.ID, config) not in store]


def reproduce(
    experiment_ids: Sequence[str],
    scale: Scale,
    out: Path,
    *,
    claims: Sequence[Claim] = (),
    on_stage: Callable[[Stage], None] = lambda stage: None,
) -> Path:
    """Run, draw and report the named experiments, check the claims; return the path of the report.

    Everything lands in `out`: `store/` with the rows, `figures/` with PNG and SVG, and `report.html`. Rows that are
    there are not computed again, so an interrupted reproduction goes on where it stopped. The report's table shows
    every claim that was ever checked in `out` at this scale.
    """
    experiments = [load_experiment(name) for name in experiment_ids]
    store = Store(out / "store")
    for index, experiment in enumerate(experiments):
        later = sum(_cost(other, scale, store) for other in experiments[index + 1 :]) + _claims_cost(claims, scale)
        _run(experiment, scale, store, later, on_stage)
    _check(claims, scale, store, on_stage)
    sections = [_section(experiment, scale, store, out) for experiment in experiments]
    report = out / "report.html"
    write_atomically(report, render_report(sections, scale, stored_claims(scale, store)).encode())
    return report


class _CheckedAt(Config):
    """The address of a checked claim in the store."""

    claim: str
    scale: Scale


def stored_claims(scale: Scale, store: Store) -> list[dict[str, Any]]:
    """Return what `claims --json` would print of the claims checked in this store, in the order of the report."""
    found = [store.row(CLAIMS_ID, _CheckedAt(claim=claim.id, scale=scale)) for claim in all_claims()]
    return [row.numbers for row in found if row is not None]


def claims_context(scale: Scale, out: Path) -> Context:
    """Return what checks may use: the scale, and the rows of `out` if there are any."""
    if not (out / "store").is_dir():
        return Context(scale)
    return _context(scale, Store(out / "store"))


def _context(scale: Scale, store: Store) -> Context:
    return Context(scale, lambda name: stored_rows(load_experiment(name), scale, store))


def _claims_cost(claims: Sequence[Claim], scale: Scale) -> float:
    return sum(claim.seconds for claim in claims) if scale != "smoke" else 0.0


def _check(claims: Sequence[Claim], scale: Scale, store: Store, on_stage: Callable[[Stage], None]) -> None:
    """Check what has no stored verdict yet."""
    for index, claim in enumerate(claims):
        on_stage(Stage(CLAIMS_ID, index, len(claims), _claims_cost(claims[index:], scale)))
        address = _CheckedAt(claim=claim.id, scale=scale)
        if (CLAIMS_ID, address) not in store:
            checked = check(claim, _context(scale, store))
            store.add(CLAIMS_ID, address, checked.to_json(), {}, seconds=checked.seconds)
    if claims:
        on_stage(Stage(CLAIMS_ID, len(claims), len(claims), 0.0))


def _cost(experiment: Experiment, scale: Scale, store: Store) -> float:
    """Return the declared seconds of what is still to be run."""
    share = len(pending(experiment, scale, store)) / max(1, len(experiment.CONFIGS[scale]))
    return experiment.COST[scale] * share


def _run(
    experiment: Experiment, scale: Scale, store: Store, seconds_later: float, on_stage: Callable[[Stage], None]
) -> None:
    total = len(experiment.CONFIGS[scale])
    todo = pending(experiment, scale, store)
    for index, config in enumerate(todo):
        share_left = (len(todo) - index) / total
        seconds_left = experiment.COST[scale] * share_left + seconds_later
        on_stage(Stage(experiment.ID, total - len(todo) + index, total, seconds_left))
        started = time.perf_counter()
        with checkpoints_in(store.path / "checkpoints"):
            result = experiment.run(config)
        seconds = time.perf_counter() - started
        store.add(experiment.ID, config, result.numbers, result.arrays, seconds=seconds)
        shutil.rmtree(store.path / "checkpoints", ignore_errors=True)
    on_stage(Stage(experiment.ID, total, total, seconds_later))


def stored_rows(experiment: Experiment, scale: Scale, store: Store) -> list[Row]:
    """Return the rows of an experiment in the order of its configs."""
    found = [store.row(experiment.ID, config) for config in experiment.CONFIGS[scale]]
    return [row for row in found if row is not None]


def _section(experiment: Experiment, scale: Scale, store: Store, out: Path) -> Section:
    """Draw an experiment from disk alone and return its part of the report."""
    rows = stored_rows(experiment, scale, store)
    light, dark = (themed(experiment.plot, rows, theme=theme) for theme in ("light", "dark"))
    folder = out / "figures"
    write_atomically(folder / f"{experiment.ID}.png", png(light))
    write_atomically(folder / f"{experiment.ID}.svg", svg(light))
    return Section(
        experiment_id=experiment.ID,
        title=experiment.TITLE,
        text=experiment.TEXT,
        light=png(light, dpi=130),
        dark=png(dark, dpi=130),
        width=round(96 * light.get_figwidth()),
        table=experiment.table(rows),
        findings=list(experiment.findings(rows)),
        command=f"parityscope reproduce {experiment.ID} --scale {scale}",
        seconds=sum(row.seconds for row in rows),
        finished=max((row.finished for row in rows), default=0.0),
        versions=rows[-1].versions if rows else {},
    )
