"""Which stored rows are stale: today's code would not find them, and would compute them anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from parityscope.core.errors import MissingExtra
from parityscope.papers import paper_of
from parityscope.papers.claim import ClaimCheck, Context
from parityscope.papers.figure import SCALES
from parityscope.papers.registry import FIGURE_IDS, PAPERS, all_claims, load_figure, named_claims
from parityscope.papers.results import claim_check
from parityscope.records import Config, Store, StoredRow
from parityscope.runs import DecoderTraining, Training


def is_stale(row: StoredRow, store: Store) -> bool | None:
    """Say whether a row's config has another address today; none where that is not known, as of the configs of a spec.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> store, config = Store(Path(tempfile.mkdtemp())), WorkedExample()
    >>> store.add(config, config.run(), seconds=0.1)
    >>> store.add_rows([StoredRow("H1-figure-1", {"temperature": 0.5}, {}, code="5d41"), StoredRow("my-sweep", {}, {})])
    >>> [is_stale(row, store) for row in sorted(store.rows(), key=lambda row: -row.finished)]
    [False, True, None]
    """
    kind = config_class(row.experiment)
    if kind is None:
        return None
    try:
        config = kind.model_validate(row.config)
        if isinstance(config, ClaimCheck):  # the rows that it reads have addresses of their own
            (claim,) = named_claims([config.claim])
            config = claim_check(claim, config.scale, store)
    except ValueError:  # a config of today has other fields, or the claim is gone
        return True
    if config.key != row.key:
        return True
    somebodys = isinstance(config, Training) and not all(part.loaded for _, part in config.recipe.own_parts())
    return None if somebodys else False  # of parts that are not at hand it is not known


@cache
def config_class(rows: str) -> type[Config] | None:
    """Return the class of the project's own configs whose rows are stored under a name.

    >>> config_class("training").__name__, config_class("H1-figure-1").__name__, config_class("my-sweep")
    ('Training', 'WorkedExample', None)
    """
    shared: tuple[type[Config], ...] = (Training, DecoderTraining, ClaimCheck)
    found = next((kind for kind in shared if rows == kind.ROWS), None)
    # Our names begin as those of figures and papers do; for any other the figures need not be loaded.
    if found is not None or paper_of(rows) not in {paper_of(name) for name in (*FIGURE_IDS, *(p.name for p in PAPERS))}:
        return found
    return next((kind for kind in _classes_of_papers(first=rows) if rows == kind.ROWS), None)


def _classes_of_papers(first: str) -> Iterator[type[Config]]:
    """Yield the classes of configs that figures and claims ask for, beginning with the figure that is named so."""
    for name in sorted(FIGURE_IDS, key=lambda name: name != first):
        try:
            figure = load_figure(name)
        except MissingExtra:
            continue
        yield from {type(config.row_config()) for scale in SCALES for config in figure.CONFIGS[scale]}
        if hasattr(figure, "STORED"):
            yield figure.STORED
    for claim in all_claims():
        yield from {type(config) for config in claim.needs(Context("smoke"))}
