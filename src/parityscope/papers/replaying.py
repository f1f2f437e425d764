"""Counterexamples computed again by a second route: stored ones, or those that a check finds now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from parityscope.core.errors import naming_the_extra
from parityscope.core.threads import single_threaded
from parityscope.papers.claim import Claim, ClaimNumbers, Context, Replay, check
from parityscope.papers.figure import SCALES, Scale
from parityscope.papers.rendering import counterexample_of
from parityscope.papers.results import stored_claims
from parityscope.records import Store


@dataclass(frozen=True)
class Replayed:
    """What a counterexample of a claim came to when it was computed again; `missing` says why there is none.

    >>> again = Replay("gradient", 1e-12, 3e-12, "differences", confirms=True)
    >>> Replayed("H1-lemma-8", "demo", stored=True, replays=(again,)).to_json()["replays"][0]["route"]
    'differences'
    """

    id: str
    scale: Scale
    stored: bool  # or else found by a check just now
    replays: Sequence[Replay] = ()
    missing: str | None = None

    @property
    def confirms(self) -> bool:
        """Whether every second number still refutes the statement."""
        return all(replay.confirms for replay in self.replays)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "replays": [replay._asdict() for replay in self.replays]}


def replay(claim: Claim, found: ClaimNumbers | None, scale: Scale, context: Context) -> Replayed:
    """Compute the counterexample of a verdict that was `found` again, or of the one that the claim gets now.

    >>> from parityscope.papers.registry import named_claims
    >>> (lemma,) = named_claims(["H1-lemma-14-derivative"])
    >>> [again] = replay(lemma, None, "smoke", Context("smoke")).replays
    >>> again.confirms, round(again.stored - again.again, 6)
    (True, 0.0)
    """
    if claim.replay is None:
        return Replayed(
            claim.id, scale, found is not None, missing=f"{claim.id} has no counterexample that can be replayed"
        )
    checked = check(claim, context) if found is None else found
    point = counterexample_of(checked)
    if point is None:
        reason = f"{claim.id} has no counterexample to replay: at scale {scale} it is {checked.verdict!r}"
        return Replayed(claim.id, scale, found is not None, missing=reason)
    with single_threaded(), naming_the_extra():
        return Replayed(claim.id, scale, found is not None, tuple(claim.replay(point)))


def stored_verdicts(scale: Scale, store: Store) -> dict[str, tuple[Scale, ClaimNumbers]]:
    """Return the verdicts in a store by claim: of the given scale, or else of the largest; those refuted come first.

    >>> import tempfile
    >>> from pathlib import Path
    >>> stored_verdicts("demo", Store(Path(tempfile.mkdtemp())))
    {}
    """
    found: dict[str, tuple[Scale, ClaimNumbers]] = {}
    for one in (scale, *(other for other in reversed(SCALES) if other != scale)):
        for claim in stored_claims(one, store):
            before = found.get(claim.id)
            if before is None or (counterexample_of(before[1]) is None and counterexample_of(claim) is not None):
                found[claim.id] = (one, claim)
    return found
