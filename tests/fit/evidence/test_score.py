"""Score tests: saddlepoint tails against exact ones, sizes under chance, and groups."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit
from scipy.stats import norm
from scipy.stats import t as student

from parityscope.fit.answer import Question, ask
from parityscope.fit.evidence import score
from parityscope.fit.evidence.evidence import exact_log_p, repetition
from parityscope.fit.evidence.score import (
    Target,
    _flipped_log_p,
    _student_log_p,
    _tail_of,
    covariance,
    log_normal_tail,
    normal_quantile,
    regression,
    score_test,
)


@pytest.mark.parametrize(("rows", "share"), [(300, 0.5), (400, 0.1), (3000, 0.03)])
def test_the_tail_is_near_fishers(rows, share):
    """Given the margins or not, far tails agree to a fraction of their logarithm."""
    for seed in range(5):
        random = np.random.RandomState(seed)
        chi = np.where(random.rand(rows) < 0.5, 1, -1).astype(np.int8)
        up = random.rand(rows) < np.clip(share * (1 + 0.6 * chi), 0, 1)
        log_p = score_test(np.ones((rows, 1)), chi.astype(float), Target(up.astype(float))).log_p
        exact = exact_log_p(chi, np.where(up, 1, -1).astype(np.int8))
        assert log_p == pytest.approx(exact, rel=0.25, abs=0.7)


def test_far_tails_of_normal_and_student_are_scipys():
    for z in (0.0, 3.0, 9.9, 10.1, 35.0):
        assert log_normal_tail(z) == pytest.approx(norm.logsf(z), rel=1e-6)
        assert normal_quantile(norm.logsf(z)) == pytest.approx(z, abs=1e-5)
    for degrees, off in ((4, 2e-2), (20, 2e-3), (500, 1e-4)):
        assert _student_log_p(5.0, degrees) == pytest.approx(math.log(2) + student.logsf(5.0, degrees), rel=off)
    assert _student_log_p(5.0, 0) == 0.0


def drawn(seed, rows=200, measured=False):
    """Return a design of a constant and two columns, and a target with weights."""
    random = np.random.RandomState(seed)
    design = np.column_stack([np.ones(rows), random.randn(rows), random.rand(rows) < 0.2])
    linear = design @ [0.3, 1.0, -0.7]
    y = linear + random.randn(rows) if measured else (random.rand(rows) < expit(linear)).astype(float)
    return design, Target(y, measured, random.randint(1, 4, size=rows).astype(float))


def test_a_logistic_regression_is_where_the_penalised_likelihood_is_largest():
    design, target = drawn(0)
    ridge = np.array([0.0, 0.5, 0.5])

    def loss(beta):
        likely = np.where(target.y > 0.5, expit(design @ beta), expit(-design @ beta))
        return -target.weights @ np.log(likely) + ridge @ beta**2 / 2

    found, best = regression(design, target), minimize(loss, np.zeros(3), tol=1e-12).x
    assert found.coefficients == pytest.approx(best, abs=1e-4)
    share = expit(design @ found.coefficients)
    assert found.expected == pytest.approx(share)
    assert found.variance == pytest.approx(share * (1 - share))
    assert found.information == pytest.approx(
        np.diag(ridge) + (design * (target.weights * share * (1 - share))[:, None]).T @ design, rel=1e-6
    )
    assert (found.deviance, found.dispersion) == (pytest.approx(2 * (loss(best) - ridge @ best**2 / 2)), 1.0)


def test_columns_that_separate_the_classes_have_finite_coefficients():
    z = np.repeat([-1.0, 1.0], 50)
    fitted = regression(np.column_stack([np.ones(100), z]), Target((z > 0).astype(float)))
    # 100·σ(−β) is what half an observation takes back: β/2.
    assert 100 * expit(-fitted.coefficients[1]) == pytest.approx(fitted.coefficients[1] / 2, rel=1e-3)


def test_a_linear_regression_solves_its_normal_equations():
    design, target = drawn(1, measured=True)
    found, weighted = regression(design, target), design * target.weights[:, None]
    assert found.coefficients == pytest.approx(
        np.linalg.solve(weighted.T @ design + np.diag([0, 0.5, 0.5]), weighted.T @ target.y), rel=1e-6
    )
    left = target.weights @ (target.y - design @ found.coefficients) ** 2
    assert (found.deviance, found.dispersion) == pytest.approx((left, left / (target.weights.sum() - 3)))
    assert covariance(design, target, found) == pytest.approx(np.linalg.inv(found.information) * found.dispersion)


def test_groups_have_the_sandwich_of_their_scores():
    design, plain = drawn(2)
    target = Target(plain.y, False, plain.weights, np.arange(200) // 8)
    found = regression(design, target)
    scores = design * (target.weights * (target.y - found.expected))[:, None]
    meat = sum(np.outer(one, one) for one in scores.reshape(25, 8, 3).sum(axis=1))
    bread = np.linalg.inv(found.information)
    assert covariance(design, target, found) == pytest.approx(bread @ meat @ bread * 25 / 24)
    z = np.random.RandomState(3).randn(200)
    tested = score_test(np.ones((200, 1)), z, target)
    weights, share = target.weights, target.share
    beyond = z - np.average(z, weights=weights)
    sums = (weights * beyond * (target.y - share)).reshape(25, 8).sum(axis=1)
    information = weights @ beyond**2 * share * (1 - share)
    assert tested.log_p == pytest.approx(min(0.0, math.log(2) - sums.sum() ** 2 / (sums @ sums) / 2), abs=1e-6)
    assert tested.estimate == pytest.approx(sums.sum() / information, rel=1e-6)
    assert tested.error == pytest.approx(math.sqrt(sums @ sums * 25 / 24) / information, rel=1e-6)


def test_rows_of_a_target_keep_their_weights_and_their_groups_in_a_row():
    whole = Target(np.arange(6.0), True, np.arange(1.0, 7.0), np.array([0, 0, 1, 1, 2, 2]))
    some = whole.taken(np.array([0, 4, 5]))
    assert (some.y.tolist(), some.measured, some.weights.tolist()) == ([0.0, 4.0, 5.0], True, [1.0, 5.0, 6.0])
    assert some.groups.tolist() == [0, 1, 1]
    assert Target(np.arange(3.0)).taken(np.array([2])).groups is None


@pytest.mark.parametrize("measured", [False, True])
def test_many_rows_are_counted_and_give_the_same(monkeypatch, measured):
    random = np.random.RandomState(4)
    design = np.column_stack([np.ones(600), random.randint(2, size=(600, 2))])
    z, y = random.choice([-1.0, 1.0], size=600), (random.rand(600) < 0.2 + 0.2 * design[:, 1]).astype(float)
    target = Target(y + measured * random.randn(600), measured, random.randint(1, 3, size=600).astype(float))
    whole = regression(design, target), score_test(design, z, target)
    monkeypatch.setattr(score, "_MANY_ROWS", 500)
    counted = regression(design, target), score_test(design, z, target)
    for name in ("coefficients", "expected", "variance", "information", "dispersion", "deviance"):
        assert getattr(counted[0], name) == pytest.approx(getattr(whole[0], name), rel=1e-9)
    assert (counted[1].log_p, counted[1].estimate) == pytest.approx((whole[1].log_p, whole[1].estimate), rel=1e-9)


@pytest.mark.parametrize("strength", [0.3, 0.9])
@pytest.mark.parametrize("share", [0.5, 0.03])
def test_a_tail_is_barndorff_nielsens(strength, share):
    """r* at the saddlepoint of K(t) = Σ count·log(1 − p + p e^{tz}) − t Σ count·zp, by bisection."""
    random = np.random.RandomState(5)
    z, counts = np.r_[random.randn(60), 0.0], np.r_[random.randint(1, 4, size=60).astype(float), 5.0]
    p = np.clip(share + 0.02 * random.randn(61), 0.01, 0.9)
    observed = strength * float(counts @ np.where(z > 0, z * (1 - p), -z * p))

    def tilted(t):
        return expit(np.log(p / (1 - p)) + t * z)

    t = brentq(lambda t: counts @ (z * (tilted(t) - p)) - observed, 0, 1e3, xtol=1e-13)
    r = math.sqrt(2 * (t * (observed + counts @ (z * p)) - counts @ np.log(1 - p + p * np.exp(t * z))))
    v = t * math.sqrt(counts @ (z**2 * tilted(t) * (1 - tilted(t))))
    expected = math.log(2) + norm.logsf(r + math.log(v / r) / r)
    assert _tail_of(observed, z, p, counts) == pytest.approx(expected, rel=1e-6)
    assert _tail_of(1e-4 * observed, 1e-4 * z, p, counts) == pytest.approx(expected, rel=1e-6)


def test_the_ends_of_a_tail():
    z, p, ones = np.array([1.0, -2.0, 3.0]), np.array([0.2, 0.3, 0.4]), np.ones(3)
    most = 1 * 0.8 + 2 * 0.3 + 3 * 0.6
    # Only labels that go with every z are as far away; nothing is farther than nothing.
    assert _tail_of(most, z, p, ones) == pytest.approx(math.log(2 * 0.2 * 0.7 * 0.4))
    assert _tail_of(most, z, p, 2 * ones) > math.log(2 * 0.2 * 0.7 * 0.4)
    assert _tail_of(0.0, z, p, ones) == 0.0
    assert _tail_of(0.1, np.ones(1), np.array([0.9]), np.ones(1)) == 0.0
    assert _tail_of(1e-9, z, p, ones) == pytest.approx(0.0, abs=1e-6)
    up, signs = np.repeat([0.0, 1.0], 20), np.repeat([-1.0, 1.0], 20)
    for sign in (1, -1):
        found = score_test(np.ones((40, 1)), sign * signs, Target(up))
        assert found.log_p == pytest.approx(-39 * math.log(2))
        assert found.estimate == pytest.approx(2.0 * sign)
        assert found.error == pytest.approx(math.sqrt(1 / 10))


def test_a_constant_has_no_effect():
    design, target = drawn(6)
    assert score_test(design, np.full(200, 2.0), target) == score.Score(0.0, 0.0, math.inf)


@pytest.mark.parametrize("wild", [False, True])
def test_a_measured_target_has_the_larger_of_students_tail_and_that_of_flipped_signs(wild):
    random = np.random.RandomState(7)
    z, y, w = random.choice([-1.0, 1.0], size=80), random.randn(80), random.randint(1, 4, size=80).astype(float)
    if wild:  # four rows of eighty have all of the effect
        z = np.where(np.arange(80) < 4, -1.0, 1.0)
        y += 10.0 * (z < 0)
    y += 0.5 * z
    for weights in (np.ones(80), w):
        tested = score_test(np.ones((80, 1)), z, Target(y, True, weights))
        beyond, left = z - np.average(z, weights=weights), y - np.average(y, weights=weights)
        spread, square = weights @ left**2 / (weights.sum() - 1), weights @ beyond**2
        tails = (
            _student_log_p(weights @ (beyond * left) / math.sqrt(spread * weights**2 @ beyond**2), 78),
            _flipped_log_p(weights * beyond * left),
        )
        assert (tails[1] > tails[0]) == wild
        assert tested.log_p == pytest.approx(max(tails), rel=1e-6)
        assert tested.estimate == pytest.approx(weights @ (beyond * left) / square)
        assert tested.error == pytest.approx(math.sqrt(spread / square))


def test_a_labels_weight_counts_in_its_tail():
    design, target = drawn(8)
    z, fitted = np.random.RandomState(9).randn(200), regression(design, target)
    mass = target.weights * fitted.variance
    beyond = z - design @ np.linalg.solve(fitted.information, (design * mass[:, None]).T @ z)
    pieces, observed = target.weights * beyond, float(target.weights * beyond @ (target.y - fitted.expected))
    expected = _tail_of(abs(observed), math.copysign(1, observed) * pieces, fitted.expected, np.ones(200))
    assert score_test(design, z, target).log_p == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_p_values_of_chance_are_not_too_small(share):
    small = 0
    for seed in range(400):
        random = np.random.RandomState(seed)
        design = np.column_stack([np.ones(200), random.randn(200)])
        z = np.where(random.rand(200) < 0.2, -1.0, 1.0)
        small += score_test(design, z, Target((random.rand(200) < share).astype(float))).log_p < math.log(0.05)
    assert small <= 20 + 3 * math.sqrt(400 * 0.05 * 0.95)


def test_groups_count_once():
    """Every row ten times: without groups chance looks significant, with groups it does not."""
    false = {True: 0, False: 0}
    for seed in range(60):
        random = np.random.RandomState(seed)
        z, y = (np.repeat(random.choice([-1.0, 1.0], size=100), 10) for _ in range(2))
        for grouped in false:
            target = Target((y > 0).astype(float), groups=np.repeat(np.arange(100), 10) if grouped else None)
            false[grouped] += score_test(np.ones((1000, 1)), z, target).log_p < math.log(0.05)
    assert false[True] <= 6
    assert false[False] > 30


@pytest.mark.parametrize("tables", [40, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("measured", [True, False])
def test_intervals_with_groups_cover_their_effect(measured, tables):
    """80 subjects of ten visits with a level of their own: as independent rows they cover six times in ten."""
    subjects, covered = np.repeat(np.arange(80), 10), 0
    level = np.linspace(-6, 6, 4001)
    mass = np.exp(-(level**2) / 2)
    odds = [np.average(1 / (1 + np.exp(-1.6 * sign - level)), weights=mass) for sign in (1, -1)]
    effect = 1.6 if measured else (np.log(odds[0] / (1 - odds[0])) - np.log(odds[1] / (1 - odds[1]))) / 2
    for seed in range(tables):
        random = np.random.RandomState(seed)
        X = random.randint(2, size=(80, 2))
        centre = (1.6 * (1 - 2 * X[:, 0]) + random.randn(80))[subjects]
        up = np.where(random.rand(800) < 1 / (1 + np.exp(-centre)), 1, -1).astype(np.int8)
        y = centre + random.randn(800) if measured else up
        question = Question(max_k=1, alpha=0.5)
        terms = ask(question, X[subjects], y, random, groups=subjects, measured=measured).interactions
        low, high = next(one.interval for one in terms if one.support == (0,))
        covered += low < effect < high
    assert abs(covered / tables - 0.95) < 3 * math.sqrt(0.95 * 0.05 / tables)


def test_weights_are_counts_in_the_estimate():
    random = np.random.RandomState(0)
    z, y = random.choice([-1.0, 1.0], size=300), (random.rand(300) < 0.4).astype(float)
    weights = random.randint(1, 4, size=300).astype(float)
    repeated = np.repeat(np.arange(300), weights.astype(int))
    by_weight = score_test(np.ones((300, 1)), z, Target(y, weights=weights))
    by_rows = score_test(np.ones((len(repeated), 1)), z[repeated], Target(y[repeated]))
    assert by_weight.estimate == pytest.approx(by_rows.estimate)


def test_coincidences_are_no_repetition():
    random = np.random.RandomState(0)
    bits = random.randint(2, size=(2000, 8))
    assert repetition(bits, (bits[:, 0] ^ bits[:, 1]).astype(float)) is None
    linked = np.repeat(random.rand(400, 4) < 0.5, 4, axis=1) ^ (random.rand(400, 16) < 0.01)
    assert repetition(linked.astype(int), random.randint(2, size=400).astype(float)) is None
    numbers = np.repeat(random.randn(500, 4), 2, axis=0)
    assert repetition(numbers, np.repeat(random.randint(2, size=500), 2).astype(float)).repeated == 500


@pytest.mark.parametrize(("kind", "by_student"), [("outliers", 4), ("unequal variances", 100)])
def test_few_wild_rows_of_a_measured_target_are_no_evidence(kind, by_student):
    """Student's t alone is far too small in many of these; with signs dealt at random the level is kept."""
    small = {"both": 0, "student": 0}
    for seed in range(200):
        random = np.random.RandomState(seed)
        z = np.where(random.rand(1000) < 0.03, -1.0, 1.0)
        y = random.standard_cauchy(1000) if kind == "outliers" else np.where(z < 0, 20.0, 1.0) * random.randn(1000)
        t = math.sqrt(998) * float(np.corrcoef(z, y)[0, 1])
        small["student"] += _student_log_p(t, 998) < math.log(0.01)
        small["both"] += score_test(np.ones((1000, 1)), z, Target(y, measured=True)).log_p < math.log(0.01)
    assert small["both"] <= 2 + 3 * math.sqrt(2)
    assert small["student"] >= by_student


def test_signs_dealt_at_random_have_the_tail_of_all_their_sums():
    random = np.random.RandomState(3)
    pieces = random.randn(14) + 0.9
    sums = np.array([[1 - 2 * (number >> place & 1) for place in range(14)] for number in range(2**14)]) @ pieces
    exact = math.log((np.abs(sums) >= abs(pieces.sum()) - 1e-9).mean())
    assert _flipped_log_p(pieces) == pytest.approx(exact, abs=0.35)
    assert _flipped_log_p(np.zeros(5)) == 0.0
    assert _flipped_log_p(1e9 * pieces) == pytest.approx(_flipped_log_p(pieces))
