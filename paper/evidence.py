"""Where the texts' numbers come from: stored rows, the claims among them, stored benchmarks. Nothing is computed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from parityscope.papers.claim import ClaimNumbers
from parityscope.papers.figure import Scale, own_size_of
from parityscope.papers.registry import CLAIM_IDS, load_figure
from parityscope.papers.results import stored_claims, stored_rows
from parityscope.records import Row, Store

PROJECT = Path(__file__).parents[1]
BENCHMARKS = PROJECT / "benchmarks" / "results.json"
CERTIFIED = PROJECT / "paper" / "certified.json"


class Named(NamedTuple):
    """Named numbers, and named tables with their cells."""

    numbers: Mapping[str, str]
    tables: Mapping[str, Sequence[Sequence[str]]] = {}


class NoEvidence(Exception):
    """A number is asked for that no row, claim or benchmark supports; the message says which command supplies it."""


class Evidence:
    """The rows of a reproduction in `folder`, beside the benchmarks that are stored with the project."""

    def __init__(self, folder: Path, scale: Scale = "reference") -> None:
        if not (folder / "store" / "store.sqlite").exists():
            raise NoEvidence(f"{folder} holds no rows: run `make reference` first")
        self.store, self.scale = Store(folder / "store"), scale
        self._rows: dict[str, list[Row[Any, Any]]] = {}

    def rows(self, figure_id: str) -> list[Row[Any, Any]]:
        """Return every row that a figure asks for, those of the paper's own size apart; a missing one is an error."""
        if figure_id not in self._rows:
            figure = load_figure(figure_id)
            own, wanted = own_size_of(figure), len(figure.CONFIGS[self.scale])
            found = [row for row in stored_rows(figure, self.scale, self.store) if row.config not in own]
            if not found or len(found) < wanted:
                raise NoEvidence(f"{figure_id} has {len(found)} of {wanted} rows made by this code: `make reference`")
            self._rows[figure_id] = found
        return self._rows[figure_id]

    @cached_property
    def claims(self) -> dict[str, ClaimNumbers]:
        """Every claim that was checked with this code, with its verdict, by id."""
        return {claim.id: claim for claim in stored_claims(self.scale, self.store)}

    def all_claims(self) -> list[ClaimNumbers]:
        """Return every claim that there is; one without a stored verdict is an error."""
        if list(self.claims) != list(CLAIM_IDS):
            raise NoEvidence(
                f"{len(self.claims)} of {len(CLAIM_IDS)} claims were checked by this code: `make reference`"
            )
        return list(self.claims.values())

    def claim(self, claim_id: str) -> ClaimNumbers:
        """Return one claim with its verdict."""
        if claim_id not in self.claims:
            raise NoEvidence(f"{claim_id} was not checked by this code: `make reference`")
        return self.claims[claim_id]

    def measured(self, claim_id: str, quantity: str) -> str:
        """Return what a clause of a claim measured, by the quantity it names."""
        found = [clause.measured for clause in self.claim(claim_id).clauses if clause.quantity == quantity]
        if len(found) != 1:
            raise NoEvidence(f"{claim_id} has {len(found)} clauses about {quantity!r}")
        return found[0]

    def measurements(self, question: str) -> list[dict[str, Any]]:
        """Return every stored measurement of a question of `parityscope bench`."""
        return [one for one in json.loads(BENCHMARKS.read_text())["measurements"] if one["question"] == question]

    def benchmark(self, question: str, name: str) -> dict[str, Any]:
        """Return one stored measurement."""
        for measurement in self.measurements(question):
            if measurement["name"] == name:
                return measurement
        raise NoEvidence(f"{BENCHMARKS.name} has no measurement {question}: {name!r}: `make bench`")

    def certified(self) -> dict[str, Any]:
        """Return what the lattice proves of a value and of its gradient."""
        if not CERTIFIED.is_file():
            raise NoEvidence(f"there is no {CERTIFIED.name}: `python paper/certified.py`")
        return dict(json.loads(CERTIFIED.read_text()))
