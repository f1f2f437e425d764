"""How much faster is our decoder than Hugging Face's GPT-2 in a plain training loop, at W's own shape?

`parityscope bench cot` prints CPU-time ratios of one optimiser step (forward, backward, Adam) on a batch of 512
sequences of the (20, 6) problem: width 720, MLP 3072, no dropout, float32, weights and data the same on both sides.
Both use fused Adam. The baseline gives the model its labels with −100 where nothing is supervised, as its manual says.
Needs the `lm` extra (transformers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch.nn import functional

from parityscope.core.benchmarking import Measurement, measure
from parityscope.models import GPT
from parityscope.problems import seeded_generator
from parityscope.problems.sequences import HeldOut, ParitySequences, draw_secret

N, K, WIDTH, MLP_WIDTH, BATCH, RATE = 20, 6, 720, 3072, 512, 1e-4
CASES = (("1 layer, CoT", 1, 1, True), ("1 layer, no CoT", 1, 1, False), ("4 layers × 4 heads, CoT", 4, 4, True))


def our_step(model: GPT, task: ParitySequences, tokens: torch.Tensor) -> Callable[[], float]:
    """Return one optimiser step of the decoder."""
    optimiser = torch.optim.Adam(model.parameters(), RATE, fused=True)

    def step() -> float:
        optimiser.zero_grad()
        loss = functional.cross_entropy(
            model(tokens, task.label_positions).flatten(0, 1), task.targets(tokens).flatten()
        )
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def hugging_face_step(model: GPT, task: ParitySequences, tokens: torch.Tensor) -> Callable[[], float]:
    """Return one optimiser step of Hugging Face's GPT-2 with the same weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    block = model.h[0]
    config = GPT2Config(
        vocab_size=2,
        n_positions=task.length,
        n_embd=model.wte.shape[1],
        n_layer=len(model.h),
        n_head=block.heads,
        n_inner=block.mlp_in.out_features,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
        use_cache=False,
    )
    theirs = GPT2LMHeadModel(config)
    theirs.load_state_dict(model.hugging_face_weights())
    optimiser = torch.optim.Adam(theirs.parameters(), RATE, fused=True)
    labels = torch.full_like(tokens, -100)
    labels[:, task.label_positions + 1] = task.targets(tokens)

    def step() -> float:
        optimiser.zero_grad()
        loss = theirs(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def compare_case(name: str, layers: int, heads: int, chain: bool, repeats: int = 3) -> Measurement:
    """Check that both descend alike, then time them interleaved, best of several."""
    task = ParitySequences(N, draw_secret(N, K, 0), chain)
    model = GPT(task.length, layers, heads, WIDTH, MLP_WIDTH, generator=seeded_generator(0, "start"))
    tokens = task.tokens(HeldOut(N, 2048, 0).draw(BATCH, seeded_generator(0, "data")))
    theirs, ours = hugging_face_step(model, task, tokens), our_step(model, task, tokens)
    best = [(float("inf"), float("inf"))] * 2
    for _ in range(repeats):  # the first is the warm-up, the later losses see the earlier gradients
        losses: list[float] = []
        for side, step in enumerate((ours, theirs)):
            wall, cpu = measure(partial(_append, losses, step), 1)
            best[side] = (min(best[side][0], wall), min(best[side][1], cpu))
        assert abs(losses[0] - losses[1]) < 1e-5, f"the two trainings differ: {losses}"
    (mine, my_cpu), (other, other_cpu) = best
    setting = {
        "n": N,
        "k": K,
        "layers": layers,
        "heads": heads,
        "width": WIDTH,
        "mlp_width": MLP_WIDTH,
        "batch": BATCH,
        "chain_of_thought": chain,
        "cpu_seconds": round(my_cpu, 4),
        "other_cpu_seconds": round(other_cpu, 4),
        "wall_ratio": round(other / mine, 2),
        "ratio_is": "CPU time",
    }
    return Measurement(name, other_cpu / my_cpu, mine, other, "Hugging Face GPT-2", setting)


def _append(losses: list[float], step: Callable[[], float]) -> None:
    losses.append(step())


def run() -> Iterator[Measurement]:
    """Yield every measurement of this question."""
    for case in CASES:
        yield compare_case(*case)
