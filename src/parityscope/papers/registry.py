"""The papers, in the order of the report, and where each figure and claim is found.

Names are listed, completed and refused without importing what they name: torch takes seconds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, cast

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.papers import h1, h2, k, own, paper_of, w

if TYPE_CHECKING:
    from parityscope.papers.claim import Claim
    from parityscope.papers.figure import PaperFigure

PAPERS = (h1.PAPER, h2.PAPER, w.PAPER, k.PAPER, own.PAPER)

FIGURE_IDS = tuple(figure for paper in PAPERS for figure in paper.figures)
CLAIM_IDS = tuple(claim for paper in PAPERS for claim in paper.claim_ids)
_MOST_NAMED = 8  # in a sentence


def load_figure(figure_id: str) -> PaperFigure:
    """Return the figure called `figure_id`."""
    for paper in PAPERS:
        if figure_id in paper.figures:
            with naming_the_extra():
                module = _module(paper.folder, "figures", paper.figures[figure_id])
            several = {figure.ID: figure for figure in getattr(module, "FIGURES", ())}
            return cast("PaperFigure", several.get(figure_id, module))
    raise InvalidInput(f"unknown figure {figure_id!r}: choose one of {', '.join(FIGURE_IDS)}")


def figure_of(claim_id: str) -> str | None:
    """Return the figure that shows a claim, if one does.

    >>> figure_of("H1-theorem-5"), figure_of("H1-lemma-19")
    ('H1-where-it-ends', None)
    """
    return next((figure for paper in PAPERS if (figure := paper.figure_of(claim_id)) is not None), None)


def claim_names() -> list[str]:
    """Return every name that can be asked for: each paper, followed by the ids of its claims.

    >>> claim_names()[:2]
    ['H1', 'H1-proposition-3-ffnn']
    """
    return [name for paper in PAPERS for name in (paper.name, *paper.claim_ids)]


def short_claim_names() -> list[str]:
    """Return the ids without their paper, where no other paper has the same."""
    counts = Counter(map(_short, CLAIM_IDS))
    return [name for name, count in counts.items() if count == 1]


def all_claims() -> list[Claim]:
    """Return every claim, in the order of the report."""
    return named_claims(paper.name for paper in PAPERS)


def named_claims(names: Iterable[str]) -> list[Claim]:
    """Return the claims that names stand for, or every claim when there are none.

    A name is a paper's, which stands for all its claims, an id, an id without its paper, or the beginning or another
    part of an id, as long as only one claim fits.
    """
    chosen = [claim for name in names for claim_id in claim_ids_called(name) for claim in _claims_of(claim_id)]
    return chosen or all_claims()


def claim_ids_called(name: str) -> tuple[str, ...]:
    """Return the ids that a name stands for; if none or several fit, the error lists what may have been meant."""
    for paper in PAPERS:
        if paper.name.lower() == name.lower():
            return paper.claim_ids
    # No number is cut: Proposition 2 is not the beginning of Proposition 21.
    edge = r"(?!(?<=\d)\d)"
    asked = re.compile(f"{edge}{re.escape(name)}{edge}", re.IGNORECASE)
    for fits in (asked.fullmatch, asked.match, asked.search):
        found = tuple(one for one in CLAIM_IDS if fits(one) or fits(_short(one)))
        if len(found) == 1:
            return found
        if found:
            raise InvalidInput(f"{name!r} may be {_listed(found)}: say which")
    known = {spelling.lower(): one for one in CLAIM_IDS for spelling in (_short(one), one)}
    nearest = tuple(dict.fromkeys(known[one] for one in get_close_matches(name.lower(), known, n=5, cutoff=0)))
    raise InvalidInput(f"unknown claim {name!r}: the nearest are {', '.join(nearest)}")


def source_of(claim_id: str) -> str:
    """Return the file that has a claim's statement and check, below the package."""
    folder, file = _place_of(claim_id)
    return f"papers/{folder}/claims/{file}.py"


def reproducible_names() -> list[str]:
    """Return every name that `figures_and_claims` knows: each paper, followed by the ids of its figures and claims.

    >>> reproducible_names()[:3]
    ['H1', 'heads-lock-on', 'H1-figure-1']
    """
    return [name for paper in PAPERS for name in dict.fromkeys((paper.name, *paper.figures, *paper.claim_ids))]


def figures_and_claims(names: Collection[str] = ()) -> tuple[list[str], list[Claim]]:
    """Return what is to be reproduced: figures with the claims that refer to them, claims with their figures.

    The name of a paper stands for all of both; without a name it is everything.
    """
    unknown = next((name for name in names if name not in reproducible_names()), None)
    if unknown is not None:
        known = ", ".join((*(paper.name for paper in PAPERS), *FIGURE_IDS))
        raise InvalidInput(f"unknown figure or claim {unknown!r}: choose from {known}, or a claim such as H1-lemma-19")
    if not names:
        return list(FIGURE_IDS), all_claims()
    of_papers = {figure for paper in PAPERS if paper.name in names for figure in paper.figures}
    # Only the files of these are loaded.
    wanted = [one for one in CLAIM_IDS if {one, paper_of(one)} & set(names) or figure_of(one) in of_papers.union(names)]
    claims = named_claims(wanted) if wanted else []
    of_claims = {claim.figure for claim in claims if claim.reads_figure or claim.id in names}
    figures = [name for name in FIGURE_IDS if name in names or name in of_papers | of_claims]
    return figures, claims


def _short(claim_id: str) -> str:
    return claim_id.partition("-")[2]


def _listed(ids: tuple[str, ...]) -> str:
    """Return ids as a sentence has them, the first of many."""
    left_out = len(ids) - _MOST_NAMED
    return f"{', '.join(ids[:_MOST_NAMED])} or one of {left_out} more" if left_out > 0 else " or ".join(ids)


def _place_of(claim_id: str) -> tuple[str, str]:
    """Return the folder and the file of a claim."""
    return next((paper.folder, file) for paper in PAPERS for file, ids in paper.claims.items() if claim_id in ids)


def _claims_of(claim_id: str) -> list[Claim]:
    folder, file = _place_of(claim_id)
    return [claim for claim in _module(folder, "claims", file).CLAIMS if claim.id == claim_id]


def _module(*parts: str):  # type: ignore[no-untyped-def]  # a module is what its file makes it
    return import_module(".".join(("parityscope.papers", *parts)))
