"""What W's figures and claims share: a decoder's training with a label, what rows say of it, and of all its seeds.

Nothing here draws, so that checks of claims can read rows where there is no plotting library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.statistics import median
from parityscope.core.ties import first_largest
from parityscope.papers.figure import TableColumn, table_of
from parityscope.records import Config, Row
from parityscope.runs.decoder import DecoderNumbers, DecoderTraining
from parityscope.training.decoders import CROSSINGS, DecoderSettings

CHAIN, ANSWER = "with CoT", "without CoT"  # labels
FRESH = range(2000, 2005)  # seeds of the reference run: no setting was chosen on them
OWN_WIDTH = 720  # W's
_CHANCE = 0.5
_TWO_SIDED = NormalDist().inv_cdf(0.975)
_Group = TypeVar("_Group", bound=Hashable)
_Ordered = TypeVar("_Ordered", int, tuple[int, int, int])


class ShownDecoder(Config):
    """One training in a figure; `label` says what it stands for there.

    >>> smoke("here").row_config() == smoke("there").row_config()  # one row for both
    True
    """

    label: str
    training: DecoderSettings
    maps: bool = False

    def row_config(self) -> DecoderTraining:
        """Return the training, whose row other figures may show too."""
        return DecoderTraining(training=self.training, maps=self.maps)

    @classmethod
    def of(cls, label: str, n: int, k: int, *, maps: bool = False, **settings: Any) -> ShownDecoder:
        """Return a training by its settings."""
        return cls(label=label, training=DecoderSettings(n=n, k=k, **settings), maps=maps)

    def with_maps(self) -> ShownDecoder:
        """Return the same training with its attention maps kept."""
        return self.model_copy(update={"maps": True})


DecoderRow = Row[ShownDecoder, DecoderNumbers]


def smoke(label: str, n: int = 6, k: int = 2, **changes: Any) -> ShownDecoder:
    """Return a training of a second."""
    usual = {"width": 16, "batch": 32, "steps": 20, "held_out": 16, "evaluate_every": 5, "learning_rate": 3e-3}
    return ShownDecoder.of(label, n, k, **{**usual, **changes})


def narrow(label: str, n: int, k: int, **changes: Any) -> ShownDecoder:
    """Return W's training at a width that trains in seconds: 64 instead of 720, at ten times the rate and more."""
    return laptop(label, n, k, **{"width": 64, "held_out": 512, **changes})


def laptop(label: str, n: int, k: int, **changes: Any) -> ShownDecoder:
    """Return W's training on a laptop: width 128 instead of 720, ten times the rate, no decay, and eight heads.

    The matrices inside the layers start wider than GPT-2's, as wide for this width as W's are for its own. With these
    settings every k from 1 to 12 was learned with a chain on every seed they were tried on, from about as many samples;
    with one head, W's shape, k = 2 and 3 are not: `W-plateau` shows why.

    >>> own = laptop("", 20, 3, steps=400).training
    >>> own.width, own.heads, own.start_gain
    (128, 8, 2.3717)
    """
    width = changes.get("width", 128)
    usual = {
        "width": width,
        "heads": 8,
        "start_gain": round(math.sqrt(OWN_WIDTH / width), 4),
        "learning_rate": 1e-3,
        "decay": False,
        "batch": 256,
        "held_out": 1024,
        "evaluate_every": 10,
    }
    return ShownDecoder.of(label, n, k, **{**usual, **changes})


def of_own_size(row: DecoderRow) -> bool:
    """Say whether a row is of W's own size, and not of one that trains in seconds.

    >>> from parityscope.records import Numbers
    >>> [of_own_size(Row(smoke("", width=width), Numbers())) for width in (64, 720)]
    [False, True]
    """
    return row.config.training.width == OWN_WIDTH


def samples(row: DecoderRow) -> int | None:
    """Return the examples seen when every held-out token was right for the first time: W's sample complexity.

    A row notes when 99 %, 99.5 % and all tokens were right; none means that its budget ended first.
    """
    return row.numbers.samples[-1]


def budget(row: DecoderRow) -> int:
    """Return the examples a training may see."""
    return row.config.training.steps * row.config.training.batch


def samples_at_least(row: DecoderRow) -> int:
    """Return the samples needed, or the budget where it ended first: a lower bound.

    >>> unsolved = DecoderNumbers.model_construct(samples=(None, None, None))
    >>> samples_at_least(Row(smoke(CHAIN, steps=10, batch=32), unsolved))
    320
    """
    return samples(row) or budget(row)


def solved(rows: Iterable[DecoderRow]) -> list[DecoderRow]:
    """Return the rows whose decoder got everything right."""
    return [row for row in rows if samples(row) is not None]


def with_chain(rows: Iterable[DecoderRow], chain: bool) -> list[DecoderRow]:
    """Return the rows with (or without) chain of thought."""
    return [row for row in rows if row.config.training.chain_of_thought is chain]


def best_by_k(rows: Iterable[DecoderRow]) -> dict[int, DecoderRow]:
    """Return, for every k, the row with the fewest samples."""
    return _best_by(rows, lambda training: training.k)


def best_by_shape(rows: Iterable[DecoderRow]) -> dict[tuple[int, int, int], DecoderRow]:
    """Return, for every number of layers, of heads and k, the row with the fewest samples.

    >>> row = Row(smoke("", k=2, layers=3), DecoderNumbers.model_construct(samples=(500,)))
    >>> list(best_by_shape([row, row]))
    [(3, 1, 2)]
    """
    return _best_by(rows, lambda training: (training.layers, training.heads, training.k))


def _best_by(rows: Iterable[DecoderRow], group: Callable[[DecoderSettings], _Ordered]) -> dict[_Ordered, DecoderRow]:
    cells = cells_by(rows, group)
    return {key: min(cells[key].rows, key=lambda row: samples(row) or math.inf) for key in sorted(cells)}


def growth(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the factor per unit of x of the least-squares exponential through (x, y); none below two points."""
    slope = _slope([(x, math.log(y)) for x, y in pairs])
    return None if slope is None else math.exp(slope)


def power(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the power of x of the least-squares power law through (x, y): 1 for a line through the origin."""
    return _slope([(math.log(x), math.log(y)) for x, y in pairs])


def _slope(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len({x for x, _ in pairs}) < 2:
        return None
    x, y = torch.tensor(pairs, dtype=torch.float64).T
    return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())


def fell_before_jump(row: DecoderRow) -> tuple[int | None, int | None]:
    """Return the steps at which the lowest head's entropy has made half its fall, and accuracy half its rise."""
    steps = row.arrays["step"].int().tolist()
    entropy = row.arrays["entropy"].flatten(1).amin(1)
    accuracy = row.arrays["accuracy"]
    half_fall = (entropy[0] + entropy.min()) / 2
    half_rise = (_CHANCE + accuracy.max()) / 2
    fallen = [s for s, value in zip(steps, entropy.tolist(), strict=True) if value <= half_fall]
    risen = [s for s, value in zip(steps, accuracy.tolist(), strict=True) if value >= half_rise]
    return (fallen[0] if fallen else None), (risen[0] if risen else None)


def looking_right(row: DecoderRow) -> int:
    """Return how many chain positions attend to their secret bit most, in some head of the first layer.

    >>> attention = torch.tensor([[0.2, 0.8, 0, 0], [0.1, 0.7, 0.2, 0]])
    >>> numbers = DecoderNumbers.model_construct(secret=(1, 0))
    >>> row = Row(smoke(CHAIN, n=2), numbers, {"attention": attention[None, None]})
    >>> looking_right(row)  # position 2 looks at bit 1 as it should, position 3 does not look at bit 0
    1
    """
    heads = row.arrays["attention"][0]
    return sum(any(int(first_largest(head[i])) == bit for head in heads) for i, bit in enumerate(row.numbers.secret))


def attention_on_secret(row: DecoderRow) -> Float[Tensor, "layers links"]:
    """Return the attention of every chain position on its secret bit, by the head of a layer that gives it most.

    >>> attention_on_secret(Row(smoke(CHAIN, k=1), DecoderNumbers.model_construct(), {"on_secret": torch.ones(1, 1)}))
    tensor([[1.]])
    """
    return row.arrays["on_secret"]


def shape_name(row: DecoderRow) -> str:
    """Return a row's layers × heads in words.

    >>> from parityscope.records import Numbers
    >>> shape_name(Row(smoke("", layers=2, heads=3), Numbers()))
    '2 × 3'
    """
    return f"{row.config.training.layers} × {row.config.training.heads}"


def _lowest_entropy(row: DecoderRow) -> float:
    """Return the lowest normalised entropy any head reached.

    >>> from parityscope.records import Numbers
    >>> entropy = torch.tensor([[[1.0, 0.75]], [[0.5, 0.25]]])  # two records of a layer with two heads
    >>> _lowest_entropy(Row(smoke("", heads=2), Numbers(), {"entropy": entropy}))
    0.25
    """
    return float(row.arrays["entropy"].min())


def stays_elevated(row: DecoderRow) -> bool:
    """Return whether no head's entropy ever fell below half of the lowest one's start: it remained elevated.

    >>> from parityscope.records import Numbers
    >>> curves = [torch.tensor(curve)[:, None, None] for curve in ([1.0, 0.75], [1.0, 0.25])]
    >>> [stays_elevated(Row(smoke(""), Numbers(), {"entropy": entropy})) for entropy in curves]
    [True, False]
    """
    return _lowest_entropy(row) >= float(row.arrays["entropy"][0].min()) / 2


def best_accuracy(row: DecoderRow) -> float:
    """Return the best held-out accuracy during training.

    >>> from parityscope.records import Numbers
    >>> best_accuracy(Row(smoke(""), Numbers(), {"accuracy": torch.tensor([0.5, 0.75, 0.625])}))
    0.75
    """
    return float(row.arrays["accuracy"].max())


def guessing_bound(row: DecoderRow) -> float:
    """Return an accuracy that guessing exceeds with probability below 1e-9 per evaluation: six standard deviations.

    >>> from parityscope.records import Numbers
    >>> guessing_bound(Row(smoke("", held_out=900), Numbers()))
    0.6
    """
    return 0.5 + 6 * 0.5 / math.sqrt(row.config.training.held_out)


@dataclass(frozen=True)
class DecoderCell:
    """The trainings of one setting, one per seed."""

    rows: tuple[DecoderRow, ...]

    @property
    def needed(self) -> list[int]:
        """The samples of the seeds that got everything right, the fewest first."""
        return sorted(count for row in self.rows if (count := samples(row)) is not None)

    @property
    def reached(self) -> int:
        """How many seeds got everything right."""
        return len(self.needed)

    @property
    def median(self) -> float | None:
        """The median of the samples needed, a seed whose budget ended counting as never; none: that is the median."""
        never = [math.inf] * (len(self.rows) - self.reached)
        middle = median([*self.needed, *never])
        return None if math.isinf(middle) else middle

    @property
    def budget(self) -> int:
        """The samples a training may see."""
        return max(map(budget, self.rows))

    def __str__(self) -> str:
        if not self.needed:
            return f"more than {self.budget:,} ({_seeds(0, len(self.rows))})"
        middle = f"more than {self.budget:,}" if self.median is None else f"{self.median:,.0f}"
        if len(self.rows) == 1:
            return middle
        return f"{middle} ({self.needed[0]:,}–{self.needed[-1]:,}; {_seeds(self.reached, len(self.rows))})"


def _seeds(reached: int, count: int) -> str:
    return f"all {count} seeds" if reached == count else f"{reached} of {count} seeds"


def cells_by(rows: Iterable[DecoderRow], group: Callable[[DecoderSettings], _Group]) -> dict[_Group, DecoderCell]:
    """Return the trainings of every group over their seeds, in the order they come in.

    >>> rows = [Row(smoke("", k=k, seed=seed), DecoderNumbers.model_construct()) for k in (2, 1) for seed in (0, 1)]
    >>> {k: len(cell.rows) for k, cell in cells_by(rows, lambda training: training.k).items()}
    {2: 2, 1: 2}
    """
    found: dict[_Group, list[DecoderRow]] = {}
    for row in rows:
        found.setdefault(group(row.config.training), []).append(row)
    return {key: DecoderCell(tuple(cell)) for key, cell in found.items()}


class FittedSlope(NamedTuple):
    """A least-squares slope with its 95 % interval.

    >>> str(FittedSlope(2.0, 1.5, 2.5))
    '2.00 (1.50–2.50)'
    """

    slope: float
    low: float
    high: float

    def __str__(self) -> str:
        digits = 0 if abs(self.slope) >= 100 else 2
        return f"{self.slope:,.{digits}f} ({self.low:,.{digits}f}–{self.high:,.{digits}f})"


def line(pairs: Sequence[tuple[float, float]]) -> FittedSlope | None:
    """Return the line through (x, y): its slope, y per unit of x; none for fewer than three points or one x."""
    xs = [x for x, _ in pairs]
    if len(pairs) < 3 or len(set(xs)) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in pairs) / spread
    residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in pairs)
    half = _TWO_SIDED * math.sqrt(residual / (len(pairs) - 2) / spread)
    return FittedSlope(slope, slope - half, slope + half)


def exponential(pairs: Sequence[tuple[float, float]]) -> FittedSlope | None:
    """Return the exponential law through (x, y): the factor of y per unit of x."""
    law = line([(x, math.log(y)) for x, y in pairs])
    return None if law is None else FittedSlope(*map(math.exp, law))


def power_law(pairs: Sequence[tuple[float, float]]) -> FittedSlope | None:
    """Return the power law through (x, y): the power of x, 1 for a line through the origin."""
    return line([(math.log(x), math.log(y)) for x, y in pairs])


def reached_pairs(cells: Mapping[int, DecoderCell]) -> list[tuple[float, float]]:
    """Return (k, samples) of every seed that got everything right.

    >>> rows = [Row(smoke(""), DecoderNumbers.model_construct(samples=(count,))) for count in (500, None)]
    >>> reached_pairs({2: DecoderCell(tuple(rows))})
    [(2.0, 500.0)]
    """
    return [(float(k), float(count)) for k, cell in cells.items() for count in cell.needed]


def spoken_cells(cells: Mapping[int, DecoderCell]) -> str:
    """Return the samples needed for every k in words.

    >>> row = Row(smoke("", steps=100, batch=10), DecoderNumbers.model_construct(samples=(None,)))
    >>> spoken_cells({3: DecoderCell((row,) * 5)})
    'k = 3: more than 1,000 (0 of 5 seeds)'
    """
    return ", ".join(f"k = {k}: {cell}" for k, cell in cells.items())


def _samples_to(place: int, row: DecoderRow) -> int | None:
    return row.numbers.samples[place]


training_table = table_of(
    TableColumn("label", lambda row: row.config.label),
    TableColumn("seed", lambda row: row.config.training.seed),
    TableColumn("n", lambda row: row.config.training.n),
    TableColumn("k", lambda row: row.config.training.k),
    TableColumn("chain", lambda row: "yes" if row.config.training.chain_of_thought else "no"),
    TableColumn("layers × heads", shape_name),
    TableColumn("width", lambda row: row.config.training.width),
    TableColumn("pool", lambda row: "fresh" if row.config.training.pool is None else f"{row.config.training.pool:,}"),
    TableColumn("rate", lambda row: row.config.training.learning_rate, "g"),
    TableColumn("accuracy", lambda row: row.numbers.accuracy, ".4f"),
    TableColumn("free-running", lambda row: row.numbers.free_running, ".4f"),
    *(
        TableColumn(f"samples to {accuracy:g}", partial(_samples_to, place), ",")
        for place, accuracy in enumerate(CROSSINGS)
    ),
    TableColumn("entropy", lambda row: row.numbers.final_entropy, ".3f"),
)
