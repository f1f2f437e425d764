"""The papers as code: a folder each, with its claims, its figures and the systems only it uses.

What a paper is here: a name, a title, and which files hold its figures and its claims. `registry.py` lists the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """The contents of one folder in `papers/`, listed so that names are known before anything is imported.

    Parameters
    ----------
    name : str
        The short name that ids begin with, such as H1.
    folder : str
        The folder in `papers/`.
    title : str
        What it is about, for people.
    figures : mapping of str to str
        The file in `figures/` of every figure id, in the order of the report.
    claims : mapping of str to tuple of str
        The ids of the claims in every file of `claims/`, in the order of its `CLAIMS`.
    shown : mapping of str to tuple of str
        The claims that a figure shows; one that is called like a figure is shown by it without being listed.
    provenance : str
        Through which texts the paper is known here, where that is not its own full text; shown with its verdicts.

    >>> files = {"lemmas": ("X-lemma-1", "X-figure-1")}
    >>> paper = Paper("X", "x", "An example", {"X-figure-1": "figure_1"}, files, {"X-figure-1": ("X-lemma-1",)})
    >>> paper.claim_ids, paper.figure_of("X-lemma-1"), paper.figure_of("X-figure-1")
    (('X-lemma-1', 'X-figure-1'), 'X-figure-1', 'X-figure-1')
    """

    name: str
    folder: str
    title: str
    figures: Mapping[str, str]
    claims: Mapping[str, tuple[str, ...]]
    shown: Mapping[str, tuple[str, ...]]
    provenance: str = ""

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
