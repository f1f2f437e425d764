"""`reproduce`: run what is not done, redraw what is missing, write one report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from parityscope.experiments import load_experiment
from parityscope.experiments.contract import Config, Experiment, Row, Scale, Stage
from parityscope.figures import png, svg, themed
from parityscope.report import Section, render_report
from parityscope.store import Store
from parityscope.training.checkpoint import write_atomically


def pending(experiment: Experiment, scale: Scale, store: Store) -> list[Config]:
    """Return the configs of an experiment that have no row yet."""
    return [config for config in experiment.CONFIGS[scale] if (experiment.ID, config) not in store]


def reproduce(
    experiment_ids: Sequence[str],
    scale: Scale,
    out: Path,
    *,
    on_stage: Callable[[Stage], None] = lambda stage: None,
) -> Path:
    """Run, draw and report the named experiments; return the path of the report.

    Everything lands in `out`: `store/` with the rows, `figures/` with PNG and SVG, and `report.html`. Rows that are
    there are not computed again, so an interrupted reproduction goes on where it stopped.
    """
    experiments = [load_experiment(name) for name in experiment_ids]
    store = Store(out / "store")
    for index, experiment in enumerate(experiments):
        later = sum(_cost(other, scale, store) for other in experiments[index + 1 :])
        _run(experiment, scale, store, later, on_stage)
    sections = [_section(experiment, scale, store, out) for experiment in experiments]
    report = out / "report.html"
    write_atomically(report, render_report(sections, scale).encode())
    return report


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
        result = experiment.run(config)
        seconds = time.perf_counter() - started
        store.add(experiment.ID, config, result.numbers, result.arrays, seconds=seconds)
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
