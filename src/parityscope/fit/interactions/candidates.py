"""What a solver proposes, with its evidence, and the lines of a search's diary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from numpy import ndarray

from parityscope.fit.interactions.rules import Interaction

Solver = Literal["auto", "attention", "collision", "elimination", "exhaustive"]
SOLVERS: tuple[Solver, ...] = ("auto", "attention", "collision", "elimination", "exhaustive")


@dataclass(frozen=True)
class Candidate:
    """A parity that a solver proposes, judged: exact corrected p-value, and how it does on held-out rows.

    >>> import numpy as np
    >>> from parityscope.fit.bits.bits import Bit
    >>> pair = Interaction((Bit(1, 0.5), Bit(6, 0.5)), (None, None))
    >>> candidate = Candidate(pair, "exhaustive", 0.8, log_p=-40.0, replicated=True, log_likelihood=np.zeros(3))
    >>> candidate.k, candidate.support
    (2, (1, 6))
    """

    interaction: Interaction
    solver: Solver
    strength: float  # correlation with the labels on training rows
    log_p: float
    replicated: bool
    log_likelihood: Float[ndarray, " held_out"]
    attention: Float[ndarray, "heads columns"] | None = None
    table: bool = False  # the evidence is that of all combinations of values, not of the parity

    @property
    def k(self) -> int:
        """The number of columns."""
        return len(self.interaction.bits)

    @property
    def support(self) -> tuple[int, ...]:
        """The columns, ascending."""
        return tuple(bit.column for bit in self.interaction.bits)


@dataclass(frozen=True)
class Attempt:
    """One line of the search's diary: what was tried, or why it was not.

    >>> Attempt("exhaustive", 5, "not tried: would take 9 hours").seconds
    0.0
    """

    solver: Solver
    k: int | None
    outcome: str
    seconds: float = 0.0
