"""Second-order steps on log C for one head: what makes a few steps enough for every k.

One plain gradient step singles out the hidden bits, but with random positions their scores come out unequal by
α·√(k/r), and parity needs them equal. log C is a sum over positions, concave in each weight c_j on its domain, so its
Gauss–Newton matrix in the head's r numbers, Jᵀ diag(−∂²log C/∂c_j²) J with J = ∂c/∂q, is positive semidefinite. Solving
with it asks for equal scores on B directly. Damping and length of every step are searched on log C itself.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import ParityTransformer
from parityscope.models.positions import position_scores
from parityscope.models.readouts import COSINE
from parityscope.risk import Law
from parityscope.training.steps.first_order import Stepper
from parityscope.training.steps.log_attention import log_correlation

_DAMPINGS = (1e-6, 1e-4, 1e-2, 1.0)  # relative to the largest eigenvalue
_LENGTHS = tuple(2.0**power for power in range(-6, 7))


class GaussNewton(Stepper):
    """Damped Gauss–Newton on log C, every run on its own; a run whose search finds nothing better stays.

    >>> from parityscope.problems import Parity
    >>> from parityscope.training.learning import learn
    >>> learn(Parity(8, (1, 4, 6)), "one-step", steps=3).found.tolist()  # beyond pairs: Gauss–Newton
    [[1, 4, 6]]
    """

    def __init__(self, model: ParityTransformer, law: Law) -> None:
        if model.heads != 1 or model.readout.cosine_series() != COSINE:
            raise InvalidInput("gauss-newton steps need one head and the cosine readout: set heads=1, readout=cosine")
        super().__init__(model.parameters())
        self.model, self.law = model, law

    @torch.no_grad()
    def step(self) -> None:
        """Take one step."""
        directions, code = self.model.directions, self.model.positions
        for run in range(len(directions)):
            positions = code[run] if code.dim() == 3 else code
            law = self.law._replace(mask=self.law.mask[run] if self.law.mask.dim() == 2 else self.law.mask)
            directions[run, 0] += _best_change(directions[run, 0], positions, law, self.model.k, self._temperature(run))

    def _temperature(self, run: int) -> float:
        temperature = self.model.temperature
        return float(temperature[run]) if isinstance(temperature, Tensor) else temperature


def _best_change(q: Tensor, positions: Tensor, law: Law, k: int, temperature: float) -> Float[Tensor, " r"]:
    """Return the change of one head that raises log C most, over all dampings and lengths."""

    def weights_at(scores: Tensor) -> Tensor:
        return k * torch.softmax(scores / temperature, -1)

    def scores_of(direction: Tensor) -> Tensor:
        return position_scores(direction[None], positions)[0]

    scores = scores_of(q)
    c = weights_at(scores)
    slope, curvature = _slope_and_curvature(c, law)
    floats = positions if positions.is_floating_point() else positions.to(q.dtype) / positions.shape[-1] ** 0.5
    # ∂c_j/∂q = (c_j/τ)(p_j − Σ_l γ_l p_l)
    jacobian = (c / temperature)[:, None] * (floats - (c / k) @ floats)
    gradient = slope @ jacobian
    eigenvalues, basis = torch.linalg.eigh((jacobian * curvature[:, None]).T @ jacobian)
    dampings, lengths = (torch.tensor(values, dtype=q.dtype) for values in (_DAMPINGS, _LENGTHS))
    shrunk = (basis.T @ gradient) / (eigenvalues.clamp(min=0) + dampings[:, None] * eigenvalues[-1])
    directions = shrunk @ basis.T  # (dampings, r)
    along = position_scores(directions, positions)  # (dampings, n)
    tried = weights_at(scores + lengths[:, None] * along[:, None])  # (dampings, lengths, n)
    values = log_correlation(tried, law)
    best = int(values.argmax())
    if not values.flatten()[best] > log_correlation(c, law):
        return torch.zeros_like(q)
    return lengths[best % len(lengths)] * directions[best // len(lengths)]


def _slope_and_curvature(c: Tensor, law: Law) -> tuple[Tensor, Tensor]:
    """Return ∂log C/∂c_j and −∂²log C/∂c_j² (at least a little); log C is a sum over positions."""
    with torch.enable_grad():
        c = c.detach().requires_grad_()
        (slope,) = torch.autograd.grad(log_correlation(c, law), c, create_graph=True)
        (second,) = torch.autograd.grad(slope.sum(), c)
    return slope.detach(), (-second).clamp(min=1e-3)
