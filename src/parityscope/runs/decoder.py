"""One decoder on parity sequences: the one config and row of such a training, wherever it is asked for."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from parityscope.records import Config, Numbers, Result
from parityscope.training.decoders import CROSSINGS, DecoderRun, DecoderSettings, train_decoder

_DECIMALS = 4  # of curves and maps: a row is text, and no figure shows more


class DecoderNumbers(Numbers):
    """What the training of a decoder found."""

    samples: tuple[
        int | None, ...
    ]  # examples seen when 99 %, 99.5 %, all held-out tokens were right for the first time
    steps: int
    accuracy: float
    free_running: float
    secret: tuple[int, ...]
    secret_attention: float | None  # of each chain position on its secret bit, on average; none without a chain
    final_entropy: float
    parameters: int
    # Of the last evaluation, where links after the first stand on a 0 and on a 1: see `by_token_stood_on`. None for
    # chains of one link and without one.
    right_by_token: tuple[float, float] | None = None
    attention_by_token: tuple[float, float] | None = None


class DecoderTraining(Config):
    """One training of a decoder; the secret, the start and the data come from its seed.

    Parameters
    ----------
    training : DecoderSettings
        Everything that decides it, the device included.
    maps : bool
        Whether the attention of the predicting positions is kept, averaged over held-out inputs and on one of them,
        and the curve of its entropy.

    >>> DecoderTraining(training=DecoderSettings(n=6, k=2, steps=20)).training.width
    128
    """

    ROWS: ClassVar[str] = "decoder-training"
    NUMBERS: ClassVar[type[Numbers]] = DecoderNumbers

    training: DecoderSettings
    maps: bool = False

    def run(self) -> Result:
        """Train."""
        outcome = train_decoder(self.training)
        on_secret = outcome.secret_attention().amax(1)  # (layers, links)
        by_token = outcome.history.by_token[-1].tolist() if outcome.history.by_token else (None, None)
        numbers = DecoderNumbers(
            samples=tuple(outcome.samples_to(accuracy) for accuracy in CROSSINGS),
            steps=outcome.history.step[-1],
            accuracy=outcome.accuracy,
            free_running=outcome.free_running,
            secret=tuple(outcome.task.secret),
            secret_attention=float(on_secret.amax(0).mean()) if self.training.chain_of_thought else None,
            final_entropy=float(outcome.history.entropy[-1].min()),
            parameters=sum(p.numel() for p in outcome.model.parameters()),
            right_by_token=by_token[0],
            attention_by_token=by_token[1],
        )
        arrays = {**outcome.history.tensors(), "on_secret": on_secret, **(_maps(outcome) if self.maps else {})}
        if not self.maps:
            del arrays["label_entropy"]
        short = {name: tensor.double().round(decimals=_DECIMALS).float() for name, tensor in arrays.items()}
        return Result(numbers, short)


def _maps(outcome: DecoderRun) -> dict[str, Tensor]:
    """Return the attention maps from the first predicting position on: (layers, heads, positions, T)."""
    first = outcome.task.n
    return {"attention": outcome.attention[:, :, first:], "one_attention": outcome.one_attention[:, :, first:]}
