"""Can the hidden bits be read off the heads? A rule, its margin as confidence, and when it is right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import Share, share_of_true, wilson_share
from parityscope.core.ties import tolerance
from parityscope.measures import found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.problems import Parity, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import Training, training
from parityscope.training.learning import LEARNED_ACCURACY, train

ID = "H1-reading-support"
TITLE = "Reading the hidden bits off the heads"
TEXT = (
    "The weight of a position in the score is its attention summed over heads, 1 on hidden bits and 0 elsewhere "
    "once learned. With k known the rule selects the k largest weights; with k unknown to the reader, every weight "
    "above 1/2. The gap between the k-th and the next weight is its confidence. Left: seeds whose support was "
    "recovered exactly after training, beside those that classify more than 99 % of inputs correctly. Middle: over all "
    "stages of all trainings, how often the rule was right at a given gap, for runs that learned in the end and for "
    "the others (stages of one run are not independent, so the intervals count runs). Right: when the rule first "
    "was right for good and when accuracy first passed 99 %; below the line reading comes first. N is the number of "
    "drawn examples; the other runs train on the population."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 6, "reference": 9}
_GAPS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.01)
_CHECKED_ON = 32  # fresh examples; a wrong reading agrees with all of them with probability 2⁻³²
_GROWTH = 1.2  # stages are spaced like this, because little happens late


class SupportReadingNumbers(Numbers):
    """What the final heads say, one entry per seed."""

    learned: tuple[bool, ...]
    largest_right: tuple[bool, ...]
    above_half_right: tuple[bool, ...]
    confirmed: tuple[bool, ...]  # the reading above ½, by fresh examples

    @property
    def confirmed_but_wrong(self) -> int:
        """How many confirmed readings are not the hidden bits."""
        pairs = zip(self.confirmed, self.above_half_right, strict=True)
        return sum(confirmed and not right for confirmed, right in pairs)


class SupportReading(Config):
    """The heads of a training, read at every stage."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = SupportReadingNumbers

    training: Training

    @property
    def label(self) -> str:
        """What it is called in the figure."""
        name, samples = self.training.recipe.name.replace("-", " "), self.training.samples
        return f"{name}, k = {self.training.k}" + ("" if samples is None else f", N = {samples}")

    def run(self) -> Result:
        """Train all seeds and read their heads."""
        of = self.training
        stages = _Stages(of.problems())
        trained = train(
            stages.problems,
            [of.recipe],
            of.seeds,
            samples=of.samples,
            on_record=stages.read_now_and_then,
            record_every=of.record_every,
        )
        stages.read(int(trained.steps.max()) + 1, trained.model)
        arrays = stages.arrays()
        final = read_support(trained.model.score_weights().detach(), of.k)
        numbers = SupportReadingNumbers(
            learned=trained.learned.tolist(),
            largest_right=arrays["largest"][-1].tolist(),
            above_half_right=arrays["above_half"][-1].tolist(),
            confirmed=tuple(
                reading_is_confirmed(reading, problem, seeded_generator(seed, "held-out"))
                for reading, problem, seed in zip(final.above_half, stages.problems, of.seeds, strict=True)
            ),
        )
        return Result(numbers, arrays)


_Row = Row[SupportReading, SupportReadingNumbers]


def _configs(n: int, seeds: int, samples: Sequence[int], as_written: int, as_coded: int) -> list[SupportReading]:
    def reading(recipe: str, k: int = 3, **more: Any) -> SupportReading:
        return SupportReading(training=training(recipe, n, k, seeds=range(seeds), record_every=2, **more))

    return [
        reading("as-written", learning_rate=0.1, steps=as_written),
        reading("as-coded", 2, learning_rate=0.2, steps=as_coded),
        reading("as-coded", 3, learning_rate=0.2, steps=as_coded),
        reading("repaired"),
        reading("bounded"),
        *(reading("bounded", samples=count) for count in samples),
    ]


CONFIGS: dict[Scale, list[SupportReading]] = {
    "smoke": _configs(6, 4, (100,), 20, 60),
    "demo": _configs(12, 8, (200, 400, 2000), 60, 600),
    "reference": _configs(12, 16, (200, 400, 2000), 100, 600),
}


class NamedBits(NamedTuple):
    """What the weights say: the k largest as a mask, those above ½ as a mask, and the gap after the k-th.

    >>> reading = read_support(torch.tensor([0.75, 0.25, 0.0]), 2)
    >>> reading.largest.tolist(), reading.above_half.tolist(), reading.gap.item()
    ([True, True, False], [True, False, False], 0.25)
    """

    largest: Bool[Tensor, "*runs n"]
    above_half: Bool[Tensor, "*runs n"]
    gap: Float[Tensor, "*runs"]


def read_support(weights: Float[Tensor, "*runs n"], k: int) -> NamedBits:
    """Return the hidden bits as the weights c tell them, for known and for unknown k."""
    ordered = weights.sort(dim=-1, descending=True).values
    after = ordered[..., k] if k < weights.shape[-1] else torch.zeros_like(ordered[..., 0])
    named = torch.zeros_like(weights, dtype=torch.bool).scatter_(-1, found_support(weights, k), True)
    return NamedBits(named, weights > 0.5 + tolerance(weights.dtype), ordered[..., k - 1] - after)


def reading_is_confirmed(reading: Bool[Tensor, " n"], problem: Parity, generator: torch.Generator) -> bool:
    """Say whether the parity of the named bits agrees with every one of 32 fresh examples.

    A wrong set of bits agrees with each of them with probability ½ (uniform bits, clean labels).
    """
    if not bool(reading.any()):
        return False
    named = Parity(problem.n, tuple(reading.nonzero().flatten().tolist()))
    x, y = problem.sample(_CHECKED_ON, generator)
    return bool((named.label(x) == y).all())


class _Stages:
    """Reads the heads of all runs at some steps of a training."""

    def __init__(self, problems: Sequence[Parity]) -> None:
        self.problems = problems
        self.hidden = torch.stack([problem.mask() for problem in problems])
        self.steps: list[int] = []
        self.kept: dict[str, list[Tensor]] = {name: [] for name in ("gap", "largest", "above_half", "accurate")}

    def read_now_and_then(self, step: int, model: ParityTransformer) -> None:
        if not self.steps or step >= max(self.steps[-1] + 1, _GROWTH * self.steps[-1]):
            self.read(step, model)

    def read(self, step: int, model: ParityTransformer) -> None:
        with torch.no_grad():
            reading = read_support(model.score_weights(), model.k)
            accurate = measured_accuracy(model, self.problems).value > LEARNED_ACCURACY
        self.steps.append(step)
        self.kept["gap"].append(reading.gap)
        self.kept["largest"].append((reading.largest == self.hidden).all(-1))
        self.kept["above_half"].append((reading.above_half == self.hidden).all(-1))
        self.kept["accurate"].append(accurate)

    def arrays(self) -> dict[str, Tensor]:
        """Return `stages`, their steps, and what was read at each: (stages, runs)."""
        return {"stages": torch.tensor(self.steps), **{name: torch.stack(one) for name, one in self.kept.items()}}


def calibration(rows: Sequence[_Row], *, learned: bool) -> list[tuple[float, float, Share]]:
    """Return per bin of the gap its mean, the share of stages at which the rule was right, and runs that had any.

    The share's interval is that of as many trials as runs fell into the bin.
    """
    points = []
    for low, high in pairwise(_GAPS):
        gaps, rights, runs = [], [], 0
        for row in rows:
            chosen = torch.tensor(row.numbers.learned) == learned
            inside = (row.arrays["gap"] >= low) & (row.arrays["gap"] < high) & chosen
            gaps.append(row.arrays["gap"][inside])
            rights.append(row.arrays["largest"][inside].double())
            runs += int(inside.any(0).sum())
        right = torch.cat(rights)
        if runs:
            value = float(right.mean())
            points.append((float(torch.cat(gaps).mean()), value, wilson_share(round(value * runs), runs)))
    return points


def _first_times(row: _Row) -> list[tuple[int, int]]:
    """Return, for runs that learned, when the rule was first right for good and when accuracy first passed 99 %."""
    pairs = []
    stages = row.arrays["stages"]
    for index in (run for run, learned in enumerate(row.numbers.learned) if learned):
        wrong = (~row.arrays["largest"][:, index].bool()).nonzero().flatten()
        named = int(stages[int(wrong[-1]) + 1]) if len(wrong) else int(stages[0])
        accurate = row.arrays["accurate"][:, index].bool().nonzero().flatten()
        pairs.append((named, int(stages[int(accurate[0])])))
    return pairs


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw final shares, calibration of the gap, and when reading and accuracy come."""
    figure, (left, middle, right) = new_figure(14, 4.9, 1, 3, width_ratios=[1.35, 1, 1])
    after = {
        "k largest": [row.numbers.largest_right for row in rows],
        "above 1/2": [row.numbers.above_half_right for row in rows],
        "learned": [row.numbers.learned for row in rows],
    }
    for index, (label, every) in enumerate(after.items()):
        places = [place + 0.2 * (index - 1) for place in range(len(rows))]
        draw_shares(left, places, [share_of_true(one) for one in every], linestyle="", color=colour(index), label=label)
    left.set_xticks(range(len(rows)), [row.config.label.replace(", ", "\n") for row in rows], fontsize=8)
    left.set(ylabel="share of seeds", title="after training")
    left.legend(loc="lower right", fontsize=9)
    for learned, index, label in ((True, 2, "runs that learned"), (False, 1, "runs that did not")):
        points = calibration(rows, learned=learned)
        draw_shares(middle, [gap for gap, _, _ in points], [s for _, _, s in points], color=colour(index), label=label)
    middle.set(xlabel="gap after the k-th weight", ylabel="rule right", title="calibration over all stages")
    middle.legend(loc="lower right", fontsize=9)
    latest = 2
    for index, row in enumerate(row for row in rows if any(row.numbers.learned)):
        pairs = _first_times(row)
        latest = max(latest, *(max(pair) for pair in pairs))
        accurate, named = [max(1, a) for _, a in pairs], [max(1, s) for s, _ in pairs]
        style: dict[str, Any] = {"color": colour(index % 6), "marker": "os"[index // 6 % 2], "markersize": 5}
        right.plot(accurate, named, linestyle="", alpha=0.7, label=row.config.label, **style)
    right.plot([1, latest], [1, latest], "--", color="#888888", linewidth=1)
    right.set(xlabel="step at which accuracy passed 99 %", ylabel="step from which the support was recovered")
    right.set(xscale="log", yscale="log", title="which comes first")
    right.legend(loc="upper left", fontsize=8)
    return figure


table = table_of(
    TableColumn("recipe", lambda row: row.config.label),
    TableColumn("learned", lambda row: share_of_true(row.numbers.learned)),
    TableColumn("k largest correct", lambda row: share_of_true(row.numbers.largest_right)),
    TableColumn("above 1/2 correct", lambda row: share_of_true(row.numbers.above_half_right)),
    TableColumn("confirmed by 32 examples", lambda row: sum(row.numbers.confirmed)),
    TableColumn("of those wrong", lambda row: row.numbers.confirmed_but_wrong),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Answer the open question by counts: after training, by confidence, and before accuracy."""
    final = [(row.numbers.learned, row.numbers.largest_right) for row in rows]
    unlearned = [right for pair in final for learned, right in zip(*pair, strict=True) if not learned]
    accurate = [bool(one) for row in rows for one in row.arrays["accurate"][-1]]
    named = [one for row in rows for one in row.numbers.above_half_right]
    accurate_and_named = sum(a and b for a, b in zip(accurate, named, strict=True))
    wide = [(row.arrays["gap"] >= 0.6, row.arrays["largest"].bool()) for row in rows]
    stages, right = sum(int(w.sum()) for w, _ in wide), sum(int((w & r).sum()) for w, r in wide)
    pairs = [pair for row in rows for pair in _first_times(row)]
    confirmed = sum(sum(row.numbers.confirmed) for row in rows)
    wrong = sum(row.numbers.confirmed_but_wrong for row in rows)
    earlier = sum(named_at < accurate_at for named_at, accurate_at in pairs)
    return [
        Finding(
            "Open question: can the parity set be recovered from the learned heads?",
            f"Of {sum(accurate)} runs with an accuracy above 99 %, {accurate_and_named} recover the "
            "support exactly by the weights above 1/2, without knowing k. Of the "
            f"{len(unlearned)} runs that did not learn, {sum(unlearned)} recover it by the k largest.",
        ),
        Finding(
            "(With which confidence?)",
            f"At a gap of 0.6 or more the rule was right at {right} of {stages} stages; at the other {stages - right} "
            "the heads were sure of wrong bits: the gap says how sharp attention is, not that it is right. Readings "
            f"above 1/2 checked against {_CHECKED_ON} fresh examples: {confirmed} confirmed, "
            f"{wrong} of them wrong.",
        ),
        Finding(
            "(Before or after accuracy?)",
            f"In {earlier} of {len(pairs)} runs that learned the support was recovered for good before accuracy "
            "passed 99 %.",
        ),
    ]
