"""Every statement of the papers as an executable check; this is their list, in the order of the report.

The list can be read without the files: a name is completed, or refused, before torch is imported.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib import import_module

from parityscope.claims.contract import Check, CheckedClaim, Claim, Context, paper_of
from parityscope.errors import InvalidInput, MissingExtra, naming_the_extra

# Each file holds a tuple CLAIMS with claims of these ids, in this order.
_FILES: dict[str, tuple[str, ...]] = {
    "h1_expressing": ("H1-proposition-3-ffnn", "H1-proposition-3-transformer", "H1-proposition-4"),
    "h1_training": ("H1-theorem-5", "H1-remark-9", "H1-remark-10", "H1-figure-2"),
    "h1_fixed_attention": ("H1-theorem-11", "H1-remark-12"),
    "h1_hard_attention": ("H1-remark-13", "H1-corollary-20", "H1-proposition-21"),
    "h1_constants": ("H1-lemma-7", "H1-lemma-14", "H1-lemma-14-derivative", "H1-lemma-15", "H1-lemma-16"),
    "h1_gradients": ("H1-lemma-8", "H1-lemma-17"),
    "h1_gradient_bounds": ("H1-lemma-18", "H1-lemma-19"),
    "h2_one_step": ("H2-one-step", "H2-parameters", "H2-every-input", "H2-initial-variance"),
    "h2_substitutes": ("H2-softmax", "H2-temperature", "H2-samples", "H2-ffnn"),
    "p_bounded": ("P-closed-form", "P-worst-loss", "P-concavity", "P-gradient-signs", "P-one-head"),
    "p_learning": (
        "P-one-step",
        "P-few-steps",
        "P-squared-hinge",
        "P-theorem-5-circle",
        "P-samples",
        "P-noise-and-bias",
    ),
    "w_language_models": ("W-figure-6", "W-figure-6-fine-tuning", "W-figure-7"),
    "w_theorems": ("W-theorem-1", "W-theorem-2", "W-theorem-3"),
    "w_figures": tuple(f"W-figure-{number}" for number in (1, 2, 3, 4, 5, 8, 9, 10, 11)),
    "w_concentration": tuple(f"W-lemma-{number}" for number in (1, 2, 3, 4, 5, 28, 29, 30, 31, 32)),
    "w_first_step": tuple(f"W-lemma-{number}" for number in range(6, 18)),
    "w_later_steps": tuple(f"W-lemma-{number}" for number in range(18, 28)),
}
CLAIM_IDS = tuple(name for names in _FILES.values() for name in names)


def claim_names() -> list[str]:
    """Return every name that can be asked for: each paper, followed by the ids of its claims.

    >>> claim_names()[:2]
    ['H1', 'H1-proposition-3-ffnn']
    """
    return list(dict.fromkeys(name for claim_id in CLAIM_IDS for name in (paper_of(claim_id), claim_id)))


def all_claims() -> list[Claim]:
    """Return every claim, in the order of the report.

    >>> [claim.id for claim in all_claims()] == list(CLAIM_IDS)
    True
    """
    return [claim for name in _FILES for claim in _claims_in(name)]


def named_claims(ids: Iterable[str]) -> list[Claim]:
    """Return the claims called `ids`, or all of a paper when an id is only its name; everything when there are none.

    >>> [claim.id for claim in named_claims(["H1-lemma-19", "H2"])][:3]
    ['H1-lemma-19', 'H2-one-step', 'H2-parameters']
    """
    chosen: list[Claim] = []
    for name in ids:
        files = [file for file, members in _FILES.items() if any(name in (one, paper_of(one)) for one in members)]
        if not files:
            raise InvalidInput(f"unknown claim {name!r}: choose from {', '.join(CLAIM_IDS)}")
        chosen += [claim for file in files for claim in _claims_in(file) if name in (claim.id, claim.paper)]
    return chosen or all_claims()


def _claims_in(file: str) -> tuple[Claim, ...]:
    claims: tuple[Claim, ...] = import_module(f"parityscope.claims.{file}").CLAIMS
    return claims


def check(claim: Claim, context: Context) -> CheckedClaim:
    """Compute the verdict of one claim.

    >>> (lemma,) = named_claims(["W-lemma-6"])
    >>> check(lemma, Context("smoke")).outcome.number
    'conditional mean exactly 0 in 162 events'
    """
    from parityscope.threads import single_threaded  # here, not above: names are listed without torch

    started = time.perf_counter()
    try:
        with single_threaded(), naming_the_extra():
            outcome = claim.check(context)
    except MissingExtra as missing:
        outcome = Check("not testable here", "an extra is missing", {}, f"{missing}.")
    return CheckedClaim(claim, outcome, time.perf_counter() - started)
