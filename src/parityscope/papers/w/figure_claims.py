"""Claims about figures: parts that the rows of one seed show or do not, and seeds that decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from parityscope.papers.claim import Claim, Context, Measurement, needs_rows
from parityscope.papers.criterion import Clause, at_least
from parityscope.papers.w.criteria import FEWEST_SEEDS, share_of_seeds
from parityscope.papers.w.settings import DecoderRow, ShownDecoder


@dataclass(frozen=True)
class Part:
    """One part of a figure's statement, and whether the rows of one seed show it; none: they cannot decide.

    >>> Part("something was trained", bool).clause.quantity
    'share of seeds that show it: something was trained'
    """

    says: str
    shown: Callable[[Sequence[DecoderRow]], bool | None]

    @property
    def clause(self) -> Clause:
        """Return how the seeds judge it."""
        return Clause(
            self.says,
            f"share of seeds that show it: {self.says}",
            at_least(0.5),
            f"more than half of the seeds, at 95 %; {FEWEST_SEEDS} seeds or more",
        )


def figure_claim(number: int, where: str, statement: str, parts: Sequence[Part], how: str) -> Claim:
    """Return the claim of a figure, judged by its stored rows.

    >>> claim = figure_claim(1, "Section 2", "It grows.", [Part("it grows", bool)], "Looked at.")
    >>> claim.id, claim.where, claim.measure(Context()).number
    ('W-figure-1', 'Section 2, Figure 1', 'no rows')
    """
    name = f"W-figure-{number}"
    return Claim(
        name,
        statement,
        tuple(part.clause for part in parts),
        partial(_measure, name, tuple(parts), how),
        f"{where}, Figure {number}",
        seconds=0.1,
        reads_figure=True,
    )


def _measure(figure: str, parts: Sequence[Part], how: str, context: Context) -> Measurement:
    """Look for every part in every seed's rows."""
    rows = context.rows(figure)
    if not rows:
        return needs_rows([part.clause for part in parts], figure)
    seeds = by_seed(rows)
    found = {part: {seed: part.shown(one) for seed, one in seeds.items()} for part in parts}
    decided = {part: [shown for shown in flags.values() if shown is not None] for part, flags in found.items()}
    return Measurement(
        {part.clause.quantity: share_of_seeds(flags) for part, flags in decided.items()},
        "; ".join(f"{part.says}: {sum(flags)} of {len(flags)}" for part, flags in decided.items()),
        f"{len(seeds)} seeds, {len(rows)} trainings",
        {part.says: {str(seed): shown for seed, shown in flags.items()} for part, flags in found.items()},
        f"{how} One seed is an illustration: from {FEWEST_SEEDS} on, the share of seeds that show it decides.",
    )


def by_seed(rows: Iterable[DecoderRow]) -> dict[int, list[DecoderRow]]:
    """Return the rows of every seed that has all trainings that some seed has.

    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Numbers, Row
    >>> shown = [smoke("", k=k, seed=seed) for k, seed in ((1, 0), (2, 0), (1, 1), (2, 1), (1, 2))]
    >>> {seed: len(found) for seed, found in by_seed([Row(config, Numbers()) for config in shown]).items()}
    {0: 2, 1: 2}
    """
    found: dict[int, dict[ShownDecoder, DecoderRow]] = {}
    for row in rows:
        training = row.config.training
        same = row.config.model_copy(update={"training": training.model_copy(update={"seed": 0})})
        found.setdefault(training.seed, {})[same] = row
    wanted = {config for one in found.values() for config in one}
    return {seed: list(one.values()) for seed, one in sorted(found.items()) if set(one) == wanted}
