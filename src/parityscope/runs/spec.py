"""What is to be run: configs from a spec file or a figure; how they are packed; what a worker does with a pack."""

from __future__ import annotations

import hashlib
import json
import linecache
import logging
import sys
import time
import tokenize
import traceback
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType

from parityscope.core.errors import InvalidInput
from parityscope.core.threads import single_threaded
from parityscope.records import Config, Outcome, Result, Row
from parityscope.training.checkpoint import checkpoints_in

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Work:
    """Configs to run.

    Parameters
    ----------
    name : str
        What a progress display calls it.
    configs : tuple of Config
        What is to be run; each knows how.
    source : str or None
        The text of the spec that defines the configs' classes, which workers need.
    pack : int or None
        The most places per pack, where the configs' own `PACK` is not wanted.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> work = Work("temperatures", tuple(WorkedExample(temperature=t) for t in (0.1, 0.2, 0.3)))
    >>> len(work.configs)
    3
    """

    name: str
    configs: tuple[Config, ...]
    source: str | None = None
    pack: int | None = None


@dataclass(frozen=True)
class Pack:
    """Configs of one class that are run and stored together."""

    configs: tuple[Config, ...]
    keys: tuple[str, ...]
    source: str | None = None

    def only(self, keys: set[str]) -> Pack:
        """Return the pack without the configs whose address is not in `keys`."""
        kept = [(config, key) for config, key in zip(self.configs, self.keys, strict=True) if key in keys]
        return Pack(tuple(config for config, _ in kept), tuple(key for _, key in kept), self.source)

    def singles(self) -> list[Pack]:
        """Return every config as a pack of its own."""
        return [Pack((config,), (key,), self.source) for config, key in zip(self.configs, self.keys, strict=True)]


def packs_of(work: Work) -> list[Pack]:
    """Return the configs in packs, each of one class and one batch shape.

    Packs depend on the list of configs alone, never on workers or on what is already done, so that a resumed sweep
    packs as the first one did and gives the same bits.
    """
    if work.pack is not None and work.pack < 1:
        raise InvalidInput(f"a pack holds at least 1 config, got {work.pack}")
    shapes: dict[Hashable, list[tuple[str, Config]]] = {}
    for key, config in {config.key: config for config in work.configs}.items():
        shapes.setdefault((type(config), config.batch_shape()), []).append((key, config))
    packs = []
    for group in shapes.values():
        limit = work.pack or type(group[0][1]).PACK
        for part in _parts(group, limit):
            packs.append(Pack(tuple(config for _, config in part), tuple(key for key, _ in part), work.source))
    return packs


def _parts(group: Sequence[tuple[str, Config]], limit: int) -> Iterator[list[tuple[str, Config]]]:
    part: list[tuple[str, Config]] = []
    for key, config in group:
        if part and sum(one.places() for _, one in part) + config.places() > limit:
            yield part
            part = []
        part.append((key, config))
    yield part


def load_spec(path: Path, pack: int | None = None) -> Work:
    """Read a spec: a Python file with `CONFIGS`, trainings or configs of classes of its own.

    >>> import tempfile
    >>> lines = ["from parityscope.runs import training"]
    >>> lines += ["CONFIGS = [training('bounded', 12, 3, seeds=[seed]) for seed in range(8)]"]
    >>> path = Path(tempfile.mkdtemp()) / "trainings.py"
    >>> written = path.write_text("\\n".join(lines))
    >>> len(load_spec(path).configs)
    8
    """
    source, module = read_spec(path)
    configs = getattr(module, "CONFIGS", None)
    if not isinstance(configs, Sequence) or not configs or not all(isinstance(one, Config) for one in configs):
        raise InvalidInput(f"{path} needs CONFIGS, a list of at least one config (a subclass of Config)")
    nameless = next((one for one in configs if not isinstance(getattr(one, "ROWS", None), str)), None)
    if nameless is not None:
        raise InvalidInput(f"{type(nameless).__name__} in {path} needs ROWS, the name its rows are stored under")
    return Work(path.stem, tuple(configs), source, pack)


def read_spec(path: Path) -> tuple[str, ModuleType]:
    """Return the text of a Python file of somebody's own and its module; what it raises is one sentence."""
    try:
        with tokenize.open(path) as file:  # as Python reads it: UTF-8 unless its first lines say otherwise
            source = file.read()
        return source, spec_module(source, str(path))
    except (KeyboardInterrupt, OSError):
        raise
    except BaseException as error:  # also of a file that exits
        raise InvalidInput(f"{path} cannot be run: {type(error).__name__}: {error}") from None


def spec_module(source: str, filename: str) -> ModuleType:
    """Return the module of a spec's text, the same one for the same text, in every process that asks."""
    name = f"parityscope_spec_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        module = ModuleType(name)
        module.__file__ = filename
        module.__dict__["__source__"] = source  # the file may have changed since, or be on another machine
        sys.modules[name] = module
        # Tracebacks show the lines of a spec also on machines that do not have the file.
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        try:
            exec(compile(source, filename, "exec"), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


@dataclass(frozen=True)
class Task:
    """A pack as it travels: names and JSON only, so that a worker needs no file of the client's."""

    source: str | None
    configs: tuple[tuple[str, str, str, str], ...]  # (module, class, fields as JSON, code)


def task_of(pack: Pack) -> Task:
    """Return the task of a pack."""
    return Task(
        pack.source,
        tuple((type(c).__module__, type(c).__qualname__, c.model_dump_json(), c.code()) for c in pack.configs),
    )


def check_configs_travel(work: Work) -> None:
    """Refuse a config that would not be the same after the journey through JSON (NaN and infinities are not)."""
    for config in work.configs:
        try:
            same = type(config).model_validate_json(config.model_dump_json()) == config
        except ValueError:  # also of a field that JSON has no form for
            same = False
        if not same:
            raise InvalidInput(f"config {config} changes when written as JSON: use finite numbers, text, lists, dicts")


def run_task(task: Task, checkpoints: Path | None = None) -> list[Outcome]:
    """Run a pack on one thread, long trainings with a place for their checkpoints; the entry point of every worker."""
    with single_threaded(), checkpoints_in(checkpoints):
        return run_task_on_all_threads(task)


def run_task_on_all_threads(task: Task) -> list[Outcome]:
    """Run a pack with as many threads as torch has."""
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
        started, work = time.perf_counter(), time.process_time()
        try:
            results = type(configs[0]).run_batch(configs)
            seconds = (time.perf_counter() - started) / len(configs)
            processor = (time.process_time() - work) / len(configs)
            return [_outcome(*one, seconds, processor) for one in zip(configs, results, strict=True)]
        except KeyboardInterrupt:
            raise
        except BaseException:  # also of a config that exits
            name = type(configs[0]).__name__
            said = "%d configs of %s failed together and are run one by one:\n%s"
            _LOG.warning(said, len(configs), name, _traceback())
    return [_run_one(config) for config in configs]


def _traceback() -> str:
    """Return what is raised just now; halves of letters, which can be neither stored nor printed, are escaped."""
    return traceback.format_exc().encode(errors="backslashreplace").decode()


def _run_one(config: Config) -> Outcome:
    started, work = time.perf_counter(), time.process_time()
    try:
        result = config.run()
        return _outcome(config, result, time.perf_counter() - started, time.process_time() - work)
    except KeyboardInterrupt:
        raise
    except BaseException:  # also of a config that exits
        return Outcome(seconds=time.perf_counter() - started, traceback=_traceback())


def _outcome(config: Config, result: Result, seconds: float, processor: float) -> Outcome:
    """Return a result as it is stored; what cannot be stored fails here, with the run's own traceback."""
    outcome = Outcome.of(Result(Row.of(config, result).numbers, result.arrays), seconds, processor)
    json.dumps(outcome.numbers)
    return outcome
