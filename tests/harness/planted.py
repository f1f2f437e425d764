"""Planted worlds: every claim must say "fails" where its statement is false and "holds" where it is true."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from parityscope.papers.claim import Context, check
from parityscope.papers.registry import PAPERS, named_claims
from parityscope.records import Config, Numbers, Result, Row


@dataclass(frozen=True)
class World:
    """A world in which a statement is plainly false, or plainly true.

    `patches` replace what the check computes with, by dotted path; `context` replaces the rows it reads.
    """

    what: str  # one phrase for the table: "Lemma 15's constant divided by 10⁴"
    patches: Mapping[str, Any] = field(default_factory=dict)
    context: Context = field(default_factory=lambda: Context("smoke"))


@dataclass(frozen=True)
class Planted:
    """The two worlds of a claim: one must refute it, one must confirm it."""

    false: World
    true: World


def all_planted() -> dict[str, Planted]:
    """Return the worlds of every claim, by its id."""
    modules = (importlib.import_module(f"papers.{paper.folder}.planted") for paper in PAPERS)
    return {claim_id: worlds for module in modules for claim_id, worlds in module.PLANTED.items()}


def verdict_in(claim_id: str, world: World) -> str:
    """Return the verdict on a claim in a planted world; of a proved claim, what its numbers say."""
    (claim,) = named_claims([claim_id])
    with pytest.MonkeyPatch.context() as patch:
        for path, value in world.patches.items():
            patch.setattr(path, value)
        found = check(claim, world.context).verdict
    return "holds" if found == "proved" else found


def rows_saying(numbers: Callable[[Config], Numbers]) -> Context:
    """Return a context in which the row of every config has the given numbers."""
    return Context("smoke", row=lambda config: Row.of(config, Result(numbers(config)), 0.0))
