"""The loop's steps one by one: what each tests, accepts, charges, leaves out and writes down."""

from types import SimpleNamespace

import numpy as np
import pytest

from parityscope.fit import loop
from parityscope.fit.clock import Budget, Diary
from parityscope.fit.evidence.evidence import p_text
from parityscope.fit.evidence.score import Target
from parityscope.fit.known import Known
from parityscope.fit.solvers import scan, walsh
from parityscope.fit.solvers.elimination import sample_seconds
from parityscope.fit.solvers.scan import BitSet, Scanner

ROWS, COLUMNS = 400, 10


def known_of(support=(), sizes=(1,), *, noise=0.0, measured=False, k_is_known=False, rows=ROWS):
    """Return a table of fair bits of which some decide the target."""
    random = np.random.RandomState(0)
    X = random.randint(2, size=(rows, COLUMNS))
    odd = X[:, support].sum(axis=1) % 2 ^ (random.rand(rows) < noise) if support else random.randint(2, size=rows)
    y = random.randn(rows) if measured else odd.astype(float)
    return Known.of(X, Target(y, measured), list(sizes), k_is_known, 0.01)


def cost_of(k):
    return scan.seconds(COLUMNS, k, ROWS)


def singles(*columns):
    return [BitSet((column,), 1.0) for column in columns]


class TestProposals:
    def test_the_nearest_is_written_down_where_nothing_is_significant(self):
        random, X = np.random.RandomState(1), known_of().X
        y = (random.rand(ROWS) < 0.3 + X[:, [2, 6, 8]] @ [0.05, 0.15, 0.25]).astype(float)
        known, diary = Known.of(X, Target(y), [1], True, 1e-30), Diary(Budget(60.0, spent=1.0))
        tests = {column: known.test("exhaustive", *singles(column)) for column in range(COLUMNS)}
        assert tests[8].log_p < tests[6].log_p < tests[2].log_p
        assert not loop.consider(known, diary, "exhaustive", singles(6, 8, 8, 2), 0.5)
        assert not known.accepted
        assert diary.nearest.support == (8,)
        (attempt,) = diary.attempts
        assert attempt.outcome == f"not significant: columns 8, {p_text(tests[8].log_p)}"
        assert (attempt.solver, attempt.k) == ("exhaustive", 1)
        assert diary.budget.spent == pytest.approx(1.0 + 4 * known.test_seconds(*singles(0)))
        assert attempt.seconds == pytest.approx(diary.budget.spent - 0.5)

    def test_the_first_significant_one_is_accepted_and_what_was_searched_without_it_is_forgotten(self):
        known, diary = known_of((4,), (1,)), Diary(Budget(60.0))
        diary.complete, diary.reached, diary.left_out = {1}, {2: 0.5}, {3: 9.0}
        assert loop.consider(known, diary, "exhaustive", singles(0, 4), 0.0)
        assert [one.support for one in known.accepted] == [(4,)]
        assert (diary.complete, diary.reached, diary.left_out, diary.left_over) == (set(), {}, {}, None)
        assert diary.attempts[-1].outcome.startswith("found: columns 4, p")
        assert diary.found_after == pytest.approx(
            2 * known.test_seconds(*singles(0)) + 3.0 * 1.6e-8 * ROWS * 9, rel=0.2
        )
        # What is in the model is not tested again.
        assert not loop.consider(known, diary, "exhaustive", singles(4), 0.0)
        assert diary.attempts[-1].outcome == "nothing significant"

    def test_only_a_term_of_a_wanted_size_ends_what_is_spent_freely_and_only_the_first(self):
        for sizes, found_after in (((2,), None), ((1, 2), 7.0)):
            known, diary = known_of((4,), sizes), Diary(Budget(60.0))
            diary.found_after = found_after
            assert loop.consider(known, diary, "exhaustive", singles(4), 0.0)
            assert diary.found_after == found_after

    def test_after_the_last_term_the_next_is_named_and_not_accepted(self):
        known, diary = known_of((4,)), Diary(Budget(60.0), full=True)
        assert loop.consider(known, diary, "exhaustive", singles(4), 0.0)
        assert (known.accepted, diary.left_over.support) == ([], (4,))

    def test_no_proposal_is_no_test(self):
        diary = Diary(Budget(60.0))
        assert not loop.consider(known_of(), diary, "collision", [], 0.0)
        assert (diary.attempts[0].k, diary.attempts[0].outcome) == (None, "nothing significant")

    def test_the_strongest_is_tested_whatever_is_left_and_the_others_while_something_is(self):
        for proposed, accepted in ((singles(4), True), (singles(0, 4), None)):
            diary = Diary(Budget(1.0, spent=1.1))
            assert loop.consider(known_of((4,)), diary, "exhaustive", proposed, 0.0) is accepted
        assert diary.attempts == []  # nothing is said of a size whose proposals were not all tested


@pytest.mark.parametrize(("k", "said"), [(1, "columns one by one"), (2, "all sets of 2 columns")])
def test_a_scan_is_announced_charged_and_complete_unless_it_finds_something(k, said):
    heard = []
    for support in ((), (2, 5)[:k]):
        known, diary = known_of(support, (1, 2)), Diary(Budget(60.0, lambda share, doing: heard.append(doing)))
        assert loop.scan_size(known, diary, Scanner(known.table), k, 7.0) == bool(support)
        assert heard.pop() == said
        assert diary.budget.spent >= 7.0
        assert diary.complete == (set() if support else {k})
        assert [one.support for one in known.accepted] == ([support] if support else [])


class TestTheRest:
    def test_it_is_what_samples_left_of_labels_and_everything_of_a_measured_target(self):
        for measured, expected in ((False, {1, 3}), (True, {1, 2, 3})):
            known, diary = known_of((), (1, 2, 3), measured=measured), Diary(Budget(60.0))
            diary.complete, diary.left_out = {1}, {3: 1.0}
            assert not loop._scan_rest(known, diary, Scanner(known.table))
            assert (diary.complete, diary.left_out) == (expected, {})

    def test_a_term_ends_it_and_nothing_is_scanned_after_one_or_beyond_the_budget(self):
        for found_after, seconds, accepted in (
            (None, 60.0, [(1, 4, 7)]),
            (1.0, 60.0, []),
            (None, 0.9 * cost_of(3), []),
        ):
            known, diary = known_of((1, 4, 7), (3,)), Diary(Budget(seconds), found_after=found_after)
            diary.left_out = {3: 1.0}
            assert loop._scan_rest(known, diary, Scanner(known.table)) == bool(accepted)
            assert [one.support for one in known.accepted] == accepted

    @pytest.mark.parametrize("measured", [False, True])
    @pytest.mark.parametrize("spent", [59.5, 60.0])
    def test_what_nobody_finished_is_left_out_with_its_price(self, measured, spent):
        known, diary = known_of((), (1, 2, 3), measured=measured), Diary(Budget(60.0, spent=spent))
        diary.complete, diary.left_out = {1}, {2: 5.0}
        loop._leave_out(known, diary)
        assert diary.left_out == {2: 5.0} | ({3: cost_of(3)} if measured or spent == 60.0 else {})

    def test_sizes_that_few_rows_cannot_show_are_nobodys(self):
        known = known_of((), (1, 2, 3), rows=20)
        assert [known.hopeless(k) for k in (1, 2, 3)] == [False, False, True]
        assert loop._open_sizes(known, Diary(Budget(1.0))) == {k: scan.seconds(COLUMNS, k, 20) for k in (1, 2)}


class TestCompleteScans:
    @pytest.mark.parametrize(("k", "share"), [(2, 1.0), (3, 0.2), (4, 0.04)])
    @pytest.mark.parametrize("short", [False, True])
    def test_a_scan_may_cost_its_share_of_the_budget(self, monkeypatch, k, share, short):
        monkeypatch.setattr(loop, "_spectrum_is_cheaper", lambda known, diary, sizes: False)
        known, diary = known_of((), (k,)), Diary(Budget(cost_of(k) / share * (0.99 if short else 1.01)))
        assert not loop._scan(known, diary, Scanner(known.table))
        assert (diary.budget.spent >= cost_of(k)) != short
        whole = cost_of(2) + known.tests_seconds(1) + known.tests_seconds(2)
        assert diary.pairs_budget == pytest.approx(whole if short and k == 2 else 0.0)

    def test_a_scan_may_not_cost_more_than_is_left_and_single_columns_always_may(self, monkeypatch):
        monkeypatch.setattr(loop, "_spectrum_is_cheaper", lambda known, diary, sizes: False)
        known, diary = known_of((), (1, 2)), Diary(Budget(100 * cost_of(2), spent=99.5 * cost_of(2)))
        assert not loop._scan(known, diary, Scanner(known.table))
        assert diary.budget.spent >= 99.5 * cost_of(2) + cost_of(1)
        assert diary.pairs_budget > 100 * cost_of(2)

    def test_smaller_sets_come_before_a_given_size(self, monkeypatch):
        monkeypatch.setattr(loop, "_spectrum_is_cheaper", lambda known, diary, sizes: False)
        for support in ((), (6,), (3, 6)):
            known, diary = known_of(support, (3,), k_is_known=True), Diary(Budget(60.0))
            assert loop._scan(known, diary, Scanner(known.table)) == bool(support)
            assert [one.k for one in diary.attempts] == list(range(1, (len(support) or 3) + 1))

    def test_one_transform_takes_all_larger_sizes_and_those_a_budget_cannot_pay_one_by_one(self, monkeypatch):
        asked = []
        monkeypatch.setattr(loop, "_spectrum_is_cheaper", lambda known, diary, sizes: asked.append([*sizes]) or True)
        monkeypatch.setattr(
            loop, "_scan_spectrum", lambda known, diary, sizes: asked.append(("spectrum", *sizes)) or True
        )
        known, diary = known_of((), (1, 2, 3, 4)), Diary(Budget(60.0))
        assert loop._scan(known, diary, Scanner(known.table))
        assert (asked, diary.complete) == ([[3, 4], ("spectrum", 3, 4)], {1, 2})
        asked.clear()
        assert loop._scan(known, Diary(Budget(1.01 * cost_of(2))), Scanner(known.table))
        assert asked == [[3, 4], ("spectrum", 3, 4)]
        asked.clear()
        assert not loop._scan(known_of((), (1, 2)), Diary(Budget(60.0)), Scanner(known.table))
        assert asked == []

    def test_the_transform_is_taken_where_it_is_cheaper_or_next_to_nothing_and_fits(self, monkeypatch):
        known, price = known_of(), walsh.seconds(COLUMNS, ROWS)
        many, seldom = range(3, 11), Diary(Budget(60.0))
        assert sum(map(cost_of, many)) > price > cost_of(1)
        assert loop._spectrum_is_cheaper(known, seldom, many)
        assert not loop._spectrum_is_cheaper(known, seldom, [])
        assert not loop._spectrum_is_cheaper(known, Diary(Budget(60.0, spent=60.0 - 0.99 * price)), many)
        for seconds, taken in ((1.01 * price / 0.04, True), (0.99 * price / 0.04, False)):
            assert loop._spectrum_is_cheaper(known, Diary(Budget(seconds)), [1]) == taken
        for name, most in (("MOST_BITS", COLUMNS), ("_MEMORY", walsh.memory(COLUMNS))):
            place = walsh if name == "MOST_BITS" else loop
            with monkeypatch.context() as patch:
                patch.setattr(place, name, most)
                assert loop._spectrum_is_cheaper(known, seldom, many)
                patch.setattr(place, name, most - 1)
                assert not loop._spectrum_is_cheaper(known, seldom, many)
        numbers = Known.of(np.random.RandomState(0).randn(ROWS, 3), Target(known.target.y), [1], False, 0.01)
        assert not loop._spectrum_is_cheaper(numbers, seldom, many)

    @pytest.mark.parametrize("support", [(), (0, 2, 4, 8)])
    def test_the_transform_scans_every_size_up_to_the_first_term(self, support):
        known, diary = known_of(support, (3, 4, 5)), Diary(Budget(60.0))
        assert loop._scan_spectrum(known, diary, [3, 4, 5]) == bool(support)
        assert [one.support for one in known.accepted] == ([support] if support else [])
        assert [one.k for one in diary.attempts] == ([3, 4] if support else [3, 4, 5])
        assert diary.complete == (set() if support else {3, 4, 5})
        assert sum(one.seconds for one in diary.attempts) == pytest.approx(diary.budget.spent)
        assert diary.attempts[0].seconds > walsh.seconds(COLUMNS, ROWS)


class TestWithoutNoise:
    @staticmethod
    def tried(known, seconds=60.0):
        diary = Diary(Budget(seconds))
        loop._without_noise(known, diary, np.random.RandomState(0))
        return diary.attempts[-1].outcome, [one.support for one in known.accepted]

    def test_equations_name_a_parity_and_nothing_where_they_contradict_each_other(self):
        assert self.tried(known_of((0, 3, 5, 8, 9), (3, 5)))[1] == [(0, 3, 5, 8, 9)]
        assert self.tried(known_of((0, 3, 5, 8, 9), (5,), noise=0.3)) == (
            "the equations contradict each other: there is no parity without noise",
            [],
        )

    def test_a_size_that_is_not_looked_for_is_no_solution_but_one_that_comes_before_it_is(self):
        said, found = self.tried(known_of((0, 3, 5, 8), (5,)))
        assert (said.startswith("no sparse solution in "), found) == (True, [])
        assert self.tried(known_of((0, 3), (5,), k_is_known=True))[1] == [(0, 3)]

    @pytest.mark.parametrize(("rows", "enough"), [(COLUMNS + 24, False), (COLUMNS + 25, True)])
    def test_it_takes_two_dozen_equations_to_spare(self, rows, enough):
        said, _ = self.tried(known_of((0, 3, 5), (1, 2, 3), rows=rows))
        assert said.startswith(f"not tried: {COLUMNS} unknowns are too many for {rows} equations") != enough

    def test_it_may_cost_a_twentieth_of_the_budget_and_has_so_many_unknowns_at_most(self, monkeypatch):
        known = known_of((0, 3, 5), (3,))
        for share, tried in ((0.051, False), (0.049, True)):
            assert self.tried(known, sample_seconds(COLUMNS) / share)[0].startswith("not tried") != tried
        for most, tried in ((COLUMNS - 1, False), (COLUMNS, True)):
            monkeypatch.setattr(loop, "_MOST_EQUATIONS", most)
            assert self.tried(known)[0].startswith("not tried") != tried

    @pytest.mark.parametrize(
        ("left", "best", "samples"),
        [(30, None, 10), (3000, None, 200), (4, None, 1), (3, None, None), (30, BitSet((0, 1), 1.0), None)],
    )
    def test_a_third_of_what_is_left_goes_to_samples_of_fewer_columns(self, monkeypatch, left, best, samples):
        """The first sample has all columns and costs as much as any; the next have nine tenths of them, and less."""
        runs = []

        def run(columns, samples, budget):
            runs.append((columns, samples))
            budget.charge(samples * sample_seconds(COLUMNS))

        sampled = SimpleNamespace(generators=range(COLUMNS), consistent=True, best=best, solved=7, run=run)
        monkeypatch.setattr(loop, "Eliminator", lambda *given: sampled)
        diary = Diary(Budget((left + 1.5) * sample_seconds(COLUMNS) / 0.05, spent=1.0))
        loop._without_noise(known_of((), (3,)), diary, np.random.RandomState(0))
        assert runs == [(COLUMNS, 1)] + ([(columns, samples) for columns in (9, 7, 5)] if samples else [])
        assert diary.attempts[-1].outcome == "no sparse solution in 7 samples of equations"

    def test_of_equal_solutions_the_smallest_is_left_to_the_scan(self):
        known = known_of((0, 1, 2), (1, 2, 3))
        assert loop._smaller_comes_first(known, Diary(Budget(60.0)), BitSet((0, 1, 2), 1.0)) is False
        assert loop._smaller_comes_first(known_of((4,)), Diary(Budget(60.0)), BitSet((4, 9), 1.0))
        known.X[:, 9] = known.X[:, 0] ^ known.X[:, 1]
        again = Known.of(known.X, Target(known.X[:, :3].sum(axis=1) % 2 * 1.0), [1, 2, 3], False, 0.01)
        assert loop._smaller_comes_first(again, Diary(Budget(60.0)), BitSet((0, 1, 2), 1.0))
        assert not loop._smaller_comes_first(again, Diary(Budget(60.0)), BitSet((2, 9), 1.0))
        assert not loop._smaller_comes_first(again, Diary(Budget(20 * cost_of(2))), BitSet((0, 1, 2), 1.0))


class TestTheOrder:
    @staticmethod
    def steps(monkeypatch, solver="auto", *, measured=False, found=(), seconds=60.0, sizes=(1, 2)):
        """Return the steps that a search takes, of which some find a term the first time."""
        taken, finds = [], list(found)

        def step(name):
            taken.append(name)
            return name in finds and (finds.remove(name) or True)

        for name in ("_without_noise", "_scan", "_scan_rest", "_leave_out", "_attend"):
            monkeypatch.setattr(loop, name, lambda *given, name=name: step(name))
        monkeypatch.setattr(loop, "Sampler", lambda *given: SimpleNamespace(climb=lambda: step("climb")))
        known, diary = known_of((), sizes, measured=measured), Diary(Budget(seconds, spent=1.0), complete={9})
        loop.run(known, diary, solver, np.random.RandomState(0))
        return taken, diary

    @pytest.mark.parametrize(
        ("solver", "taken"),
        [
            ("auto", ["_without_noise", "_scan", "climb", "_scan_rest", "_leave_out"]),
            ("exhaustive", ["_scan", "climb", "_scan_rest", "_leave_out"]),
            ("elimination", ["_without_noise", "climb", "_leave_out"]),
            ("collision", ["climb", "_leave_out"]),
            ("attention", ["_attend"]),
        ],
    )
    def test_equations_come_before_scans_scans_before_samples_and_the_rest_last(self, monkeypatch, solver, taken):
        found, diary = self.steps(monkeypatch, solver)
        assert found == taken
        assert not diary.full
        assert diary.complete == ({9} if solver == "attention" else set())

    def test_a_measured_target_has_no_equations_and_no_samples(self, monkeypatch):
        assert self.steps(monkeypatch, measured=True)[0] == ["_scan", "_scan_rest", "_leave_out"]

    @pytest.mark.parametrize(("finding", "again"), [("_scan", 1), ("climb", 2), ("_scan_rest", 3)])
    def test_after_every_term_all_of_it_comes_again(self, monkeypatch, finding, again):
        whole = ["_scan", "climb", "_scan_rest"]
        taken, _ = self.steps(monkeypatch, found=[finding])
        assert taken == ["_without_noise", *whole[:again], *whole, "_leave_out"]

    def test_without_sizes_budget_or_room_for_terms_there_is_nothing_to_search(self, monkeypatch):
        assert self.steps(monkeypatch, sizes=())[0] == []
        assert self.steps(monkeypatch, seconds=1.0)[0] == ["_without_noise", "_leave_out"]
        assert self.steps(monkeypatch, seconds=1.5)[0][1] == "_scan"
        monkeypatch.setattr(loop, "MOST_TERMS", 0)
        taken, diary = self.steps(monkeypatch)
        assert (taken, diary.full, diary.complete) == (["_without_noise", "_scan", "_leave_out"], True, set())

    @pytest.mark.parametrize(
        ("explained", "solver", "left"), [(0.97, "auto", 0), (0.95, "auto", 3), (0.97, "exhaustive", 3)]
    )
    def test_where_hardly_a_row_is_left_to_explain_scans_are_enough(self, monkeypatch, explained, solver, left):
        monkeypatch.setattr(Known, "explained", explained)
        taken, _ = self.steps(monkeypatch, solver)
        assert taken[taken.index("_scan") + 1 :] == ["climb", "_scan_rest", "_leave_out"][:left]
