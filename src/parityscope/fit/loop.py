"""The loop: complete scans of columns, pairs and what else is cheap, then samples; test the best, refit, repeat.

Cheap and complete comes first, always. Once a term is accepted everything is scanned again given the new model, so that
nothing which a strong effect hides is lost, and nothing has to be kept in lists that could overflow. Sets too many for
a scan are sampled by collisions and by elimination, whichever promises something new soonest.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from parityscope.fit.clock import Diary
from parityscope.fit.evidence.evidence import p_text
from parityscope.fit.interactions.interaction import Candidate, Solver
from parityscope.fit.known import TESTED, Known
from parityscope.fit.sampling import Sampler
from parityscope.fit.solvers import scan, walsh
from parityscope.fit.solvers.elimination import Eliminator, sample_seconds
from parityscope.fit.solvers.scan import BitSet, Scanner

MOST_TERMS = 40  # a target that needs more is not a matter of a few interactions
_EQUATIONS_SHARE = 0.05  # of the budget, for a parity without noise before anything is scanned
_MOST_EQUATIONS = 6000  # columns
# Of the budget, for one complete scan before samples are considered. Columns and pairs come first whatever they cost,
# if the budget pays for them at all: no sampler is surer.
_PAIRS_SHARE, _TRIPLES_SHARE, _LARGER_SHARE = 1.0, 0.2, 0.04
_MEMORY = 2**31
_LONG = 2.0  # nominal seconds from which a scan uses all cores
_EXPLAINED = 0.96  # a correlation above which hardly a row in fifty is left to explain


def threads(count: int | None) -> AbstractContextManager[object]:
    """Return a context in which products of matrices use so many threads, None for all there are.

    Threads that wait for each other burn a busy processor: only long scans are worth them. Without threadpoolctl
    nothing is changed.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    return threadpool_limits(count, user_api="blas")


def run(known: Known, diary: Diary, solver: Solver, random: np.random.RandomState) -> None:
    """Search until nothing is significant or the budget is used; what was found is then in `known.accepted`."""
    with threads(1):
        _run(known, diary, solver, random)


def _run(known: Known, diary: Diary, solver: Solver, random: np.random.RandomState) -> None:
    if not known.sizes or not known.table.bits:
        return
    if solver == "attention":
        _attend(known, diary, random)
        return
    # Equations first: where a parity has no noise they solve it whatever its size, and a rank test says at once whether
    # they can. Then what is complete, then what is sampled, and after every term all of it again.
    if solver in ("auto", "elimination") and not known.target.measured:
        _without_noise(known, diary, random)
    scanner = Scanner(known.table)
    while len(known.accepted) < MOST_TERMS and diary.budget.left > 0:
        diary.complete.clear()
        if solver in ("auto", "exhaustive") and _scan(known, diary, scanner):
            continue
        if known.explained > _EXPLAINED and solver == "auto":
            return
        # Samplers know two classes only, and stop where few rows leave them nothing to do. What is left of the budget
        # is then spent on complete scans, so that no size is left out that it pays for.
        if not known.target.measured and Sampler(known, diary, random, scanner, solver).climb():
            continue
        if solver not in ("auto", "exhaustive") or not _scan_rest(known, diary, scanner):
            break
    diary.full = len(known.accepted) >= MOST_TERMS
    if diary.full:
        diary.complete.clear()
        _scan(known, diary, scanner)  # nothing is accepted any more, but what is left over is known, or that nothing is
    _leave_out(known, diary)


def _open_sizes(known: Known, diary: Diary) -> dict[int, float]:
    """Return the sizes that were not scanned completely given all terms, and the nominal seconds of such a scan."""
    bits, rows = len(known.table.bits), known.rows
    sizes = [k for k in known.sizes if k not in diary.complete and not known.hopeless(k)]
    return {k: scan.seconds(bits, k, rows) for k in sizes}


def _scan_rest(known: Known, diary: Diary, scanner: Scanner) -> bool:
    """Scan what samples did not finish, smallest first, as far as the budget goes; say whether a term was accepted.

    Once a term is found little more is spent, and nothing is scanned here.
    """
    for k, cost in _open_sizes(known, diary).items():
        unfinished = known.target.measured or k in diary.left_out
        if unfinished and diary.found_after is None and cost <= diary.budget.left:
            if scan_size(known, diary, scanner, k, cost):
                return True
            diary.left_out.pop(k, None)
    return False


def _leave_out(known: Known, diary: Diary) -> None:
    """Write down the sizes that nobody finished: those of a measured target, or after a term with the last second."""
    if known.target.measured or diary.budget.left <= 0:
        for k, cost in _open_sizes(known, diary).items():
            diary.left_out.setdefault(k, cost)


def scan_size(known: Known, diary: Diary, scanner: Scanner, k: int, cost: float) -> bool:
    """Scan all sets of k questions, on all cores where that is long; say whether a term was accepted."""
    budget, started = diary.budget, diary.budget.spent
    budget.report(f"all sets of {k} columns" if k > 1 else "columns one by one")
    with threads(None if cost > _LONG else 1):
        found = scanner.strongest(k, known.residuals, known.variance)
    budget.charge(cost)
    accepted = consider(known, diary, "exhaustive", found, started)
    if accepted is False:
        diary.complete.add(k)
    return bool(accepted)


def consider(known: Known, diary: Diary, solver: Solver, proposed: Sequence[BitSet], started: float) -> bool | None:
    """Test the strongest proposals, and accept the first that is significant; say whether one was.

    The strongest is tested whatever is left of the budget. None says that the budget ended before all were tested, so
    that nothing may be promised of their size.
    """
    k = len(proposed[0].bits) if proposed else None
    best: Candidate | None = None
    seen = {one.interaction for one in known.accepted}
    for place, one in enumerate(proposed[:TESTED]):
        if place and diary.budget.left < 0:
            return None
        candidate = known.test(solver, one)
        diary.budget.charge(known.test_seconds(one))
        if candidate.interaction in seen:
            continue
        seen.add(candidate.interaction)
        if known.significant(candidate):
            if diary.full:
                diary.left_over = candidate
            else:
                _accept(known, diary, candidate, started)
            return True
        diary.rejected(candidate)
        best = candidate if best is None or candidate.log_p < best.log_p else best
    outcome = "nothing significant" if best is None else f"not significant: {_columns(best)}, {p_text(best.log_p)}"
    diary.note(solver, k, outcome, started)
    return False


def _accept(known: Known, diary: Diary, candidate: Candidate, started: float) -> None:
    known.accept(candidate)
    diary.budget.charge(known.accept_seconds())
    for searched in (diary.complete, diary.reached, diary.left_out):
        searched.clear()  # what was scanned was scanned without it
    if diary.found_after is None and candidate.k in known.sizes:
        diary.found_after = diary.budget.spent
    diary.note(candidate.solver, candidate.k, f"found: {_columns(candidate)}, {p_text(candidate.log_p)}", started)


def _columns(candidate: Candidate) -> str:
    return f"columns {', '.join(map(str, candidate.support))}"


def _scan(known: Known, diary: Diary, scanner: Scanner) -> bool:
    """Scan every size that is cheap, smallest first; say whether a term was accepted."""
    bits, rows, budget = len(known.table.bits), known.rows, diary.budget
    sizes = [k for k in sorted({*known.before, *known.sizes}) if not known.hopeless(k)]
    for k in sizes:
        cost = scan.seconds(bits, k, rows)
        share = _PAIRS_SHARE if k <= 2 else _TRIPLES_SHARE if k == 3 else _LARGER_SHARE
        if cost > min(share * budget.seconds, budget.left) and k > 1:
            if k == 2:
                tests = sum(known.tests_seconds(size) for size in (1, 2) if size not in diary.complete)
                diary.pairs_budget = budget.spent + cost + tests
            continue
        # One transform has all larger sizes: where it costs less than they do one by one, the first of them takes it.
        if k > 2 and _spectrum_is_cheaper(known, diary, [size for size in sizes if size > 2]):
            return _scan_spectrum(known, diary, [size for size in sizes if size > 2])
        if scan_size(known, diary, scanner, k, cost):
            return True
    larger = [k for k in sizes if k > 2 and k not in diary.complete]
    return bool(larger) and _spectrum_is_cheaper(known, diary, larger) and _scan_spectrum(known, diary, larger)


def _spectrum_is_cheaper(known: Known, diary: Diary, sizes: Sequence[int]) -> bool:
    """Say whether all parities at once are cheaper than these sizes one by one, and affordable."""
    bits, rows, budget = len(known.table.bits), known.rows, diary.budget
    if not sizes or bits > walsh.MOST_BITS or bits != known.table.columns or walsh.memory(bits) > _MEMORY:
        return False
    one_by_one = sum(scan.seconds(bits, k, rows) for k in sizes)
    return walsh.seconds(bits, rows) < min(max(one_by_one, _LARGER_SHARE * budget.seconds), budget.left)


def _scan_spectrum(known: Known, diary: Diary, sizes: Sequence[int]) -> bool:
    budget, started = diary.budget, diary.budget.spent
    budget.report(f"all parities of {known.table.columns} columns")
    spectrum = walsh.all_sizes(known.table, known.residuals, known.variance, max(sizes))
    budget.charge(walsh.seconds(len(known.table.bits), known.rows))
    for k in sizes:
        accepted = consider(known, diary, "exhaustive", spectrum[k], started)
        if accepted is not False:
            return bool(accepted)
        diary.complete.add(k)
        started = budget.spent
    return False


def _without_noise(known: Known, diary: Diary, random: np.random.RandomState) -> None:
    """Solve the equations of all columns once; only if they do not contradict each other look for a sparse solution."""
    budget, started = diary.budget, diary.budget.spent
    rows, _ = known.balanced_rows(random)
    eliminator = Eliminator(known.table, rows, max(known.sizes), random)
    unknowns = len(eliminator.generators)
    allowed = _EQUATIONS_SHARE * budget.seconds
    if unknowns + 24 >= rows.rows or unknowns > _MOST_EQUATIONS or sample_seconds(unknowns) > allowed:
        diary.note("elimination", None, f"not tried: {unknowns} unknowns are too many for {rows.rows} equations")
        return
    eliminator.run(known.table.columns, samples=1, budget=budget)
    if not eliminator.consistent:
        diary.note(
            "elimination", None, "the equations contradict each other: there is no parity without noise", started
        )
        return
    left = int((allowed - (budget.spent - started)) / max(1e-9, sample_seconds(unknowns)))
    for share in (0.9, 0.7, 0.5):
        if eliminator.best is None and left > 3:
            eliminator.run(max(1, int(share * known.table.columns)), samples=min(200, left // 3), budget=budget)
    best = eliminator.best
    wanted = {*known.before, *known.sizes}
    if best is not None and len(best.bits) in wanted and not _smaller_comes_first(known, diary, best):
        consider(known, diary, "elimination", [best], started)
    else:
        diary.note("elimination", None, f"no sparse solution in {eliminator.solved} samples of equations", started)


def _smaller_comes_first(known: Known, diary: Diary, best: BitSet) -> bool:
    """Say whether a set of fewer columns is as good: columns that depend on each other allow many solutions."""
    scanner, residuals, variance = Scanner(known.table), known.residuals, known.variance
    for k in range(1, len(best.bits)):
        if scan.seconds(len(known.table.bits), k, known.rows) > _LARGER_SHARE * diary.budget.seconds:
            return False
        found = scanner.strongest(k, residuals, variance)
        if found and np.ptp(known.table.signs[list(found[0].bits)].prod(axis=0) * known.labels) == 0:
            return True
    return False


def _attend(known: Known, diary: Diary, random: np.random.RandomState) -> None:
    """Train attention on k heads, with restarts until what it names is significant."""
    from parityscope.fit.solvers import attention  # here, not above: it is the only solver that needs torch

    for k in known.sizes:
        seed = int(random.randint(2**31 - attention.RESTARTS))
        started = diary.budget.spent
        for one in attention.find(
            known.table.signs, known.labels, k, seed, owner=known.table.owner, budget=diary.budget
        ):
            by_column = attention.summed_by_column(one.attention, known.table.owner, known.X.shape[1])
            candidate = known.test("attention", one.scored, by_column)
            if known.significant(candidate):
                _accept(known, diary, candidate, started)
                return
            diary.rejected(candidate)
            diary.note("attention", k, f"not significant: {_columns(candidate)}, {p_text(candidate.log_p)}", started)
            started = diary.budget.spent
