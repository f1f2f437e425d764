"""What is to be run: a list of configs, from a spec file or from a figure; how it is packed."""

from __future__ import annotations

import hashlib
import linecache
import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from parityscope.core.errors import InvalidInput
from parityscope.records import Config


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
    """Configs of one class that are run and stored together.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> pack = Pack((WorkedExample(temperature=0.1), WorkedExample(temperature=0.2)), ("first", "second"))
    >>> pack.only({"second"}).configs[0].temperature, [single.keys for single in pack.singles()]
    (0.2, [('first',), ('second',)])
    """

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

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> configs = tuple(WorkedExample(temperature=t) for t in (0.1, 0.2, 0.3))
    >>> [len(pack.configs) for pack in packs_of(Work("temperatures", configs, pack=2))]
    [2, 1]
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
    source = path.read_text()
    try:
        module = spec_module(source, str(path))
    except Exception as error:
        raise InvalidInput(f"{path} cannot be run: {type(error).__name__}: {error}") from None
    configs = getattr(module, "CONFIGS", None)
    if not isinstance(configs, Sequence) or not configs or not all(isinstance(one, Config) for one in configs):
        raise InvalidInput(f"{path} needs CONFIGS, a list of at least one config (a subclass of Config)")
    nameless = next((one for one in configs if not hasattr(one, "ROWS")), None)
    if nameless is not None:
        raise InvalidInput(f"{type(nameless).__name__} in {path} needs ROWS, the name its rows are stored under")
    return Work(path.stem, tuple(configs), source, pack)


def spec_module(source: str, filename: str) -> ModuleType:
    """Return the module of a spec's text, the same one for the same text, in every process that asks.

    >>> spec_module("x = 1", "a.py") is spec_module("x = 1", "b.py")
    True
    """
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
