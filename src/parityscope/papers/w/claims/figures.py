"""W's figures on training, judged from their stored rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import cast

from parityscope.papers.claim import Check, Claim, Context, Verdict, needs_rows
from parityscope.papers.figure import PaperFigure
from parityscope.papers.w.multi_pass import best_accuracy, guessing_bound
from parityscope.papers.w.settings import (
    DecoderRow,
    attention_on_secret,
    best_by_k,
    chain_wins,
    fell_before_jump,
    growth,
    looking_right,
    samples,
    samples_at_least,
    solved,
    with_chain,
)

_Judge = Callable[[Sequence[DecoderRow]], tuple[Verdict, str, str]]


def _figure(number: int) -> PaperFigure:
    """Return a figure by its number: imported when it is judged, since figures need a plotting library."""
    from parityscope.papers.w.figures import (
        figure_1,
        figure_2,
        figure_3,
        figure_4,
        figure_5,
        figure_8,
        figure_9,
        figure_10,
        figure_11,
    )

    figures = (figure_1, figure_2, figure_3, figure_4, figure_5, figure_8, figure_9, figure_10, figure_11)
    return next(cast("PaperFigure", figure) for figure in figures if f"W-figure-{number}" == figure.ID)


def _from_rows(number: int, judge: _Judge) -> Callable[[Context], Check]:
    """Return a check that judges the stored rows of a figure."""

    def check(context: Context) -> Check:
        figure = _figure(number)
        rows = context.rows(figure.ID)
        if len(rows) < len(figure.CONFIGS[context.scale]):
            return needs_rows(figure.ID)
        if context.scale == "smoke":
            return Check("not testable here", "smoke rows", {}, "Trainings of 20 steps say nothing about learning.")
        verdict, told, how = judge(rows)
        if verdict == "fails" and context.scale != "paper":
            # Other sizes than the paper's refute nothing about the paper's own.
            verdict, how = "not testable here", f"{how} It did not show at this scale."
        findings = {finding.paper: finding.here for finding in figure.findings(rows)}
        return Check(verdict, told, findings, how)

    return check


def _figure_1(rows: Sequence[DecoderRow]) -> tuple[Verdict, str, str]:
    factor, missed = {}, 0
    for chain in (True, False):
        best = best_by_k(with_chain(rows, chain))
        missed += sum(samples(row) is None for row in best.values()) if chain else 0
        factor[chain] = growth([(k, samples_at_least(row)) for k, row in best.items()]) or 1.0
    verdict: Verdict = "holds" if factor[False] > 2 and factor[True] < 1.3 else "fails"
    if verdict == "holds" and missed:
        verdict = "holds in part"
    how = (
        "An exponential was fitted to the samples needed against k; without CoT a budget that ended counts as reached."
    )
    return verdict, f"× {factor[False]:.1f} per bit without, × {factor[True]:.2f} with CoT, {missed} k not reached", how


def _figure_2(rows: Sequence[DecoderRow]) -> tuple[Verdict, str, str]:
    fewer, more, pairs = chain_wins(rows)
    verdict: Verdict = "holds" if fewer == pairs else "holds in part" if fewer > more else "fails"
    return verdict, f"{fewer} of {pairs} pairs", "Samples needed with and without CoT were compared shape by shape."


def _figure_3(rows: Sequence[DecoderRow]) -> tuple[Verdict, str, str]:
    shown = rows[-1]
    share = shown.numbers.secret_attention or 0.0
    right = looking_right(shown) == len(shown.numbers.secret)
    learned = len(solved(rows)) == len(rows)
    verdict: Verdict = "holds" if learned and right and share > 0.5 else "holds in part"
    how = "Every k was trained to 100 %; then the attention of each chain position was averaged over held-out inputs."
    return verdict, f"{share:.2f} of the attention on the secret bit", how


def _learned_from_pool(rows: Sequence[DecoderRow]) -> tuple[Verdict, str, str]:
    pools = [row for row in rows if row.config.training.pool and not row.config.training.chain_of_thought]
    fresh = [row for row in rows if row.config.training.pool is None]
    done = sum(samples(row) is not None for row in pools)
    beaten = all(samples(row) is None for row in fresh)
    verdict: Verdict = "holds" if done == len(pools) and beaten else "holds in part" if done and beaten else "fails"
    how = "One pool was seen many times by several shapes, and one shape saw fresh samples for as many steps."
    return verdict, f"{done} of {len(pools)} shapes learn from the pool", how


def _small_beats_large(rows: Sequence[DecoderRow]) -> tuple[Verdict, str, str]:
    ordered = sorted(rows, key=lambda row: row.config.training.pool or math.inf)
    done = [samples(row) is not None for row in ordered]
    smaller_wins = any(first and not second for first, second in pairwise(done))
    too_small = not done[0]
    verdict: Verdict = "fails" if not smaller_wins else "holds in part" if too_small else "holds"
    names = ", ".join(
        f"{row.config.training.pool or 'fresh'}: {'yes' if ok else 'no'}" for row, ok in zip(ordered, done, strict=True)
    )
    return verdict, f"learned by pool: {names}", "Pools of several sizes were trained for the same number of steps."


def _no_chain_fails(rows: Sequence[DecoderRow]) -> tuple[Verdict, str, str]:
    without, chain = with_chain(rows, False), with_chain(rows, True)
    above = sum(best_accuracy(row) > guessing_bound(row) for row in without)
    learned = sum(samples(row) is not None for row in chain)
    verdict: Verdict = "holds" if above == 0 and learned == len(chain) else "holds in part"
    how = "Every configuration's best accuracy was compared with what guessing gives at six standard deviations."
    return verdict, f"{above} of {len(without)} above guessing; with CoT {learned} of {len(chain)} learn", how


def _first_layer_sparse(rows: Sequence[DecoderRow]) -> tuple[Verdict, str, str]:
    row = rows[0]
    on_secret = attention_on_secret(row)[0] > 0.5
    second = float(row.arrays["entropy"][-1][1].mean())
    every, some = bool(on_secret.all()), bool(on_secret.any())
    verdict: Verdict = "holds" if every and second > 0.9 else "holds in part" if some else "fails"
    number = f"{int(on_secret.sum())} of {len(on_secret)} secret bits; second layer's entropy {second:.2f}"
    return verdict, number, "Attention was averaged over held-out inputs; entropy is Eq. (1), 1 for uniform attention."


def _entropy_first(rows: Sequence[DecoderRow]) -> tuple[Verdict, str, str]:
    pairs = [fell_before_jump(row) for row in solved(rows)]
    first = sum(fallen is not None and risen is not None and fallen <= risen for fallen, risen in pairs)
    verdict: Verdict = "not testable here" if not pairs else "holds" if first == len(pairs) else "holds in part"
    how = "Half of the lowest head's fall and half of the rise above chance were located on the recorded curves."
    return verdict, f"entropy first in {first} of {len(pairs)} trainings that learned", how


_FIGURES: tuple[tuple[int, str, _Judge], ...] = (
    (1, "Without CoT the samples needed grow exponentially with k; with CoT they grow about linearly.", _figure_1),
    (2, "CoT needs fewer samples for every number of layers and heads.", _figure_2),
    (3, "With CoT every k is learned, and each chain token attends mainly to its secret bit.", _figure_3),
    (4, "Many passes over a small pool learn parity without CoT, for almost every shape.", _learned_from_pool),
    (5, "A small pool reaches perfect accuracy where a larger one fails in as many steps.", _small_beats_large),
    (
        8,
        "In the first layer every secret bit is attended to by a head; the second layer is almost uniform.",
        _first_layer_sparse,
    ),
    (
        9,
        "Without CoT no configuration achieves non-trivial accuracy on (20, 12); with CoT it is learned.",
        _no_chain_fails,
    ),
    (10, "Across shapes, small pools are learned and large ones are not.", _small_beats_large),
    (11, "Attention entropy falls as accuracy rises, without CoT too.", _entropy_first),
)

CLAIMS = tuple(
    Claim(
        f"W-figure-{number}",
        statement,
        _from_rows(number, judge),
        seconds=0.1,
        figure=f"W-figure-{number}",
        reads_figure=True,
    )
    for number, statement, judge in _FIGURES
)
