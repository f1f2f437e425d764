"""What is to be run: an experiment and a list of configs, from a spec file or from the registry; how it is packed."""

from __future__ import annotations

import hashlib
import linecache
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast, runtime_checkable

from parityscope.errors import InvalidInput
from parityscope.experiments import load_experiment
from parityscope.experiments.contract import Config, Packable, Result
from parityscope.store import config_key

# Beyond this many runs a tensor program is no longer bound by its overhead, and a kill costs more.
DEFAULT_PACK = 256


@runtime_checkable
class Runnable(Protocol):
    """The part of an experiment that a sweep needs.

    >>> isinstance(load_experiment("H1-figure-1"), Runnable)
    True
    """

    ID: str

    def run(self, config: Any) -> Result:
        """Compute the row of one config."""
        ...


@dataclass(frozen=True)
class Work:
    """An experiment with the configs to run; `source` is the text of a spec that brings its own `run`.

    >>> from parityscope.experiments.h1_figure_1 import WorkedExample
    >>> configs = tuple(WorkedExample(temperature=t) for t in (0.1, 0.2, 0.3))
    >>> work = Work(load_experiment("H1-figure-1"), configs)
    >>> work.experiment.ID, len(work.configs)
    ('H1-figure-1', 3)
    """

    experiment: Runnable
    configs: tuple[Config, ...]
    source: str | None = None
    pack: int | None = None


@dataclass(frozen=True)
class Pack:
    """Configs that are run and stored together.

    >>> from parityscope.experiments.h1_figure_1 import WorkedExample
    >>> configs = (WorkedExample(temperature=0.1), WorkedExample(temperature=0.2))
    >>> pack = Pack(Work(load_experiment("H1-figure-1"), configs), configs, ("first", "second"))
    >>> pack.only({"second"}).configs[0].temperature, [single.keys for single in pack.singles()]
    (0.2, [('first',), ('second',)])
    """

    work: Work
    configs: tuple[Config, ...]
    keys: tuple[str, ...]

    def only(self, keys: set[str]) -> Pack:
        """Return the pack without the configs whose address is not in `keys`."""
        kept = [(config, key) for config, key in zip(self.configs, self.keys, strict=True) if key in keys]
        return Pack(self.work, tuple(config for config, _ in kept), tuple(key for _, key in kept))

    def singles(self) -> list[Pack]:
        """Return every config as a pack of its own."""
        return [Pack(self.work, (config,), (key,)) for config, key in zip(self.configs, self.keys, strict=True)]


def packs_of(work: Work) -> list[Pack]:
    """Return the configs in packs: of one batch shape each where the experiment packs, single ones otherwise.

    Packs depend on the list of configs alone, never on workers or on what is already done, so that a resumed sweep
    packs as the first one did and gives the same bits.

    >>> from parityscope.experiments.h1_figure_1 import WorkedExample
    >>> configs = tuple(WorkedExample(temperature=t) for t in (0.1, 0.2, 0.3))
    >>> work = Work(load_experiment("H1-figure-1"), configs, pack=2)
    >>> [len(pack.configs) for pack in packs_of(work)]
    [2, 1]
    """
    if work.pack is not None and work.pack < 1:
        raise InvalidInput(f"a pack holds at least 1 config, got {work.pack}")
    packs = isinstance(work.experiment, Packable)
    limit = work.pack or getattr(work.experiment, "PACK", None) or (DEFAULT_PACK if packs else 1)
    shapes: dict[Hashable, list[tuple[str, Config]]] = {}
    unique = {config_key(work.experiment.ID, config): config for config in work.configs}
    for key, config in unique.items():
        shape = work.experiment.batch_shape(config) if isinstance(work.experiment, Packable) else None
        shapes.setdefault(shape, []).append((key, config))
    return [
        Pack(work, tuple(config for _, config in part), tuple(key for key, _ in part))
        for group in shapes.values()
        for part in (group[start : start + limit] for start in range(0, len(group), limit))
    ]


def load_spec(path: Path, pack: int | None = None) -> Work:
    """Read a spec: a Python file with `CONFIGS`, and either `EXPERIMENT`, the name of one, or its own `ID` and `run`.

    A spec of its own may add `batch_shape` and `run_batch` to be packed, and `PACK`, the most configs per pack.

    >>> import tempfile
    >>> lines = ["from parityscope.experiments.h1_figure_1 import WorkedExample", "EXPERIMENT = 'H1-figure-1'"]
    >>> lines += ["CONFIGS = [WorkedExample(temperature=t / 10) for t in range(1, 9)]"]
    >>> path = Path(tempfile.mkdtemp()) / "temperatures.py"
    >>> written = path.write_text("\\n".join(lines))
    >>> len(load_spec(path).configs)
    8
    """
    source = path.read_text()
    try:
        module = spec_module(source, str(path))
    except Exception as error:
        raise InvalidInput(f"{path} cannot be run: {type(error).__name__}: {error}") from None
    configs = getattr(module, "CONFIGS", None)
    if not isinstance(configs, Sequence) or not configs or not all(isinstance(one, Config) for one in configs):
        raise InvalidInput(f"{path} needs CONFIGS, a list of at least one config (a subclass of Config)")
    name = getattr(module, "EXPERIMENT", None)
    if name is not None:
        return Work(load_experiment(str(name)), tuple(configs), None, pack)
    if not hasattr(module, "run") or not isinstance(getattr(module, "ID", None), str):
        raise InvalidInput(f"{path} needs EXPERIMENT, the name of an experiment, or an ID and a run of its own")
    return Work(cast(Runnable, module), tuple(configs), source, pack)


def spec_module(source: str, filename: str) -> ModuleType:
    """Return the module of a spec's text, the same one for the same text, in every process that asks.

    >>> spec_module("x = 1", "a.py") is spec_module("x = 1", "b.py")
    True
    """
    name = f"parityscope_spec_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        module = ModuleType(name)
        module.__file__ = filename
        sys.modules[name] = module
        # Tracebacks show the lines of a spec also on machines that do not have the file.
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        try:
            exec(compile(source, filename, "exec"), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
