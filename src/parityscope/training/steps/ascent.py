"""Ascent on log C by gradients with a searched length: plain, and with a memory of the last ones (L-BFGS).

The gradients are those of −log C, as a descent computes them. Of one exponential head log C is concave in the trained
numbers, so that no two gradients disagree with it (⟨Δz, Δ∇⟩ ≤ 0), and a search for a sufficient rise (Armijo's rule) is
all that a quasi-Newton step needs: Newton's curvature is guessed from the last gradients, at the price of two products
with the code a step.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import ParityTransformer
from parityscope.models.readouts import COSINE
from parityscope.risk import Law
from parityscope.training.steps.certificate import Certificate, concave_certificate
from parityscope.training.steps.first_order import Stepper
from parityscope.training.steps.log_attention import check_fair, log_value
from parityscope.training.steps.newton import check_exponential, moving_runs

_HALVINGS = 60
_PAIRS = 20  # changes of the numbers and of the gradient that are remembered
_RISE = 1e-4  # of what the slope promises: what Nocedal and Wright take
_CURVED = 1e-14  # |⟨Δz, Δ∇⟩| below this share of |Δz||Δ∇| is rounding


def searched(
    place: Callable[[Tensor], None],
    value: Callable[[], Tensor],
    least: Callable[[Tensor], Tensor],
    length: Float[Tensor, " runs"],
    searching: Bool[Tensor, " runs"],
) -> Bool[Tensor, " runs"]:
    """Halve the lengths, in place, of the runs whose value is below what it must be there; return who found none."""
    for _ in range(_HALVINGS):
        place(length)
        searching = searching & ~(value() >= least(length))
        if not bool(searching.any()):
            break
        length[searching] /= 2
    return searching


class ArmijoAscent(Stepper):
    """z ← z + η∇log C with the first of 2η, η, η/2, … that raises log C by (η/2)|∇log C|², every run on its own.

    >>> from parityscope.problems import Parity
    >>> from parityscope.training.learning import learn
    >>> learn(Parity(8, (1, 4)), "concave", optimiser="armijo").found.tolist()
    [[1, 4]]
    """

    def __init__(self, model: ParityTransformer, law: Law) -> None:
        if model.readout.cosine_series() != COSINE:
            raise InvalidInput("armijo steps raise log C of the cosine readout: set readout=cosine")
        check_fair(law, "armijo")
        super().__init__(model.parameters())
        self.model, self.law = model, law

    @torch.no_grad()
    def step(self) -> None:
        """Take one step with every run that has not stopped."""
        before = [p.detach().clone() for p in self.parameters]
        slopes = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        start = self._value()
        square = torch.stack([slope.reshape(len(slope), -1).square().sum(-1) for slope in slopes]).sum(0)
        searching = torch.zeros_like(start, dtype=torch.bool)
        searching[moving_runs(self.model.directions)] = True
        length = self._states[0].get("length", torch.full_like(start, 0.5))
        length = torch.where(searching, 2 * length, length)
        searching = searched(
            lambda length: self._place(before, slopes, length),
            self._value,
            lambda length: start + length / 2 * square,
            length,
            searching,
        )
        self._place(before, slopes, torch.where(searching, 0.0, length))
        self.stuck, self._states[0]["length"] = searching, length

    def _like(self, index: int) -> dict[str, Tensor]:
        return {} if index else {"length": torch.zeros(len(self.model.directions), dtype=torch.float64)}

    def certificate(self) -> Certificate:
        """Return what concavity proves of every run, where the scale is trained; softmax alone is not concave."""
        if self.model.log_scale is None:
            nothing = torch.zeros(len(self.model.directions), dtype=torch.float64)
            return Certificate(nothing + torch.inf, nothing, "nothing")
        return concave_certificate(self.model, self.law)

    def _value(self) -> Tensor:
        return log_value(self.model.score_weights(), self.law.mask)

    def _place(self, before: list[Tensor], slopes: list[Tensor], length: Tensor) -> None:
        for p, old, slope in zip(self.parameters, before, slopes, strict=True):
            p.copy_(old - length.reshape(-1, *[1] * (p.dim() - 1)) * slope)


class LimitedMemory(Stepper):
    """z ← z + ηH∇log C, H from the last changes of z and of the gradient, every run on its own; C never falls.

    A run whose direction leads nowhere forgets what it remembers; one without memory is `stuck`.

    >>> from parityscope.problems import Parity
    >>> from parityscope.training.learning import learn
    >>> learn(Parity(8, (1, 4)), "concave", optimiser="lbfgs", positions="harmonics").found.tolist()
    [[1, 4]]
    """

    def __init__(self, model: ParityTransformer, law: Law) -> None:
        check_exponential(model, "lbfgs")
        check_fair(law, "lbfgs")
        super().__init__(model.parameters())
        self.model, self.law = model, law
        runs, numbers = len(model.directions), model.directions.shape[-1] + 1
        empty = model.directions.new_zeros(runs, _PAIRS, numbers)
        # The last pair is the newest; pairs that are not there are zeros, and do nothing.
        self._states[0] = {"moves": empty, "falls": empty.clone(), "gradient": empty[:, 0].clone()}

    @torch.no_grad()
    def step(self) -> None:
        """Take one step with every run that has not stopped."""
        memory, before = self._states[0], self._numbers()
        slope = torch.cat([_of(self.model.directions), _of(self.model.log_scale)[:, None]], dim=-1)
        moving = torch.zeros(len(slope), dtype=torch.bool)
        moving[moving_runs(self.model.directions)] = True
        self._remember(slope, moving)
        fresh = ~memory["moves"][:, -1].ne(0).any(-1)
        direction = -two_loops(slope, memory["moves"], memory["falls"])
        # Without a memory the length of a step is unknown: one that changes the numbers by about 1.
        direction[fresh] /= slope[fresh].norm(dim=-1, keepdim=True).clamp(min=1.0)
        found = self._searched(before, direction, -(slope * direction).sum(-1), moving)
        lost = moving & ~found
        memory["gradient"] = torch.where(moving[:, None], slope, memory["gradient"])
        memory["last"] = torch.where(moving[:, None], self._numbers() - before, 0.0)
        for name in ("moves", "falls", "last"):
            memory[name][lost] = 0.0
        self.stuck = lost & fresh

    def _like(self, index: int) -> dict[str, Tensor]:
        fresh = self._states[index]
        return {**fresh, "last": fresh["gradient"]} if fresh else {}

    def _remember(self, slope: Float[Tensor, "runs numbers"], moving: Tensor) -> None:
        """Add the last step and what it changed of the gradient, where that tells a curvature."""
        memory = self._states[0]
        if "last" not in memory:
            return
        move, fall = memory["last"], slope - memory["gradient"]
        told = moving & ((move * fall).sum(-1) > _CURVED * move.norm(dim=-1) * fall.norm(dim=-1))
        for name, new in (("moves", move), ("falls", fall)):
            longer = torch.cat([memory[name][:, 1:], new[:, None]], dim=1)
            memory[name] = torch.where(told[:, None, None], longer, memory[name])

    def _searched(self, before: Tensor, direction: Tensor, promised: Tensor, moving: Tensor) -> Tensor:
        """Go the first of 1, ½, ¼, … that raises log C enough; return which runs found one."""
        start, length = self._value(), torch.ones_like(promised)
        searching = searched(
            lambda length: self._place(before + length[:, None] * direction),
            self._value,
            lambda length: start + _RISE * length * promised,
            length,
            moving,
        )
        kept = moving & ~searching & (self._value() > start)
        self._place(torch.where(kept[:, None], before + length[:, None] * direction, before))
        return kept

    def certificate(self) -> Certificate:
        """Return what concavity proves of every run."""
        return concave_certificate(self.model, self.law)

    def _value(self) -> Float[Tensor, " runs"]:
        return log_value(self.model.score_weights(), self.law.mask)

    def _numbers(self) -> Float[Tensor, "runs numbers"]:
        assert self.model.log_scale is not None
        return torch.cat([self.model.directions[:, 0], self.model.log_scale[:, None]], dim=-1)

    def _place(self, numbers: Float[Tensor, "runs numbers"]) -> None:
        assert self.model.log_scale is not None
        self.model.directions[:, 0] = numbers[:, :-1]
        self.model.log_scale.copy_(numbers[:, -1])


def _of(parameter: Tensor | None) -> Tensor:
    """Return the gradient of −log C in the numbers of the only head, or in its scale."""
    assert parameter is not None
    gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    return gradient[:, 0] if gradient.dim() == 3 else gradient


def two_loops(
    gradient: Float[Tensor, "runs numbers"],
    moves: Float[Tensor, "runs pairs numbers"],
    falls: Float[Tensor, "runs pairs numbers"],
) -> Float[Tensor, "runs numbers"]:
    """Return H∇ of every run: the inverse Hessian that its last moves and changes of the gradient tell, times ∇.

    With a quadratic's own changes it is exact in their directions.
    """
    # Nocedal and Wright, Numerical Optimization, Algorithm 7.4, every run on its own.
    products = (moves * falls).sum(-1)  # (runs, pairs); 0: no pair
    weights = torch.where(products > 0, 1 / products, 0.0)
    direction, shares = gradient.clone(), []
    for pair in reversed(range(moves.shape[1])):
        share = weights[:, pair] * (moves[:, pair] * direction).sum(-1)
        direction = direction - share[:, None] * falls[:, pair]
        shares.append(share)
    # Their first guess of the inverse Hessian: ⟨Δz, Δ∇⟩/|Δ∇|² of the newest pair times the identity.
    newest = falls[:, -1].square().sum(-1)
    direction = direction * torch.where(newest > 0, products[:, -1] / newest, 1.0)[:, None]
    for pair, share in zip(range(moves.shape[1]), reversed(shares), strict=True):
        back = weights[:, pair] * (falls[:, pair] * direction).sum(-1)
        direction = direction + (share - back)[:, None] * moves[:, pair]
    return direction
