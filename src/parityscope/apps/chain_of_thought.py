"""One hidden parity, learned twice by the same small decoder: with its steps written down, and at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from pydantic import ValidationError
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.papers.w.settings import laptop
from parityscope.problems.sequences import ParitySequences
from parityscope.training.decoders import DecoderRun, DecoderSettings, train_decoder

_DECIMALS = 4
_HELD_OUT = 1024  # inputs at most; never more than half of all there are


@dataclass(frozen=True)
class ChainPair:
    """Two trainings that differ in the chain alone: secret, decoder, rate, batch and most steps are the same.

    >>> pair = train_pair(settings_of(6, 2, width=16, batch=32, steps=2))
    >>> pair.chain.task.secret == pair.at_once.task.secret, pair.chain.task.length, pair.at_once.task.length
    (True, 9, 8)
    """

    chain: DecoderRun
    at_once: DecoderRun

    def to_json(self) -> dict[str, Any]:
        """Return what was measured of both, without weights."""
        both = {name: _measured(run) for name, run in (("chain", self.chain), ("at_once", self.at_once))}
        return {"seed": self.chain.config.seed, "secret": list(self.chain.task.secret), **both}


def settings_of(
    n: int, k: int | None = None, secret: Sequence[int] | None = None, seed: int = 0, steps: int = 600, **changed: Any
) -> DecoderSettings:
    """Return the settings of the training with the chain; what cannot be is refused in a sentence.

    They are those of the reference run's figures, with which short chains are learned as well as long ones.
    """
    if secret is not None and k not in (None, len(secret)):
        raise InvalidInput(f"k = {k} disagrees with the secret, which has {len(secret)} positions")
    hidden = len(secret) if secret is not None else k or 1
    try:
        settings = laptop(
            "",
            n,
            hidden,
            secret=None if secret is None else tuple(secret),
            seed=seed,
            steps=steps,
            held_out=min(_HELD_OUT, 2 ** (n - 1)),
            **changed,
        ).training
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(f"{'.'.join(map(str, first['loc']))} = {first['input']!r}: {first['msg']}") from None
    settings.task()  # refuses positions that are not there
    return settings


def train_pair(
    settings: DecoderSettings, on_evaluation: Callable[[str, int, float], None] = lambda name, step, accuracy: None
) -> ChainPair:
    """Train with the chain and without; `on_evaluation` is told which, the step and the accuracy."""

    def trained(name: str, chain: bool) -> DecoderRun:
        given = settings.model_copy(update={"chain_of_thought": chain})
        return train_decoder(given, on_evaluation=lambda step, accuracy: on_evaluation(name, step, accuracy))

    return ChainPair(trained("with the chain", True), trained("at once", False))


def looks(run: DecoderRun) -> Float[Tensor, "written positions"]:
    """Return where each token looked while it was written, by the head that looks most at what the token needs.

    One row for each link of the chain, or one for the answer; averaged over held-out inputs.
    """
    return seen_by_the_best_head(run.attention, run.task)


def seen_by_the_best_head(
    maps: Float[Tensor, "layers heads T T"], task: ParitySequences
) -> Float[Tensor, "written positions"]:
    """Return for each token that is written the map of the head that looks most at the bits it needs.

    A link of a chain needs one more hidden bit, an answer at once needs all of them.

    >>> maps = torch.zeros(1, 2, 4, 4)
    >>> maps[0, 0, 2, 0] = maps[0, 1, 3, 1] = 1  # the first head writes the first link, the second the other
    >>> seen_by_the_best_head(maps, ParitySequences(2, (0, 1))).tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    """
    written = maps.flatten(0, 1)[:, task.prompt_length - 1 :]  # (heads, written, positions)
    tokens, secret = torch.arange(written.shape[1]), torch.tensor(task.secret)
    needed = written[:, tokens, secret] if task.chain_of_thought else written[:, :, secret].sum(-1)
    return written[needed.argmax(0), tokens]


def on_the_secret(run: DecoderRun) -> list[float]:
    """Return the attention on each hidden bit: of the link that needs it, or of the answer."""
    rows = looks(run)
    links = torch.arange(run.task.k) if run.task.chain_of_thought else torch.zeros(run.task.k, dtype=torch.int64)
    return rows[links, torch.tensor(run.task.secret)].tolist()


def _measured(run: DecoderRun) -> dict[str, Any]:
    entropy = [float(run.history.entropy[place].min()) for place in (0, -1)]
    return {
        "answers_right": run.free_running,
        "tokens_right": run.accuracy,
        "examples": run.history.step[-1] * run.config.batch,
        "examples_until_all_right": run.samples_to(1.0),
        "on_the_secret": [round(share, _DECIMALS) for share in on_the_secret(run)],
        "attention": looks(run).double().round(decimals=_DECIMALS).tolist(),
        "entropy": {"before": round(entropy[0], _DECIMALS), "after": round(entropy[1], _DECIMALS)},
        "seconds": run.seconds,
    }
