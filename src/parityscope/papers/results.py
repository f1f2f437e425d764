"""What a store has of figures and claims: rows and verdicts, what is still to be run, and which rows are stale."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from parityscope.core.errors import MissingExtra
from parityscope.papers import paper_of
from parityscope.papers.claim import Claim, ClaimCheck, ClaimNumbers, Context, check, computed
from parityscope.papers.figure import SCALES, PaperFigure, Scale, own_size_of
from parityscope.papers.registry import CLAIM_IDS, FIGURE_IDS, PAPERS, all_claims, load_figure, named_claims
from parityscope.records import Config, Outcome, Result, Row, Store, StoredRow
from parityscope.runs import DecoderTraining, Training, Work


def work_of(figure: PaperFigure, scale: Scale) -> Work:
    """Return what a figure needs at a scale."""
    return Work(figure.ID, tuple(config.row_config() for config in figure.CONFIGS[scale]))


def stored_rows(figure: PaperFigure, scale: Scale, store: Store) -> list[Row[Any, Any]]:
    """Return the rows of a figure in the order of its configs, and after them those of the paper's own size.

    A figure without configs draws what another command stored.
    """
    if not figure.CONFIGS[scale]:
        stored: type[Config] | None = getattr(figure, "STORED", None)
        return [] if stored is None else store.rows_of(stored)
    configs = [*figure.CONFIGS[scale], *own_size_of(figure)]
    found = store.row_of_each([config.row_config() for config in configs])
    return [replace(row, config=config) for config, row in zip(configs, found, strict=True) if row is not None]


def claim_check(claim: Claim, scale: Scale, store: Store) -> ClaimCheck:
    """Return the config under which the verdict of a claim is stored."""
    return ClaimCheck(claim=claim.id, scale=scale, rows=tuple(_keys_read(claim, scale, store)))


def _keys_read(claim: Claim, scale: Scale, store: Store) -> Iterable[str]:
    """Yield the addresses of the rows a claim reads: of its figure, as far as they are stored, and of its own needs."""
    if claim.reads_figure and claim.figure is not None:
        yield from (row.config.row_config().key for row in stored_rows(load_figure(claim.figure), scale, store))
    yield from (config.key for config in claim.needs(Context(scale)))


def stored_claims(scale: Scale, store: Store) -> list[ClaimNumbers]:
    """Return the claims checked in this store with this code, in the order of the report."""
    if not store.keys(ClaimCheck.ROWS):
        return []
    # The code of a claim takes a moment to hash: only of those that were ever checked.
    configs = [ClaimCheck.model_validate(row.config) for row in store.rows(ClaimCheck.ROWS)]
    checked = {config.claim for config in configs if config.scale == scale}
    known = [name for name in CLAIM_IDS if name in checked]
    checks = [claim_check(claim, scale, store) for claim in (named_claims(known) if known else ())]
    return [row.numbers for row in store.row_of_each(checks) if row is not None]


def stored_verdicts(scale: Scale, store: Store) -> dict[str, tuple[Scale, ClaimNumbers]]:
    """Return the verdicts in a store by claim: of the given scale, or else of the largest; those refuted come first."""
    found: dict[str, tuple[Scale, ClaimNumbers]] = {}

    def refutes(claim: ClaimNumbers) -> bool:
        return "counterexample" in claim.evidence

    for one in (scale, *(other for other in reversed(SCALES) if other != scale)):
        for claim in stored_claims(one, store):
            before = found.get(claim.id)
            if before is None or (not refutes(before[1]) and refutes(claim)):
                found[claim.id] = (one, claim)
    return found


def claims_context(scale: Scale, out: Path) -> Context:
    """Return what checks may use: the scale, and the rows of `out` if there are any."""
    if (out / "store").is_dir():
        return context_of(scale, Store(out / "store"))
    computed_here: dict[str, Row[Any, Any]] = {}  # several claims may ask for one training

    def row(config: Config) -> Row[Any, Any]:
        if config.key not in computed_here:
            computed_here[config.key] = computed(config)
        return computed_here[config.key]

    return Context(scale, row=row)


def context_of(scale: Scale, store: Store) -> Context:
    """Return what checks may use where this store is at hand; rows that it lacks are computed and stored."""

    def row(config: Config) -> Row[Any, Any]:
        found = store.row(config)
        if found is None:
            work = time.process_time()
            found = computed(config)
            spent = time.process_time() - work
            store.add(config, Result(found.numbers, found.arrays), seconds=found.seconds, processor=spent)
        return found

    return Context(scale, lambda name: stored_rows(load_figure(name), scale, store), row)


def checks_of(claims: Sequence[Claim], scale: Scale) -> Work:
    """Return the checks that need no rows as work, the longest first, so that no worker ends with it.

    >>> from parityscope.papers.registry import named_claims
    >>> claims = named_claims(["H1-lemma-19", "H1-lemma-14", "W-figure-7"])
    >>> [config.claim for config in checks_of(claims, "smoke").configs]
    ['H1-lemma-14', 'H1-lemma-19']
    """
    alone = sorted((claim for claim in claims if not claim.reads_rows), key=lambda claim: -claim.seconds)
    return Work("claims", tuple(ClaimCheck(claim=claim.id, scale=scale) for claim in alone))


def needs_of(claims: Sequence[Claim], scale: Scale) -> Work:
    """Return the configs whose rows the claims ask for."""
    return Work("trainings of claims", tuple(config for claim in claims for config in claim.needs(Context(scale))))


def check_with_rows(claim: Claim, scale: Scale, store: Store) -> None:
    """Check a claim that reads rows, here, and store its verdict, unless that is there already."""
    config = claim_check(claim, scale, store)
    if config not in store:
        work = time.process_time()
        found = check(claim, context_of(scale, store))
        store.add_all([(config, Outcome.of(Result(found), found.seconds, time.process_time() - work))])


def is_stale(row: StoredRow, store: Store) -> bool | None:
    """Say whether a row's config has another address today; none where that is unknown, as for a spec's configs."""
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
    own = getattr(config, "own", None)  # somebody's method in the comparison, without which there is no address
    if own is not None and not own.loaded:
        return None
    if config.key != row.key:
        return True
    somebodys = isinstance(config, Training) and not all(part.loaded for _, part in config.recipe.own_parts())
    return None if somebodys else False  # of parts that are not at hand it is not known


@cache
def config_class(rows: str) -> type[Config] | None:
    """Return the class of the project's own configs whose rows are stored under a name."""
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
