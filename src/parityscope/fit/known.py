"""What is known of a table: the additive model of the terms found so far, and the test of one more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy import ndarray

from parityscope.fit.bits.bits import refine
from parityscope.fit.bits.encoding import BitTable, encode
from parityscope.fit.bits.packed import TwoClasses, pack, unpack
from parityscope.fit.evidence.evidence import exact_log_p, log_family, reaches, rows_needed
from parityscope.fit.evidence.score import Regression, Score, Target, regression, score_test
from parityscope.fit.interactions.interaction import (
    ROWS_PER_PART,
    Candidate,
    Feature,
    Interaction,
    Solver,
    feature_values,
    interaction_features,
    own_features,
    parts_of,
)
from parityscope.fit.solvers.scan import BitSet

TESTED = 8  # the strongest of a scan: all pay for the whole scan, so that testing several costs nothing
_OWN_SHARE = 0.6  # of alpha, with k given; smaller sets are looked for first, as what the k columns must go beyond
_SMALLER = 2  # columns: so large are the sets that come before a given k
_TEST_SECONDS, _ROW_SECONDS = 4e-4, 2e-8  # nominal, of a test, and per row and column of a regression
_REGRESSION_SECONDS = 1.6e-8  # nominal, per row and column
_ROW_WORK, _THRESHOLD_WORK = 8, 25  # columns' worth of everything else, and of a threshold
_FEW_VALUES = 12  # a column of numbers with so few values gets an effect for each


@dataclass
class Known:
    """The rows, the questions about them, and the terms that were accepted; every test is made here.

    Rows are in the order of `order`: for labels those of the first class come before those of the second.
    """

    X: ndarray
    order: ndarray
    table: BitTable
    target: Target
    sizes: Sequence[int]
    k_is_known: bool
    alpha: float
    covariates: tuple[int, ...] = ()
    unordered: frozenset[int] = frozenset()
    accepted: list[Candidate] = field(default_factory=list)
    steps: int = 0  # tests of one more term that were passed: each spends its part of alpha
    strongest: float = 0.0  # the largest correlation of a proposed parity with the target
    families: dict[tuple[int, bool], float] = field(default_factory=dict)

    @staticmethod
    def of(
        X: ndarray,
        target: Target,
        sizes: Iterable[int],
        k_is_known: bool,
        alpha: float,
        *,
        covariates: Sequence[int] = (),
        unordered: frozenset[int] = frozenset(),
    ) -> Known:
        """Sort the rows by class, and pack the columns; covariates are adjusted for, and not searched."""
        if target.measured:
            order, lengths = np.arange(len(X)), [len(X)]
        else:
            order = np.argsort(target.y, kind="stable")
            lengths = [int((target.y < 0.5).sum()), int((target.y > 0.5).sum())]
        table = encode(X, order, lengths, unordered, frozenset(covariates))
        possible = [k for k in sizes if k <= table.columns]
        return Known(X, order, table, target.taken(order), possible, k_is_known, alpha, tuple(covariates), unordered)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.order)

    @cached_property
    def labels(self) -> ndarray:
        """The labels as signs."""
        return np.where(self.target.y > 0.5, 1, -1).astype(np.int8)

    def values(self, columns: Iterable[int]) -> dict[int, ndarray]:
        """Return the values of some columns, in the order of rows here."""
        return {column: self.X[self.order, column] for column in columns}

    # The model

    def own(self, column: int) -> list[Feature]:
        """Return the columns of a regression that stand for whatever a column does on its own."""
        if column not in self._own:
            levels: Sequence[float] | None = self.table.levels.get(column)
            if column in self.unordered:
                self._own[column] = [(one,) for one in self.table.bits if one.column == column]
            else:
                values = self.X[self.order, column]
                distinct = np.unique(values)
                if levels is None and len(distinct) <= _FEW_VALUES:
                    levels = distinct.tolist()
                self._own[column] = own_features(column, levels, values)
        return self._own[column]

    @cached_property
    def _own(self) -> dict[int, list[Feature]]:
        return {}

    def features_of(self, candidate: Candidate) -> list[Feature]:
        """Return the columns of the regression that an accepted candidate gets."""
        if candidate.interaction not in self._features:
            self._features[candidate.interaction] = self._features_of(candidate)
        return self._features[candidate.interaction]

    @cached_property
    def _features(self) -> dict[Interaction, list[Feature]]:
        return {}

    def _features_of(self, candidate: Candidate) -> list[Feature]:
        if candidate.k > 1:
            features = interaction_features(candidate.interaction, self.table.levels, self.rows)
            # Products of several levels say what a column does where the others have their first level. Beside what
            # each column does on its own they say what it does only with the others, and no main effect is made up.
            alone = [one for column in candidate.support for one in self.own(column)] if len(features) > 1 else []
            return [*alone, *features]
        (bit,) = candidate.interaction.bits
        features = [*([(bit,)] if bit.threshold is not None else []), *self.own(bit.column)]
        return features if len(features) * ROWS_PER_PART <= self.rows else [(bit,)]

    def model_features(self, without: Candidate | None = None) -> list[Feature]:
        """Return the columns of the regression of all accepted terms, each once, covariates first."""
        given = [feature for column in self.covariates for feature in self.own(column)]
        found = [one for term in self.accepted if term is not without for one in self.features_of(term)]
        return list(dict.fromkeys([*given, *found]))

    def design(self, features: Sequence[Feature]) -> ndarray:
        """Return a constant and the columns of a regression."""
        values = self.values({factor.column for feature in features for factor in feature})
        columns = [feature_values(feature, values) for feature in features]
        return np.column_stack([np.ones(self.rows), *columns])

    @cached_property
    def fitted(self) -> Regression:
        """The regression of all accepted terms."""
        return regression(self.design(self.model_features()), self.target)

    @property
    def residuals(self) -> ndarray:
        """What the model leaves of every row, times its weight."""
        left = self.target.y - self.fitted.expected
        return left if self.target.weights is None else left * self.target.weights

    @property
    def variance(self) -> ndarray:
        """The variance of every residual."""
        spread = self.fitted.variance * self.fitted.dispersion
        return spread if self.target.weights is None else spread * self.target.weights**2

    @property
    def explained(self) -> float:
        """The correlation of what the model expects with the target."""
        expected, y = self.fitted.expected, self.target.y
        return 0.0 if not self.accepted or np.ptp(expected) == 0 else float(np.corrcoef(expected, y)[0, 1])

    def balanced_rows(self, random: np.random.RandomState) -> tuple[TwoClasses, float]:
        """Return rows with a class each for solvers that know no residuals, and the factor of their correlations.

        Without terms these are all rows. Otherwise a row stays with probability |r|/max |r|, its class the sign of its
        residual r: the expected sum of a parity over the classes of these rows is its score. A correlation ρ with the
        target is then ρ times the returned factor in them.
        """
        if not self.accepted and not self.covariates and self.target.weights is None:
            return self.table.two_classes(0), 1.0
        left = self.residuals
        stays = random.rand(self.rows) * np.abs(left).max() < np.abs(left)
        rows = [np.flatnonzero(stays & (left < 0)), np.flatnonzero(stays & (left > 0))]
        chosen, lengths = np.concatenate(rows), [len(rows[0]), len(rows[1])]
        step = max(1, 2**24 // self.rows)
        blocks = [
            pack(unpack(self.table.words[:, start : start + step], self.table.lengths).T[chosen] < 0, lengths)
            for start in range(0, len(self.table.bits), step)
        ]
        factor = self.rows * float(self.target.y.std()) / max(1e-9, float(np.abs(left).sum()))
        return TwoClasses(np.concatenate(blocks, axis=1), *lengths), factor

    # Tests

    def log_family(self, k: int, *, scanned: bool = False) -> float:
        """Return the logarithm of how many parities of k columns could have been found, or only of those scanned."""
        if (k, scanned) not in self.families:
            choices = np.bincount(self.table.owner).tolist() if scanned else self.table.choices
            self.families[k, scanned] = log_family(choices, k)
        return self.families[k, scanned]

    @property
    def before(self) -> range:
        """The sizes that are looked for before a given k."""
        return range(1, min(_SMALLER + 1, min(self.sizes, default=1))) if self.k_is_known else range(0)

    def price(self, k: int, *, scanned: bool = False) -> float:
        """Return the logarithm of what the p-value of a parity of k columns is multiplied by: sets, and sizes.

        Sets are those of all thresholds, or only of those `scanned`.
        """
        sets = self.log_family(k, scanned=scanned)
        if not self.k_is_known:
            return sets + math.log(k * (k + 1))  # reciprocals add up to less than 1
        if not self.before:
            return sets
        share = (1 - _OWN_SHARE) / len(self.before) if k in self.before else _OWN_SHARE
        return sets - math.log(share)

    @property
    def level(self) -> float:
        """The part of alpha that the next term has: 1/(i(i + 1)) at step i, so that all steps together have alpha."""
        step = self.steps + 1
        return self.alpha / (step * (step + 1))

    def hopeless(self, k: int) -> bool:
        """Say whether these rows are too few for k columns: even without noise nothing could be significant."""
        return self.needed_rows(k) > self.rows

    def needed_rows(self, k: int) -> int:
        """Return how many rows a noiseless parity of k columns takes."""
        return rows_needed(self.price(k), self.alpha / 2)

    def significant(self, candidate: Candidate) -> bool:
        """Say whether a candidate reaches its part of alpha."""
        return reaches(candidate.log_p, self.level)

    def test_seconds(self, proposed: BitSet) -> float:
        """Return the nominal seconds of a test: thresholds are moved, and a regression has the model's columns."""
        return self._test_seconds(sum(self.table.bits[i].threshold is not None for i in proposed.bits))

    def tests_seconds(self, k: int) -> float:
        """Return the nominal seconds of all tests of a scan of k columns, at most."""
        return TESTED * self._test_seconds(k * any(bit.threshold is not None for bit in self.table.bits))

    def _test_seconds(self, thresholds: int) -> float:
        work = _ROW_WORK + _THRESHOLD_WORK * thresholds + len(self.model_features())
        return _TEST_SECONDS + _ROW_SECONDS * self.rows * work

    def accept_seconds(self) -> float:
        """Return the nominal seconds that one more term costs: all others are tested again, now and when it is told."""
        regressions = len(self.accepted) + 3
        return regressions * _REGRESSION_SECONDS * self.rows * (_ROW_WORK + len(self.model_features()))

    def test(self, solver: Solver, proposed: BitSet, attention: ndarray | None = None) -> Candidate:
        """Move the thresholds of a proposal to where it fits best, and test it given the model, beyond its parts."""
        chosen = sorted((self.table.bits[i] for i in proposed.bits), key=lambda bit: bit.column)
        values = self.values(bit.column for bit in chosen)
        interaction = Interaction(refine(tuple(chosen), values, self.residuals))
        chi = interaction.chi(values)
        if np.ptp(chi):
            self.strongest = max(self.strongest, abs(float(np.corrcoef(chi, self.target.y)[0, 1])))
        score = self._score(interaction, chi)
        log_p = score.log_p + self.price(len(chosen))
        if any(bit.threshold is not None for bit in chosen):
            # Half of alpha is for the thresholds that were scanned, half for all others: few choices cost little.
            scanned = Interaction(tuple(chosen))
            plain = self._score(scanned, scanned.chi(values)).log_p + self.price(len(chosen), scanned=True)
            log_p = math.log(2) + min(log_p, plain)
        return Candidate(interaction, solver, min(0.0, log_p), score.estimate, score.error, attention)

    def _score(self, interaction: Interaction, chi: ndarray) -> Score:
        """Return the test beyond the parts; of sets that parts are not taken out of in the scan, also that without.

        Where nothing is known yet, the test without parts is Fisher's exact one: labels dealt to the rows at random.
        """
        k, known = len(interaction.bits), self.model_features()
        worst: Score | None = None
        if k != 2:
            given = self.design(known)
            worst = score_test(given, chi.astype(float), self.target, self.fitted)
            plain = not known and self.target.weights is None and self.target.groups is None
            if plain and not self.target.measured:
                worst = Score(exact_log_p(chi, self.labels), worst.estimate, worst.error)
            if k == 1 or not reaches(worst.log_p + self.price(k), self.level):
                return worst
        own = {bit.column: self.own(bit.column) for bit in interaction.bits}
        parts = [one for one in parts_of(interaction, own, self.rows, len(known)) if one not in known]
        beyond = score_test(self.design([*known, *parts]), chi.astype(float), self.target)
        return (
            beyond if worst is None or beyond.log_p > worst.log_p else Score(worst.log_p, beyond.estimate, beyond.error)
        )

    def accept(self, candidate: Candidate) -> None:
        """Take a candidate into the model, and drop the terms that it explains."""
        self.accepted.append(candidate)
        self.steps += 1
        for other in self.accepted[:-1]:
            if not self._adds(other):
                self.accepted.remove(other)
        self.__dict__.pop("fitted", None)

    def _adds(self, term: Candidate) -> bool:
        """Say whether a term is still significant given all others; a column's own effect stays beside its pairs."""
        if term.k == 1 and any(set(term.support) < set(one.support) for one in self.accepted):
            return True
        values = self.values(term.support)
        given = self.design(self.model_features(without=term))
        found = score_test(given, term.interaction.chi(values).astype(float), self.target)
        return reaches(found.log_p + self.price(term.k), self.alpha)
