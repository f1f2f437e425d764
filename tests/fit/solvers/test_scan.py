"""Complete scans against regressions set by set, and the spectrum against numpy's correlations."""

import itertools

import numpy as np
import pytest

from parityscope.fit.bits.encoding import encode
from parityscope.fit.evidence.score import Target, regression, score_test
from parityscope.fit.solvers.scan import Scanner, seconds, strongest
from parityscope.fit.solvers.walsh import all_sizes, walsh


def drawn(rows=300, columns=9, seed=0, share=0.35):
    random = np.random.RandomState(seed)
    X = (random.rand(rows, columns) < share).astype(int)
    return X, (random.rand(rows) < 0.4).astype(float)


def residuals_of(y):
    return y - y.mean(), np.full(len(y), y.mean() * (1 - y.mean()))


def test_single_scores_are_correlations():
    X, y = drawn()
    score, _, _ = Scanner(encode(X, np.arange(len(X)))).single(*residuals_of(y))
    expected = [np.corrcoef(1 - 2 * column, y)[0, 1] * np.sqrt(len(y)) for column in X.T]
    assert score == pytest.approx(expected, abs=1e-4)


def beyond(z, parts, residuals, variance):
    """Return the standardised score of z after weighted least squares on a constant and its parts."""
    design, root = np.column_stack([np.ones(len(z)), *parts]), np.sqrt(variance)
    left = z - design @ np.linalg.lstsq(design * root[:, None], z * root, rcond=None)[0]
    return left @ residuals / np.sqrt(variance @ left**2)


def test_pairs_are_scored_beyond_their_two_questions():
    """The closed form is the score test of the product given both questions, by weighted least squares."""
    X, y = drawn(seed=3)
    y = ((X[:, 0] == 1) | (y > 0)).astype(float)  # a strong main effect, which no pair may borrow
    residuals, variance = residuals_of(y)
    found = {one.bits: one.strength for one in Scanner(encode(X, np.arange(300))).strongest(2, residuals, variance)}
    signs = 1.0 - 2 * X
    for a, b in itertools.combinations(range(9), 2):
        expected = beyond(signs[:, a] * signs[:, b], signs[:, (a, b)].T, residuals, variance)
        assert found[(a, b)] == pytest.approx(expected, abs=1e-3)


def test_scores_are_those_of_weighted_least_squares_where_variances_differ():
    """Residuals of any sum for single questions; for pairs of the sum 0 that a model leaves."""
    random = np.random.RandomState(4)
    X, _ = drawn(columns=14, seed=4)
    X[:, 13] = np.arange(300) == 7  # one row that differs
    signs, variance, residuals = 1.0 - 2 * X, 0.01 + 0.24 * random.rand(300), random.randn(300)
    scanner = Scanner(encode(X, np.arange(300)))
    score, _, _ = scanner.single(residuals, variance)
    assert score == pytest.approx([beyond(z, (), residuals, variance) for z in signs.T], rel=1e-3, abs=1e-4)
    residuals -= residuals.mean()
    expected = {
        (a, b): beyond(signs[:, a] * signs[:, b], signs[:, (a, b)].T, residuals, variance)
        for a, b in itertools.combinations(range(13), 2)
    }
    found = scanner.strongest(2, residuals, variance)
    assert [one.bits for one in found] == sorted(expected, key=lambda some: -abs(expected[some]))[:64]
    assert [one.strength for one in found] == pytest.approx([expected[one.bits] for one in found], abs=1e-3)


@pytest.mark.parametrize(("others", "scored"), [((4, 30), True), ((3, 30), False)])
def test_a_pair_needs_twelve_rows_worth_of_variance_beyond_its_parts(others, scored):
    """Of the four kinds of rows one has a single row: Σz̃² is 16/Σ(1/count), here 12.5 and 11.7."""
    counts = [1, *others, 1000]
    assert (16 / sum(1 / count for count in counts) > 12) == scored
    X = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], counts, axis=0)
    residuals = np.random.RandomState(0).randn(len(X))
    found = Scanner(encode(X, np.arange(len(X)))).strongest(2, residuals - residuals.mean(), np.full(len(X), 0.2))
    assert [one.bits for one in found] == [(0, 1)] * scored


@pytest.mark.parametrize(("k", "columns"), [(3, 7), (3, 14), (4, 14)])
@pytest.mark.parametrize("seed", range(5))
def test_the_strongest_sets_are_those_of_a_whole_sort(k, columns, seed):
    """All 35 of them, or the first 64."""
    X, _ = drawn(columns=columns, seed=seed, share=0.5)
    residuals = np.random.RandomState(seed).randn(300)
    signs = 1.0 - 2 * X
    found = Scanner(encode(X, np.arange(300))).strongest(k, residuals, np.ones(300))
    every = itertools.combinations(range(columns), k)
    whole = {some: signs[:, some].prod(axis=1) @ residuals / np.sqrt(300) for some in every}
    assert [one.bits for one in found] == sorted(whole, key=lambda some: -abs(whole[some]))[:64]
    assert [one.strength for one in found] == pytest.approx([whole[one.bits] for one in found], abs=1e-3)


@pytest.mark.parametrize("k", [3, 4])
def test_larger_sets_are_all_scored(k):
    X, y = drawn(seed=k, share=0.5)
    residuals, variance = residuals_of(y)
    found = Scanner(encode(X, np.arange(300))).strongest(k, residuals, variance)
    signs = 1.0 - 2 * X
    expected = {
        some: abs(signs[:, some].prod(axis=1) @ residuals) / np.sqrt(variance.sum())
        for some in itertools.combinations(range(9), k)
    }
    assert found[0].bits == max(expected, key=expected.get)
    assert abs(found[0].strength) == pytest.approx(max(expected.values()), abs=1e-3)


@pytest.mark.parametrize(
    ("k", "single", "one_by_one", "prefixes"),
    [
        (1, 0, 2 * 1000 * 2000, 0),
        (2, 2 * 2 * 1000**2 * 2000, 12 * 1000**2 + 1000 * 2000 / 2, 0),
        (3, 2 * 333_334_000 * 2000, 3 * 333_334_000 + 1000**2 * 2000 / 3, 1000),
        (4, 2 * 83_333_749_500 * 2000, 3 * 83_333_749_500 + 499_500 * 1000 * 2000 / 4, 499_500),
    ],
)
def test_the_work_of_a_scan_is_counted(k, single, one_by_one, prefixes):
    """Of 1000 questions and 2000 rows: C(1000, k) sets twice, and once more each prefix with every question."""
    assert seconds(1000, k, 2000) == pytest.approx(single / 8e10 + one_by_one / 4e8 + 1.5e-5 * prefixes, rel=1e-12)


def test_questions_about_one_column_are_never_a_pair():
    X = np.random.RandomState(0).randint(3, size=(300, 4))
    table = encode(X, np.arange(300))
    y = (X[:, 0] == 1).astype(float)
    for k in (2, 3):
        for one in Scanner(table).strongest(k, *residuals_of(y)):
            assert len(set(table.owner[list(one.bits)])) == k


@pytest.mark.parametrize(("k", "columns", "rows", "block", "tile"), [(2, 40, 700, 128, 4), (3, 9, 9000, 2**13, 4)])
def test_blocks_of_rows_and_of_columns_change_nothing(monkeypatch, k, columns, rows, block, tile):
    X, y = drawn(rows, columns)
    whole = Scanner(encode(X, np.arange(rows))).strongest(k, *residuals_of(y))
    monkeypatch.setattr("parityscope.fit.solvers.scan._BLOCK_ROWS", block)
    monkeypatch.setattr("parityscope.fit.solvers.scan._HELD", 0)
    monkeypatch.setattr("parityscope.fit.solvers.scan._TILE", tile)
    parts = Scanner(encode(X, np.arange(rows))).strongest(k, *residuals_of(y))
    assert [one.bits for one in parts] == [one.bits for one in whole]
    assert [one.strength for one in parts] == pytest.approx([one.strength for one in whole], abs=1e-4)


def test_the_spectrum_has_every_parity():
    X, y = drawn(columns=6)
    residuals, variance = residuals_of(y)
    for k, found in all_sizes(encode(X, np.arange(300)), residuals, variance, 6).items():
        for one in found:
            chi = (1 - 2 * X[:, one.bits]).prod(axis=1)
            assert one.strength == pytest.approx(np.corrcoef(chi, y)[0, 1] * np.sqrt(300), abs=1e-3)
        assert len(found) == len(list(itertools.combinations(range(6), k)))


def test_the_transform_is_that_of_the_definition():
    values = np.random.RandomState(1).randn(2**8).astype(np.float32)
    index = np.arange(2**8)
    signs = 1.0 - 2 * (np.bitwise_count(index[:, None] & index) % 2)
    assert walsh(values) == pytest.approx(signs @ values, abs=1e-3)


def test_a_score_test_is_near_the_likelihood_ratio():
    X, _ = drawn(rows=2000)
    random = np.random.RandomState(5)
    y = (random.rand(2000) < 0.3 + 0.1 * X[:, 2]).astype(float)
    ones, z = np.ones((2000, 1)), 1.0 - 2 * X[:, 2]
    drop = regression(ones, Target(y)).deviance - regression(np.column_stack([ones, z]), Target(y)).deviance
    assert score_test(ones, z, Target(y)).log_p == pytest.approx(-drop / 2, rel=0.35)


@pytest.mark.parametrize("rows", [5, 50, 5000])
@pytest.mark.parametrize("count", [1, 4, 7])
def test_it_is_a_stable_sort_cut_short(rows, count):
    random = np.random.RandomState(rows)
    for levels in (2, 3, 10, 10_000):
        strength = random.randint(-levels, levels + 1, size=rows) / levels
        whole = sorted(range(rows), key=lambda place: (-abs(strength[place]), place))
        assert strongest(strength, count).tolist() == whole[:count]


def test_where_all_are_equal_the_first_are_kept():
    assert strongest(np.zeros(9), 4).tolist() == [0, 1, 2, 3]
    assert strongest(np.ones(3), 4).tolist() == [0, 1, 2]
    assert strongest(np.empty(0), 4).tolist() == []
