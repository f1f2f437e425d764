"""What a worker does: rebuild the configs of a pack, run them, return what is to be stored."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from parityscope.errors import InvalidInput
from parityscope.experiments import load_experiment
from parityscope.experiments.contract import Config, Packable, Result
from parityscope.store import Outcome, array_bytes
from parityscope.sweep.spec import Pack, Runnable, Work, spec_module
from parityscope.threads import single_threaded
from parityscope.training.checkpoint import checkpoints_in


@dataclass(frozen=True)
class Task:
    """A pack as it travels: names and JSON only, so that a worker needs no file of the client's.

    >>> example = ("parityscope.experiments.h1_figure_1", "WorkedExample", '{"temperature": 0.01}')
    >>> task = Task("H1-figure-1", None, (example,))
    >>> run_task(task)[0].numbers["label"]
    1
    """

    experiment: str
    source: str | None
    configs: tuple[tuple[str, str, str], ...]  # (module, class, fields as JSON)


def task_of(pack: Pack) -> Task:
    """Return the task of a pack.

    >>> from parityscope.experiments.h1_figure_1 import WorkedExample
    >>> config = WorkedExample(bits=(1, 0), support=(0,), temperature=0.5)
    >>> work = Work(load_experiment("H1-figure-1"), (config,))
    >>> task_of(Pack(work, (config,), ("key",))).configs[0][1:]
    ('WorkedExample', '{"bits":[1,0],"support":[0],"temperature":0.5}')
    """
    described = tuple((type(c).__module__, type(c).__qualname__, c.model_dump_json()) for c in pack.configs)
    return Task(pack.work.experiment.ID, pack.work.source, described)


def check_configs_travel(work: Work) -> None:
    """Refuse a config that would not be the same after the journey through JSON (NaN and infinities are not).

    >>> from parityscope.experiments.h1_figure_1 import WorkedExample
    >>> hot = WorkedExample(bits=(1, 0), support=(0,), temperature=float("inf"))
    >>> check_configs_travel(Work(load_experiment("H1-figure-1"), (hot,)))
    Traceback (most recent call last):
    parityscope.errors.InvalidInput: config bits=(1, 0) support=(0,) temperature=inf changes when written as JSON: \
use finite numbers, text, lists, dicts
    """
    for config in work.configs:
        try:
            same = type(config).model_validate_json(config.model_dump_json()) == config
        except ValidationError:
            same = False
        if not same:
            raise InvalidInput(f"config {config} changes when written as JSON: use finite numbers, text, lists, dicts")


def run_task(task: Task, checkpoints: Path | None = None) -> list[Outcome]:
    """Run a pack on one thread, long trainings with a place for their checkpoints; the entry point of every worker.

    >>> example = ("parityscope.experiments.h1_figure_1", "WorkedExample", '{"temperature": 0.01}')
    >>> task = Task("H1-figure-1", None, (example,))
    >>> round(run_task(task)[0].numbers["prediction"], 6)  # sharp attention: the construction of Proposition 3
    1.0
    """
    with single_threaded(), checkpoints_in(checkpoints):
        return run_task_on_all_threads(task)


def run_task_on_all_threads(task: Task) -> list[Outcome]:
    """Run a pack with as many threads as torch has.

    >>> example = ("parityscope.experiments.h1_figure_1", "WorkedExample", '{"temperature": 0.01}')
    >>> task = Task("H1-figure-1", None, (example,))
    >>> run_task_on_all_threads(task)[0].numbers == run_task(task)[0].numbers
    True
    """
    own = None if task.source is None else cast(Runnable, spec_module(task.source, f"{task.experiment}.py"))
    experiment = own or load_experiment(task.experiment)
    configs = [
        attrgetter(name)(import_module(module)).model_validate_json(fields) for module, name, fields in task.configs
    ]
    return _run_pack(experiment, configs)


def _run_pack(experiment: Runnable, configs: Sequence[Config]) -> list[Outcome]:
    """Run configs in one program where that is possible; when it fails one by one, so that each fails for itself."""
    if len(configs) > 1 and isinstance(experiment, Packable):
        started = time.perf_counter()
        try:
            results = experiment.run_batch(configs)
            seconds = (time.perf_counter() - started) / len(configs)
            return [_outcome(result, seconds) for _, result in zip(configs, results, strict=True)]
        except Exception:
            pass  # the config that is to blame shows below
    return [_run_one(experiment, config) for config in configs]


def _run_one(experiment: Runnable, config: Config) -> Outcome:
    started = time.perf_counter()
    try:
        return _outcome(experiment.run(config), time.perf_counter() - started)
    except Exception:
        return Outcome(seconds=time.perf_counter() - started, traceback=traceback.format_exc())


def _outcome(result: Result, seconds: float) -> Outcome:
    json.dumps(result.numbers)  # what cannot be stored fails here, with the run's own traceback
    return Outcome(result.numbers, array_bytes(result.arrays), seconds)
