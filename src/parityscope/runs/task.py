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
from parityscope.records import Config, Outcome, Result, Row
from parityscope.runs.spec import Pack, Work, spec_module
from parityscope.training.checkpoint import checkpoints_in

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """A pack as it travels: names and JSON only, so that a worker needs no file of the client's.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> task = task_of(Pack((WorkedExample(temperature=0.01),), ("key",)))
    >>> run_task(task)[0].numbers["label"]
    1
    """

    source: str | None
    configs: tuple[tuple[str, str, str, str], ...]  # (module, class, fields as JSON, code)


def task_of(pack: Pack) -> Task:
    """Return the task of a pack.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> task_of(Pack((WorkedExample(bits=(1, 0), support=(0,), temperature=0.5),), ("key",))).configs[0][1:3]
    ('WorkedExample', '{"bits":[1,0],"support":[0],"temperature":0.5}')
    """
    return Task(
        pack.source,
        tuple((type(c).__module__, type(c).__qualname__, c.model_dump_json(), c.code()) for c in pack.configs),
    )


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

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> task = task_of(Pack((WorkedExample(temperature=0.01),), ("key",)))
    >>> round(run_task(task)[0].numbers["prediction"], 6)  # sharp attention: the construction of Proposition 3
    1.0
    """
    with single_threaded(), checkpoints_in(checkpoints):
        return run_task_on_all_threads(task)


def run_task_on_all_threads(task: Task) -> list[Outcome]:
    """Run a pack with as many threads as torch has.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> task = task_of(Pack((WorkedExample(temperature=0.01),), ("key",)))
    >>> run_task_on_all_threads(task)[0].numbers == run_task(task)[0].numbers
    True
    """
    if task.source is not None:
        spec_module(task.source, "the sweep's spec")
    return _run_pack([_config(*described) for described in task.configs])


def _config(module: str, name: str, fields: str, code: str) -> Config:
    """Return a config that has arrived; a worker with other source must not make rows of the sender's address."""
    config: Config = attrgetter(name)(import_module(module)).model_validate_json(fields)
    if config.code() != code:
        raise InvalidInput(
            f"the source of {name} is not the same here as where the work was handed out (code {config.code()}, not"
            f" {code}): it was edited meanwhile, or this machine has another version; run again with the same one"
        )
    return config


def _run_pack(configs: Sequence[Config]) -> list[Outcome]:
    """Run configs of one class in one program; when that fails one by one, so that each fails for itself."""
    if len(configs) > 1:
        started = time.perf_counter()
        try:
            results = type(configs[0]).run_batch(configs)
            seconds = (time.perf_counter() - started) / len(configs)
            return [_outcome(config, result, seconds) for config, result in zip(configs, results, strict=True)]
        except Exception:
            name = type(configs[0]).__name__
            _LOG.warning("%d configs of %s failed together and are run one by one:", len(configs), name, exc_info=True)
    return [_run_one(config) for config in configs]


def _run_one(config: Config) -> Outcome:
    started = time.perf_counter()
    try:
        result = config.run()
        return _outcome(config, result, time.perf_counter() - started)
    except Exception:
        return Outcome(seconds=time.perf_counter() - started, traceback=traceback.format_exc())


def _outcome(config: Config, result: Result, seconds: float) -> Outcome:
    """Return a result as it is stored; what cannot be stored fails here, with the run's own traceback."""
    outcome = Outcome.of(Result(Row.of(config, result).numbers, result.arrays), seconds)
    json.dumps(outcome.numbers)
    return outcome
