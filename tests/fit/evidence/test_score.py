"""Score tests: saddlepoint tails against exact ones, sizes under chance, and groups."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from parityscope.fit.answer import Question, ask
from parityscope.fit.evidence.evidence import exact_log_p, repetition
from parityscope.fit.evidence.score import (
    Target,
    _flipped_log_p,
    _student_log_p,
    log_normal_tail,
    normal_quantile,
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
        assert log_normal_tail(z) == pytest.approx(norm.logsf(z), rel=1e-3)
        assert normal_quantile(norm.logsf(z)) == pytest.approx(z, abs=1e-3)
    for degrees in (20, 500):
        assert _student_log_p(5.0, degrees) == pytest.approx(math.log(2) + student.logsf(5.0, degrees), rel=0.02)


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
