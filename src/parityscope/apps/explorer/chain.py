"""Chain of thought: where a small trained decoder looks on a sequence the user edits, with and without a chain."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field

from parityscope.apps.chain_of_thought import seen_by_the_best_head
from parityscope.apps.explorer.learn import rounded
from parityscope.core.errors import InvalidInput
from parityscope.papers.w.settings import laptop
from parityscope.training.decoders import DecoderRun, DecoderSettings, train_decoder

MOST_BITS, MOST_HIDDEN, MOST_KEPT = 24, 6, 8


class ChainSettings(BaseModel):
    """A decoder to train (once, then kept) and the bits to show it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    n: int = Field(12, ge=2, le=MOST_BITS)
    k: int = Field(4, ge=1, le=MOST_HIDDEN)
    seed: int = Field(0, ge=0, lt=2**32)
    chain: bool = True
    bits: tuple[int, ...] | None = Field(None, description="none: a held-out input")

    def training(self) -> DecoderSettings:
        """Return the settings of the decoder: one layer with eight heads, as in the reference run's figures.

        With a chain about a hundred steps suffice; without, hundreds change little, so it is not kept waiting longer.
        The rate is half the figures': with few bits the faster one leaves a held-out input or two wrong.
        """
        return laptop(
            "",
            self.n,
            self.k,
            chain_of_thought=self.chain,
            learning_rate=5e-4,
            steps=400 if self.chain else 200,
            held_out=min(512, 2 ** (self.n - 1)),
            evaluate_every=20,
            seed=self.seed,
        ).training

    def checked_bits(self) -> tuple[int, ...] | None:
        """Return the bits, refusing what is not a sequence of n zeros and ones."""
        if self.k > self.n:
            raise InvalidInput(f"k must lie between 1 and n = {self.n}, got {self.k}")
        if self.bits is not None and (len(self.bits) != self.n or set(self.bits) - {0, 1}):
            raise InvalidInput(f"bits must be {self.n} zeros and ones, got {len(self.bits)} values")
        return self.bits


class Decoders:
    """The decoders trained so far; the least recently used go when there are too many.

    Training takes seconds, so a sequence that does not fit is refused before it:
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[DecoderSettings, DecoderRun] = OrderedDict()

    def look(self, settings: ChainSettings) -> dict[str, Any]:
        """Return the attention on a sequence and the model's own answer, token by token."""
        bits = settings.checked_bits()
        run = self._trained(settings.training())
        task = run.task
        x = torch.tensor([_default_bits(settings) if bits is None else bits])
        truth = task.tokens(x)
        prompt = truth[:, : task.prompt_length]
        generated = run.model.generate(prompt, task.length - task.prompt_length)
        tokens = torch.cat((prompt, generated), 1)
        with torch.no_grad():
            attention = seen_by_the_best_head(run.model.attention(tokens[:, :-1])[0], task)
            sure = run.model(tokens[:, :-1], torch.arange(task.prompt_length - 1, task.length - 1)).softmax(-1)
        history = run.history
        return {
            "n": settings.n,
            "secret": list(task.secret),
            "chain": settings.chain,
            "bits": x[0].tolist(),
            "prompt": task.prompt_length,
            "tokens": tokens[0].tolist(),
            "truth": truth[0].tolist(),
            "confidence": rounded(sure[0].amax(-1), 4),
            "first_row": task.prompt_length - 1,
            "attention": rounded(attention, 4),
            "attended": task.attended_secret().tolist(),
            "accuracy": run.accuracy,
            "free_running": run.free_running,
            "examples": history.step[-1] * run.config.batch,
            "history": {"step": history.step, "accuracy": history.accuracy},
            "entropy": [float(value.mean()) for value in history.entropy],
            "seconds": run.seconds,
            "snippet": _snippet(run.config, x[0].tolist()),
        }

    def _trained(self, training: DecoderSettings) -> DecoderRun:
        if training not in self._kept:
            self._kept[training] = train_decoder(training)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(training)
        return self._kept[training]


def _default_bits(settings: ChainSettings) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(settings.seed)
    return tuple(torch.randint(2, (settings.n,), generator=generator).tolist())


def _snippet(training: DecoderSettings, bits: list[int]) -> str:
    """Return the Python lines that train the decoder and show it these bits."""
    changed = training.model_dump(exclude_defaults=True)
    given = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    return (
        "import torch\n"
        "from parityscope.apps.chain_of_thought import seen_by_the_best_head\n"
        "from parityscope.training.decoders import DecoderSettings, train_decoder\n\n"
        f"run = train_decoder(DecoderSettings({given}))\n"
        f"bits = torch.tensor([{bits}])\n"
        "prompt = run.task.tokens(bits)[:, : run.task.prompt_length]\n"
        "written = run.model.generate(prompt, run.task.length - run.task.prompt_length)\n"
        "tokens = torch.cat((prompt, written), 1)\n"
        "attention = seen_by_the_best_head(run.model.attention(tokens[:, :-1])[0], run.task)\n"
        "print(written, attention)  # a row for each token that was written\n"
        "entropy = [float(point.mean()) for point in run.history.entropy]\n"
        "print(run.task.secret, run.free_running, run.history.step, run.history.accuracy, entropy)\n"
    )
