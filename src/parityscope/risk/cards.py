"""What each risk engine is called, covers, costs and promises: read by `--engine`, help texts, errors and the docs.

It loads no library, so that help is quick. `parityscope.risk.population` holds the engines themselves.
"""

from __future__ import annotations

from typing import NamedTuple

AUTO = "auto"


class EngineCard(NamedTuple):
    """One engine in words.

    >>> CARDS["split"].summary
    'sorts the sums of half the bits: about 2^(n/2) steps'
    """

    name: str
    summary: str  # one line for help texts
    covers: str
    cost: str
    error: str


_ALL = (
    EngineCard(
        "enumerate",
        "visits all 2^n inputs",
        "every model, every loss and any callable of the margin, n ≤ 26",
        "2^n",
        "rounding",
    ),
    EngineCard(
        "split",
        "sorts the sums of half the bits: about 2^(n/2) steps",
        "frozen readouts: piecewise linear as they are, smooth ones by fitted pieces; ReLU readouts that train, with"
        " hinge losses; biased bits, noise",
        "about 2^(n/2), up to 8 GB",
        "rounding; with fitted pieces also theirs",
    ),
    EngineCard(
        "grouped",
        "counts ones among equal weights",
        "the same pieces, when weights take few distinct values; fair bits",
        "count vectors, at most 2^22",
        "rounding; with fitted pieces also theirs",
    ),
    EngineCard(
        "spectral",
        "sums a Fourier series: any attention from n of about 60 on",
        "the same pieces, from about 60 positions that matter, or few; fair bits",
        "n × blocks of frequencies: 0.1 s for the value, 10 s for a gradient to 1e-7",
        "proved, for value and gradient; with fitted pieces also theirs, for the value",
    ),
    EngineCard(
        "lattice",
        "rounds light weights to a lattice: any attention, biased bits",
        "the same pieces, any weights, best below n of about 60; biased bits, noise",
        "positions × cells, at most about 10 s a run",
        "proved, for value and gradient; with fitted pieces also theirs",
    ),
    EngineCard(
        "closed-form",
        "a product over positions, for sums of cosines",
        "the cosine readout and bounded sums of cosines; hinge, squared hinge, squared, (mean hinge)², log-correlation;"
        " biased bits, noise",
        "n",
        "rounding",
    ),
    EngineCard(
        "pair",
        "H2's readout on two hidden bits, for any n",
        "the triangle with k = 2, weights that add up to 2; hinge and log-correlation; fair bits, noise",
        "n",
        "truncation, proved; it may exceed the tolerance",
    ),
)
CARDS = {card.name: card for card in _ALL}
ENGINE_NAMES = (AUTO, *CARDS)


def engine_help() -> str:
    """Return the list of engines for a help text."""
    return "; ".join(["auto: the cheapest that covers the job", *(f"{card.name}: {card.summary}" for card in _ALL)])


def engine_table() -> str:
    """Return the table of the docs, in Markdown."""
    rows = [f"| `{card.name}` | {card.covers} | {card.cost} | {card.error} |" for card in _ALL]
    return "\n".join(["| engine | covers | cost | error |", "|---|---|---|---|", *rows]) + "\n"
