"""L-BFGS on log C of one exponential head: Newton's curvature guessed from the last gradients, at the price of two
products with the code a step.

log C is concave in the head's numbers, so that no two gradients disagree with it (⟨Δz, Δ∇⟩ ≤ 0), and a search for a
sufficient rise is all that a quasi-Newton step needs.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models import ParityTransformer
from parityscope.risk import Law
from parityscope.training.steps.certificate import Certificate, concave_certificate
from parityscope.training.steps.first_order import Stepper
from parityscope.training.steps.log_attention import check_fair, log_value
from parityscope.training.steps.newton import check_exponential, moving_runs

_PAIRS = 20  # changes of the numbers and of the gradient that are remembered
_RISE = 1e-4  # of what the slope promises
_CURVED = 1e-14  # |⟨Δz, Δ∇⟩| below this share of |Δz||Δ∇| is rounding


class LimitedMemory(Stepper):
    """z ← z + ηH∇log C, H from the last changes of z and of the gradient, every run on its own; C never falls.

    A run whose direction leads nowhere forgets what it remembers; one without memory is `stuck`.

    >>> from parityscope.models import Cosine
    >>> from parityscope.models.positions import harmonics
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> start, law = torch.zeros(1, 1, 4, dtype=torch.float64), law_of([Parity(8, (1, 4))])
    >>> scale = torch.tensor([2 / 8], dtype=torch.float64).log()
    >>> code = harmonics(8, 2)
    >>> model = ParityTransformer(8, 2, 1, 1.0, positions=code, directions=start, log_scale=scale, readout=Cosine())
    >>> optimiser = LimitedMemory(model, law)
    >>> for _ in range(20):
    ...     optimiser.zero_grad()
    ...     (-log_value(model.score_weights(), law.mask).sum()).backward()
    ...     optimiser.step()
    >>> [round(weight, 1) for weight in model.score_weights()[0].tolist()]
    [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
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
        searching = moving.clone()
        for _ in range(_HALVINGS):
            self._place(before + length[:, None] * direction)
            searching &= ~(self._value() >= start + _RISE * length * promised)
            if not bool(searching.any()):
                break
            length[searching] /= 2
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

    >>> moves = torch.eye(2, dtype=torch.float64)[None]
    >>> hessian = torch.tensor([[2.0, 0.0], [0.0, 8.0]], dtype=torch.float64)
    >>> two_loops(torch.tensor([[1.0, 1.0]], dtype=torch.float64), moves, moves @ hessian).tolist()
    [[0.5, 0.125]]
    """
    products = (moves * falls).sum(-1)  # (runs, pairs); 0: no pair
    weights = torch.where(products > 0, 1 / products, 0.0)
    direction, shares = gradient.clone(), []
    for pair in reversed(range(moves.shape[1])):
        share = weights[:, pair] * (moves[:, pair] * direction).sum(-1)
        direction = direction - share[:, None] * falls[:, pair]
        shares.append(share)
    newest = falls[:, -1].square().sum(-1)
    direction = direction * torch.where(newest > 0, products[:, -1] / newest, 1.0)[:, None]
    for pair, share in zip(range(moves.shape[1]), reversed(shares), strict=True):
        back = weights[:, pair] * (falls[:, pair] * direction).sum(-1)
        direction = direction + (share - back)[:, None] * moves[:, pair]
    return direction
