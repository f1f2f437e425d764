"""What an experiment is: one file with configs per scale, `run`, `plot`, a table, findings, its cost and a text."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from pydantic import BaseModel, ConfigDict

from parityscope.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

Scale = Literal["smoke", "demo", "reference", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)


def named_scale(name: str) -> Scale:
    """Return the scale called `name`.

    >>> named_scale("demo")
    'demo'
    """
    for scale in SCALES:
        if scale == name:
            return scale
    raise InvalidInput(f"unknown scale {name!r}: choose one of {', '.join(SCALES)}")


class Config(BaseModel):
    """The full description of one run; frozen, and a misspelt field is an error.

    >>> class Size(Config):
    ...     n: int
    >>> Size(n=20)
    Size(n=20)
    >>> Size(m=20)
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 2 validation errors for Size
    ...
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


class Result(NamedTuple):
    """What `run` returns: numbers for tables (JSON), arrays for pictures.

    >>> Result({"learned": 3}).numbers["learned"], dict(Result({}).arrays)
    (3, {})
    """

    numbers: dict[str, Any]
    arrays: Mapping[str, Tensor] = {}


@dataclass(frozen=True)
class Row:
    """A stored result: what one config gave, and where it comes from.

    >>> row = Row("H1-success", {"n": 12, "seeds": 4}, {"learned": 3}, seconds=1.5)
    >>> row.numbers["learned"] / row.config["seeds"]
    0.75
    """

    experiment: str
    config: dict[str, Any]
    numbers: dict[str, Any]
    arrays: Mapping[str, Tensor] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    finished: float = 0.0
    seconds: float = 0.0
    traceback: str = ""  # of a run that failed; empty when it is done


class Table(NamedTuple):
    """The numbers a figure shows, as text.

    >>> Table(["n", "learned"], [["12", "3 of 4"]]).rows[0][1]
    '3 of 4'
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Finding(NamedTuple):
    """What the paper says, and what was computed here.

    >>> Finding("The loss at initialization is 1.", "Mean risk at the start: 1.37.").here
    'Mean risk at the start: 1.37.'
    """

    paper: str
    here: str


@runtime_checkable
class Experiment(Protocol):
    """The contract of a file in `experiments/`. `run` never plots and `plot` never trains.

    More names are looked for: TIMED (rows are timings, never measured beside other work), PACK (how many configs of a
    `Packable` make one program), COMMAND (what stores the rows, where `reproduce` does not), and ROWS_FROM with
    `row_config` (the rows are those of another ID, shared with other figures, each under what `row_config` returns).

    >>> from parityscope.experiments import load_experiment
    >>> isinstance(load_experiment("H2-parameters"), Experiment)
    True
    """

    ID: str
    TITLE: str
    TEXT: str
    COST: Mapping[Scale, float]  # seconds on two idle cores
    CONFIGS: Mapping[Scale, Sequence[Config]]  # none at any scale: another command stores the rows

    def run(self, config: Any) -> Result:
        """Compute the row of one config."""
        ...

    def plot(self, rows: Sequence[Row]) -> Figure:
        """Draw the figure from stored rows."""
        ...

    def table(self, rows: Sequence[Row]) -> Table:
        """Return the numbers the figure shows."""
        ...

    def findings(self, rows: Sequence[Row]) -> Sequence[Finding]:
        """Set the paper beside what was computed."""
        ...


@runtime_checkable
class Packable(Protocol):
    """What an experiment adds when several of its configs fit into one batched tensor program.

    Configs of equal `batch_shape` may share a program; every run in it must give what it gives alone, to 1e-9.

    >>> from parityscope.experiments import load_experiment
    >>> [isinstance(load_experiment(name), Packable) for name in ("phase-n-k", "H1-figure-1")]
    [True, False]
    """

    def batch_shape(self, config: Any) -> Hashable:
        """Return what configs must agree on to be packed together."""
        ...

    def run_batch(self, configs: Sequence[Any]) -> Sequence[Result]:
        """Compute the rows of several configs at once, in their order."""
        ...


@dataclass(frozen=True)
class Stage:
    """Where a reproduction stands, for a progress display; `name` is what has just been finished, if anything has.

    >>> stage = Stage("H1-sgd", done=9, total=36, seconds_left=12.0)
    >>> f"{stage.name}: {stage.done / stage.total:.0%}"
    'H1-sgd: 25%'
    """

    name: str | None
    done: int
    total: int
    seconds_left: float
    configs: ConfigCounts | None = None


class ConfigCounts(Protocol):
    """How many configs are done, of how many.

    >>> from parityscope.sweep import Progress
    >>> counts: ConfigCounts = Progress(total=8, done=2, failed=0, running=1, per_second=0.5)
    """

    @property
    def done(self) -> int:
        """Configs that have a row."""
        ...

    @property
    def total(self) -> int:
        """All of them."""
        ...
