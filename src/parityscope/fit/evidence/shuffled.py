"""What the same search finds where there is nothing to find: labels dealt to the rows at random."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from parityscope.fit.answer import Question
from parityscope.fit.files import answer_for
from parityscope.fit.tables.prepared import Prepared


@dataclass(frozen=True)
class Shuffled:
    """The largest correlation that a search for k columns meets in the labels as they are, and in shuffled ones.

    >>> Shuffled(k=2, observed=0.8, shuffled=(0.1, 0.2, 0.15)).sentence
    'the strongest parity of 2 columns has correlation 0.80; in 3 shuffles of the labels the search met 0.20 at most'
    """

    k: int
    observed: float
    shuffled: tuple[float, ...]

    @property
    def sentence(self) -> str:
        """Say how the labels compare with shuffled ones."""
        most = max(self.shuffled, default=0.0)
        return (
            f"the strongest parity of {self.k} columns has correlation {self.observed:.2f}; in {len(self.shuffled)} "
            f"shuffles of the labels the search met {most:.2f} at most"
        )


def against_shuffled(
    known: Prepared, k: int, shuffles: Iterable[int], *, budget: str | float | None = None, seconds: float = 10.0
) -> Shuffled:
    """Search for k columns once in the labels as they are and once for each shuffle, a seed, while work is left.

    This is the whole search again, so that whatever it might choose from is paid for. Correlations are those of the
    rows that are searched, which chose the parity: that is why they are not near 0 in shuffled labels either. What is
    left of the nominal `seconds` decides how many shuffles are tried, so that a busy machine tries as many.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parityscope.fit.tables.prepared import prepare
    >>> rows = [f"{a},{b},{c},{a ^ c}" for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 20
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("\\n".join(["a,b,c,fault", *rows]))
    >>> compared = against_shuffled(prepare(path, "fault"), 2, range(3))
    >>> compared.observed, max(compared.shuffled) < 0.5
    (1.0, True)
    """
    question = Question(k, budget=budget)
    answer = answer_for(known, question)
    observed, found = answer.strongest, []
    for seed in shuffles:
        seconds -= answer.work
        if seconds <= 0:
            break
        labels = np.random.RandomState(seed).permutation(known.labels)
        answer = answer_for(replace(known, labels=labels), question, seed)
        found.append(answer.strongest)
    return Shuffled(k, observed, tuple(found))
