"""Can the hidden bits be read off the heads? A rule, its margin as confidence, and when it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from pydantic import Field
from torch import Tensor

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import Share, wilson_share
from parityscope.core.ties import tolerance
from parityscope.measures import found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import Parity, draw_problems, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.training.learning import LEARNED_ACCURACY, learn

ID = "H1-reading-support"
TITLE = "Reading the hidden bits off the heads"
TEXT = (
    "The weight of a position in the score is its attention summed over heads, 1 on hidden bits and 0 elsewhere "
    "once learned. With k known the rule names the k largest weights; with k unknown to the reader, every weight "
    "above 1/2. The gap between the k-th and the next weight is its confidence. Left: seeds whose hidden bits were "
    "named exactly after training, beside those that classify more than 99 % of inputs right. Middle: over all "
    "stages of all trainings, how often the rule was right at a given gap, for runs that learned in the end and for "
    "the others (stages of one run are not independent, so the intervals count runs). Right: when the rule first "
    "was right for good and when accuracy first passed 99 %; below the line reading comes first. N is the number of "
    "drawn examples; the other runs train on the population."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 6, "reference": 9, "paper": 200}
_GAPS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.01)
_CHECKED_ON = 32  # fresh examples; a wrong reading agrees with all of them with probability 2⁻³²
_GROWTH = 1.2  # stages are spaced like this, because little happens late


class TrainingNumbers(Numbers):
    """TODO."""


class Training(Config):
    """One recipe at one size."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = TrainingNumbers

    label: str
    recipe: str
    n: int
    k: int
    seeds: int
    samples: int | None = None
    overrides: Mapping[str, Any] = Field(default_factory=dict)

    def run(self) -> Result:
        """Train all seeds and read the heads at every stage."""
        seeds = range(self.seeds)
        problems = draw_problems(self.n, self.k, seeds)
        hidden = torch.stack([problem.mask() for problem in problems])
        stages: list[int] = []
        kept: dict[str, list[Tensor]] = {name: [] for name in ("gap", "largest", "above_half", "accurate")}

        def read(step: int, model: ParityTransformer) -> None:
            if stages and step < max(stages[-1] + 1, _GROWTH * stages[-1]):
                return
            stages.append(step)
            _keep(kept, model, self.k, hidden, problems)

        trained = learn(
            problems, self.recipe, seeds, samples=self.samples, on_record=read, record_every=2, **self.overrides
        )
        stages.append(int(trained.steps.max()) + 1)
        _keep(kept, trained.model, self.k, hidden, problems)
        arrays = {name: torch.stack(values) for name, values in kept.items()}
        final = read_support(trained.model.score_weights().detach(), self.k)
        confirmed = [
            reading_is_confirmed(reading, problem, seeded_generator(seed, "held-out"))
            for reading, problem, seed in zip(final.above_half, problems, seeds, strict=True)
        ]
        right = (final.above_half == hidden).all(-1)
        numbers = {
            "learned": int(trained.learned.sum()),
            "largest_right": int(arrays["largest"][-1].sum()),
            "above_half_right": int(right.sum()),
            "confirmed": sum(confirmed),
            "confirmed_but_wrong": sum(yes and not bool(ok) for yes, ok in zip(confirmed, right, strict=True)),
        }
        return Result(numbers, {"stages": torch.tensor(stages), "learned": trained.learned, **arrays})


def _configs(n: int, seeds: int, samples: Sequence[int], as_written: int, as_coded: int) -> list[Training]:
    def entry(label: str, recipe: str, k: int, **more: Any) -> Training:
        return Training(label=label, recipe=recipe, n=n, k=k, seeds=seeds, **more)

    rate = {"learning_rate": 0.2, "steps": as_coded}
    return [
        entry("as written, k = 3", "as-written", 3, overrides={"learning_rate": 0.1, "steps": as_written}),
        entry("as coded, k = 2", "as-coded", 2, overrides=rate),
        entry("as coded, k = 3", "as-coded", 3, overrides=rate),
        entry("repaired, k = 3", "repaired", 3),
        entry("bounded, k = 3", "bounded", 3),
        *(entry(f"bounded, k = 3, N = {count}", "bounded", 3, samples=count) for count in samples),
    ]


_Row = Row[Training, TrainingNumbers]

CONFIGS: dict[Scale, list[Training]] = {
    "smoke": _configs(6, 4, (100,), 20, 60),
    "demo": _configs(12, 8, (200, 400, 2000), 60, 600),
    "reference": _configs(12, 16, (200, 400, 2000), 100, 600),
    "paper": _configs(16, 64, (500, 1000, 2000, 8000), 1000, 2000),
}


class Reading(NamedTuple):
    """What the weights say: the k largest as a mask, those above ½ as a mask, and the gap after the k-th.

    >>> reading = read_support(torch.tensor([0.75, 0.25, 0.0]), 2)
    >>> reading.largest.tolist(), reading.above_half.tolist(), reading.gap.item()
    ([True, True, False], [True, False, False], 0.25)
    """

    largest: Bool[Tensor, "*runs n"]
    above_half: Bool[Tensor, "*runs n"]
    gap: Float[Tensor, "*runs"]


def read_support(weights: Float[Tensor, "*runs n"], k: int) -> Reading:
    """Return the hidden bits as the weights c tell them, for known and for unknown k.

    >>> reading = read_support(torch.tensor([0.0, 0.9, 0.3, 0.8]), 2)
    >>> reading.largest.tolist(), reading.above_half.tolist(), round(reading.gap.item(), 6)
    ([False, True, False, True], [False, True, False, True], 0.5)
    """
    ordered = weights.sort(dim=-1, descending=True).values
    after = ordered[..., k] if k < weights.shape[-1] else torch.zeros_like(ordered[..., 0])
    named = torch.zeros_like(weights, dtype=torch.bool).scatter_(-1, found_support(weights, k), True)
    return Reading(named, weights > 0.5 + tolerance(weights.dtype), ordered[..., k - 1] - after)


def reading_is_confirmed(reading: Bool[Tensor, " n"], problem: Parity, generator: torch.Generator) -> bool:
    """Say whether the parity of the named bits agrees with every one of 32 fresh examples.

    A wrong set of bits agrees with each of them with probability ½ (uniform bits, clean labels).

    >>> problem, g = Parity(4, (0, 2)), torch.Generator().manual_seed(0)
    >>> right, wrong = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
    >>> reading_is_confirmed(right, problem, g), reading_is_confirmed(wrong, problem, g)
    (True, False)
    """
    if not bool(reading.any()):
        return False
    named = Parity(problem.n, tuple(reading.nonzero().flatten().tolist()))
    x, y = problem.sample(_CHECKED_ON, generator)
    return bool((named.label(x) == y).all())


def _keep(
    kept: dict[str, list[Tensor]], model: ParityTransformer, k: int, hidden: Tensor, problems: Sequence[Parity]
) -> None:
    with torch.no_grad():
        reading = read_support(model.score_weights(), k)
        kept["gap"].append(reading.gap)
        kept["largest"].append((reading.largest == hidden).all(-1))
        kept["above_half"].append((reading.above_half == hidden).all(-1))
        kept["accurate"].append(measured_accuracy(model, problems).value > LEARNED_ACCURACY)


def calibration(rows: Sequence[_Row], *, learned: bool) -> list[tuple[float, float, Share]]:
    """Return per bin of the gap its mean, the share of stages at which the rule was right, and runs that had any.

    The share's interval is that of as many trials as runs fell into the bin.

    >>> stages = {"gap": torch.tensor([[0.01], [0.75]]), "largest": torch.tensor([[False], [True]])}
    >>> row = Row("", {}, {}, {**stages, "learned": torch.tensor([True])})
    >>> [(round(gap, 2), value) for gap, value, _ in calibration([row], learned=True)]
    [(0.01, 0.0), (0.75, 1.0)]
    """
    points = []
    for low, high in pairwise(_GAPS):
        gaps, rights, runs = [], [], 0
        for row in rows:
            chosen = row.arrays["learned"].bool() == learned
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
    for index in row.arrays["learned"].bool().nonzero().flatten().tolist():
        wrong = (~row.arrays["largest"][:, index].bool()).nonzero().flatten()
        named = int(stages[int(wrong[-1]) + 1]) if len(wrong) else int(stages[0])
        accurate = row.arrays["accurate"][:, index].bool().nonzero().flatten()
        pairs.append((named, int(stages[int(accurate[0])])))
    return pairs


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw final shares, calibration of the gap, and when reading and accuracy come."""
    figure, (left, middle, right) = new_figure(14, 4.9, 1, 3, width_ratios=[1.35, 1, 1])
    names = (("largest_right", "k largest"), ("above_half_right", "above 1/2"), ("learned", "learned"))
    for index, (name, label) in enumerate(names):
        places = [place + 0.2 * (index - 1) for place in range(len(rows))]
        shares = [wilson_share(row.numbers[name], row.config.seeds) for row in rows]
        draw_shares(left, places, shares, linestyle="", color=colour(index), label=label)
    left.set_xticks(range(len(rows)), [row.config.label.replace(", ", "\n") for row in rows], fontsize=8)
    left.set(ylabel="share of seeds", title="after training")
    left.legend(loc="lower right", fontsize=9)
    for learned, index, label in ((True, 2, "runs that learned"), (False, 1, "runs that did not")):
        points = calibration(rows, learned=learned)
        draw_shares(middle, [gap for gap, _, _ in points], [s for _, _, s in points], color=colour(index), label=label)
    middle.set(xlabel="gap after the k-th weight", ylabel="rule right", title="calibration over all stages")
    middle.legend(loc="lower right", fontsize=9)
    latest = 2
    for index, row in enumerate(row for row in rows if row.numbers.learned):
        pairs = _first_times(row)
        latest = max(latest, *(max(pair) for pair in pairs))
        accurate, named = [max(1, a) for _, a in pairs], [max(1, s) for s, _ in pairs]
        style: dict[str, Any] = {"color": colour(index % 6), "marker": "os"[index // 6 % 2], "markersize": 5}
        right.plot(accurate, named, linestyle="", alpha=0.7, label=row.config.label, **style)
    right.plot([1, latest], [1, latest], "--", color="#888888", linewidth=1)
    right.set(xlabel="step at which accuracy passed 99 %", ylabel="step from which the bits were named")
    right.set(xscale="log", yscale="log", title="which comes first")
    right.legend(loc="upper left", fontsize=8)
    return figure


def table(rows: Sequence[_Row]) -> Table:
    """Return final readings of every recipe."""
    header = ["recipe", "learned", "k largest right", "above 1/2 right", "confirmed by 32 examples", "of those wrong"]
    return Table(
        header,
        [
            [
                row.config.label,
                str(wilson_share(row.numbers.learned, row.config.seeds)),
                str(wilson_share(row.numbers.largest_right, row.config.seeds)),
                str(wilson_share(row.numbers.above_half_right, row.config.seeds)),
                str(row.numbers.confirmed),
                str(row.numbers.confirmed_but_wrong),
            ]
            for row in rows
        ],
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Answer the open question by counts: after training, by confidence, and before accuracy."""
    total = {name: sum(row.numbers[name] for row in rows) for name in rows[0].numbers}
    accurate = [row.arrays["accurate"][-1].bool() for row in rows]
    named = [row.arrays["above_half"][-1].bool() for row in rows]
    accurate_and_named = sum(int((a & b).sum()) for a, b in zip(accurate, named, strict=True))
    wide = [(row.arrays["gap"] >= 0.6, row.arrays["largest"].bool()) for row in rows]
    stages, right = sum(int(w.sum()) for w, _ in wide), sum(int((w & r).sum()) for w, r in wide)
    pairs = [pair for row in rows for pair in _first_times(row)]
    earlier = sum(named_at < accurate_at for named_at, accurate_at in pairs)
    not_learned = sum(row.config.seeds for row in rows) - total["learned"]
    return [
        Finding(
            "Open question: can the parity set be recovered from the learned heads?",
            f"Of {sum(int(a.sum()) for a in accurate)} runs with an accuracy above 99 %, {accurate_and_named} name the "
            "hidden bits exactly by the weights above 1/2, without knowing k. Of the "
            f"{not_learned} runs that did not learn, {total['largest_right'] - total['learned']} name them by the k "
            "largest.",
        ),
        Finding(
            "(With which confidence?)",
            f"At a gap of 0.6 or more the rule was right at {right} of {stages} stages; at the other {stages - right} "
            "the heads were sure of wrong bits: the gap says how sharp attention is, not that it is right. Readings "
            f"above 1/2 checked against {_CHECKED_ON} fresh examples: {total['confirmed']} confirmed, "
            f"{total['confirmed_but_wrong']} of them wrong.",
        ),
        Finding(
            "(Before or after accuracy?)",
            f"In {earlier} of {len(pairs)} runs that learned the hidden bits were named for good before accuracy "
            "passed 99 %.",
        ),
    ]
