"""What is run: a config that knows how to compute its own row, and what comes out of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from parityscope.records.code import code_of

if TYPE_CHECKING:
    from torch import Tensor


class Numbers(BaseModel):
    """What a run found, for tables and verdicts: plain values, checked when a row is read as when it is written.

    >>> class Counts(Numbers):
    ...     learned: int
    >>> Counts(learned=3).learned
    3
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


class LooseNumbers(Numbers):
    """The numbers of a config that does not say which ones it has: whatever was stored.

    >>> LooseNumbers(square=4).square
    4
    """

    model_config = ConfigDict(frozen=True, extra="allow")


class Result(NamedTuple):
    """What `Config.run` returns.

    Parameters
    ----------
    numbers : Numbers or dict
        Plain values.
    arrays : mapping of str to Tensor
        What pictures need.

    >>> Result({"learned": 3}).numbers["learned"], dict(Result({}).arrays)
    (3, {})
    """

    numbers: Numbers | dict[str, Any]
    arrays: Mapping[str, Tensor] = {}


class Config(BaseModel):
    """The full description of one run; frozen, and a misspelt field is an error.

    A subclass names what its rows are stored under (`ROWS`), may say which numbers they have (`NUMBERS`), and computes
    one in `run`. `VERSION` is raised when something changes that the code does not show, such as a data file.
    Configs of equal `batch_shape` are run together by `run_batch`, as many as have `PACK` places; each must give what
    it gives alone, to 1e-9.

    >>> class Square(Config):
    ...     ROWS = "squares"
    ...     x: int
    ...     def run(self):
    ...         return Result({"square": self.x**2})
    >>> Square(x=3).run().numbers
    {'square': 9}
    >>> Square(y=3)
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 2 validation errors for Square
    ...
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ROWS: ClassVar[str]
    VERSION: ClassVar[int] = 1
    NUMBERS: ClassVar[type[Numbers]] = LooseNumbers
    PACK: ClassVar[int] = 1

    def run(self) -> Result:
        """Compute the row."""
        raise NotImplementedError(f"{type(self).__name__} has no run of its own")

    def row_config(self) -> Config:
        """Return the config whose row this one shows: itself, unless it only gives another one a label."""
        return self

    def batch_shape(self) -> Hashable:
        """Return what configs must agree on to be run together."""
        return None

    def places(self) -> int:
        """Return how many of a pack's places it takes."""
        return 1

    @classmethod
    def run_batch(cls, configs: Sequence[Any]) -> Sequence[Result]:
        """Compute the rows of several configs at once, in their order."""
        return [config.run() for config in configs]

    def code(self) -> str:
        """Return a hash of all source that decides this config's row, as far as it is this project's or a spec's."""
        return code_of(type(self).__module__, type(self).__qualname__)

    @property
    def key(self) -> str:
        """The address of its row: a hash of what it is stored under, the version, every field, and the code."""
        return key_of(self.ROWS, self.VERSION, self.model_dump(mode="json"), self.code())


def key_of(rows: str, version: int, fields: Mapping[str, Any], code: str) -> str:
    """Return the address of a row."""
    text = json.dumps([rows, version, dict(fields), code], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
