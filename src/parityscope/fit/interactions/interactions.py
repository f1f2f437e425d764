"""Every interaction that a table shows, one after the other, and what each adds to those before."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from parityscope.fit.bits.blocks import indistinguishable
from parityscope.fit.interactions.candidates import Candidate, Solver
from parityscope.fit.interactions.further import cells_of, conditional, held_out, needed, next_one, part_for
from parityscope.fit.interactions.grouping import groups_of, part_of
from parityscope.fit.interactions.joint import Part, held_out_probability
from parityscope.fit.interactions.rules import Cell, Interaction, Rule, fit_rule, truth_table
from parityscope.fit.search import Search

MOST = 12  # a label that needs more parities than this is not a matter of a few interactions
_AFTERWARDS = 0.2  # of the time budget
_LN2 = math.log(2)


@dataclass(frozen=True)
class Chosen:
    """An interaction that a search established: who proposed it, how sure it is, and how it takes part in the rule.

    >>> from parityscope.fit.bits.bits import Bit
    >>> pair = Interaction((Bit(1, 0.5), Bit(6, 0.5)), (None, None))
    >>> proposed = Candidate(pair, "exhaustive", 0.8, log_p=-40.0, replicated=True, log_likelihood=np.zeros(3))
    >>> Chosen(proposed, -40.0, Part(pair, table=False)).support
    (1, 6)
    """

    candidate: Candidate
    log_p: float  # corrected, given those before it
    part: Part
    members: tuple[Chosen, ...] = ()  # several that act together, and are told as one

    @property
    def support(self) -> tuple[int, ...]:
        """The columns, ascending."""
        return tuple(sorted({bit.column for bit in self.part.interaction.bits}))


@dataclass(frozen=True)
class FoundInteraction:
    """One interaction: which columns, of which kind, how sure, and what it adds to those before it.

    `adds` is the gain in log-likelihood on held-out rows over the interactions before it (over the class shares for
    the first), in bits per row: 1 is a label explained completely. `accuracy` is the held-out accuracy of the joint
    rule up to and with it. `p_value` is corrected for the whole search: labels dealt at random among the rows that
    the interactions before it do not tell apart. `block` names, by column, others that these rows cannot tell from it.

    >>> one = FoundInteraction((1, 6), "parity", ("a = 1", "b = 1"), 0.8, -40.0, 0.5, 0.9, {}, "exhaustive", None, [])
    >>> one.k, one.p_value < 1e-17
    (2, True)
    """

    support: tuple[int, ...]
    kind: str  # "main effect", "parity", "pair table" or "table of … columns"
    bits: tuple[str, ...]
    # Correlation with the labels in all rows, negative where the parity is that of the first class; of a table that
    # several parities make up, that of its own frequencies.
    strength: float
    log_p: float
    adds: float
    accuracy: float
    block: dict[int, tuple[int, ...]]
    solver: Solver
    interaction: Interaction | None
    truth_table: list[Cell]
    rule: Rule | None = None

    @property
    def k(self) -> int:
        """The number of columns."""
        return len(self.support)

    @property
    def p_value(self) -> float:
        """The corrected p-value, 0.0 when it is too small for a float."""
        return math.exp(self.log_p)


def select(search: Search, first: Candidate) -> tuple[Chosen, ...]:
    """Return the interactions that a search established, the given one first.

    A further one is believed when its conditional p-value, corrected for the whole search, reaches alpha and the
    joint rule with it predicts the held-out rows clearly better; where that p-value is ten times smaller still, not
    clearly worse is enough. No correction for the number of steps is due: a step is only taken after all before it were
    believed, so at most one of them can be the first mistake. Those that act together are told as one, the table of
    their columns; its p-value is that of the least sure of them.

    >>> from parityscope.fit.answer import Question, ask
    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(2000, 12))
    >>> odd = np.where(random.rand(2000) < 0.5, X[:, 1] ^ X[:, 4], X[:, 7] ^ X[:, 9])
    >>> found = ask(Question(), X, (1 - 2 * odd).astype(np.int8), random).interactions
    >>> [(one.support, one.kind) for one in found]
    [((1, 4), 'parity'), ((7, 9), 'parity')]
    """
    # However long the search has taken, a little is left for what else its candidates show.
    until = max(search.clock.seconds, search.clock.spent + _AFTERWARDS * search.clock.seconds)
    found: Candidate | None = needed(search, first)
    chosen: list[Chosen] = []
    while found is not None and len(chosen) < MOST:
        parts = [one.part for one in chosen]
        log_p = conditional(search, found, cells_of(search, parts)) if chosen else found.log_p
        chosen.append(Chosen(found, log_p, part_for(search, found)))
        known = {one.candidate.interaction.bits for one in chosen}
        search.cut_short = search.clock.spent > until
        found = None if search.cut_short else next_one(search, [one.part for one in chosen], known)
    return _together(search, chosen)


def _together(search: Search, chosen: Sequence[Chosen]) -> tuple[Chosen, ...]:
    """Return the interactions with those that act together as one."""
    parts = [one.part for one in chosen]
    values = search.values({column for one in chosen for column in one.support})
    most = search.sizes[0] if search.k_is_known else None
    told = []
    for group in groups_of(parts, values, search.labels, alpha=search.alpha, most_columns=most):
        members = tuple(chosen[place] for place in group)
        if len(members) == 1:
            told.append(members[0])
            continue
        log_p = max(one.log_p for one in members)
        told.append(Chosen(members[0].candidate, log_p, part_of(parts, group), members))
    return tuple(told)


def described(search: Search, chosen: Sequence[Chosen], name: Callable[[int], str]) -> tuple[FoundInteraction, ...]:
    """Return the interactions with everything that is said of them; `name` says what a column is called.

    >>> from parityscope.fit.clock import Clock
    >>> from parityscope.fit.schedule import run
    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(300, 8))
    >>> labels = (1 - 2 * (X[:, 1] ^ X[:, 6] ^ (random.rand(300) < 0.1))).astype(np.int8)
    >>> search = Search.of(X, labels, [1, 2, 3], False, 0.01, Clock(30.0), random)
    >>> [one.bits for one in described(search, select(search, run(search, "auto")), "x{}".format)]
    [('x1 = 1', 'x6 = 1')]
    """
    return tuple(_described(search, chosen, place, name) for place in range(len(chosen)))


def _kind(part: Part) -> str:
    columns = len({bit.column for bit in part.interaction.bits})
    if columns == 1:
        return "main effect"
    if not part.table:
        return "parity"
    return "pair table" if columns == 2 else f"table of {columns} columns"


def _described(search: Search, chosen: Sequence[Chosen], place: int, name: Callable[[int], str]) -> FoundInteraction:
    one = chosen[place]
    parts, interaction = [other.part for other in chosen[: place + 1]], one.part.interaction
    values = search.values({bit.column for part in parts for bit in part.interaction.bits})
    second = held_out_probability(parts, values, search.labels, search.train)
    gain = (held_out(search, parts) - held_out(search, parts[:-1])).mean() / _LN2
    names = {column: name(column) for column in one.support}
    rule = fit_rule(interaction, values, search.labels, table=one.part.table)
    answers = rule.probability(interaction, values) if one.members else interaction.chi(values)
    found = [indistinguishable(search, member.candidate) for member in one.members or (one,)]
    told = {column for other in chosen for column in other.support}  # each has evidence of its own
    blocks = {column: tuple(set(others) - told) for some in found for column, others in some.items()}
    return FoundInteraction(
        one.support,
        _kind(one.part),
        tuple(bit.describe(names[bit.column]) for bit in interaction.bits),
        float(np.corrcoef(answers, search.labels)[0, 1]),
        one.log_p,
        float(gain),
        float(((second > 0.5) == (search.labels[search.train :] > 0)).mean()),
        {column: tuple(sorted(others)) for column, others in blocks.items() if others},
        one.candidate.solver,
        interaction,
        truth_table(interaction, values, search.labels, names),
        rule,
    )
