"""What a store has of the figures and the claims: their rows, their verdicts, and what is still to be run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from parityscope.claims import all_claims, check, named_claims
from parityscope.claims.contract import Claim, Context
from parityscope.experiments import load_experiment
from parityscope.experiments.contract import Config, Experiment, Result, Row, Scale
from parityscope.store import Store
from parityscope.sweep import Work
from parityscope.sweep.spec import Runnable, spec_module

CLAIMS_ID = "claims"


def work_of(experiment: Experiment, scale: Scale) -> Work:
    """Return what an experiment needs at a scale; figures that draw shared rows need those.

    >>> work = work_of(load_experiment("W-figure-1"), "smoke")
    >>> work.experiment.ID, len(work.configs)
    ('W-training', 4)
    """
    runner, configs = cast(Runnable, experiment), tuple(experiment.CONFIGS[scale])
    source = getattr(experiment, "ROWS_FROM", None)
    if source is None:
        return Work(runner, configs)
    return Work(cast(Runnable, load_experiment(source)), tuple(row_config(experiment, config) for config in configs))


def row_config(experiment: Experiment, config: Config) -> Config:
    """Return the config under which the row of a figure's config is stored.

    >>> figure = load_experiment("W-figure-1")
    >>> sorted(row_config(figure, figure.CONFIGS["smoke"][0]).model_dump())
    ['training']
    """
    shared = getattr(experiment, "row_config", None)
    return config if shared is None else cast(Config, shared(config))


def stored_rows(experiment: Experiment, scale: Scale, store: Store) -> list[Row]:
    """Return the rows of an experiment in the order of its configs.

    An experiment without configs draws what another command stored under its name.

    >>> import tempfile
    >>> store, figure = Store(Path(tempfile.mkdtemp())), load_experiment("H1-figure-1")
    >>> (config,) = figure.CONFIGS["smoke"]
    >>> store.add(figure.ID, config, {"score": 2.0}, {}, seconds=0.1)
    >>> [row.numbers for row in stored_rows(figure, "smoke", store)]
    [{'score': 2.0}]
    """
    if not experiment.CONFIGS[scale]:
        return store.rows(experiment.ID)
    source = getattr(experiment, "ROWS_FROM", experiment.ID)
    found = []
    for config in experiment.CONFIGS[scale]:
        row = store.row(source, row_config(experiment, config))
        if row is not None:
            found.append(replace(row, experiment=experiment.ID, config=config.model_dump(mode="json")))
    return found


class _CheckedAt(Config):
    """The address of a checked claim in the store."""

    claim: str
    scale: Scale


class _CheckedWith(_CheckedAt):
    """The same for a claim about rows that another command stores: with every new row it is checked again."""

    rows: int


def claim_address(claim: Claim, scale: Scale, store: Store) -> Config:
    """Return the config under which the verdict of a claim is stored.

    >>> import tempfile
    >>> (claim,) = named_claims(["H1-lemma-19"])
    >>> claim_address(claim, "smoke", Store(Path(tempfile.mkdtemp()))).model_dump()
    {'claim': 'H1-lemma-19', 'scale': 'smoke'}
    """
    experiment = None if claim.experiment is None else load_experiment(claim.experiment)
    if experiment is None or experiment.CONFIGS[scale]:
        return _CheckedAt(claim=claim.id, scale=scale)
    return _CheckedWith(claim=claim.id, scale=scale, rows=len(store.rows(experiment.ID)))


def stored_claims(scale: Scale, store: Store) -> list[dict[str, Any]]:
    """Return what `claims --json` would print of the claims checked in this store, in the order of the report.

    >>> import tempfile
    >>> store, (claim,) = Store(Path(tempfile.mkdtemp())), named_claims(["H1-lemma-19"])
    >>> store.add(CLAIMS_ID, claim_address(claim, "smoke", store), {"verdict": "fails"}, {}, seconds=0.1)
    >>> stored_claims("smoke", store)
    [{'verdict': 'fails'}]
    """
    found = [store.row(CLAIMS_ID, claim_address(claim, scale, store)) for claim in all_claims()]
    return [row.numbers for row in found if row is not None]


def claims_context(scale: Scale, out: Path) -> Context:
    """Return what checks may use: the scale, and the rows of `out` if there are any.

    >>> claims_context("smoke", Path("nowhere")).rows("H1-figure-1")
    ()
    """
    return context_of(scale, Store(out / "store")) if (out / "store").is_dir() else Context(scale)


def context_of(scale: Scale, store: Store) -> Context:
    """Return what checks may use where this store is at hand.

    >>> import tempfile
    >>> context_of("smoke", Store(Path(tempfile.mkdtemp()))).rows("H1-figure-1")
    []
    """
    return Context(scale, lambda name: stored_rows(load_experiment(name), scale, store))


# Checks that read no rows are a sweep like any other; this is its spec.
_CHECKS = f"""
from parityscope.results import check_without_rows as run
ID = {CLAIMS_ID!r}
"""


def checks_of(claims: Sequence[Claim], scale: Scale, store: Store) -> Work:
    """Return the checks that need no rows as work, the longest first, so that no worker ends with it.

    >>> import tempfile
    >>> claims = named_claims(["H1-lemma-19", "H1-theorem-5", "W-figure-7"])
    >>> [config.claim for config in checks_of(claims, "smoke", Store(Path(tempfile.mkdtemp()))).configs]
    ['H1-theorem-5', 'H1-lemma-19']
    """
    alone = sorted((claim for claim in claims if not claim.reads_rows), key=lambda claim: -claim.seconds)
    addresses = tuple(claim_address(claim, scale, store) for claim in alone)
    return Work(cast(Runnable, spec_module(_CHECKS, CLAIMS_ID)), addresses, _CHECKS)


def check_without_rows(address: _CheckedAt) -> Result:
    """Check a claim where no store is at hand.

    >>> check_without_rows(_CheckedAt(claim="H1-lemma-19", scale="smoke")).numbers["verdict"]
    'fails'
    """
    (claim,) = named_claims([address.claim])
    return Result(check(claim, Context(address.scale, _no_rows_at_hand)).to_json())


def _no_rows_at_hand(experiment_id: str) -> Sequence[Row]:
    raise AssertionError(f"a check asked for the rows of {experiment_id}, but its claim does not say reads_rows")
