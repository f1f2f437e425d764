"""Training a decoder on parity sequences, and what is measured of it on the way."""

from __future__ import annotations

import ctypes
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jaxtyping import Float, Int64
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from parityscope.core.errors import InvalidInput
from parityscope.core.threads import single_threaded
from parityscope.measures import attention_entropy, normalised_entropy
from parityscope.models import GPT
from parityscope.problems import seeded_generator
from parityscope.problems.sequences import Format, HeldOut, ParitySequences, draw_secret
from parityscope.training.checkpoint import Keeper, checkpoint_folder

CROSSINGS = (0.99, 0.995, 1.0)  # accuracies whose first evaluation is noted
_CHECKPOINT_SECONDS = 20.0
_WATCHED_INPUTS = 128  # whose attention is measured during training
_ROWS_AT_ONCE = 1024
_GLANCE_TOKENS = 2048  # as long as these are not nearly all right, the others are not looked at
_NEARLY = 0.97  # nine standard deviations of them below 0.99, the first crossing
# Of malloc.h: what mallopt calls the two thresholds, and the largest value that the second one takes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGEST_MMAP_THRESHOLD = 2**30, 2**25


class DecoderSettings(BaseModel):
    """Everything that decides a training of a decoder on parity sequences."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(ge=1)
    k: int = Field(ge=1)
    chain_of_thought: bool = True
    format: Format = "text"
    skip_labels: int = Field(0, ge=0, description="so many labels at the start carry no loss and are not judged")
    secret: tuple[int, ...] | None = Field(
        None, description="in the chain's order; none: drawn from the seed, ascending"
    )
    layers: int = Field(1, ge=1)
    heads: int = Field(1, ge=1)
    width: int = Field(128, ge=1)
    mlp_width: int | None = Field(None, description="none: four times the width")
    dropout: float = Field(0.0, ge=0, lt=1, description="W's text has none, its code 0.1")
    start_gain: float = Field(1.0, gt=0, description="how much wider than GPT-2's the layers' matrices start")
    learning_rate: float = Field(3e-4, gt=0)
    decay: bool = Field(True, description="the learning rate falls linearly to zero at the last step")
    batch: int = Field(512, ge=1)
    steps: int = Field(ge=1, description="at most so many")
    pool: int | None = Field(None, ge=1, description="train on so many drawn inputs, over and over; none: fresh ones")
    held_out: int = Field(2048, ge=1)
    evaluate_every: int = Field(10, ge=1)
    stop: bool = Field(True, description="stop once every held-out token is right")
    extra_steps: int = Field(0, ge=0, description="go on for so many steps after that")
    seed: int = Field(0, ge=0)
    rounded: bool = Field(False, description="matrix products behind attention take factors rounded to bfloat16")
    device: str = Field("cpu", description="where it runs, as torch names it: cpu, cuda, cuda:1, …")

    def task(self) -> ParitySequences:
        """Return the sequences to be learned."""
        secret = self.secret or draw_secret(self.n, self.k, self.seed)
        return ParitySequences(self.n, secret, self.chain_of_thought, self.format)

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step."""
        return self.learning_rate * (1 - step / self.steps if self.decay else 1.0)


@dataclass
class DecoderHistory:
    """What was measured during training, one entry per evaluation.

    >>> history = DecoderHistory(step=[0, 10, 20], accuracy=[0.5, 0.995, 1.0])
    >>> [history.crossing(accuracy) for accuracy in (0.99, 1.0)]
    [10, 20]
    """

    step: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    entropy: list[Tensor] = field(default_factory=list)
    label_entropy: list[Tensor] = field(default_factory=list)  # at the predicting positions alone, their mean
    by_token: list[Tensor] = field(default_factory=list)  # of chains of two links or more: see `by_token_stood_on`

    def tensors(self) -> dict[str, Tensor]:
        """Return the history as arrays; entropies are (points, layers, heads), by_token (points, 2, 2)."""
        return {
            "step": torch.tensor(self.step),
            "loss": torch.tensor(self.loss, dtype=torch.float64),
            "accuracy": torch.tensor(self.accuracy, dtype=torch.float64),
            "entropy": torch.stack(self.entropy),
            "label_entropy": torch.stack(self.label_entropy),
            **({"by_token": torch.stack(self.by_token)} if self.by_token else {}),
        }

    @classmethod
    def of(cls, tensors: dict[str, Tensor]) -> DecoderHistory:
        """Return the history stored in a checkpoint."""
        return cls(
            tensors["step"].tolist(),
            tensors["loss"].tolist(),
            tensors["accuracy"].tolist(),
            list(tensors["entropy"].unbind()),
            list(tensors["label_entropy"].unbind()),
            list(tensors["by_token"].unbind()) if "by_token" in tensors else [],
        )

    def crossing(self, accuracy: float) -> int | None:
        """Return the step of the first evaluation with at least this accuracy."""
        return next((s for s, a in zip(self.step, self.accuracy, strict=True) if a >= accuracy), None)


@dataclass(frozen=True)
class DecoderRun:
    """A finished training.

    >>> run = train_decoder(DecoderSettings(n=4, k=1, width=16, batch=32, held_out=4, steps=3, evaluate_every=3))
    >>> tuple(run.attention.shape), run.history.step  # 5 tokens are read, the sixth is the answer
    ((1, 1, 5, 5), [0, 3])
    """

    config: DecoderSettings
    task: ParitySequences
    model: GPT
    history: DecoderHistory
    accuracy: float  # of every supervised token of the held-out set, fed the true past
    free_running: float  # answers of the held-out set, fed the model's own chain
    attention: Float[Tensor, "layers heads T T"]  # averaged over held-out inputs
    one_attention: Float[Tensor, "layers heads T T"]  # of one held-out input
    seconds: float
    cpu_seconds: float

    def samples_to(self, accuracy: float) -> int | None:
        """Return the training examples seen at the first evaluation with this accuracy: W's sample complexity at 1."""
        step = self.history.crossing(accuracy)
        return None if step is None else step * self.config.batch

    def secret_attention(self) -> Float[Tensor, "layers heads links"]:
        """Return the average attention of each chain position on the secret bit its next token depends on."""
        links = torch.arange(len(self.task.attended_secret())) + self.task.n
        return self.attention[:, :, links, self.task.attended_secret()]


def train_decoder(
    config: DecoderSettings,
    *,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = _CHECKPOINT_SECONDS,
    on_evaluation: Callable[[int, float], None] | None = None,
) -> DecoderRun:
    """Train and measure one decoder.

    Every batch is a function of the seed and the step, so a training goes on from its checkpoint to the same numbers
    as one that never stopped. Without `checkpoint` the folder of `checkpoints_in` is used, if there is one.
    """
    started, cpu_started = time.perf_counter(), time.process_time()
    place = checkpoint or _default_checkpoint(config)
    keep_freed_memory()
    with single_threaded():
        training = _DecoderState(config, place, checkpoint_seconds)
        training.evaluate_now_and_then(on_evaluation)
        while not training.finished():
            training.take_step()
            training.evaluate_now_and_then(on_evaluation)
            training.save_now_and_then()
        training.evaluate_now_and_then(on_evaluation, last=True)
        training.save_now_and_then(last=True)
        return training.outcome(started, cpu_started)


def _default_checkpoint(config: DecoderSettings) -> Path | None:
    folder = checkpoint_folder()
    name = hashlib.sha256(config.model_dump_json().encode()).hexdigest()[:32]
    return None if folder is None else folder / f"{name}.safetensors"


class _DecoderState:
    """The state of a training between two steps."""

    def __init__(self, config: DecoderSettings, checkpoint: Path | None, checkpoint_seconds: float) -> None:
        self.config, self.task = config, config.task()
        self.device = torch.device(config.device)
        self.model = GPT(
            self.task.length,
            config.layers,
            config.heads,
            config.width,
            config.mlp_width,
            config.dropout,
            start_gain=config.start_gain,
            rounded=config.rounded,
            generator=seeded_generator(config.seed, "start"),
        ).to(self.device)
        self.optimiser = torch.optim.Adam(self.model.parameters(), config.learning_rate, (0.9, 0.999), fused=True)
        self.held_out = HeldOut(config.n, config.held_out, config.seed)
        self.held_out_tokens = self.task.tokens(self.held_out.bits).to(self.device)
        self.batches = _Batches(config, self.held_out)
        self.positions = self.task.label_positions[config.skip_labels :].to(self.device)
        if not len(self.positions):
            raise InvalidInput(
                f"skip_labels must leave one of {len(self.task.label_positions)} labels, got {config.skip_labels}"
            )
        self.step, self.history, self.losses = 0, DecoderHistory(), torch.zeros(2, device=self.device)
        stored = config.model_dump(mode="json")
        self.keeper = Keeper(checkpoint, stored, self.model, self.optimiser, checkpoint_seconds)
        if (state := self.keeper.stored()) is not None:
            self.step = int(state["steps_taken"])
            if not 0 <= self.step <= config.steps:
                raise InvalidInput(
                    f"{checkpoint} is of step {self.step} of {config.steps}: move it away to start afresh"
                )
            self.losses = state["losses"].to(self.device)
            self.history = DecoderHistory.of(state)

    def finished(self) -> bool:
        if self.step >= self.config.steps:
            return True
        perfect = self.history.crossing(1.0) if self.config.stop else None
        return perfect is not None and self.step >= perfect + self.config.extra_steps

    def take_step(self) -> None:
        tokens = self.task.tokens(self.batches.at(self.step)).to(self.device)
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.rate_at(self.step)
        self.optimiser.zero_grad()
        generator = seeded_generator(self.config.seed, "start", self.step) if self.config.dropout else None
        logits = self.model(tokens, self.positions, generator)
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, self.positions + 1].flatten())
        loss.backward()
        self.optimiser.step()
        self.losses += torch.stack((loss.detach(), torch.ones_like(loss)))
        self.step += 1

    def evaluate_now_and_then(self, on_evaluation: Callable[[int, float], None] | None, last: bool = False) -> None:
        history = self.history
        if history.step and history.step[-1] == self.step:
            return
        if self.step % self.config.evaluate_every and not last:
            return
        watched = self.held_out_tokens[:_WATCHED_INPUTS]
        history.step.append(self.step)
        history.loss.append(float(self.losses[0] / self.losses[1].clamp(min=1)))
        history.accuracy.append(teacher_forced(self.model, self.positions, self.held_out_tokens))
        with torch.no_grad():
            maps = self.model.attention(watched[:, : self.task.length - 1])
            history.entropy.append(attention_entropy(maps).mean(0).cpu())
            labels = normalised_entropy(maps)[..., self.positions - 1]  # of positions 2, 3, …
            history.label_entropy.append(labels.mean((0, -1)).cpu())
        if self.task.chain_of_thought and self.task.k > 1:
            history.by_token.append(by_token_stood_on(self.model, self.task, watched, maps))
        self.losses.zero_()
        if on_evaluation is not None:
            on_evaluation(self.step, history.accuracy[-1])

    def outcome(self, started: float, cpu_started: float) -> DecoderRun:
        with torch.no_grad():
            maps = self.model.attention(self.held_out_tokens[:_WATCHED_INPUTS, : self.task.length - 1]).cpu()
        return DecoderRun(
            self.config,
            self.task,
            self.model,
            self.history,
            self.history.accuracy[-1],
            free_running(self.model, self.task, self.held_out_tokens),
            maps.mean(0),
            maps[0],
            time.perf_counter() - started,
            time.process_time() - cpu_started,
        )

    def save_now_and_then(self, last: bool = False) -> None:
        """Store the state if it is due; the last one only beside others: a short training is not worth one."""
        place = self.keeper.path
        if self.keeper.due() or (last and place is not None and place.exists()):
            state = {"steps_taken": torch.tensor(self.step), "losses": self.losses, **self.history.tensors()}
            self.keeper.save(state)


class _Batches:
    """The inputs of every step: fresh, or a pool in an order of its own in every epoch."""

    def __init__(self, config: DecoderSettings, held_out: HeldOut) -> None:
        self.config, self.held_out = config, held_out
        self.pool = None if config.pool is None else held_out.draw(config.pool, seeded_generator(config.seed, "data"))
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    def at(self, step: int) -> Int64[Tensor, "batch n"]:
        """Return the inputs of one step."""
        config = self.config
        if self.pool is None:
            return self.held_out.draw(config.batch, seeded_generator(config.seed, "data", step)).long()
        per_epoch = max(1, len(self.pool) // config.batch)
        epoch, place = divmod(step, per_epoch)
        if epoch != self._epoch:
            generator = seeded_generator(config.seed, "data", 0, epoch)
            self._epoch, self._order = epoch, torch.randperm(len(self.pool), generator=generator)
        return self.pool[self._order[place * config.batch : (place + 1) * config.batch]].long()


@torch.no_grad()
def teacher_forced(model: GPT, positions: Int64[Tensor, " labels"], tokens: Int64[Tensor, "batch T"]) -> float:
    """Return the share of tokens after `positions` that are right, fed the true past.

    Of a decoder that is far from right only the first 2048 tokens are looked at; 1 means all of them, always.
    """
    glance = max(1, _GLANCE_TOKENS // len(positions))
    right = _right(model, positions, tokens[:glance])
    share = right / (len(tokens[:glance]) * len(positions))
    if share < _NEARLY or len(tokens) <= glance:
        return share
    right += sum(_right(model, positions, rows) for rows in tokens[glance:].split(_ROWS_AT_ONCE))
    return right / (len(tokens) * len(positions))


def _right(model: GPT, positions: Tensor, tokens: Tensor) -> int:
    return int((model(tokens, positions).argmax(-1) == tokens[:, positions + 1]).sum())


def free_running(model: GPT, task: ParitySequences, tokens: Int64[Tensor, "batch T"]) -> float:
    """Return the share of answers that are right, fed the model's own chain."""
    generated = model.generate(tokens[:, : task.prompt_length], task.length - task.prompt_length)
    return float((generated[:, -1] == tokens[:, -1]).double().mean())


@torch.no_grad()
def by_token_stood_on(
    model: GPT,
    task: ParitySequences,
    tokens: Int64[Tensor, "batch length"],
    maps: Float[Tensor, "batch layers heads T T"],
) -> Float[Tensor, "2 2"]:
    """Return the share right and the attention on the secret bit where the chain stands on a 0, and where on a 1.

    A link copies its secret bit where it stands on a 0 and negates it where it stands on a 1. The first link always
    stands on a 0 and is left out. Rows: right, attention (of the head that gives most); columns: on 0, on 1.
    """
    links = torch.arange(task.n + 1, task.length - 1, device=tokens.device)
    right = model(tokens, links).argmax(-1) == tokens[:, links + 1]
    secret = task.attended_secret()[1:].to(tokens.device)
    looks = maps[..., links, secret]  # (batch, layers, heads, links)
    found = []
    for token in (0, 1):
        here = (tokens[:, links] == token).to(looks.dtype)
        count = here.sum(0).clamp(min=1)
        shares = torch.einsum("blhi,bi->lhi", looks, here) / count
        found.append(torch.stack(((right * here).sum() / here.sum().clamp(min=1), shares.amax((0, 1)).mean())))
    return torch.stack(found, 1).cpu()


def keep_freed_memory() -> bool:
    """Let glibc keep freed memory for the next step instead of giving it back to the system; say whether it does.

    By default large buffers go back and every step faults all their pages in again: 10 of the 58 ms of a decoder's
    step (width 128, 12 links, batch 256). Other C libraries are left as they are.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc; a system without a C library by that name
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT) and mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD))
