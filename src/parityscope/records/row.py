"""A stored result: typed for those who know its config, plain for those who only list or export it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

import torch
from pydantic import ValidationError
from safetensors.torch import save
from torch import Tensor

import parityscope
from parityscope.core.errors import InvalidInput
from parityscope.records.config import Config, Numbers, Result, key_of

ConfigT = TypeVar("ConfigT", bound=Config)
NumbersT = TypeVar("NumbersT", bound=Numbers)


PROCESSOR_SECONDS = "processor_seconds"  # stands among the versions: rows of earlier releases have none


@cache
def _current_versions() -> dict[str, str]:
    """Return the versions a row is stored with."""
    return {
        "parityscope": parityscope.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
    }


def array_bytes(arrays: Mapping[str, Tensor]) -> bytes | None:
    """Return arrays as safetensors bytes, or none when there are none."""
    return save({name: tensor.detach().contiguous() for name, tensor in arrays.items()}) if arrays else None


@dataclass(frozen=True)
class Row(Generic[ConfigT, NumbersT]):
    """What one config gave.

    Parameters
    ----------
    config : Config
        What was run.
    numbers : Numbers
        What it found, of the type its config declares.
    arrays : mapping of str to Tensor
        What pictures need.
    code : str
        The hash of the code that computed it.
    versions : mapping of str to str
        Libraries and machine, and `processor_seconds`, the time that the processor took.
    finished, seconds : float
        When it was finished (seconds since 1970), and how long it took by the clock.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> row = Row.of(WorkedExample(), WorkedExample().run())
    >>> row.config.temperature, row.numbers.label
    (0.14285714285714285, 1)
    """

    config: ConfigT
    numbers: NumbersT
    arrays: Mapping[str, Tensor] = field(default_factory=dict)
    code: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    finished: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, config: ConfigT, result: Result, seconds: float = 0.0) -> Row[ConfigT, Any]:
        """Return the row of a result that has just been computed."""
        made, numbers = config.row_config(), result.numbers
        if not isinstance(numbers, made.NUMBERS):
            plain = numbers.model_dump() if isinstance(numbers, Numbers) else numbers
            numbers = _checked(made, plain, f"what {type(made).__name__} returned")
        return Row(config, numbers, result.arrays, made.code(), _current_versions(), seconds=seconds)


@dataclass(frozen=True)
class StoredRow:
    """A row as it lies in a store, done or failed, whatever its config was.

    >>> row = StoredRow("squares", {"x": 3}, {"square": 9}, code="5d41", seconds=1.5)
    >>> row.numbers["square"], row.failed
    (9, False)
    """

    experiment: str
    config: dict[str, Any]
    numbers: dict[str, Any]
    arrays: Mapping[str, Tensor] = field(default_factory=dict)
    version: int = 1
    code: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    finished: float = 0.0
    seconds: float = 0.0
    traceback: str = ""  # of a run that failed; empty when it is done

    @property
    def failed(self) -> bool:
        """Whether the run failed."""
        return bool(self.traceback)

    @property
    def key(self) -> str:
        """The address of the row."""
        return key_of(self.experiment, self.version, self.config, self.code)

    def typed(self, config: ConfigT) -> Row[ConfigT, Any]:
        """Return the row of a config that is known, its numbers checked."""
        numbers = _checked(config, self.numbers, f"row {self.key} of {self.experiment}")
        return Row(config, numbers, self.arrays, self.code, self.versions, self.finished, self.seconds)


def _checked(config: Config, numbers: dict[str, Any], what: str) -> Numbers:
    try:
        return config.NUMBERS.model_validate(numbers)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg'].lower()}" for one in error.errors())
        raise InvalidInput(f"{what} does not have the numbers of {config.NUMBERS.__name__}: {wrong}") from None


@dataclass(frozen=True)
class Outcome:
    """What one run left behind, as it travels to the store: plain text and bytes, so that any executor can carry it.

    >>> done, failed = Outcome({"risk": 0.5}, seconds=1.5), Outcome(traceback="ValueError: no answer")
    >>> done.numbers, bool(done.traceback), bool(failed.traceback)
    ({'risk': 0.5}, False, True)
    """

    numbers: Mapping[str, Any] = field(default_factory=dict)
    arrays: bytes | None = None
    seconds: float = 0.0
    traceback: str = ""
    versions: Mapping[str, str] = field(default_factory=_current_versions)

    @classmethod
    def of(cls, result: Result, seconds: float, processor: float | None = None) -> Outcome:
        """Return a result as it is stored; with it the seconds that the processor took, which others do not inflate."""
        numbers = result.numbers
        plain = numbers.model_dump() if isinstance(numbers, Numbers) else numbers
        measured = {} if processor is None else {PROCESSOR_SECONDS: f"{processor:.3f}"}
        return cls(plain, array_bytes(result.arrays), seconds, versions={**_current_versions(), **measured})
