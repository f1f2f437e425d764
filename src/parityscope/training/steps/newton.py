"""Second-order steps on log C for one head: what makes a few steps enough for every k.

*Damped Newton*, for one exponential head: log C is a concave function of its r + 1 numbers (`log_attention`). As
attention concentrates, the Hessian Σ_j w_j p̃_j p̃_jᵀ falls apart into k stiff directions (w = π²/4 on B) and soft
ones (w ~ c_j²), and inverting it loses twice the digits. Such runs are solved by a QR factorisation of the weighted
code √w_j p̃_j instead, large rows first and columns pivoted, which treats every row with its own precision.

*Gauss–Newton*, for one softmax head. One plain gradient step singles out the hidden bits, but with random positions
their scores come out unequal by α·√(k/r), and parity needs them equal. log C is a sum over positions, concave in each
weight c_j on its domain, so its Gauss–Newton matrix in the head's r numbers, Jᵀ diag(−∂²log C/∂c_j²) J with J = ∂c/∂q,
is positive semidefinite. Solving with it asks for equal scores on B directly. Damping and length of every step are
searched on log C itself.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import ParityTransformer
from parityscope.models.positions import codes_of, lifted_code, position_scores, sent_back, weighted_gram
from parityscope.models.readouts import COSINE
from parityscope.risk import Law
from parityscope.training.steps.certificate import Certificate, concave_certificate
from parityscope.training.steps.first_order import Stepper
from parityscope.training.steps.log_attention import LogAttention, check_fair, log_attention, log_correlation, log_value

_TRUSTED = 1e-8  # smallest squared pivot of the scaled Hessian; below, its solution has lost half of the digits
_NEGLIGIBLE = 1e-30  # pivots of the weighted code, relative to the largest
_DEPENDENT = 1e-10  # pivots of the code itself, relative to the largest: below, a column is a sum of the others
_ROUNDING = 2.0**-50  # of the largest |u_j|: a smaller gain of log C may be the scores' rounding
_DAMPINGS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
_FALL = 0.9  # of −log C: a step that leaves more of it is searched further
_LENGTHS = tuple(2.0**power for power in range(6, -31, -1))


class DampedNewton(Stepper):
    """Newton's direction, damped where need be, with the best of some lengths, every run on its own; C never falls.

    A run for which no length raises log C stays, and is `stuck`: another step would be the same.

    >>> from parityscope.problems import Parity
    >>> from parityscope.training.learning import learn
    >>> learn(Parity(8, (1, 4)), "concave", optimiser="newton", positions="harmonics").found.tolist()
    [[1, 4]]
    """

    def __init__(self, model: ParityTransformer, law: Law) -> None:
        check_exponential(model, "newton")
        check_fair(law, "newton")
        super().__init__(model.parameters())
        self.model, self.law = model, law

    @torch.no_grad()
    def step(self) -> None:
        """Take one step with every run that has not stopped."""
        model, log_scale = self.model, self.model.log_scale
        assert log_scale is not None
        moving = moving_runs(model.directions)
        code = codes_of(model.positions, moving)
        hidden = self.law.mask.expand(len(log_scale), -1)[moving]
        u = model.log_weights()[moving]
        at = log_attention(u.exp(), hidden)
        change = _best_change(code, u, hidden, at)
        temperature = model.temperature[moving, None] if isinstance(model.temperature, Tensor) else model.temperature
        before = model.directions[moving, 0], log_scale[moving]
        model.directions[moving, 0] += temperature * change[:, :-1]
        log_scale[moving] += change[:, -1]
        # What counts is log C of the rounded numbers: where margins end, they no longer hold what was found.
        better = log_value(model.score_weights()[moving], hidden) > at.value
        worse = moving[~better]
        model.directions[worse, 0], log_scale[worse] = before[0][~better], before[1][~better]
        self.stuck = torch.zeros(len(log_scale), dtype=torch.bool)
        self.stuck[worse] = True

    def certificate(self) -> Certificate:
        """Return what concavity proves of every run."""
        return concave_certificate(self.model, self.law)


def _best_change(
    code: Tensor, u: Float[Tensor, "runs n"], hidden: Bool[Tensor, "runs n"], at: LogAttention
) -> Float[Tensor, "runs lifted"]:
    """Return the change of every run's numbers: Newton's, or a damped one where that leads nowhere.

    Where attention has left a position, w_j is nothing, and Newton's direction may take u_j anywhere. A damping, added
    to all w_j, holds on to every u_j.
    """
    best, slope = at.value.clone(), u.exp() * at.gradient
    change = u.new_zeros(len(u), code.shape[-1] + 1)
    some = torch.arange(len(u))
    for damping in _DAMPINGS:
        codes = codes_of(code, some)
        direction = newton_direction(codes, slope[some], at.curvature[some] + damping)
        along = position_scores(direction[:, None, :-1], codes)[:, 0] + direction[:, -1:]
        length, value = _best_length(u[some], along, hidden[some], at.value[some])
        better = value > best[some]
        best[some[better]], change[some[better]] = value[better], (length[:, None] * direction)[better]
        some = (best < _FALL * at.value).nonzero()[:, 0]
        if not len(some):
            break
    return change


def newton_direction(
    code: Tensor, slope: Float[Tensor, "runs n"], curvature: Float[Tensor, "runs n"]
) -> Float[Tensor, "runs lifted"]:
    """Return the d of every run that solves Σ_j w_j p̃_j p̃_jᵀ d = Σ_j a_j p̃_j, for slopes a and curvatures w."""
    hessian = weighted_gram(code, curvature)
    # Scaled to a unit diagonal, pivots say which share of a direction is left once the others are taken out.
    scale = hessian.diagonal(dim1=-2, dim2=-1).clamp(min=torch.finfo(hessian.dtype).tiny).rsqrt()
    factor, failed = torch.linalg.cholesky_ex(scale[..., None] * hessian * scale[..., None, :])
    pivots = factor.diagonal(dim1=-2, dim2=-1).square().amin(-1)
    gradient = torch.cat([sent_back(slope, code), slope.sum(-1, keepdim=True)], dim=-1)
    direction = scale * torch.cholesky_solve((scale * gradient)[..., None], factor)[..., 0]
    # Beyond that, squaring the code into a Hessian has lost too much: its rows are used as they are.
    for run in ((failed != 0) | ~(pivots > _TRUSTED)).nonzero()[:, 0].tolist():
        direction[run] = _by_rows(lifted_code(code[run] if code.dim() == 3 else code), slope[run], curvature[run])
    return direction


def _by_rows(
    lifted: Float[Tensor, "n lifted"], slope: Float[Tensor, " n"], curvature: Float[Tensor, " n"]
) -> Float[Tensor, " lifted"]:
    """Minimise Σ_j w_j (⟨p̃_j, d⟩ − a_j/w_j)² by rows of very different size.

    A column that depends on others would leave a pivot of nothing but rounding, which the small rows' weights hide.
    """
    root = curvature.sqrt()
    rows = root.argsort(descending=True, stable=True)
    rows = rows[root[rows] > 0]
    columns = independent_columns(lifted)
    direction = lifted.new_zeros(lifted.shape[1])
    direction[columns] = pivoted_least_squares(root[rows, None] * lifted[rows][:, columns], slope[rows] / root[rows])
    return direction


def independent_columns(matrix: Float[Tensor, "rows columns"]) -> list[int]:
    """Return columns that span what all of them do, none a sum of the others (to a relative 1e-10)."""
    if matrix.shape[0] >= matrix.shape[1]:
        pivots = torch.linalg.qr(matrix, mode="r").R.diagonal().abs()
        if float(pivots.min()) > _DEPENDENT * float(pivots.max()):
            return list(range(matrix.shape[1]))
    order, rank, _ = _triangular(matrix, matrix.shape[1], _DEPENDENT)
    return sorted(order[:rank])


def pivoted_least_squares(
    matrix: Float[Tensor, "rows columns"], target: Float[Tensor, " rows"]
) -> Float[Tensor, " columns"]:
    """Minimise |Ax − b|² by Householder reflections with column pivoting; columns that add nothing get 0.

    With its rows sorted by size this is accurate row by row. (LAPACK's gelsy would do, but torch hands it a pivoting
    that it never sets.)
    """
    columns = matrix.shape[1]
    order, rank, work = _triangular(torch.cat([matrix, target[:, None]], dim=1), columns, _NEGLIGIBLE)
    solution = matrix.new_zeros(columns)
    upper, right = work[:rank, :rank].triu(), work[:rank, columns:]
    solution[order[:rank]] = torch.linalg.solve_triangular(upper, right, upper=True)[:, 0]
    return solution


def _triangular(
    matrix: Float[Tensor, "rows more"], columns: int, negligible: float
) -> tuple[list[int], int, Float[Tensor, "rows more"]]:
    """Reflect the first columns into a triangle, the longest first: their order, their rank and what all became."""
    work, order, rank, largest = matrix.clone(), list(range(columns)), 0, 0.0
    for i in range(min(len(matrix), columns)):
        norms = work[i:, i:columns].norm(dim=0)
        pivot = i + int(norms.argmax())
        length = float(norms[pivot - i])
        largest = max(largest, length)
        if length <= negligible * largest:
            break
        order[i], order[pivot] = order[pivot], order[i]
        work[:, [i, pivot]] = work[:, [pivot, i]]
        # Householder: away from the sign of its first entry, so that nothing cancels.
        mirror = work[i:, i].clone()
        mirror[0] += math.copysign(length, float(mirror[0]))
        mirror /= mirror.norm()
        work[i:, i:] -= torch.outer(2 * mirror, mirror @ work[i:, i:])
        rank = i + 1
    return order, rank, work


def _best_length(
    u: Float[Tensor, "runs n"], along: Float[Tensor, "runs n"], hidden: Bool[Tensor, "runs n"], start: Tensor
) -> tuple[Float[Tensor, " runs"], Float[Tensor, " runs"]]:
    """Return how far to go and log C there, from far to near until it is above its start and falls again.

    Where B is no face, ever larger numbers buy ever less, until log C rises only because its scores lost their digits.
    """
    best, length = start.clone(), torch.zeros_like(start)
    searching = torch.ones_like(start, dtype=torch.bool)
    for tried in _LENGTHS:
        some = searching.nonzero()[:, 0]
        there = u[some] + tried * along[some]
        value = log_value(there.exp(), hidden[some])
        better = (value > best[some]) & (value - start[some] > _ROUNDING * there.abs().amax(-1))
        best[some[better]], length[some[better]] = value[better], tried
        searching[some] = better | (length[some] == 0)
        if not bool(searching.any()):
            break
    return length, best


def moving_runs(parameter: Tensor) -> Tensor:
    """Return the runs that have not stopped: a descent sets the gradients of those that have to 0.

    >>> x = torch.ones(3, 1, requires_grad=True)
    >>> (x[:, 0] * torch.tensor([1.0, 0.0, 2.0])).sum().backward()
    >>> moving_runs(x).tolist()
    [0, 2]
    """
    if parameter.grad is None:
        return torch.arange(len(parameter))
    return parameter.grad.flatten(1).ne(0).any(-1).nonzero()[:, 0]


def check_exponential(model: ParityTransformer, steps: str) -> None:
    """Refuse a model whose log C is not concave in its numbers.

    >>> check_exponential(ParityTransformer(8, 2), "newton")
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: newton steps need one head with a trained scale and the cosine readout: set \
heads=1, mass=trained, readout=cosine
    """
    if model.log_scale is None or model.readout.cosine_series() != COSINE:
        raise InvalidInput(
            f"{steps} steps need one head with a trained scale and the cosine readout: set heads=1, mass=trained,"
            " readout=cosine"
        )


_RELATIVE_DAMPINGS = (1e-6, 1e-4, 1e-2, 1.0)  # relative to the largest eigenvalue
_DOUBLINGS = tuple(2.0**power for power in range(-6, 7))


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
            directions[run, 0] += _gauss_newton_change(
                directions[run, 0], positions, law, self.model.k, self._temperature(run)
            )

    def _temperature(self, run: int) -> float:
        temperature = self.model.temperature
        return float(temperature[run]) if isinstance(temperature, Tensor) else temperature


def _gauss_newton_change(q: Tensor, positions: Tensor, law: Law, k: int, temperature: float) -> Float[Tensor, " r"]:
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
    dampings, lengths = (torch.tensor(values, dtype=q.dtype) for values in (_RELATIVE_DAMPINGS, _DOUBLINGS))
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
