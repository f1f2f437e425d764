"""What figures over trainings share: rows with a label, the share of seeds that learned, heat maps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from parityscope.core.drawing import HEAT
from parityscope.core.statistics import Share, wilson_share
from parityscope.records import Config, Row
from parityscope.runs.training import Training, TrainingNumbers

_Value = TypeVar("_Value")
_AnyRow = TypeVar("_AnyRow", bound=Row[Any, Any])


class ShownTraining(Config):
    """A training in a figure; `label` says what it stands for there."""

    label: str
    training: Training

    def row_config(self) -> Training:
        """Return the training, whose row other figures may show too."""
        return self.training


TrainingRow = Row[ShownTraining, TrainingNumbers]


def by_label(rows: Iterable[_AnyRow]) -> dict[str, list[_AnyRow]]:
    """Return the rows of every label, in the order they were made."""
    found: dict[str, list[_AnyRow]] = {}
    for row in rows:
        found.setdefault(row.config.label, []).append(row)
    return found


@runtime_checkable
class _SeedNumbers(Protocol):
    @property
    def learned(self) -> tuple[bool, ...]: ...


@runtime_checkable
class _SeedRow(Protocol):
    @property
    def numbers(self) -> _SeedNumbers: ...


def share_of(rows: Sequence[_SeedRow]) -> Share:
    """Return the share of seeds that learned, over all rows, with Wilson's 95 % interval.

    >>> from parityscope.runs import training
    >>> trained = training("bounded", 8, 2, seeds=range(4))
    >>> str(share_of([Row.of(trained, trained.run())] * 2))
    '8/8 (68%–100%)'
    """
    learned = [one for row in rows for one in row.numbers.learned]
    return wilson_share(sum(learned), len(learned))


def of_learned(numbers: _SeedNumbers, values: Sequence[_Value]) -> list[_Value]:
    """Return what the seeds that learned have among values of all seeds."""
    return [value for value, learned in zip(values, numbers.learned, strict=True) if learned]


def ink_on(value: float) -> str:
    """Return the colour in which a number is readable on the heat map's colour of a value between 0 and 1.

    >>> ink_on(0.1), ink_on(0.9)
    ('white', 'black')
    """
    return "black" if value > 0.6 else "white"


def draw_heat_map(
    axes: Axes,
    values: Sequence[Sequence[float]],
    columns: Sequence[str],
    lines: Sequence[str],
    *,
    span: tuple[float, float] = (0.0, 1.0),
    column_size: float | None = None,
) -> AxesImage:
    """Draw a table of values (NaN: nothing) as colours, with the names of its columns and lines.

    >>> from parityscope.core.drawing import new_figure
    >>> figure, axes = new_figure(3, 2)
    >>> image = draw_heat_map(axes, [[0.0, 0.5, 1.0]], ["a", "b", "c"], ["one line"])
    >>> image.get_clim(), [label.get_text() for label in axes.get_xticklabels()]
    ((0.0, 1.0), ['a', 'b', 'c'])
    """
    image = axes.imshow(values, cmap=HEAT, vmin=span[0], vmax=span[1], aspect="auto")
    axes.set_xticks(range(len(columns)), columns, fontsize=column_size)
    axes.set_yticks(range(len(lines)), lines)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image
