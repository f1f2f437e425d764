"""What a worker does: rebuild the configs of a pack, run them, return what is to be stored."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from pathlib import Path

from pydantic import ValidationError

from parityscope.core.errors import InvalidInput
from parityscope.core.threads import single_threaded
from parityscope.records import Config, Outcome, Result
from parityscope.runs.spec import Pack, Work, spec_module
from parityscope.training.checkpoint import checkpoints_in

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """A pack as it travels: names and JSON only, so that a worker needs no file of the client's.

    >>> task = Task(None, (("parityscope.papers.h1.figures.figure_1", "WorkedExample", '{"temperature": 0.01}'),))
    >>> run_task(task)[0].numbers["label"]
    1
    """

    source: str | None
    configs: tuple[tuple[str, str, str], ...]  # (module, class, fields as JSON)


def task_of(pack: Pack) -> Task:
    """Return the task of a pack.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> task_of(Pack((WorkedExample(bits=(1, 0), support=(0,), temperature=0.5),), ("key",))).configs[0][1:]
    ('WorkedExample', '{"bits":[1,0],"support":[0],"temperature":0.5}')
    """
    described = tuple((type(c).__module__, type(c).__qualname__, c.model_dump_json()) for c in pack.configs)
    return Task(pack.source, described)


def check_configs_travel(work: Work) -> None:
    """Refuse a config that would not be the same after the journey through JSON (NaN and infinities are not).

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> hot = WorkedExample(bits=(1, 0), support=(0,), temperature=float("inf"))
    >>> check_configs_travel(Work("hot", (hot,)))
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: config bits=(1, 0) support=(0,) temperature=inf changes when written as JSON\
: use finite numbers, text, lists, dicts
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

    >>> task = Task(None, (("parityscope.papers.h1.figures.figure_1", "WorkedExample", '{"temperature": 0.01}'),))
    >>> round(run_task(task)[0].numbers["prediction"], 6)  # sharp attention: the construction of Proposition 3
    1.0
    """
    with single_threaded(), checkpoints_in(checkpoints):
        return run_task_on_all_threads(task)


def run_task_on_all_threads(task: Task) -> list[Outcome]:
    """Run a pack with as many threads as torch has.

    >>> task = Task(None, (("parityscope.papers.h1.figures.figure_1", "WorkedExample", '{"temperature": 0.01}'),))
    >>> run_task_on_all_threads(task)[0].numbers == run_task(task)[0].numbers
    True
    """
    if task.source is not None:
        spec_module(task.source, "the sweep's spec")
    configs = [
        attrgetter(name)(import_module(module)).model_validate_json(fields) for module, name, fields in task.configs
    ]
    return _run_pack(configs)


def _run_pack(configs: Sequence[Config]) -> list[Outcome]:
    """Run configs of one class in one program; when that fails one by one, so that each fails for itself."""
    if len(configs) > 1:
        started = time.perf_counter()
        try:
            results = type(configs[0]).run_batch(configs)
            seconds = (time.perf_counter() - started) / len(configs)
            return [_outcome(result, seconds) for _, result in zip(configs, results, strict=True)]
        except Exception:
            name = type(configs[0]).__name__
            _LOG.warning("%d configs of %s failed together and are run one by one:", len(configs), name, exc_info=True)
    return [_run_one(config) for config in configs]


def _run_one(config: Config) -> Outcome:
    started = time.perf_counter()
    try:
        return _outcome(config.run(), time.perf_counter() - started)
    except Exception:
        return Outcome(seconds=time.perf_counter() - started, traceback=traceback.format_exc())


def _outcome(result: Result, seconds: float) -> Outcome:
    outcome = Outcome.of(result, seconds)
    json.dumps(outcome.numbers)  # what cannot be stored fails here, with the run's own traceback
    return outcome
