"""Sets too many for a scan: the step that promises something new soonest comes first, until the budget is used.

A step is a complete scan of one size, a rung of the collision search, or a rung of elimination: each brings the
correlation down from which on a parity of k columns would surely have been met (`rho`), at a price in nominal seconds
that is known before. With nothing found the ladder goes down as far as parities could still be significant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parityscope.fit.clock import Diary
from parityscope.fit.evidence.promise import DEVIATIONS, MISSED, threshold
from parityscope.fit.interactions.interaction import Solver
from parityscope.fit.known import Known
from parityscope.fit.solvers import elimination, scan
from parityscope.fit.solvers.collision import Collider
from parityscope.fit.solvers.collision_plan import GRID, SIZES, Books, plan_for
from parityscope.fit.solvers.elimination import Eliminator
from parityscope.fit.solvers.scan import BitSet, Scanner

_LADDER = (0.9, 0.7, 0.6, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
_LOW_NOISE = (1.0, 0.97, 0.93, 0.85, 0.75)
_USUAL = 4  # larger interactions are rare: with k open they get their strong rungs, and what is cheap
_STRONG = 0.9
_AT_FIRST = 0.3  # a rung is first climbed to where it misses so often: most parities are met by then
_CHEAP_SHARE = 0.01  # of the budget
_AFTERWARDS_SHARE = 0.03  # for samples after the first term, however early that was found
_LONG_SHARE = 0.1  # beyond, the first term took long
_WHOLE_SHARE = 0.05  # for a step after which nothing is left to do for its size
_MOST_OF_IT = 0.7  # a correlation above which half of the variance is explained
_LITTLE_OF_IT = 0.3  # a correlation below which less than a tenth is
_LITTLE_SHARE = 0.5  # of the budget, for samples while terms explain little
_CLASS_ROWS = 96  # a collision search draws filter rows and keys from either class
_MOST_EQUATIONS = 6000  # columns
_EVEN = 0.2  # a parity of balanced columns has a mean within this


@dataclass(frozen=True)
class Step:
    """One thing to do next: who, for how many columns, down to which correlation, in how many nominal seconds."""

    seconds: float
    k: int
    solver: Solver
    rho: float
    work: Callable[[], bool]  # says whether a term was accepted


class Sampler:
    """The ladder for one state of the model: rows by the sign of their residual, and what was met in them."""

    def __init__(
        self, known: Known, diary: Diary, random: np.random.RandomState, scanner: Scanner, solver: Solver
    ) -> None:
        self.known, self.diary, self.random, self.scanner, self.solver = known, diary, random, scanner, solver
        self.colliders: dict[int, Collider] = {}
        self.untested: set[int] = set()  # sizes of which the budget left some unlooked at
        self.sizes = [k for k in known.sizes if not known.hopeless(k)]

    @cached_property
    def _balanced(self):  # type: ignore[no-untyped-def]
        return self.known.balanced_rows(self.random)

    @property
    def rows(self):  # type: ignore[no-untyped-def]
        """The rows in two classes."""
        return self._balanced[0]

    @cached_property
    def _skew(self) -> float:
        """The largest |mean| of a question."""
        ones = np.bitwise_count(self.rows.words).sum(axis=0, dtype=np.int64)
        return float(np.abs(1 - 2 * ones / self.rows.rows).max())

    @cached_property
    def eliminator(self) -> Eliminator:
        """Samples of equations so far."""
        return Eliminator(self.known.table, self.rows, max(self.sizes), self.random)

    def climb(self) -> bool:
        """Take the cheapest step again and again, as long as it is worth its price; say whether a term was accepted."""
        while self.diary.budget.left > 0:
            steps = [self._cheapest(k) for k in self.sizes if self.met(k) > self.target(k)]
            step = min((one for one in steps if one), key=lambda one: (one.seconds, one.k), default=None)
            if step is None:
                break
            if step.work():
                return True
        for k in self.sizes:
            met, (rows, factor) = self.met(k), self._balanced
            # The promise allows for the chance of all rows; where these are few, theirs is larger.
            chance = max(0.0, 1 / (factor * math.sqrt(rows.rows)) - 1 / math.sqrt(self.known.rows))
            promised = met <= 1 and k not in self.untested
            self.diary.reached[k] = met / factor + DEVIATIONS * chance if promised else 2.0  # 2 is for none
            if self.met(k) > self.target(k) and self.known.explained <= 0.96:
                whole = self._steps(k, whole=True)
                self.diary.left_out[k] = min((step.seconds for step in whole), default=math.inf)
        return False

    def target(self, k: int) -> float:
        """Return the correlation in these rows below which parities of k columns cannot be significant."""
        least = threshold(self.known.price(k) - math.log(self.known.level)) / math.sqrt(self.known.rows)
        return min(1.0, least * self._balanced[1])

    def met(self, k: int) -> float:
        """Return the correlation in these rows from which on parities of k columns are met surely; 2 for none."""
        if k in self.diary.complete:
            return 0.0
        return self._reached(k, MISSED)

    def _reached(self, k: int, missed: float) -> float:
        levels = [2.0]
        if k in self.colliders:
            levels.append(self.colliders[k].books.reached(missed))
        if "eliminator" in self.__dict__:
            levels.append(self.eliminator.books.reached(k, missed))
        return min(levels)

    def _worth(self, step: Step) -> bool:
        """Say whether a step is worth its price, given what is known and how much is left."""
        budget, found_after = self.diary.budget, self.diary.found_after
        if math.isinf(step.seconds) or (step.solver == "exhaustive" and step.seconds > budget.left):
            return False
        if found_after is not None:
            # Others may share the target, if much of it is left: as much again is spent on them as the first took while
            # that is little, and after a long search a quarter of it.
            extra = _AFTERWARDS_SHARE * budget.seconds
            if self.known.explained < _MOST_OF_IT:
                long_search = max(_LONG_SHARE * budget.seconds, found_after / 4)
                extra = max(extra, min(found_after, long_search))
            # A weak column, true or by chance, comes within milliseconds: it must not end the search for what decides.
            if self.known.explained < _LITTLE_OF_IT:
                extra = max(extra, _LITTLE_SHARE * budget.seconds)
            return budget.spent + step.seconds <= found_after + extra
        usual = self.known.k_is_known or step.k <= _USUAL or step.rho >= _STRONG
        share = _WHOLE_SHARE if step.rho == 0 else _CHEAP_SHARE
        return usual or step.seconds <= share * budget.seconds

    def _cheapest(self, k: int) -> Step | None:
        """Return the cheapest step of a size that is worth it; a complete scan is preferred up to twice its price."""
        worth = [step for step in self._steps(k) if self._worth(step)]
        return min(worth, key=lambda step: step.seconds / (2 if step.rho == 0 else 1), default=None)

    def _steps(self, k: int, *, whole: bool = False) -> list[Step]:
        """Return what could be done next for k columns; with `whole`, what would finish them."""
        known, steps, solver = self.known, [], self.solver
        if solver in ("auto", "exhaustive"):
            cost = scan.seconds(len(known.table.bits), k, known.rows)
            steps.append(Step(cost, k, "exhaustive", 0.0, lambda: self._scan(k, cost)))
        shares = (MISSED,) if whole else (_AT_FIRST, MISSED)
        enough = min(self.rows.first, self.rows.second) >= _CLASS_ROWS and known.table.columns >= 2 * k
        if solver in ("auto", "collision") and k in SIZES and enough:
            rungs = self._rungs(k, () if whole else _LADDER, shares)
            steps += [self._collision(k, rho, share) for rho, share in rungs]
        single = known.table.columns == len(known.table.bits) <= _MOST_EQUATIONS
        if (solver == "elimination" or (solver == "auto" and k > 1)) and single:
            rungs = self._rungs(k, () if whole else _LOW_NOISE, shares)
            steps += [self._elimination(k, rho, share) for rho, share in rungs]
        return steps

    def _rungs(self, k: int, ladder: tuple[float, ...], shares: tuple[float, ...]) -> list[tuple[float, float]]:
        """Return the next correlations to reach and how rarely they may be missed; the last rung is the target."""
        target = max(float(GRID[0]), math.floor(100 * self.target(k)) / 100)
        reached = {share: self._reached(k, share) for share in shares}
        return [
            (next((rho for rho in ladder if target < rho < met - 1e-9), target), share)
            for share, met in reached.items()
            if target < met - 1e-9
        ]

    def _consider(self, solver: Solver, proposed: list[BitSet], started: float) -> bool:
        from parityscope.fit.loop import consider  # the loop calls this module

        accepted = consider(self.known, self.diary, solver, proposed, started)
        if accepted is None:
            self.untested.add(len(proposed[0].bits))
        return bool(accepted)

    def _scan(self, k: int, cost: float) -> bool:
        from parityscope.fit.loop import scan_size  # the loop calls this module

        return scan_size(self.known, self.diary, self.scanner, k, cost)

    def collider(self, k: int) -> Collider:
        """Return the collision search for parities of k columns."""
        if k not in self.colliders:
            books = Books(self.rows.first, self.rows.second, min(0.9, max(_EVEN, self._skew**k)))
            floor = 0.9 * self.target(k)  # a little weaker here may still be significant in all rows
            self.colliders[k] = Collider(self.rows, self.known.table.owner, books, self.random, floor)
        return self.colliders[k]

    def _collision(self, k: int, rho: float, share: float) -> Step:
        collider, columns = self.collider(k), self.known.table.columns
        # Filter rows come half from either class: the smaller one decides how many there can be.
        rows = 2 * min(self.rows.first, self.rows.second)
        plan = plan_for(
            columns,
            k,
            rows,
            rho,
            bits_per_column=self.rows.bits / columns,
            counted=self.rows.rows,
            uneven=collider.books.uneven,
        )
        rounds = collider.books.rounds_for(plan, collider.split(plan), share)

        def work() -> bool:
            started, before = self.diary.budget.spent, set(collider.found)
            collider.run(plan, missed=share, budget=self.diary.budget)
            fresh = [one for one in collider.best if one.bits not in before]
            if fresh:
                return self._consider("collision", fresh, started)
            self.diary.note("collision", k, f"nothing of correlation {rho:g} or more", started)
            return False

        return Step(rounds * plan.seconds, k, "collision", rho, work)

    def _elimination(self, k: int, rho: float, share: float) -> Step:
        columns, samples, seconds = elimination.best_columns(self.eliminator.books, k, rho, share)

        def work() -> bool:
            started, before = self.diary.budget.spent, self.eliminator.best
            self.eliminator.run(columns, samples=int(samples), budget=self.diary.budget)
            best = self.eliminator.best
            if best is None or best is before or len(best.bits) not in self.sizes:
                outcome = f"no sparse solution in {self.eliminator.solved} samples of equations"
                self.diary.note("elimination", None, outcome, started)
                return False
            return self._consider("elimination", [best], started)

        return Step(seconds, k, "elimination", rho, work)
