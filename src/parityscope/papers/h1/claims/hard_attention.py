"""H1, Remark 13 and Corollary 20: frozen hard attention against the best possible head, and the proof step by step.

docs/explanation/hard-attention.md has the proof; its steps are checked here by visiting all inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from parityscope import theory
from parityscope.core.ties import first_largest
from parityscope.papers.claim import Claim, Context, Measurement
from parityscope.papers.criterion import Clause, Measured, at_least, at_most
from parityscope.papers.h1.frozen_hard_attention import hard_attention_cells, worst_support
from parityscope.problems import bits_of, seeded_generator
from parityscope.records import Config, Numbers, Result, Row

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
    sizes = _GRID[: context.at(smoke=4, reference=len(_GRID))]
    return [HardHeadSearch(sizes=sizes, tries=context.at(smoke=40, demo=150, reference=500))]


_SUBCUBES = "sets of inputs with the same attended tokens that are no subcubes"
_PARITIES = "largest distance of E[χ_B | tokens]² from 1 where the tokens tell B, from 0 elsewhere"
_LISTED = "largest ratio of the probability that a head tells its s-th position to 2^{1−s}"
_BITS = "most bits that a head tells on average"
_ROUNDING = "a step of the proof; rounding"
_SET_SIZE = (8, 3)  # n and m of the heads on which the steps are checked


def _attended(scores: Tensor, x: Tensor) -> Tensor:
    """Return which token 2·position + bit every head attends to on every input: (inputs, heads)."""
    present = torch.where(x[:, None] == 1, scores[None, ..., 1], scores[None, ..., 0])  # (inputs, heads, n)
    position = first_largest(present)
    return 2 * position + x.gather(-1, position)


def _drawn_heads(count: int) -> Iterator[Tensor]:
    """Yield scores of tokens: a preference for positions plus one for bits, as in H1, or any scores at all."""
    generator = seeded_generator(0, "start")
    n, m = _SET_SIZE
    for index in range(count):
        by_token = torch.randn(m, n if index % 2 else 1, 2, generator=generator, dtype=torch.float64)
        yield torch.randn(m, n, 1, generator=generator, dtype=torch.float64) + by_token


def _proof_steps(context: Context) -> tuple[dict[str, Measured], int]:
    """Check the steps of the proof on drawn heads, by visiting all inputs and all supports."""
    n, _ = _SET_SIZE
    x = bits_of(torch.arange(2**n), n).long()
    parities = 1 - 2 * ((x @ x.T) % 2).double()  # χ_B of every input, for all B
    no_subcubes, astray, listed, most_bits = 0, 0.0, 0.0, 0.0
    count = context.at(smoke=10, reference=50)
    for scores in _drawn_heads(count):
        tokens = _attended(scores, x)
        for told in (tokens, *tokens.unsqueeze(-1).unbind(1)):  # all heads together, then each alone
            member = torch.unique(told, dim=0, return_inverse=True)[1]
            share = torch.nn.functional.one_hot(member).double().T  # (sets, inputs)
            size = share.sum(-1)
            ones = share @ x.double() / size[:, None]
            fixed = (ones == 0) | (ones == 1)  # (sets, n)
            no_subcubes += int((size != 2.0 ** (n - fixed.sum(-1))).sum())
            known = ~(x[None].bool() & ~fixed[:, None]).any(-1)  # (sets, supports): B inside the fixed bits
            astray = max(astray, float(((share @ parities / size[:, None]).square() - known.double()).abs().max()))
            if told is not tokens:
                probability = size / 2**n
                by_position = (probability @ fixed.double()).sort(descending=True).values
                listed = max(listed, float((by_position * 2.0 ** torch.arange(n)).max()))
                most_bits = max(most_bits, float(-(probability * probability.log2()).sum()))
    measured: dict[str, Measured] = {_SUBCUBES: no_subcubes, _PARITIES: astray, _LISTED: listed, _BITS: most_bits}
    return measured, count


def _searched(context: Context, bound: Callable[[int, int], float]) -> tuple[list[dict[str, Any]], int]:
    """Return the lowest risk found at every size beside a bound, and how many sets of heads were tried at each."""
    row: Row[HardHeadSearch, HardHeadSearchNumbers]
    (row,) = map(context.row, _search(context))
    grid = [
        {"n": n, "m": m, "lowest_bayes_risk": risk, "bound": bound(n, m), "margin": risk - bound(n, m)}
        for (n, m), risk in zip(row.config.sizes, row.numbers.lowest_bayes_risk, strict=True)
    ]
    return grid, row.config.tries


_COROLLARY, _COUNTING = "smallest margin over 1 − 2m/2^⌈(n−1)/m⌉", "smallest margin over 1 − 2m/n"
_SHARED_CLAUSES = (
    Clause("what hard heads attend to fixes some bits and leaves the others free", _SUBCUBES, at_most(0), "a count"),
    Clause("so a parity is known, or a fair coin", _PARITIES, at_most(1e-9), _ROUNDING),
)
_COROLLARY_CLAUSES = (
    *_SHARED_CLAUSES,
    Clause("a head tells its s-th position with probability 2^{1−s}", _LISTED, at_most(1 + 1e-9), _ROUNDING),
    Clause("some support has at least this risk", _COROLLARY, at_least(0), "the corollary's own bound"),
)
_REMARK_CLAUSES = (
    *_SHARED_CLAUSES,
    Clause("a head tells less than two bits on average", _BITS, at_most(2), "a step of the proof"),
    Clause(
        "the risk is near 1 unless m is of order n", _COUNTING, at_least(0), "our bound, which tends to 1 if m = o(n)"
    ),
)


def _measured(
    context: Context, quantity: str, bound: Callable[[int, int], float], number: str, evidence: dict[str, Any]
) -> Measurement:
    """Check the steps of the proof, and a bound on the best heads that a search finds."""
    steps, checked = _proof_steps(context)
    grid, tries = _searched(context, bound)
    margin = min(cell["margin"] for cell in grid)
    drawn = len(grid) * (tries // 4)
    return Measurement(
        {**steps, quantity: margin},
        number.format(margin=margin),
        f"{drawn:,} draws and {len(grid) * tries - drawn:,} steps of local search; the proof's steps for {checked} "
        "sets of heads, on all inputs and supports",
        {"smallest_margin": margin, "grid": grid, "seed": 0, **evidence},
        "The exact squared-hinge Bayes risk on the attended tokens, for the worst hidden bit, was minimised over "
        "frozen heads by draws and by local search; the proof's steps were checked by visiting all inputs.",
    )


def _corollary_20(context: Context) -> Measurement:
    return _measured(
        context,
        _COROLLARY,
        theory.fixed_hard_attention_bound,
        "never below the bound; smallest margin {margin:.2g}",
        {},
    )


def _remark_13(context: Context) -> Measurement:
    """The corollary goes silent at m ≈ n/log₂ n; counting carries the remark to every m = o(n)."""
    n = 10_000
    silent = next(m for m in range(1, n) if theory.fixed_hard_attention_bound(n, m) <= 0)
    still = theory.hard_attention_counting_bound(n, silent)
    number = (
        f"risk ≥ 1 − 2m/n, smallest margin {{margin:.2g}}; at n = {n}, m = {silent}, where Corollary 20 says nothing, "
    )
    return _measured(
        context,
        _COUNTING,
        theory.hard_attention_counting_bound,
        f"{number}≥ {still:.2f}",
        {"corollary_20_says_nothing_from": {"n": n, "m": silent}, "risk_at_least_there": still},
    )


_PROOF = "docs/explanation/hard-attention.md"
CLAIMS = (
    Claim(
        "H1-remark-13",
        "With frozen hard attention no classification head beats chance unless the number of heads is of order n.",
        _REMARK_CLAUSES,
        _remark_13,
        "Section 4, Remark 13",
        seconds=5,
        needs=_search,
        proof=_PROOF,
    ),
    Claim(
        "H1-corollary-20",
        "For frozen hard attention and any classification head, some support has risk ≥ 1 − 2m/2^⌈(n−1)/m⌉.",
        _COROLLARY_CLAUSES,
        _corollary_20,
        "Appendix B, Corollary 20",
        seconds=5,
        needs=_search,
        proof=_PROOF,
    ),
)
