"""Every statement of the papers as an executable check; this is their list, in the order of the report."""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib import import_module

from parityscope.claims.contract import Check, CheckedClaim, Claim, Context
from parityscope.errors import InvalidInput, MissingExtra, naming_the_extra
from parityscope.threads import single_threaded

# Each file holds a tuple CLAIMS.
_FILES = (
    "h1_expressing",
    "h1_training",
    "h1_fixed_attention",
    "h1_hard_attention",
    "h1_constants",
    "h1_gradients",
    "h1_gradient_bounds",
    "h2_one_step",
    "h2_substitutes",
    "p_bounded",
    "p_learning",
    "w_language_models",
    "w_theorems",
    "w_figures",
    "w_concentration",
    "w_first_step",
    "w_later_steps",
)


def all_claims() -> list[Claim]:
    """Return every claim, in the order of the report.

    >>> len({claim.id for claim in all_claims()}) == len(all_claims()) > 0
    True
    """
    return [claim for name in _FILES for claim in import_module(f"parityscope.claims.{name}").CLAIMS]


def named_claims(ids: Iterable[str]) -> list[Claim]:
    """Return the claims called `ids`, or all of a paper when an id is only its name; everything when there are none.

    >>> [claim.id for claim in named_claims(["H1-lemma-19", "H2"])][:3]
    ['H1-lemma-19', 'H2-one-step', 'H2-parameters']
    """
    claims = all_claims()
    chosen: list[Claim] = []
    for name in ids:
        found = [claim for claim in claims if name in (claim.id, claim.paper)]
        if not found:
            raise InvalidInput(f"unknown claim {name!r}: choose from {', '.join(claim.id for claim in claims)}")
        chosen += found
    return chosen or claims


def check(claim: Claim, context: Context) -> CheckedClaim:
    """Compute the verdict of one claim.

    >>> (lemma,) = named_claims(["W-lemma-6"])
    >>> check(lemma, Context("smoke")).outcome.number
    'conditional mean exactly 0 in 162 events'
    """
    started = time.perf_counter()
    try:
        with single_threaded(), naming_the_extra():
            outcome = claim.check(context)
    except MissingExtra as missing:
        outcome = Check("not testable here", "an extra is missing", {}, f"{missing}.")
    return CheckedClaim(claim, outcome, time.perf_counter() - started)
