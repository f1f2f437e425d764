"""One decoder on parity sequences: the one config and row of such a training, wherever it is asked for."""

from __future__ import annotations

from typing import ClassVar

from parityscope.records import Config, Numbers, Result
from parityscope.training.decoders import CROSSINGS, DecoderSettings, train_decoder


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


class DecoderTraining(Config):
    """One training of a decoder; the secret, the start and the data come from its seed.

    Parameters
    ----------
    training : DecoderSettings
        Everything that decides it, the device included.

    >>> DecoderTraining(training=DecoderSettings(n=6, k=2, steps=20)).training.width
    128
    """

    ROWS: ClassVar[str] = "decoder-training"
    NUMBERS: ClassVar[type[Numbers]] = DecoderNumbers

    training: DecoderSettings

    def run(self) -> Result:
        """Train."""
        outcome = train_decoder(self.training)
        attention = outcome.secret_attention().amax((0, 1))
        numbers = DecoderNumbers(
            samples=tuple(outcome.samples_to(accuracy) for accuracy in CROSSINGS),
            steps=outcome.history.step[-1],
            accuracy=outcome.accuracy,
            free_running=outcome.free_running,
            secret=tuple(outcome.task.secret),
            secret_attention=float(attention.mean()) if self.training.chain_of_thought else None,
            final_entropy=float(outcome.history.entropy[-1].min()),
            parameters=sum(p.numel() for p in outcome.model.parameters()),
        )
        arrays = {name: tensor.float() for name, tensor in outcome.history.tensors().items()}
        arrays |= {"attention": outcome.attention.float(), "one_attention": outcome.one_attention.float()}
        return Result(numbers, arrays)
