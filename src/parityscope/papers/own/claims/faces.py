"""The project's own: one head learns B iff B is a face of its code; min(2k, n − 1) parameters make every B a face."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models.faces import is_face
from parityscope.models.positions import harmonics
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least, at_most
from parityscope.papers.exact_faces import is_exact_face, radon_support
from parityscope.papers.own.again import best_log_c
from parityscope.papers.own.domain import SEED
from parityscope.papers.own.exponential import (
    CONCAVE,
    CONCAVE_PROOF,
    CONCAVE_PROOFS,
    ENOUGH,
    Supports,
    climb,
    drawn_codes,
    drawn_supports,
    exponential_head,
    inside,
)
from parityscope.papers.own.flow import follow
from parityscope.training.steps.log_attention import log_attention, log_value
from parityscope.training.steps.newton import DampedNewton

_SIZES = ((7, 1, 2), (8, 2, 3), (8, 3, 5))  # n, k, r
_MISSED = "faces that are not learned"
_BEYOND = "sets that are no face and are learned"
_DIFFER = "sets on which rounded numbers and fractions disagree"
_SUPREMUM = "largest distance of log C from the maximum over the smallest face, where B is no face"
_FACE_CLAUSES = (
    Clause("a face is learned", _MISSED, at_most(0), f"learned: −log C ≤ {ENOUGH}, where training stops"),
    Clause("what is no face is not", _BEYOND, at_most(0), f"learned: −log C ≤ {ENOUGH}, where training stops"),
    Clause("which it is can be decided beforehand", _DIFFER, at_most(0), "the simplex method in fractions"),
    Clause("then training ends at the smallest face", _SUPREMUM, at_most(1e-6), "rounding", refuted_if=above(1e-3)),
)


class _Tried(NamedTuple):
    """One code and support: whether it is a face, by two routes, and where training ends."""

    code: Float[Tensor, "n r"]
    support: tuple[int, ...]
    face: bool
    exactly: bool
    value: float  # log C at the end
    certified: float  # −log C that no numbers go below

    @property
    def learned(self) -> bool:
        """Whether C came close to 1."""
        return -self.value <= ENOUGH

    def point(self) -> dict[str, Any]:
        """Return what a replay needs."""
        return {"code": self.code.int().tolist(), "support": list(self.support), "value": -self.value, "seed": SEED}


def _tried(context: Context) -> Iterator[_Tried]:
    generator = torch.Generator().manual_seed(SEED)
    count = context.at(smoke=4, demo=16, reference=80)
    for n, k, r in _SIZES:
        codes, supports = drawn_codes(count, n, r, generator), drawn_supports(count, n, k, generator)
        climbed = climb(*exponential_head(codes, supports), steps=60)
        proved = climbed.certificate.at_least.tolist()
        for code, support, value, least in zip(codes, supports, climbed.value.tolist(), proved, strict=True):
            exactly = is_exact_face(code.int().tolist(), support)
            yield _Tried(code, support, bool(is_face(code, support)), exactly, value, least)


def smallest_face(code: Float[Tensor, "n r"], support: tuple[int, ...]) -> tuple[int, ...]:
    """Return the positions of the smallest face that contains all of a support.

    >>> square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    >>> smallest_face(square, (1,)), smallest_face(square, (1, 3))
    ((0, 1, 2), (0, 1, 2, 3))
    """
    others = [j for j in range(len(code)) if j not in support]
    candidates = (
        tuple(sorted((*support, *more))) for size in range(len(others) + 1) for more in combinations(others, size)
    )
    return next(one for one in candidates if is_face(code, one))


def _beside_the_supremum(one: _Tried) -> float:
    """Return how far training ended from the maximum of the product over the smallest face alone."""
    face = smallest_face(one.code, one.support)
    there = [face.index(b) for b in one.support]
    return abs(one.value - best_log_c(one.code[list(face)].tolist(), there))


def _face(context: Context) -> Measurement:
    """Train heads with random codes and compare with what geometry says beforehand."""
    tried = list(_tried(context))
    missed = [one for one in tried if one.face and not one.learned]
    beyond = [one for one in tried if not one.face and one.learned]
    differ = [one for one in tried if one.face != one.exactly]
    others = [one for one in tried if not one.face]
    apart = [(_beside_the_supremum(one), one) for one in others[:: context.at(smoke=2, demo=3, reference=1)]]
    furthest, at = max(((distance, one) for distance, one in apart), key=lambda one: one[0], default=(0.0, None))
    faces = sum(one.face for one in tried)
    return Measurement(
        {_MISSED: len(missed), _BEYOND: len(beyond), _DIFFER: len(differ), _SUPREMUM: furthest},
        f"{faces - len(missed)} of {faces} faces are learned, and {len(beyond)} of {len(others)} other sets",
        f"{len(tried)} random codes of 2, 3 and 5 whole numbers, n ≤ 8, k ≤ 3; {len(apart)} smallest faces",
        {
            "seed": SEED,
            "sizes": [list(size) for size in _SIZES],
            "faces": faces,
            "others": len(others),
            "others_with_a_certificate": sum(one.certified > 0 for one in others),
            "largest_distance_from_the_smallest_face": furthest,
        },
        "Faces are decided from the code alone, in rounded numbers and in fractions; then Newton's steps train the head"
        " from uniform attention. Where B is no face, log C ends at the maximum of the product over the smallest face"
        " that contains B, which another program finds with the other positions left out.",
        {
            quantity: one.point() if one else None
            for quantity, one in (
                (_MISSED, next(iter(missed), None)),
                (_BEYOND, next(iter(beyond), None)),
                (_DIFFER, next(iter(differ), None)),
                (_SUPREMUM, at),
            )
        },
    )


def _end_again(point: Mapping[str, Any]) -> Again:
    """Decide in fractions, and train again with a program of its own; of this one set: is the theorem broken?"""
    again = -best_log_c(point["code"], point["support"])
    broken = is_exact_face(point["code"], point["support"]) != (again <= 2 * ENOUGH)
    return Again(again, "fractions, and Newton's method in numpy", float(broken), "−log C at the end")


_ENOUGH_NUMBERS = ((4, 3), (6, 2), (5, 1), (7, 3), (8, 2), (5, 4))  # n, k; a simplex where n ≤ 2k
_LARGER = ((9, 4), (10, 3), (12, 2), (12, 4))
_TOO_FEW = ((5, 2, 3), (8, 2, 3), (9, 3, 5), (6, 3, 4), (12, 4, 7), (6, 1, 1))  # n, k, r = min(2k, n − 1) − 1
_NO_FACE = "sets of k that min(2k, n − 1) parameters do not represent"
_NOT_LEARNED = "sets of k that they represent and one head does not learn"
_POLYNOMIAL = "largest part of −Π(1 − cos(θ − θ_b)) that k harmonics and a constant miss"
_ALL_HELD = "codes with one parameter less that represent Radon's set of k"
_TWO_K_CLAUSES = (
    Clause("2k harmonics, or n − 1 parameters, represent every set of k", _NO_FACE, at_most(0), "all sets are tried"),
    Clause("their scores are polynomials", _POLYNOMIAL, at_most(1e-9), "rounding, relative", at_least(1e-3)),
    Clause("what they represent is learned", _NOT_LEARNED, at_most(0), f"−log C ≤ {ENOUGH}, where training stops"),
    Clause(
        "fewer parameters do not represent every set", _ALL_HELD, at_most(0), "Radon's set, in fractions and rounded"
    ),
)


def _enough_numbers(n: int, k: int) -> Float[Tensor, "n r"]:
    """Return a code of min(2k, n − 1) parameters that represents every set of k: harmonics, or a simplex's corners.

    >>> [tuple(_enough_numbers(n, k).shape) for n, k in ((7, 2), (4, 2), (4, 3))]
    [(7, 4), (4, 3), (4, 3)]
    """
    if n > 2 * k:
        return harmonics(n, k)
    return torch.cat([torch.eye(n - 1), torch.zeros(1, n - 1)]).double()


def _missed_by_harmonics(n: int, supports: Supports) -> float:
    """Return how much of Gale's polynomials is no score of k harmonics, relative to their size."""
    k = len(supports[0])
    angle = 2 * math.pi * torch.arange(1, n + 1, dtype=torch.float64) / n
    apart = angle[:, None, None] - angle[torch.tensor(supports)]  # (n, supports, k)
    wanted = -(1 - apart.cos()).prod(-1)
    scores = torch.cat([harmonics(n, k), torch.ones(n, 1, dtype=torch.float64)], dim=1)
    fitted = scores @ torch.linalg.lstsq(scores, wanted).solution
    return float(((fitted - wanted).abs().amax(0) / wanted.abs().amax(0)).max())


def _radon(context: Context) -> tuple[int, list[dict[str, Any]]]:
    """Return how many codes with a parameter too few were tried, and those that represent Radon's set all the same."""
    generator = torch.Generator().manual_seed(SEED)
    tried, held = 0, []
    for n, k, r in _TOO_FEW:
        for _ in range(context.at(smoke=5, demo=20, reference=100)):
            code = torch.randint(-50, 51, (n, r), generator=generator)
            support = radon_support(code.tolist(), k)
            tried += 1
            if is_face(code.double(), support) or is_exact_face(code.tolist(), support):
                held.append({"code": code.tolist(), "support": list(support), "value": 1.0, "seed": SEED})
    return tried, held


def _two_k_numbers(context: Context) -> Measurement:
    """Try every set of k at small sizes, and Radon's set with one parameter less."""
    sizes = (
        _ENOUGH_NUMBERS[: context.at(smoke=2, reference=6)]
        + _LARGER[: context.at(smoke=0, demo=1, reference=len(_LARGER))]
    )
    missing, missed, remainders, sets, steps = [], [], [], 0, 0
    for n, k in sizes:
        code, supports = _enough_numbers(n, k), list(combinations(range(n), k))
        climbed = climb(*exponential_head(code, supports))
        sets, steps = sets + len(supports), max(steps, climbed.steps)
        if n > 2 * k:
            remainders.append(_missed_by_harmonics(n, supports))
        for support, value, learned in zip(supports, climbed.value.tolist(), climbed.learned.tolist(), strict=True):
            at = {"code": code.tolist(), "support": list(support), "value": -value, "seed": SEED}
            missing += [] if is_face(code, support) else [at]
            missed += [] if learned else [at]
    tried, held = _radon(context)
    return Measurement(
        {_NO_FACE: len(missing), _NOT_LEARNED: len(missed), _POLYNOMIAL: max(remainders), _ALL_HELD: len(held)},
        f"min(2k, n − 1) parameters represent {sets - len(missing)} of {sets} sets and learn {sets - len(missed)}; "
        f"with one less {len(held)} of {tried} codes represent Radon's set",
        f"all {sets} sets at {len(sizes)} sizes, {tried} random codes of whole numbers",
        {
            "seed": SEED,
            "sizes": [list(size) for size in sizes],
            "too_few": [list(size) for size in _TOO_FEW],
            "most_steps": steps,
            "largest_remainder": max(remainders),
        },
        "Every set of k is tried against harmonics, or a simplex where n ≤ 2k, and trained by Newton's steps. With one"
        " parameter less, Radon's relation of r + 2 codes gives a set of k that no parameters represent; fractions"
        " and rounded numbers agree that it is no face.",
        {
            quantity: next(iter(sets), None)
            for quantity, sets in ((_NO_FACE, missing), (_NOT_LEARNED, missed), (_ALL_HELD, held))
        },
    )


def _learned_again(point: Mapping[str, Any]) -> Again:
    """Train again with a program and a code of its own; of this one set: is it not learned?"""
    n, k = len(point["code"]), len(point["support"])
    turns = 2 * np.pi * np.outer(np.arange(n), np.arange(1, k + 1)) / n
    code = np.hstack([np.cos(turns), np.sin(turns)]) if n > 2 * k else np.eye(n)[:, :-1]
    again = -best_log_c(code.tolist(), point["support"])
    return Again(again, "Newton's method in numpy", float(again > 2 * ENOUGH), "−log C at the end")


def _held_again(point: Mapping[str, Any]) -> Again:
    return Again(float(is_exact_face(point["code"], point["support"])), "fractions", what="whether the set is held")


_DAMPING = 0.01  # the largest of Newton's dampings: its direction is tried in every step that does not win 10 %
_BENDING = "largest |w′ − (3w/2 + w^{3/2})| over 3w/2 + w^{3/2}, w = −∂²log C/∂u_j²"
_DIRECTION = "largest −log C over ⟨∇F, r⟩, r the proof's bounded direction"
_GAIN = "smallest gain of Newton's step over min(V/10, δ²/16, δ/100)"
_FLOWED = "largest t·(−log C) over the largest |r|² so far, plain gradient flow"
_NEWTON_CLAUSES = (
    Clause("0 ≤ w′ ≤ 3w + 2w^{3/2}", _BENDING, at_most(1), "a lemma of the proof"),
    Clause("−log C ≤ ⟨∇F, r⟩ at a face", _DIRECTION, at_most(1 + 1e-9), "the theorem; rounding"),
    Clause("so −log C ≤ max |r|²/t along the flow", _FLOWED, at_most(1), "the theorem's constant"),
    Clause("and every Newton step gains what is proved", _GAIN, at_least(1), "the theorem's constant"),
)


def _lifted(code: Float[Tensor, "n r"]) -> Float[Tensor, "n lifted"]:
    return torch.cat([code, torch.ones(len(code), 1, dtype=code.dtype)], dim=1)


class _FaceFlow:
    """The flow ż = ∇F of an exponential head's numbers z = (q, β), and the direction r in which F must rise."""

    def __init__(self, code: Float[Tensor, "n r"], support: tuple[int, ...]) -> None:
        self.code, self.hidden = _lifted(code), torch.zeros(len(code), dtype=torch.bool)
        self.hidden[list(support)] = True
        q = is_face(code, support).q
        level = (code @ q)[self.hidden].mean()
        self.margin = float(level - (code @ q)[~self.hidden].max())
        self.certificate = torch.cat([q, -level[None]])
        self.onto = torch.linalg.pinv(self.code[self.hidden])

    def height(self, z: Tensor) -> Float[Tensor, " runs"]:
        """Return F = log C."""
        return log_value((z @ self.code.T).exp(), self.hidden)

    def rate(self, z: Tensor) -> Float[Tensor, "runs lifted"]:
        """Return ∇F."""
        c = (z @ self.code.T).exp()
        return (c * log_attention(c, self.hidden).gradient) @ self.code

    def matrix(self, z: Tensor) -> Float[Tensor, "runs lifted lifted"]:
        """Return the Hessian of F."""
        weights = log_attention((z @ self.code.T).exp(), self.hidden).curvature
        return -torch.einsum("ji,rj,jk->rik", self.code, weights, self.code)

    def direction(self, z: Tensor) -> Float[Tensor, "runs lifted"]:
        """Return r = h + ((K + ½)/m)·e: h makes all weights on B 1, and e lowers the others."""
        back = -(z @ self.code[self.hidden].T) @ self.onto.T
        raised = (back @ self.code[~self.hidden].T).amax(-1, keepdim=True).clamp(min=0)
        return back + (raised + 0.5) / self.margin * self.certificate


def _some_faces(count: int, generator: torch.Generator) -> Iterator[tuple[Tensor, tuple[int, ...]]]:
    """Yield codes with supports that are faces of them."""
    for n, k, r in _SIZES:
        found = 0
        while found < count:
            (code,), (support,) = drawn_codes(1, n, r, generator), drawn_supports(1, n, k, generator)
            if is_exact_face(code.int().tolist(), support):
                found += 1
                yield code, support


def _bending(context: Context) -> float:
    """Compare the slope of w by differences with its two bounds, on B and off B."""
    u = torch.linspace(-8, 0, context.at(smoke=400, reference=4000), dtype=torch.float64)[:-1, None]
    hidden, step = torch.tensor([True, False]), 1e-5
    u = torch.cat([u + math.log(2), u], -1) - 1e-3
    w, above_it, below_it = (log_attention(at.exp(), hidden).curvature.double() for at in (u, u + step, u - step))
    middle = 1.5 * w + w**1.5
    return float((((above_it - below_it) / (2 * step) - middle).abs() / middle).max())


def _newton_gain(flow: _FaceFlow, code: Tensor, support: tuple[int, ...], starts: Tensor) -> float:
    """Return the smallest gain of Newton's steps over what is proved of it."""
    model, law = exponential_head(code, [support] * len(starts), starts)
    newton, least = DampedNewton(model, law), math.inf
    assert model.log_scale is not None
    for _ in range(12):
        z = torch.cat([model.directions[:, 0], model.log_scale[:, None]], -1).detach()
        loss, rate = -flow.height(z), flow.rate(z)
        weights = log_attention((z @ flow.code.T).exp(), flow.hidden).curvature + _DAMPING
        damped = torch.einsum("ji,rj,jk->rik", flow.code, weights, flow.code)
        square = (rate * (torch.linalg.pinv(damped, hermitian=True) @ rate[..., None])[..., 0]).sum(-1)
        newton.step()
        gain = log_value(model.score_weights().detach(), law.mask) + loss
        proved = torch.stack([loss / 10, square / 16, square.sqrt() / 100]).amin(0)
        large = loss > 1e-6  # below, rounding may be what is gained
        least = min(least, *(gain / proved)[large].tolist(), math.inf)
    return least


def _newton(context: Context) -> Measurement:
    """Attack the bounded direction on random faces; follow flows, and Newton's steps, from random starts."""
    generator = torch.Generator().manual_seed(SEED + 1)
    ratio, gain, flowed, worst, faces = 0.0, math.inf, 0.0, dict[str, Any](), 0
    for code, support in _some_faces(context.at(smoke=1, demo=3, reference=15), generator):
        flow, r = _FaceFlow(code, support), code.shape[1]
        numbers = torch.randn(context.at(smoke=50, reference=400), r + 1, generator=generator, dtype=torch.float64)
        z = inside(code, flow.hidden, numbers)
        ratios = -flow.height(z) / (flow.rate(z) * flow.direction(z)).sum(-1)
        faces += 1
        if float(ratios.max()) > ratio:
            ratio, at = float(ratios.max()), z[int(ratios.argmax())].tolist()
            worst = {"code": code.int().tolist(), "support": list(support), "z": at, "seed": SEED + 1}
            worst["certificate"] = flow.certificate.tolist()
        starts = z[: context.at(smoke=4, reference=8)]
        gain = min(gain, _newton_gain(flow, code, support, starts))
        largest = flow.direction(starts).square().sum(-1)

        def watch(time: Tensor, z: Tensor, flow: _FaceFlow = flow, largest: Tensor = largest) -> None:
            nonlocal flowed
            largest.copy_(torch.maximum(largest, flow.direction(z).square().sum(-1)))
            flowed = max(flowed, float((-flow.height(z) * time / largest).max()))

        follow(flow, starts, context.at(smoke=1000, reference=10_000), watch=watch)
    measured = {_BENDING: _bending(context), _DIRECTION: ratio, _FLOWED: flowed, _GAIN: gain}
    return Measurement(
        measured,
        f"−log C is at most {ratio:.2f} of ⟨∇F, r⟩ and {flowed:.2f} of its bound along flows; Newton's steps gain at"
        f" least {gain:.1f} times what is proved",
        f"{faces} random faces of codes of 2, 3 and 5 whole numbers, n ≤ 8, k ≤ 3, from random places of D",
        {"seed": SEED + 1, "sizes": [list(size) for size in _SIZES], "measured": measured},
        "The bounded direction of the proof at random numbers; plain gradient flow by implicit steps; DampedNewton as"
        " it is, beside min(V/10, δ²/16, δ/100) with δ² = ∇Fᵀ(Σ(w_j + 0.01)p̃_j p̃_jᵀ)⁻¹∇F; the slope of w by"
        " differences.",
        {_DIRECTION: worst},
    )


def _direction_again(point: Mapping[str, Any]) -> Again:
    """Compute the ratio again in numpy with slopes written out, for the same certificate, which is checked."""
    code, support, z = np.array(point["code"], float), point["support"], np.array(point["z"])
    lifted = np.hstack([code, np.ones((len(code), 1))])
    hidden = np.isin(np.arange(len(code)), support)
    rows, certificate = lifted[~hidden], np.array(point["certificate"])
    margin = -(rows @ certificate).max() if np.abs(lifted[hidden] @ certificate).max() < 1e-9 else np.nan
    v = np.pi / 2 * np.exp(lifted @ z)
    slope = np.where(hidden, v / np.tan(v), -v * np.tan(v))
    back = -np.linalg.lstsq(lifted[hidden], lifted[hidden] @ z, rcond=None)[0]
    r = back + (max(0.0, (rows @ back).max()) + 0.5) / margin * certificate
    loss = -np.log(np.where(hidden, np.sin(v), np.cos(v))).sum()
    return Again(float(loss / (slope @ lifted @ r)), "numpy, slopes written out, the certificate checked")


CLAIMS = (
    Claim(
        "P-face",
        "One head with a trained scale learns B (C → 1) iff B is a face of its position code, which can be decided"
        " beforehand; if it is none, training ends at the maximum over the smallest face that contains B.",
        _FACE_CLAUSES,
        _face,
        f"{CONCAVE}, the face theorem",
        seconds=2,
        proof=CONCAVE_PROOF,
        replay=dict.fromkeys((_MISSED, _BEYOND, _DIFFER, _SUPREMUM), _end_again),
    ),
    Claim(
        "P-two-k-numbers",
        "The least number r of parameters for which some position code in R^r makes every set of k of n positions a"
        " face is min(2k, n − 1); k harmonics of the circle do it with 2k, and one head learns them all.",
        _TWO_K_CLAUSES,
        _two_k_numbers,
        f"{CONCAVE}, 2k parameters",
        seconds=2,
        proof=CONCAVE_PROOF,
        replay={_NO_FACE: _learned_again, _NOT_LEARNED: _learned_again, _ALL_HELD: _held_again},
    ),
    Claim(
        "P-newton",
        "At a face there is a direction r of bounded length with −log C ≤ ⟨∇F, r⟩. So −log C ≤ max |r|²/t along plain"
        " gradient flow, and the damped Newton steps of the recipe `concave` converge: each gains at least"
        " min(V/10, δ²/16, δ/100), V = −log C, δ the length of ∇F in the damped metric.",
        _NEWTON_CLAUSES,
        _newton,
        f"{CONCAVE}, the face theorem",
        seconds=3,
        proof=CONCAVE_PROOFS,
        replay={_DIRECTION: _direction_again},
    ),
)
