"""The project's own: n paths of attention name the hidden bits from n^{k−2} log n examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import torch

from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least, at_most
from parityscope.papers.own.again import path_gradient_by_inputs
from parityscope.papers.own.domain import share_of
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOF
from parityscope.problems import Parity, bits_of, draw_problems, seeded_generator
from parityscope.theory import path_samples, phase_signal, wide_phase
from parityscope.training.attention_path import named_set, path_gradients

_POPULATIONS = (Parity(7, (1, 4)), Parity(8, (0, 3, 6)), Parity(9, (1, 2, 5, 8)), Parity(5, (0, 1, 2, 3, 4)))
_SIZES = ((100, 2, 0.0), (20, 3, 0.1), (10, 4, 0.0), (30, 1, 0.1))  # n, k, noise
_FIRST_SEED = 1000
_FAILURE = 0.1
_SIGNAL = "largest distance of an entry on B∖A from σ_m, A hidden"
_OTHERS = "largest entry off B, A hidden"
_ASTRAY = "largest |entry| outside A, A with a wrong position"
_NAMED = "share of fresh seeds whose B is named from the theorem's N"
_ROUNDING = "single precision"
_CLAUSES = (
    Clause(
        "beside hidden positions the gradient is σ_m on the rest of B", _SIGNAL, at_most(1e-5), _ROUNDING, above(1e-3)
    ),
    Clause("and at most 0 off B", _OTHERS, at_most(1e-5), _ROUNDING, above(1e-3)),
    Clause("beside a wrong one it is 0", _ASTRAY, at_most(1e-5), _ROUNDING, above(1e-3)),
    Clause("N examples name B", _NAMED, at_least(1 - _FAILURE), "the theorem's δ, with 95 % confidence"),
)


def path_signal(n: int, k: int, m: int) -> float:
    """Return σ_m, the gradient on the hidden bits that are left when m are named.

    >>> path_signal(10, 2, 1)
    1.0
    """
    width = wide_phase(n - m, k - m) if k - m > 1 else 0.0
    return phase_signal(n - m, k - m, width)


def _off(problem: Parity, named: Sequence[int], position: int, entry: float) -> tuple[str, float]:
    """Say which case of the proof an entry of the population's gradient belongs to, and how far it is off."""
    hidden = set(problem.support)
    if not hidden.issuperset(named):
        return _ASTRAY, abs(entry)
    if position in hidden:
        return _SIGNAL, abs(entry - path_signal(problem.n, problem.k, len(named)))
    return _OTHERS, entry


_Furthest = dict[str, tuple[float, dict[str, Any] | None]]


def _population(problem: Parity) -> tuple[_Furthest, int]:
    """Compare the gradient on all inputs with its three values, for every set of fewer than k positions."""
    n, k = problem.n, problem.k
    x = bits_of(torch.arange(2**n), n)
    found: _Furthest = {_SIGNAL: (0.0, None), _OTHERS: (-math.inf, None), _ASTRAY: (0.0, None)}
    tried = 0
    for m in range(k):
        sets = list(combinations(range(n), m))
        gradients = path_gradients(x, problem.label(x), torch.tensor(sets).long().reshape(len(sets), m), k)
        tried += len(sets)
        for named, entries in zip(sets, gradients.tolist(), strict=True):
            for position in set(range(n)) - set(named):
                case, off = _off(problem, named, position, entries[position])
                if off > found[case][0]:
                    at = {"n": n, "support": list(problem.support), "named": list(named), "position": position}
                    found[case] = off, at
    return found, tried


def _named(n: int, k: int, noise: float, seeds: range) -> list[bool]:
    """Say which seeds' examples, as many as the theorem asks for, name the hidden bits."""
    count = math.ceil(path_samples(n, k, _FAILURE, noise))
    return [
        named_set(*problem.sample(count, seeded_generator(seed, "data")), k).support == problem.support
        for problem, seed in zip(draw_problems(n, k, seeds, noise=noise), seeds, strict=True)
    ]


def _paths(context: Context) -> Measurement:
    """Enumerate the population's gradients, and name B from the theorem's number of examples on fresh seeds."""
    populations = [_population(problem) for problem in _POPULATIONS[: context.at(smoke=2, reference=4, paper=4)]]
    worst = {
        case: max((found[case] for found, _ in populations), key=lambda one: one[0])
        for case in (_SIGNAL, _OTHERS, _ASTRAY)
    }
    measured = {case: off for case, (off, _) in worst.items()}
    seeds = range(_FIRST_SEED, _FIRST_SEED + context.at(smoke=10, demo=12, reference=100))
    share = share_of([right for size in _SIZES for right in _named(*size, seeds)])
    sets = sum(tried for _, tried in populations)
    return Measurement(
        {**measured, _NAMED: share},
        f"{share} name B from the theorem's N; the gradient is off its three values by at most"
        f" {max(measured.values()):.1e}",
        f"{sets} sets of fewer than k positions, all inputs; {len(seeds)} seeds at each of {len(_SIZES)} sizes",
        {"first_seed": _FIRST_SEED, "sizes": [list(size) for size in _SIZES]},
        "The gradient of the correlation where attention has named a set, on all inputs and for every set of fewer than"
        " k positions, against the values of the proof. Then, on fresh seeds, the n paths from as many examples as the"
        " theorem asks for at δ = 0.1.",
        {case: at for case, (_, at) in worst.items()},
    )


def _entry_again(point: Mapping[str, Any]) -> Again:
    """Compute the entry again from the readout's definition, input by input in plain Python."""
    n, support, named, position = point["n"], point["support"], point["named"], point["position"]
    k, m = len(support), len(named)
    width = wide_phase(n - m, k - m) if k - m > 1 else 0.0
    entry = path_gradient_by_inputs([1.0 if j in named else width / (n - m) for j in range(n)], support, position)
    _, off = _off(Parity(n, tuple(support)), named, position, entry)
    return Again(off, "the readout's slope, input by input in plain Python")


CLAIMS = (
    Claim(
        "P-paths",
        "Weight 1 on m < k positions A and the rest even: the gradient of the correlation is σ_m > 0 on B∖A and at most"
        " 0 off B if A ⊂ B, and 0 outside A if not; so with N ≥ 8·log(kn·C(n, m)/δ)/((1 − 2η)²σ_m²) for 1 ≤ m < k the n"
        " best sets of every size lead to B with probability 1 − δ.",
        _CLAUSES,
        _paths,
        f"{CONCAVE}, from examples",
        seconds=1,
        proof=CONCAVE_PROOF,
        replay=dict.fromkeys((_SIGNAL, _OTHERS, _ASTRAY), _entry_again),
    ),
)
