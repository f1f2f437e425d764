"""The papers as code: a folder each, with its claims, its figures and the systems only it uses.

What a paper is here: a name, a title, and which files hold its figures and its claims. `registry.py` lists the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Paper:
    """The contents of one folder in `papers/`, listed so that names are known before anything is imported.

    >>> files = {"lemmas": ("X-lemma-1", "X-figure-1")}
    >>> paper = Paper("X", "x", "An example", {"X-figure-1": "figure_1"}, files, {"X-figure-1": ("X-lemma-1",)})
    >>> paper.claim_ids, paper.figure_of("X-lemma-1"), paper.figure_of("X-figure-1")
    (('X-lemma-1', 'X-figure-1'), 'X-figure-1', 'X-figure-1')
    """

    name: str  # that ids begin with, such as H1
    folder: str
    title: str
    figures: Mapping[str, str]  # the file in `figures/` of every figure id, in the order of the report
    claims: Mapping[str, tuple[str, ...]]  # the ids in every file of `claims/`, in the order of its `CLAIMS`
    shown: Mapping[str, tuple[str, ...]]  # by a figure; a claim that is called like a figure is not listed
    # Claims that quote others than its authors, by whom: they are counted apart.
    not_its_own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provenance: str = ""  # the texts it is known through, where that is not its own; shown with its verdicts

    @property
    def claim_ids(self) -> tuple[str, ...]:
        """The ids of all claims, in the order of the report."""
        return tuple(claim for claims in self.claims.values() for claim in claims)

    def figure_of(self, claim_id: str) -> str | None:
        """Return the figure that shows a claim, if one does."""
        own = claim_id if claim_id in self.figures else None
        return next((figure for figure, claims in self.shown.items() if claim_id in claims), own)


def paper_of(claim_id: str) -> str:
    """Return the short name of the paper that a claim is from.

    >>> paper_of("H1-lemma-19")
    'H1'
    """
    return claim_id.split("-", maxsplit=1)[0]
