"""What the loop finds where the schedule of 0.2.0 failed: each of these tables was answered wrongly by it."""

import os
import re
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from parityscope.fit import RepeatedRows, SparseParityClassifier, SparseParityRegressor, clock, loop
from parityscope.fit.answer import Question, ask
from parityscope.fit.evidence.score import Target
from parityscope.fit.known import Known
from parityscope.fit.sampling import Sampler, Step
from parityscope.fit.solvers.scan import Scanner
from parityscope.papers.own.fit_benchmark.planted import TableKind

SLOW = pytest.mark.slow


def labels_of(up):
    return np.where(up, 1, -1).astype(np.int8)


def answered(X, up, seed=0, **question):
    return ask(Question(**question), X, labels_of(np.asarray(up) > 0), np.random.RandomState(seed))


def supports(answer):
    return {one.support for one in answer.interactions}


def draws(seed):
    """A main effect of 0.48 and an XOR of 0.31, beside a hundred rare columns."""
    random = np.random.RandomState(seed)
    X = (random.rand(4000, 110) < np.where(np.arange(110) < 10, 0.5, 0.02)).astype(int)
    u = random.rand(4000)
    return X, np.where(u < 0.5, X[:, 0], np.where(u < 0.8, X[:, 1] ^ X[:, 2], random.randint(2, size=4000)))


@pytest.mark.parametrize("seed", [9404, pytest.param(9405, marks=SLOW)])
def test_w1_a_main_effect_does_not_hide_a_pair(seed):
    answer = answered(*draws(seed))
    assert supports(answer) == {(0,), (1, 2)}
    assert sum(attempt.seconds for attempt in answer.attempts) < 2


def test_w2_what_is_known_is_taken_out_before_the_next_scan():
    """Near-copies of a first pair, and a second pair behind them."""
    random = np.random.RandomState(0)
    X = random.randint(2, size=(4000, 60))
    for copy in range(20, 60):
        X[:, copy] = X[:, copy % 2] ^ (random.rand(4000) < 0.03)
    u = random.rand(4000)
    y = np.where(u < 0.5, X[:, 0] ^ X[:, 1], np.where(u < 0.75, X[:, 4] ^ X[:, 5], random.randint(2, size=4000)))
    found = [set(one.support) for one in answered(X, y, max_k=3).interactions]
    assert {4, 5} in found
    assert any(one & {0, *range(20, 60, 2)} and one & {1, *range(21, 60, 2)} for one in found)


@pytest.mark.parametrize("positives", [*(pytest.param(share, marks=SLOW) for share in (0.01, 0.03)), 0.05])
@pytest.mark.parametrize("kind", ["bits", "numbers", "text"])
def test_w3_rare_classes_do_not_crash(positives, kind):
    """150 rows of the rare class: fewer than the filter rows of a collision search."""
    random, rows = np.random.RandomState(0), round(150 / positives)
    X = {
        "bits": lambda: pd.DataFrame(random.randint(2, size=(rows, 12))),
        "numbers": lambda: pd.DataFrame(random.randn(rows, 12)),
        "text": lambda: pd.DataFrame(random.choice(list("abcdef"), size=(rows, 6))),
    }[kind]().rename(columns=str)
    y = (random.rand(rows) < positives).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert SparseParityClassifier(random_state=0, budget=2).fit(X, y).support_.tolist() == []


def test_w3_an_xor_of_a_rare_class_is_found():
    random = np.random.RandomState(1)
    X = random.randn(5000, 12)
    y = random.rand(5000) < np.where((X[:, 2] > 0) ^ (X[:, 7] > 0), 0.08, 0.02)
    answer = answered(X, y, budget=10)
    assert supports(answer) == {(2, 7)}
    assert answer.quality.auc > 0.6
    assert answer.quality.accuracy == pytest.approx(answer.quality.majority)


@SLOW
@pytest.mark.parametrize(("rows", "columns", "k", "rho"), [(300_000, 40, 2, 0.2), (1_000_000, 50, 3, 0.1)])
def test_w4_many_rows_are_scanned_within_the_budget(rows, columns, k, rho):
    random = np.random.RandomState(0)
    X = np.unpackbits(random.randint(0, 256, size=(rows, -(-columns // 8)), dtype=np.uint8), axis=1)[:, :columns]
    odd = X[:, :k].sum(axis=1) % 2 ^ (random.rand(rows) < (1 - rho) / 2)
    started = time.process_time()
    answer = answered(X, odd)
    assert supports(answer) == {tuple(range(k))}
    assert time.process_time() - started < 30


def additive(seed, correlated):
    random = np.random.RandomState(seed)
    X = random.randn(3000, 10)
    if correlated:
        X = 0.6 * random.randn(3000, 1) + 0.8 * X
    return X, random.rand(3000) < 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=SLOW), pytest.param(2, marks=SLOW)])
@pytest.mark.parametrize("correlated", [True, False])
def test_w5_additive_effects_are_no_interaction(correlated, seed):
    found = answered(*additive(seed, correlated)).interactions
    assert {one.support for one in found} == {(0,), (1,)}
    assert {one.kind for one in found} == {"main effect"}


@pytest.mark.parametrize("seed", [1004, pytest.param(1005, marks=SLOW)])
@pytest.mark.parametrize("kind", [pytest.param("ten measurements", marks=SLOW), "two proxies", "rare signs"])
def test_w5_a_hidden_cause_that_columns_measure_is_no_interaction(kind, seed):
    random = np.random.RandomState(seed)
    hidden, noise = random.randn(3000), random.randn(3000, 10)
    if kind == "ten measurements":
        X, chance = 0.8 * hidden[:, None] + 0.6 * noise, 1 / (1 + np.exp(-3 * hidden))
    elif kind == "two proxies":
        X, chance = noise, 1 / (1 + np.exp(-2 * hidden))
        X[:, :2] = hidden[:, None] + 0.5 * random.randn(2, 3000).T
    else:
        X = ((hidden[:, None] > 1) & (noise < 0.5) | (noise > 1.6)).astype(int)
        chance = np.where(hidden > 1, 0.7, 0.1)
    answer = answered(X, random.rand(3000) < chance)
    assert {one.kind for one in answer.interactions} == {"main effect"}


def test_w5_strong_additive_bits_are_no_interaction():
    random = np.random.RandomState(2)
    X = random.randint(2, size=(3000, 10))
    up = random.rand(3000) < 1 / (1 + np.exp(-2.5 * (X[:, 0] + X[:, 1] - 1)))
    assert supports(answered(X, up)) == {(0,), (1,)}


def test_w5_an_interaction_has_its_own_p_value_estimate_and_interval():
    random = np.random.RandomState(3)
    X = random.randint(2, size=(6000, 8))
    signs = 1 - 2 * X
    log_odds = 1.2 * signs[:, 0] + 0.4 * signs[:, 0] * signs[:, 1]
    (found,) = answered(X, random.rand(6000) < 1 / (1 + np.exp(-log_odds))).interactions
    assert (found.support, found.kind, found.parts) == ((0, 1), "pair table", (("column 0",),))
    low, high = found.interval
    assert low < 0.4 < high
    assert found.log_p > -120  # the main effect's own would be far below


def repeated(seed, by_visit=False):
    random = np.random.RandomState(seed)
    subjects = np.repeat(np.arange(100), 10)
    X = random.randn(100, 8)[subjects] + (0.1 * random.randn(1000, 8) if by_visit else 0)
    return X, random.randint(2, size=100)[subjects], subjects


def test_w6_repeated_rows_are_named_and_counted_once():
    X, y, _ = repeated(0)
    answer = answered(X, y, budget=1)
    assert answer.repeated.startswith("900 of 1000 rows repeat another row exactly")
    assert answer.support == ()
    with pytest.warns(RepeatedRows):
        SparseParityClassifier(random_state=0, budget=1).fit(
            X[np.arange(1000) % 10 < 2], X[np.arange(1000) % 10 < 2, 0] > 0
        )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=SLOW) for seed in range(1, 6))])
@pytest.mark.parametrize("grouped", [True, False])
def test_w6_groups_are_the_pieces_of_evidence(seed, grouped):
    X, y, subjects = repeated(seed, by_visit=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseParityClassifier(random_state=0, max_k=2).fit(X, y, groups=subjects if grouped else None)
    assert (model.k_ > 0) != grouped  # as independent rows they are mistaken for evidence


def test_w7_work_not_time_ends_a_search(monkeypatch):
    """On a machine ten times as slow or as fast: the budget ends all searches at the same step."""
    random = np.random.RandomState(0)
    X, y = random.randint(2, size=(600, 200)), random.randint(2, size=600)
    first = answered(X, y, budget=0.3)
    assert "not searched: " in first.skipped
    for pace in (0.1, 10):
        with monkeypatch.context() as patch:
            for name in ("perf_counter", "process_time", "monotonic", "time"):
                told = getattr(time, name)
                patch.setattr(time, name, lambda told=told, pace=pace: pace * told())
            second = answered(X, y, budget=0.3)
        assert [vars(one) for one in first.attempts] == [vars(one) for one in second.attempts]
        assert (first.guarantee, first.skipped, first.work) == (second.guarantee, second.skipped, second.work)


def test_w7_an_emergency_stop_is_said(monkeypatch):
    monkeypatch.setattr(clock, "EMERGENCY", -1000.0)
    answer = answered(np.random.RandomState(0).randint(2, size=(600, 20)), np.arange(600) % 2)
    assert "the clock stopped the search" in answer.skipped
    assert answer.guarantee.startswith("nothing can be promised")


def test_w8_uneven_targets_have_a_language_of_their_own():
    random = np.random.RandomState(4)
    X = random.randint(2, size=(5000, 10))
    y = random.rand(5000) < np.where(X[:, 3] ^ X[:, 8], 0.18, 0.06)
    model = SparseParityClassifier(random_state=0, threshold="share").fit(X, y)
    assert model.support_.tolist() == [3, 8]
    assert model.quality_["auc"] > 0.6
    assert model.quality_["majority"] == pytest.approx(0.88, abs=0.02)
    assert 0.3 < model.predict(X).mean() < 0.7
    assert "moves the share by ≥" in model.guarantee_
    assert "points" in model.guarantee_


def test_w10_a_landscape_is_told_by_its_pairs():
    """Many overlapping effects among more than four columns: term by term, the largest share first."""
    random = np.random.RandomState(5)
    X = np.array(list(np.ndindex(*(2,) * 9)))
    signs = 1 - 2 * X
    y = 3.0 * signs[:, 4] * signs[:, 8] + 2.0 * signs[:, 2] * signs[:, 4] + signs[:, 2] * signs[:, 8]
    y = y + 0.7 * signs[:, 1] + 0.5 * signs[:, 2] * signs[:, 4] * signs[:, 1] + 0.3 * random.randn(len(X))
    model = SparseParityRegressor(random_state=0).fit(X, y)
    assert [one.support for one in model.interactions_[:3]] == [(4, 8), (2, 4), (2, 8)]
    assert all(len(one.truth_table) <= 16 for one in model.interactions_)


def landscape(name):
    folder = os.environ.get("PARITYSCOPE_DATA")
    if not folder or not (path := Path(folder) / name).is_file():
        pytest.skip(f"{name} is not there: set PARITYSCOPE_DATA to the folder that holds it")
    return pd.read_csv(path, sep="\t")


@SLOW
def test_w10_the_fluorescent_protein_names_its_three_pairs_first():
    frame = landscape("eqfp611.tsv.gz")
    sites = frame.drop(columns=[name for name in frame.columns if frame[name].nunique() > 2])
    model = SparseParityRegressor(random_state=0, budget=60).fit(sites, frame["brightness"])
    names = [one.columns for one in model.interactions_ if one.k == 2][:3]
    assert {frozenset(name) for name in names} == {
        frozenset(sites.columns[[a, b]]) for a, b in ((4, 9), (2, 4), (2, 9))
    }
    assert [one.k for one in model.interactions_[:3]] == [2, 2, 2]


def test_covariates_are_taken_out_and_not_searched():
    random = np.random.RandomState(6)
    X = random.randint(2, size=(3000, 8)).astype(float)
    X[:, 7] = random.randn(3000)
    y = random.rand(3000) < 1 / (1 + np.exp(-1.5 * X[:, 7] - (1 - 2 * (X[:, 0] != X[:, 1]))))
    model = SparseParityClassifier(random_state=0, covariates=[7]).fit(X, y)
    assert [one.support for one in model.interactions_] == [(0, 1)]
    plain = SparseParityClassifier(random_state=0).fit(X, y)
    assert {one.support for one in plain.interactions_} == {(0, 1), (7,)}


def test_several_classes_are_told_apart_one_against_the_rest():
    random = np.random.RandomState(7)
    X = random.randint(2, size=(1500, 8))
    y = np.where(X[:, 0] ^ X[:, 3], "odd", np.where(X[:, 5] == 1, "right", "left"))
    model = SparseParityClassifier(random_state=0).fit(X, y)
    assert {one.label for one in model.interactions_} == {"left", "odd", "right"}
    assert (0, 3) in {one.support for one in model.interactions_ if one.label == "odd"}
    assert model.score(X, y) > 0.95
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("missing", ["drop", "median", "category"])
def test_missing_values_in_python_as_in_the_command(missing):
    random = np.random.RandomState(8)
    X = pd.DataFrame(random.randint(2, size=(800, 5)).astype(float), columns=list("abcde"))
    y = (X["b"] != X["d"]).astype(int)
    X.loc[:20, "a"] = np.nan
    model = SparseParityClassifier(random_state=0, missing=missing).fit(X, y)
    assert model.support_.tolist() == [1, 3]
    assert model.score(X[30:], y[30:]) == 1.0


def test_weak_genotypes_are_found_by_their_pair():
    """Heritability 0.1 in 400 rows: at the edge of what the rows can show."""
    kind = TableKind(kind="genotypes", n=20, rows=400, heritability=0.1)
    found = []
    for seed in (5000, 5005, 5007, 5010):
        table = kind.draw(seed)
        answer = ask(Question(2), table.X, labels_of(table.y > 0), np.random.RandomState(seed))
        assert answer.support in ((), table.columns)
        assert answer.p_value <= 0.01 or answer.candidate is not None
        found.append(answer.support == table.columns)
    assert sum(found) >= 3


def test_the_interval_of_a_threshold_is_not_shared_with_the_curve_of_its_column():
    random = np.random.RandomState(3)
    X = random.randn(3000, 6)
    y = random.rand(3000) < 1 / (1 + np.exp(-0.8 * np.where(X[:, 2] > 0, 1, -1)))
    term = SparseParityClassifier(random_state=0).fit(X, y).interactions_[0]
    assert term.support == (2,)
    low, high = term.interval
    assert low < -0.8 < high < 0  # signs are −1 above a threshold
    assert high - low < 0.25  # 2 · 1.96/√(3000 · 0.21) is 0.16


def test_pairs_are_scanned_whenever_the_budget_pays_for_them_and_otherwise_its_size_is_said():
    random = np.random.RandomState(0)
    X = random.randint(2, size=(20_000, 300))
    y = X[:, 4] ^ X[:, 9] ^ (random.rand(20_000) < 0.45)
    assert supports(answered(X, y, budget=0.25)) == {(4, 9)}  # the scan takes 0.1 seconds
    poor = answered(X, y, budget=0.14)
    needed = float(re.search(r"a budget of ([\d.]+) seconds pays for all pairs", poor.skipped)[1])
    assert supports(answered(X, y, budget=needed)) == {(4, 9)}


@pytest.mark.parametrize("budget", [0.0225, 0.024, 0.027])
def test_nothing_is_promised_of_what_the_budget_left_untested(budget):
    """The scan of the columns uses the budget up: without a test of what it met it would promise what it missed."""
    random = np.random.RandomState(0)
    X = random.randint(2, size=(20_000, 60), dtype=np.uint8)
    assert supports(answered(X, X[:, 5] ^ (random.rand(20_000) < 0.2), budget=budget)) == {(5,)}
    chance = answered(X, random.randint(2, size=20_000), budget=budget)
    assert "any parity of at most k" not in chance.guarantee


@pytest.mark.parametrize("budget", [0.03, 10])
def test_a_search_that_its_last_term_ends_says_so(monkeypatch, budget):
    monkeypatch.setattr(loop, "MOST_TERMS", 2)
    random = np.random.RandomState(1)
    X = random.randint(2, size=(20_000, 60), dtype=np.uint8)
    signs = 1.0 - 2 * X[:, :3]
    y = random.rand(20_000) < 1 / (1 + np.exp(-signs @ [1.5, 1.0, 1.0]))
    answer = answered(X, y, budget=budget, max_k=3)
    why = "the search ends after 2 terms" if budget == 10 else "the budget ends with the last of them"
    assert answer.skipped == f"not searched given all terms: 1 to 3 columns, since {why}"


def test_sizes_that_the_rest_of_a_budget_pays_for_are_scanned():
    random = np.random.RandomState(5001)
    X, y = random.randn(300, 6), random.rand(300) < 0.5
    answer = answered(X, y, budget=3, max_k=5)
    assert (answer.skipped, answer.work < 3) == ("", True)
    assert "of at most k = 5 columns" in answer.guarantee
    measured = ask(Question(budget=3, max_k=5), X, random.randn(300), random, measured=True)
    assert "of at most k = 5 columns" in measured.guarantee


@SLOW
def test_samples_go_on_where_a_scan_is_too_expensive():
    """All sets of four would cost more than is left: collisions then go on as far as the budget does."""
    random = np.random.RandomState(0)
    answer = answered(random.randint(2, size=(4000, 110)), random.rand(4000) < 0.5, budget=5)
    assert answer.work > 4.9


def test_outliers_of_a_measured_target_are_no_interaction():
    for seed in range(4):
        random = np.random.RandomState(seed)
        X, y = random.randn(1000, 8), random.standard_cauchy(1000)
        assert not ask(Question(max_k=2), X, y, random, measured=True).interactions


@pytest.mark.parametrize(("most", "more"), [(2, True), (3, False)])
def test_a_search_that_ends_after_many_terms_says_what_is_left_over(monkeypatch, most, more):
    monkeypatch.setattr(loop, "MOST_TERMS", most)
    random = np.random.RandomState(1)
    X = random.randint(2, size=(3000, 6))
    model = SparseParityRegressor(random_state=0, max_k=2).fit(X, X[:, :3] @ [3.0, 2.0, 1.0] + random.randn(3000))
    assert model.guarantee_.startswith("given the terms above, any further parity of at most k = 2") != more
    left = "nothing can be promised: the search ends after 2 terms, and column 2 would be the next (p "
    assert model.guarantee_.startswith(left) == more


@pytest.mark.parametrize(
    ("explained", "found_after", "more"), [(0.5, 3.0, 3.0), (0.5, 20.0, 6.0), (0.5, 36.0, 9.0), (0.2, 3.0, 30.0)]
)
def test_little_more_is_spent_after_a_long_search_unless_terms_explain_little(
    monkeypatch, explained, found_after, more
):
    monkeypatch.setattr(Known, "explained", explained)
    random = np.random.RandomState(0)
    known = Known.of(random.randint(2, size=(50, 4)), Target(np.arange(50) % 2.0), [2], False, 0.01)
    diary = clock.Diary(clock.Budget(60.0, spent=found_after), found_after=found_after)
    sampler = Sampler(known, diary, random, Scanner(known.table), "auto")
    for seconds, worth in ((0.99 * more, True), (1.01 * more, False)):
        assert sampler._worth(Step(seconds, 4, "collision", 0.5, lambda: False)) == worth


def test_a_weak_column_does_not_end_the_search_for_what_decides():
    random = np.random.RandomState(7)
    X = random.randint(2, size=(2000, 200), dtype=np.uint8)
    parity = X[:, [11, 90, 120, 199]].sum(axis=1) % 2
    weak = random.rand(2000) < 0.2
    y = np.where(weak, X[:, 3], parity ^ (random.rand(2000) < 0.1))
    answer = ask(Question(budget="3s"), X, (1 - 2 * y).astype(np.int8), random)
    assert {(3,), (11, 90, 120, 199)} <= {one.support for one in answer.interactions}
