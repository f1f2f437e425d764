"""H1, Appendix B and Remark 13: frozen hard attention against the best possible head, and from soft to hard."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from parityscope import theory
from parityscope.models import ParityTransformer
from parityscope.models.positions import circle
from parityscope.papers.claim import Check, Claim, Context
from parityscope.problems import Parity, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk.frozen_hard_attention import hard_attention_cells, worst_support

_GRID = ((6, 1), (8, 1), (8, 2), (10, 2), (12, 2), (12, 3), (14, 3), (12, 4), (15, 5), (12, 6))


def _blocks(n: int, m: int) -> Tensor:
    """Return scores of heads that share the positions out: each reads its own block, first come first served."""
    scores = torch.full((m, n, 2), -1e3, dtype=torch.float64)
    for position in range(n):
        head, rank = position % m, position // m
        # A 1 wins over every 0, and earlier positions over later ones.
        scores[head, position, 1] = 100.0 - rank
        scores[head, position, 0] = -float(rank)
    return scores


def _lowest_risk(n: int, m: int, tries: int, generator: torch.Generator) -> float:
    """Search frozen hard heads for the lowest Bayes risk of the worst hidden bit.

    One hidden bit is the easiest support: every other support that contains the worst bit has at least its risk.
    """
    best, best_scores = math.inf, _blocks(n, m)
    for attempt in range(tries):
        if attempt < tries // 4:  # fresh heads: token preference against position preference, in every mixture
            by_position = torch.randn(m, n, 1, generator=generator, dtype=torch.float64)
            by_token = torch.randn(m, 1, 2, generator=generator, dtype=torch.float64)
            scores = by_position + by_token * 4 * torch.rand(1, generator=generator, dtype=torch.float64)
        else:  # the best heads so far, with one head's order or preference disturbed
            scores = best_scores.clone()
            head = int(torch.randint(m, (1,), generator=generator))
            first, second = torch.randperm(n, generator=generator)[:2].tolist()
            scores[head, [first, second]] = scores[head, [second, first]]
            if attempt % 5 == 0:
                scores[head] = scores[head].flip(-1)
        if attempt == tries // 4:
            scores = _blocks(n, m)
        risk = worst_support(hard_attention_cells(scores), 1).risk
        if risk <= best:
            best, best_scores = risk, scores
    return best


class HardHeadSearchNumbers(Numbers):
    """The lowest risk found at every size."""

    lowest_bayes_risk: tuple[float, ...]


class HardHeadSearch(Config):
    """A search for the best frozen hard heads at several sizes (n, m); two claims judge the same one."""

    ROWS: ClassVar[str] = "H1-hard-heads"
    NUMBERS: ClassVar[type[Numbers]] = HardHeadSearchNumbers

    sizes: tuple[tuple[int, int], ...]
    tries: int

    def run(self) -> Result:
        """Search size by size."""
        generator = seeded_generator(0, "start")
        risks = tuple(_lowest_risk(n, m, self.tries, generator) for n, m in self.sizes)
        return Result(HardHeadSearchNumbers(lowest_bayes_risk=risks))


def _search(context: Context) -> list[HardHeadSearch]:
    sizes = _GRID[: context.at(smoke=4, reference=len(_GRID), paper=len(_GRID))]
    return [HardHeadSearch(sizes=sizes, tries=context.at(smoke=40, demo=150, reference=500))]


def _searched(context: Context) -> list[dict[str, Any]]:
    """Return the lowest risk found at every size of the grid, beside both bounds."""
    row: Row[HardHeadSearch, HardHeadSearchNumbers]
    (row,) = map(context.row, _search(context))
    return [
        {
            "n": n,
            "m": m,
            "lowest_bayes_risk": risk,
            "bound": theory.fixed_hard_attention_bound(n, m),
            "information_bound": theory.hard_attention_information_bound(n, m),
            "evaluations": row.config.tries,
        }
        for (n, m), risk in zip(row.config.sizes, row.numbers.lowest_bayes_risk, strict=True)
    ]


def _corollary_20(context: Context) -> Check:
    cells = _searched(context)
    margin = min(cell["lowest_bayes_risk"] - cell["bound"] for cell in cells)
    evaluations = sum(cell["evaluations"] for cell in cells)
    return Check(
        "holds" if margin >= 0 else "fails",
        f"never below the bound on {len(cells)} sizes; smallest margin {margin:.2g}",
        {
            "grid": cells,
            "smallest_margin": margin,
            "random_evaluations": evaluations // 4,
            "optimised_evaluations": evaluations - evaluations // 4,
        },
        "The exact squared-hinge Bayes risk on the attended tokens, for the worst hidden bit, was minimised over "
        "frozen heads by draws and by local search.",
    )


def _remark_13(context: Context) -> Check:
    """The corollary goes silent at m ≈ n/log₂ n; information theory carries the remark to every m = o(n)."""
    cells = _searched(context)
    margin = min(cell["lowest_bayes_risk"] - cell["information_bound"] for cell in cells)
    silent = {
        n: next(m for m in range(1, n + 1) if theory.fixed_hard_attention_bound(n, m) <= 0) for n in (100, 1000, 10000)
    }
    still = {n: theory.hard_attention_information_bound(n, m) for n, m in silent.items()}
    holds = margin >= -1e-12 and still[10000] > still[1000] > still[100] > 0
    return Check(
        "holds" if holds else "fails",
        f"Corollary 20 says nothing from m = {silent[10000]} at n = 10000 on; the risk is ≥ {still[10000]:.2f} there",
        {
            "corollary_20_is_vacuous_from_m": silent,
            "risk_at_least_there": still,
            "grid": cells,
            "smallest_margin": margin,
            "random_evaluations": sum(cell["evaluations"] for cell in cells) // 4,
            "optimised_evaluations": sum(cell["evaluations"] for cell in cells) * 3 // 4,
        },
        "A hard head tells at most 2 bits, so the worst bit has risk ≥ 1 − (4 ln 2)m/n; checked against the exact "
        "Bayes risk of searched heads, and evaluated where Corollary 20's bound has become negative.",
    )


def _soft_and_hard(n: int, support: tuple[int, ...], per_position: int, tau: float) -> dict[str, Any]:
    """Visit a grid of head angles, midpoints included; return what the hard model loses where the soft one is right."""
    k = len(support)
    angles = 2 * torch.pi * torch.arange(n * per_position, dtype=torch.float64) / (n * per_position)
    wheel = torch.stack([angles.sin(), angles.cos()], dim=-1)
    index = torch.combinations(torch.arange(len(angles)), k, with_replacement=True)  # heads are interchangeable
    x, y = next(Parity(n, support).enumerate())
    solved, worst, worst_heads = 0, 0.0, None
    for some in index.split(2048):
        model = ParityTransformer(n, k, temperature=tau, directions=wheel[some])
        with torch.no_grad():
            soft, hard = ((1 - y * model(x, hard=hard)).relu().square().mean(-1) for hard in (False, True))
        right = soft < 1e-6
        solved += int(right.sum())
        lost = torch.where(right, hard, 0.0)
        if float(lost.max()) > worst:
            worst, worst_heads = float(lost.max()), some[int(lost.argmax())]
    found: dict[str, Any] = {"n": n, "support": list(support), "tau": tau, "grid": len(index), "soft_risk_0": solved}
    found["largest_hard_risk"] = worst
    if worst_heads is not None:
        found["heads_at_positions"] = ((worst_heads.double() / per_position - 1) % n).tolist()
    return found


def _hard_risk_by_counting(n: int, support: tuple[int, ...], attended: list[int]) -> float:
    """Return the hard risk again from the attended positions alone, by the zig-zag's values at integers."""
    x, y = next(Parity(n, support).enumerate())
    score = x[:, attended].long().sum(-1)
    return float((1 - y * (1 - 2 * (score % 2))).double().square().mean())


def _proposition_21(context: Context) -> Check:
    per_position = context.at(smoke=2, reference=4, paper=8)
    tau = 2e-3
    apart = [_soft_and_hard(8, support, per_position, tau) for support in ((0, 2), (1, 4), (2, 6))]
    apart.append(_soft_and_hard(6, (0, 2, 4), 2 if context.scale == "smoke" else 4, tau))
    around = _soft_and_hard(8, (0, 7), per_position, tau)
    spot = around.get("heads_at_positions", [])
    model = ParityTransformer(8, 2, temperature=tau, directions=torch.stack([circle(8)[[0, 7]].mean(0)] * 2))
    with torch.no_grad():
        attended = model.attention(hard=True).argmax(-1).tolist()
    again = _hard_risk_by_counting(8, (0, 7), attended)
    holds = all(one["soft_risk_0"] > 0 and one["largest_hard_risk"] == 0 for one in apart)
    broken = around["largest_hard_risk"] > 0 and again > 0
    return Check(
        "fails" if not holds else "holds in part" if broken else "holds",
        f"soft risk 0 but hard risk {around['largest_hard_risk']:.2g} for the first and last position",
        {
            "counterexample": {**around, "hard_risk_by_counting": again, "heads_at_positions": spot},
            "circular_distance_above_1": apart,
            "random_evaluations": 0,
            "optimised_evaluations": sum(one["grid"] for one in (*apart, around)),
        },
        "Every pair or triple of head angles on a fine grid was visited: where the soft risk is 0 the hard risk is 0 "
        "if no hidden bits are neighbours on the circle; positions 1 and n are, and |i − j| > 1 forgets it.",
    )


CLAIMS = (
    Claim(
        "H1-remark-13",
        "With frozen hard attention no classification head beats chance unless the number of heads is of order n.",
        _remark_13,
        seconds=5,
        figure="H1-frozen-attention",
        needs=_search,
    ),
    Claim(
        "H1-corollary-20",
        "For frozen hard attention and any classification head, some support has risk ≥ 1 − 2m/2^⌈(n−1)/m⌉.",
        _corollary_20,
        seconds=5,
        figure="H1-frozen-attention",
        needs=_search,
    ),
    Claim(
        "H1-proposition-21",
        "As τ → 0, if no two hidden bits satisfy |i − j| ≤ 1, heads with soft risk 0 have hard risk 0.",
        _proposition_21,
        seconds=1,
        figure="H1-adjacent-bits",
    ),
)
