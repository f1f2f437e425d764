"""Which solver works when: the step that promises something new soonest comes first, until the time is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from parityscope.fit.evidence.promise import SOLVER_SHARE
from parityscope.fit.interactions.candidates import Candidate, Solver
from parityscope.fit.search import Search
from parityscope.fit.solvers import elimination, exhaustive, walsh
from parityscope.fit.solvers.collision import Collider
from parityscope.fit.solvers.collision_plan import GRID, SIZES, plan_for

LADDER = (0.9, 0.7, 0.6, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
_LOW_NOISE = (1.0, 0.97, 0.93, 0.85, 0.75)
_USUAL = 4  # larger interactions are rare: with k open they get their strong rungs, and what is cheap
_STRONG = 0.9
_AT_FIRST = 0.3  # a rung is first climbed to where it misses so often: most parities are met by then
_CHEAP_SHARE = 0.01  # of the time budget
_WHOLE_SHARE = 0.05  # for a step after which nothing is left to do for its size
_FREE = 0.1
_FINISHING_SHARE = 0.05  # of the time budget, for sizes that hardly cost anything: those are not worth a sentence
_MOST_OF_IT = 0.7  # a correlation above which half of the label's variance is explained
_CLASS_ROWS = 96  # a collision search draws filter rows and keys from either class
_EQUATIONS = 6000  # columns beyond which equations are not solved
_MEMORY = 2**31


@dataclass(frozen=True)
class Step:
    """One thing to do next: who, for how many columns, down to which training correlation, in how many seconds.

    >>> Step(0.2, 3, "exhaustive", 0.0, lambda: None).k
    3
    """

    seconds: float
    k: int
    solver: Solver
    rho: float
    work: Callable[[], None]


def run(search: Search, solver: Solver) -> Candidate | None:
    """Search with one solver, or with whichever promises something new soonest; return what was found.

    >>> import numpy as np
    >>> from parityscope.fit.clock import Clock
    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(300, 8))
    >>> labels = (1 - 2 * (X[:, 1] ^ X[:, 6] ^ (random.rand(300) < 0.1))).astype(np.int8)
    >>> run(Search.of(X, labels, [1, 2, 3], False, 0.01, Clock(30.0), random), "auto").support
    (1, 6)
    """
    if not search.sizes or not search.table.bits:
        return None
    if solver == "attention":
        for k in _attention_sizes(search):
            _attend(search, k)
        return search.found
    hopeful = [k for k in search.sizes if search.k_is_known or not search.hopeless(k)]
    if solver in ("auto", "elimination"):
        _first_equations(search)
    if solver == "auto" and search.settled:
        _smaller(search)
    else:
        _climb(search, hopeful, solver)
    if solver == "auto" and search.found is None:
        for k in _attention_sizes(search):
            if search.found is None and k in hopeful and search.met(k) > search.target(k) and search.clock.left > 5:
                _attend(search, k)
    if solver == "auto" and not search.settled:
        _finish(search, hopeful)
    for k in hopeful:
        if search.met(k) > search.target(k) and not search.settled:
            search.left_out[k] = min((step.seconds for step in _steps(search, k, "auto", whole=True)), default=math.inf)
    return search.found


def run_smaller(search: Search) -> Candidate | None:
    """Search all parities of fewer columns than the given k, where that is next to free; return what was found.

    >>> import numpy as np
    >>> from parityscope.fit.clock import Clock
    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(300, 8))
    >>> labels = (1 - 2 * (X[:, 1] & X[:, 4] & X[:, 6])).astype(np.int8)
    >>> run_smaller(Search.of(X, labels, [3], True, 0.01, Clock(30.0), random)).k < 3
    True
    """
    for k in search.smaller:
        if exhaustive.seconds(search.rows.bits, k, search.rows.rows) < min(_FREE, search.clock.left):
            _exhaust(search, k)
    return search.answer_among(search.smaller)


def _finish(search: Search, sizes: list[int]) -> None:
    """Search the sizes that hardly cost anything to the end."""
    allowance, left = _FINISHING_SHARE * search.clock.seconds, list(sizes)
    while search.clock.left > 0:
        left = [k for k in left if search.met(k) > search.target(k)]
        steps = [min(_steps(search, k, "auto", whole=True), key=lambda one: one.seconds, default=None) for k in left]
        step = min((one for one in steps if one is not None), key=lambda one: one.seconds, default=None)
        if step is None or step.seconds > min(allowance, _CHEAP_SHARE * search.clock.seconds):
            return
        before = search.clock.spent
        step.work()
        left.remove(step.k)
        allowance -= search.clock.spent - before


def _climb(search: Search, sizes: list[int], solver: Solver) -> None:
    """Take the cheapest step again and again, as long as it is worth its time."""
    if solver in ("auto", "exhaustive") and _all_at_once(search, sizes):
        started = time.perf_counter()
        search.clock.report(f"all parities of {search.rows.bits} columns")
        spectrum = walsh.all_sizes(search.rows, max(sizes))
        for k in sizes:
            search.scored.add(k)
            search.judge_all("exhaustive", spectrum[k], started)
            started = time.perf_counter()
        return
    _remember_when(search)
    while search.clock.left > 0 and not (solver == "auto" and search.settled):
        steps = [_cheapest(_steps(search, k, solver)) for k in sizes if search.met(k) > search.target(k)]
        allowed = [step for step in steps if step is not None and _worth(search, step)]
        if not allowed:
            return
        step = min(allowed, key=lambda one: (one.seconds, one.k))
        step.work()
        _remember_when(search)
    if search.settled:
        _smaller(search)


def _remember_when(search: Search) -> None:
    if search.found_after is None and search.found is not None:
        search.found_after = search.clock.spent


def _smaller(search: Search) -> None:
    """Look for a smaller parity while that is free: columns that depend on each other allow many solutions."""
    found = search.found
    for k in search.sizes:
        cost = exhaustive.seconds(search.rows.bits, k, search.rows.rows)
        if found is not None and k < found.k and k not in search.scored and cost < _FREE:
            _exhaust(search, k)


def _cheapest(steps: list[Step]) -> Step | None:
    """Return the cheapest step of a size; a complete search is preferred up to twice its cost."""
    return min(steps, key=lambda step: step.seconds / (2 if step.rho == 0 else 1), default=None)


def _worth(search: Search, step: Step) -> bool:
    """Say whether a step is worth its time, given what is known and how much is left."""
    if step.solver == "exhaustive" and step.seconds > search.clock.left:
        return False
    if math.isinf(step.seconds):
        return False
    if search.found_after is not None:
        # Others may share the label: as much again is spent on them as the first has taken, less where little is left.
        extra, found = _CHEAP_SHARE * search.clock.seconds, search.found
        if found is None or abs(found.strength) < _MOST_OF_IT:
            extra = max(extra, search.found_after)
        return search.clock.spent + step.seconds <= search.found_after + extra
    usual = search.k_is_known or step.k <= _USUAL or step.rho >= _STRONG
    share = _WHOLE_SHARE if step.rho == 0 else _CHEAP_SHARE
    return usual or step.seconds <= share * search.clock.seconds


def _steps(search: Search, k: int, solver: Solver, *, whole: bool = False) -> list[Step]:
    """Return what could be done next for k columns; with `whole`, what would finish them."""
    steps = []
    if solver in ("auto", "exhaustive"):
        cost = exhaustive.seconds(search.rows.bits, k, search.rows.rows) * search.pace
        steps.append(Step(cost, k, "exhaustive", 0.0, lambda: _exhaust(search, k)))
    if solver in ("auto", "collision") and k in SIZES and _can_collide(search, k):
        steps.extend(_collision_steps(search, k, whole))
    if (solver == "elimination" or (solver == "auto" and k > 1)) and _can_eliminate(search):
        steps.extend(_elimination_steps(search, k, whole))
    return steps


def _rungs(search: Search, k: int, ladder: tuple[float, ...], reached: dict[float, float]) -> list[tuple[float, float]]:
    """Return the next correlations to reach and how rarely they may be missed; the last rung is the target.

    `reached` has the correlation that was reached so far, by the share of misses.
    """
    target = max(float(GRID[0]), math.floor(100 * search.target(k)) / 100)
    return [
        (next((rho for rho in ladder if target < rho < met - 1e-9), target), share)
        for share, met in reached.items()
        if target < met - 1e-9
    ]


def _reached(search: Search, k: int, share: float) -> float:
    """Return the correlation from which on some solver misses parities of k columns with at most this share."""
    levels = [search.eliminator.books.reached(k, share)]
    if k in search.colliders:
        levels.append(search.colliders[k].books.reached(share))
    return min(levels)


def _can_collide(search: Search, k: int) -> bool:
    rows = search.rows
    return min(rows.first, rows.second) >= _CLASS_ROWS and search.table.columns >= 2 * k


def _collision_steps(search: Search, k: int, whole: bool) -> list[Step]:
    ladder = () if whole else LADDER
    shares = (SOLVER_SHARE,) if whole else (_AT_FIRST, SOLVER_SHARE)
    reached = {share: _reached(search, k, share) for share in shares}
    return [_collision_step(search, k, rho, share) for rho, share in _rungs(search, k, ladder, reached)]


def _collision_step(search: Search, k: int, rho: float, share: float) -> Step:
    collider, columns = search.collider(k), search.table.columns
    plan = plan_for(columns, k, search.rows.rows, rho, bits_per_column=search.rows.bits / columns)
    rounds = collider.books.rounds_for(plan, collider.split(plan), share)

    def work() -> None:
        started, before = time.perf_counter(), set(collider.found)
        collider.run(plan, missed=share, clock=search.clock)
        fresh = [one for one in collider.best if one.bits not in before]
        if fresh:
            search.judge_all("collision", fresh, started)
        else:
            outcome = f"nothing of correlation {rho:g} or more, missed with probability {_missed(collider, rho):.2g}"
            search.note("collision", k, outcome, started)

    return Step(rounds * plan.seconds * collider.pace, k, "collision", rho, work)


def _missed(collider: Collider, rho: float) -> float:
    return float(collider.books.missed[rho - 1e-9 <= GRID].max())


def _can_eliminate(search: Search) -> bool:
    return search.table.columns == search.rows.bits <= _EQUATIONS


def _elimination_steps(search: Search, k: int, whole: bool) -> list[Step]:
    ladder = () if whole else _LOW_NOISE
    shares = (SOLVER_SHARE,) if whole else (_AT_FIRST, SOLVER_SHARE)
    reached = {share: _reached(search, k, share) for share in shares}
    return [_elimination_step(search, k, rho, share) for rho, share in _rungs(search, k, ladder, reached)]


def _elimination_step(search: Search, k: int, rho: float, share: float) -> Step:
    eliminator = search.eliminator
    columns, samples, seconds = elimination.best_columns(eliminator.books, k, rho, share)

    def work() -> None:
        started, before = time.perf_counter(), eliminator.best
        eliminator.run(columns, samples=int(samples), clock=search.clock)
        _judge_solution(search, started, before is eliminator.best)

    return Step(seconds * search.pace, k, "elimination", rho, work)


def _first_equations(search: Search) -> None:
    """Without noise one solution of the equations is the answer; it costs next to nothing to ask."""
    started, eliminator = time.perf_counter(), search.eliminator
    if not len(eliminator.generators) + 1 < search.rows.rows or len(eliminator.generators) > _EQUATIONS:
        search.note("elimination", None, f"not tried: more unknowns than the {search.rows.rows} equations can settle")
        return
    eliminator.run(search.table.columns, samples=2, clock=search.clock)
    _judge_solution(search, started, eliminator.best is None)


def _judge_solution(search: Search, started: float, nothing_new: bool) -> None:
    best = search.eliminator.best
    if nothing_new or best is None or len(best.bits) not in search.sizes:
        outcome = f"no sparse solution in {search.eliminator.solved} samples of equations"
        search.note("elimination", None, outcome, started)
    else:
        search.judge("elimination", best, started)


def _exhaust(search: Search, k: int) -> None:
    started = time.perf_counter()
    best = exhaustive.of_size(search.rows, k, search.table.owner, clock=search.clock)
    if best is None:
        search.note("exhaustive", k, "stopped: the time was over", started)
        return
    search.scored.add(k)
    search.judge_all("exhaustive", best, started)


def _all_at_once(search: Search, sizes: list[int]) -> bool:
    """Say whether the whole spectrum is cheaper than the sizes one by one, and affordable."""
    bits, rows = search.rows.bits, search.rows.rows
    if not sizes or bits > walsh.MOST_BITS or bits != search.table.columns or rows >= walsh.MOST_ROWS:
        return False
    cost = walsh.seconds(bits, rows)
    one_by_one = sum(exhaustive.seconds(bits, k, rows) for k in sizes)
    cheap = max(one_by_one, _CHEAP_SHARE * search.clock.seconds)
    return walsh.memory(bits) <= _MEMORY and cost < min(cheap, search.clock.left)


def _attend(search: Search, k: int) -> None:
    """Train attention on k heads, with restarts until one is believed."""
    from parityscope.fit.solvers import attention  # here, not above: it is the only solver that needs torch

    signs, labels = search.table.signs[:, : search.train], search.labels[: search.train]
    seed = int(search.random.randint(2**31 - attention.RESTARTS))
    started = time.perf_counter()
    for attended in attention.find(signs, labels, k, seed, owner=search.table.owner, clock=search.clock):
        by_column = attention.summed_by_column(attended.attention, search.table.owner, search.X.shape[1])
        if search.believed(search.judge("attention", attended.scored, started, by_column)):
            return
        started = time.perf_counter()


def _attention_sizes(search: Search) -> list[int]:
    """Return the sizes with enough rows for a gradient to see anything; a given k is tried anyway."""
    if search.k_is_known:
        return list(search.sizes)
    tried = [k for k in search.sizes if rows_wanted(search.rows.bits, k) <= 4 * search.train]
    for k in search.sizes:
        if k not in tried:
            wanted = rows_wanted(search.rows.bits, k)
            search.note("attention", k, f"not tried: would need about {wanted:.1g} rows, there are {search.train}")
            break
    return tried


def rows_wanted(bits: int, k: int) -> float:
    """Return how many noiseless rows attention needs, roughly: n^{k−1} log n, the rate of gradient learning.

    The factor 4 is a rule of thumb that decides only whether a training is worth trying; it was not fitted here.

    >>> round(rows_wanted(100, 2))
    1842
    """
    return 4 * float(bits) ** (k - 1) * math.log(max(2, bits))
