"""The papers, in the order of the report, and where each figure and claim is found.

Names are listed, completed and refused without importing what they name: torch takes seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.papers import h1, h2, own, w
from parityscope.papers.paper import paper_of

if TYPE_CHECKING:
    from parityscope.papers.claim import Claim
    from parityscope.papers.figure import PaperFigure

PAPERS = (h1.PAPER, h2.PAPER, w.PAPER, own.PAPER)

FIGURE_IDS = tuple(figure for paper in PAPERS for figure in paper.figures)
CLAIM_IDS = tuple(claim for paper in PAPERS for claim in paper.claim_ids)


def load_figure(figure_id: str) -> PaperFigure:
    """Return the figure called `figure_id`.

    >>> load_figure("H1-figure-1").ID
    'H1-figure-1'
    """
    for paper in PAPERS:
        if figure_id in paper.figures:
            with naming_the_extra():
                return cast("PaperFigure", _module(paper.folder, "figures", paper.figures[figure_id]))
    raise InvalidInput(f"unknown figure {figure_id!r}: choose one of {', '.join(FIGURE_IDS)}")


def claim_names() -> list[str]:
    """Return every name that can be asked for: each paper, followed by the ids of its claims.

    >>> claim_names()[:2]
    ['H1', 'H1-proposition-3-ffnn']
    """
    return [name for paper in PAPERS for name in (paper.name, *paper.claim_ids)]


def all_claims() -> list[Claim]:
    """Return every claim, in the order of the report.

    >>> [claim.id for claim in all_claims()] == list(CLAIM_IDS)
    True
    """
    return named_claims(paper.name for paper in PAPERS)


def named_claims(ids: Iterable[str]) -> list[Claim]:
    """Return the claims called `ids`, or all of a paper when an id is only its name; everything when there are none.

    >>> [claim.id for claim in named_claims(["H1-lemma-19", "H2"])][:3]
    ['H1-lemma-19', 'H2-one-step', 'H2-parameters']
    """
    chosen = [claim for name in ids for claim in _claims_called(name)]
    return chosen or all_claims()


def reproducible_names() -> list[str]:
    """Return every name that `figures_and_claims` knows: each paper, followed by the ids of its figures and claims.

    >>> reproducible_names()[:3]
    ['H1', 'heads-lock-on', 'H1-figure-1']
    """
    return [name for paper in PAPERS for name in dict.fromkeys((paper.name, *paper.figures, *paper.claim_ids))]


def figures_and_claims(names: Collection[str] = ()) -> tuple[list[str], list[Claim]]:
    """Return what is to be reproduced: figures with the claims that refer to them, claims with their figures.

    The name of a paper stands for all of both; without a name it is everything.

    >>> figures, claims = figures_and_claims(["W-figure-7", "H1-theorem-11"])
    >>> figures, [claim.id for claim in claims]
    (['H1-frozen-attention', 'W-figure-7'], ['H1-theorem-11', 'W-figure-7'])
    """
    unknown = next((name for name in names if name not in reproducible_names()), None)
    if unknown is not None:
        known = ", ".join((*(paper.name for paper in PAPERS), *FIGURE_IDS))
        raise InvalidInput(f"unknown figure or claim {unknown!r}: choose from {known}, or a claim such as H1-lemma-19")
    if not names:
        return list(FIGURE_IDS), all_claims()
    of_papers = {figure for paper in PAPERS if paper.name in names for figure in paper.figures}
    claims = [
        claim
        for claim in all_claims()
        if {claim.id, claim.paper, claim.figure} & set(names) or claim.figure in of_papers
    ]
    of_claims = {claim.figure for claim in claims if claim.reads_figure or claim.id in names}
    figures = [name for name in FIGURE_IDS if name in names or name in of_papers | of_claims]
    return figures, claims


def _claims_called(name: str) -> list[Claim]:
    paper = next((paper for paper in PAPERS if paper.name == paper_of(name)), None)
    files = [] if paper is None else [file for file, ids in paper.claims.items() if name in (paper.name, *ids)]
    if paper is None or not files:
        raise InvalidInput(f"unknown claim {name!r}: choose from {', '.join(CLAIM_IDS)}")
    found: list[Claim] = [claim for file in files for claim in _module(paper.folder, "claims", file).CLAIMS]
    return found if name == paper.name else [claim for claim in found if claim.id == name]


def _module(*parts: str):  # type: ignore[no-untyped-def]  # a module is what its file makes it
    return import_module(".".join(("parityscope.papers", *parts)))
