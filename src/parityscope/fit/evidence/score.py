"""Score tests of one more effect in an additive model: how surely a sign is related to what the model leaves.

For labels the model is a logistic regression, for a measured target a linear one. Let r be the residuals of the model
fitted without the effect z, w their variances, and z̃ what is left of z after weighted least squares on the columns of
the model. The score statistic is U = Σ z̃r (Rao 1948). For labels its tail is the saddlepoint approximation of a sum of
independent Bernoulli variables (Barndorff-Nielsen's r*), which stays accurate far out in the tail, with few cases and
with rare columns, where a normal tail does not: genome-wide studies use it for that reason (SAIGE, Zhou et al., Nature
Genetics 50, 2018). For a measured target it is Student's t.

Rows of one group may depend on each other in any way. The group sums U_g of z̃r are then the independent pieces, and
T = ΣU_g/√ΣU_g² has P(|T| ≥ t) ≤ 2·exp(−t²/2) wherever the pieces are symmetric (Hoeffding's bound for random signs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

_RIDGE = 0.5  # half an observation: keeps coefficients finite where a column separates the classes
_ROUNDS = 40
_MANY_ROWS = 20_000  # beyond, rows with the same columns are counted instead of repeated
_LONGEST_STEP = 4.0


@dataclass(frozen=True)
class Target:
    """What is explained: 0 and 1, or measured numbers; with the weight and the group of every row.

    >>> Target(np.array([0.0, 1.0, 1.0, 1.0])).share
    0.75
    """

    y: Float[ndarray, " rows"]
    measured: bool = False
    weights: Float[ndarray, " rows"] | None = None
    groups: Int[ndarray, " rows"] | None = None  # numbered from 0

    @property
    def share(self) -> float:
        """The (weighted) mean: for labels the share of the second class."""
        return float(np.average(self.y, weights=self.weights))

    def taken(self, rows: ndarray) -> Target:
        """Return the target of some rows."""
        weights, groups = (None if some is None else some[rows] for some in (self.weights, self.groups))
        if groups is not None:
            groups = np.unique(groups, return_inverse=True)[1]
        return Target(self.y[rows], self.measured, weights, groups)


@dataclass(frozen=True)
class Regression:
    """A fitted regression: coefficients (the constant first), expected values, and the variance of every row."""

    coefficients: Float[ndarray, " columns"]
    expected: Float[ndarray, " rows"]
    variance: Float[ndarray, " rows"]  # of a row's target, up to `dispersion`
    information: Float[ndarray, "columns columns"]
    dispersion: float
    deviance: float


def regression(design: Float[ndarray, "rows columns"], target: Target) -> Regression:
    """Fit a logistic or linear regression with a weak ridge on everything but the constant, which comes first."""
    counted = _counted(design, target)
    coefficients = np.zeros(design.shape[1])
    ridge = np.full(design.shape[1], _RIDGE)
    ridge[0] = 0.0
    if not target.measured:
        share = min(max(target.share, 1e-6), 1 - 1e-6)
        coefficients[0] = math.log(share / (1 - share))
    information = np.eye(design.shape[1])
    for _ in range(1 if target.measured else _ROUNDS):
        expected = _expected(counted.design @ coefficients, target.measured)
        variance = np.ones_like(expected) if target.measured else expected * (1 - expected)
        information = (counted.design * (counted.mass * variance)[:, None]).T @ counted.design + np.diag(ridge + 1e-9)
        gradient = counted.design.T @ (counted.total - counted.mass * expected) - ridge * coefficients
        step = np.linalg.solve(information, gradient)
        coefficients = coefficients + step * min(1.0, _LONGEST_STEP / (float(np.abs(step).max()) + 1e-12)) ** (
            not target.measured
        )
        if np.abs(step).max() < 1e-7:
            break
    expected = _expected(counted.design @ coefficients, target.measured)[counted.of_row]
    variance = np.ones_like(expected) if target.measured else expected * (1 - expected)
    weights = np.ones(len(expected)) if target.weights is None else target.weights
    if target.measured:
        left = float((weights * (target.y - expected) ** 2).sum())
        free = max(1.0, float(weights.sum()) - design.shape[1])
        return Regression(coefficients, expected, variance, information, left / free, left)
    deviance = -2 * float((weights * log_likelihood(target.y, expected)).sum())
    return Regression(coefficients, expected, variance, information, 1.0, deviance)


def covariance(design: Float[ndarray, "rows columns"], target: Target, fitted: Regression) -> ndarray:
    """Return the covariance of the coefficients: the inverse information, or with groups the sandwich around it.

    Rows of a group depend on each other, so that the sums of their scores are the independent pieces (Liang and Zeger
    1986): I⁻¹ (Σ s_g s_gᵀ) I⁻¹, times G/(G − 1) for the mean that G groups share.
    """
    bread = np.linalg.inv(fitted.information)
    if target.groups is None:
        return bread * fitted.dispersion
    weights = np.ones(len(design)) if target.weights is None else target.weights
    pieces = design * (weights * (target.y - fitted.expected))[:, None]
    sums = np.zeros((int(target.groups.max()) + 1, design.shape[1]))
    np.add.at(sums, target.groups, pieces)
    return bread @ (sums.T @ sums) @ bread * len(sums) / max(1, len(sums) - 1)


def log_likelihood(y: ndarray, expected: ndarray) -> Float[ndarray, " rows"]:
    """Return log P(label) of every row.

    >>> log_likelihood(np.array([1.0, 0.0]), np.array([0.5, 0.5])).round(3).tolist()
    [-0.693, -0.693]
    """
    share = np.clip(expected, 1e-12, 1 - 1e-12)
    return np.where(y > 0.5, np.log(share), np.log1p(-share))


@dataclass(frozen=True)
class Score:
    """One more effect, tested: the logarithm of its two-sided p-value, and its one-step estimate."""

    log_p: float
    estimate: float
    error: float  # standard error of the estimate


def score_test(
    design: Float[ndarray, "rows columns"], z: Float[ndarray, " rows"], target: Target, fitted: Regression | None = None
) -> Score:
    """Test whether z has an effect beyond the columns of a design, whose first is the constant."""
    fitted = regression(design, target) if fitted is None else fitted
    weights = np.ones(len(z)) if target.weights is None else target.weights
    weighted = design * (weights * fitted.variance)[:, None]
    beyond = z - design @ np.linalg.solve(fitted.information, weighted.T @ z)
    left = weights * (target.y - fitted.expected)
    information = float((weights * fitted.variance * beyond**2).sum())
    if information <= 1e-9 * len(z):
        return Score(0.0, 0.0, math.inf)
    observed = float((beyond * left).sum())
    estimate, error = observed / information, math.sqrt(fitted.dispersion / information)
    if target.groups is not None:
        sums = np.bincount(target.groups, weights=beyond * left)
        error = math.sqrt(float((sums**2).sum()) * len(sums) / max(1, len(sums) - 1)) / information
        return Score(_grouped_log_p(sums), estimate, error)
    if target.measured:
        spread = math.sqrt(fitted.dispersion * float((weights**2 * beyond**2).sum()))
        student = _student_log_p(observed / spread, len(z) - design.shape[1] - 1)
        return Score(max(student, _flipped_log_p(beyond * left)), estimate, error)
    return Score(_saddlepoint_log_p(observed, beyond * weights, fitted.expected), estimate, error)


@dataclass(frozen=True)
class _Counted:
    """The different rows of a design: their total weight, and the weighted sum of the target."""

    design: ndarray
    mass: ndarray
    total: ndarray
    of_row: ndarray | slice


def _counted(design: ndarray, target: Target) -> _Counted:
    weights = np.ones(len(design)) if target.weights is None else target.weights
    everything = _Counted(design, weights, weights * target.y, slice(None))
    if len(design) < _MANY_ROWS:
        return everything
    # A random direction tells different rows apart, and one sort of numbers finds the equal ones.
    mark = design @ np.random.RandomState(0).randn(design.shape[1])
    _, first, of_row = np.unique(mark, return_index=True, return_inverse=True)
    if 4 * len(first) > len(design):
        return everything
    mass, total = (np.bincount(of_row, weights=some) for some in (weights, weights * target.y))
    return _Counted(design[first], mass, total, of_row)


def _expected(linear: ndarray, measured: bool) -> ndarray:
    return linear if measured else 1 / (1 + np.exp(-np.clip(linear, -30, 30)))


def _saddlepoint_log_p(observed: float, z: ndarray, share: ndarray) -> float:
    """Return the logarithm of twice the smaller tail of Σ z(y − share), y independent Bernoulli variables."""
    if len(z) >= _MANY_ROWS:
        key = np.round(z, 12) + 1j * np.round(share, 12)
        values, counts = np.unique(key, return_counts=True)
        if 4 * len(values) < len(z):
            return _tail_of(abs(observed), values.real * math.copysign(1, observed), values.imag, counts)
    return _tail_of(abs(observed), z * math.copysign(1, observed), share, np.ones(len(z)))


def _tail_of(observed: float, z: ndarray, share: ndarray, counts: ndarray) -> float:
    acts = np.abs(z) > 1e-12
    z, share, counts = z[acts], np.clip(share[acts], 1e-12, 1 - 1e-12), counts[acts]
    most = float((counts * np.where(z > 0, z * (1 - share), -z * share)).sum())
    if observed <= 0:
        return 0.0
    if observed >= most * (1 - 1e-9):  # as large as it can be: every row has the answer that z asks for
        return min(0.0, math.log(2) + float((counts * np.log(np.where(z > 0, share, 1 - share))).sum()))
    slope = _saddlepoint(observed, z, share, counts)
    odds = np.log(share) - np.log1p(-share)
    tilted = 1 / (1 + np.exp(-np.clip(odds + slope * z, -700, 700)))
    cumulant = float((counts * (np.logaddexp(np.log1p(-share), np.log(share) + slope * z) - slope * z * share)).sum())
    curvature = float((counts * z**2 * tilted * (1 - tilted)).sum())
    signed_root = math.sqrt(max(0.0, 2 * (slope * observed - cumulant)))
    if signed_root < 1e-3 or curvature <= 0:
        return min(0.0, math.log(2) + log_normal_tail(signed_root))
    corrected = signed_root + math.log(slope * math.sqrt(curvature) / signed_root) / signed_root
    return min(0.0, math.log(2) + log_normal_tail(corrected))


def _saddlepoint(observed: float, z: ndarray, share: ndarray, counts: ndarray) -> float:
    """Return the t at which the tilted mean of Σ z(y − share) is what was observed: Newton within a bracket."""
    odds = np.log(share) - np.log1p(-share)
    low, high, t = 0.0, math.inf, observed / float((counts * z**2 * share * (1 - share)).sum())
    for _ in range(100):
        tilted = 1 / (1 + np.exp(-np.clip(odds + t * z, -700, 700)))
        away = float((counts * z * (tilted - share)).sum()) - observed
        low, high = (t, high) if away < 0 else (low, t)
        curvature = float((counts * z**2 * tilted * (1 - tilted)).sum())
        if abs(away) <= 1e-9 * observed:
            break
        step = t - away / curvature if curvature > 0 else math.inf
        t = step if low < step < high else (2 * t if math.isinf(high) else (low + high) / 2)
    return t


def _flipped_log_p(pieces: ndarray) -> float:
    """Return the logarithm of how often Σ ±pieces is as large, signs dealt at random: outliers count as one row each.

    Valid for symmetric errors of any tails, unequal ones too: sign flips of scores (Hemerik, Goeman and Finos 2020).
    """
    size = float(np.abs(pieces).max(initial=0.0))
    if size == 0:
        return 0.0
    scaled, half = 2 * pieces / size, np.full(len(pieces), 0.5)
    total = float(pieces.sum()) / size
    return _tail_of(abs(total), scaled * math.copysign(1, total), half, np.ones(len(pieces)))


def _grouped_log_p(sums: ndarray) -> float:
    square = float((sums**2).sum())
    return 0.0 if square == 0 else min(0.0, math.log(2) - float(sums.sum()) ** 2 / square / 2)


def _student_log_p(t: float, degrees: int) -> float:
    """Return the logarithm of the two-sided tail of Student's t, by Wallace's transformation to a normal one."""
    if degrees < 1:
        return 0.0
    normal = (8 * degrees + 1) / (8 * degrees + 3) * math.sqrt(degrees * math.log1p(t * t / degrees))
    return min(0.0, math.log(2) + log_normal_tail(normal))


def log_normal_tail(z: float) -> float:
    """Return the logarithm of P(N(0, 1) ≥ z), also far out."""
    if z < 10:
        return math.log(0.5 * math.erfc(z / math.sqrt(2)))
    return -z * z / 2 - math.log(z * math.sqrt(2 * math.pi)) + math.log1p(-1 / z**2 + 3 / z**4)


def normal_quantile(log_tail: float) -> float:
    """Return the z of which the upper tail has this logarithm."""
    low, high = -10.0, 10.0 + math.sqrt(max(0.0, -2 * log_tail))
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if log_normal_tail(middle) > log_tail else (low, middle)
    return high
