"""Gradient ascent on log C with a searched step: the first-order form of concave learning."""

from __future__ import annotations

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import ParityTransformer
from parityscope.models.readouts import COSINE
from parityscope.risk import Law
from parityscope.training.steps.certificate import Certificate, concave_certificate
from parityscope.training.steps.first_order import Stepper
from parityscope.training.steps.log_attention import check_fair, log_value
from parityscope.training.steps.newton import moving_runs

_HALVINGS = 60


class ArmijoAscent(Stepper):
    """z ← z + η∇log C with the first of 2η, η, η/2, … that raises log C by (η/2)|∇log C|², every run on its own.

    The gradients are those of −log C, as a descent computes them.

    >>> from parityscope.models import Cosine
    >>> from parityscope.models.positions import orthogonal
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> start, law = torch.zeros(1, 1, 3, dtype=torch.float64), law_of([Parity(3, (2,))])
    >>> model = ParityTransformer(3, 1, 1, 1.0, positions=orthogonal(3), directions=start, readout=Cosine())
    >>> optimiser = ArmijoAscent(model, law)
    >>> for _ in range(50):
    ...     optimiser.zero_grad()
    ...     (-log_value(model.score_weights(), law.mask).sum()).backward()
    ...     optimiser.step()
    >>> model.score_weights()[0].round(decimals=1).tolist()
    [0.0, 0.0, 1.0]
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
        for _ in range(_HALVINGS):
            self._place(before, slopes, length)
            searching &= ~(self._value() >= start + length / 2 * square)
            if not bool(searching.any()):
                break
            length[searching] /= 2
        self._place(before, slopes, torch.where(searching, 0.0, length))
        self.stuck, self._states[0]["length"] = searching, length

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
