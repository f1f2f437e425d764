"""How much faster is our decoder than Hugging Face's GPT-2 in a plain training loop, at W's own shape?

`parityscope bench cot` prints CPU-time ratios of one optimiser step (forward, backward, Adam) on a batch of 512
sequences of the (20, 6) problem: width 720, MLP 3072, no dropout, float32, weights and data the same on both sides.
Both use fused Adam. In bfloat16, as the rows of W's own size are computed, ours rounds the factors of the products
behind attention and the baseline runs under torch's autocast. The baseline gives the model its labels with −100 where
nothing is supervised, as its manual says.
Needs the `lm` extra (transformers).

Then, on one thread: how near the step is to the machine's matrix-product peak (its products, counted, at the speed of
the best square product of this machine, over the step's CPU time), and what training five seeds as one program with
batched weights would give, the reason why trainings are not batched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from parityscope.apps.benchmarking import Timing, measure
from parityscope.core.threads import single_threaded
from parityscope.models import GPT
from parityscope.problems import seeded_generator
from parityscope.problems.sequences import HeldOut, ParitySequences, draw_secret
from parityscope.training.decoders import keep_freed_memory

N, K, WIDTH, MLP_WIDTH, BATCH, RATE = 20, 6, 720, 3072, 512, 1e-4
LAPTOP_WIDTH, LAPTOP_HEADS, LAPTOP_BATCH, SEEDS = 128, 8, 256, 5
CASES = (
    ("1 layer, CoT", 1, 1, True),
    ("1 layer, no CoT", 1, 1, False),
    ("4 layers × 4 heads, CoT", 4, 4, True),
    ("1 layer × 4 heads, no CoT, bfloat16", 1, 4, False, True),
    ("1 layer × 4 heads, CoT, bfloat16", 1, 4, True, True),
)
SAME, SAME_ROUNDED = 1e-5, 0.02  # of the two losses: float32, and products of bfloat16 that round at other places


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


def hugging_face_step(
    model: GPT, task: ParitySequences, tokens: torch.Tensor, rounded: bool = False
) -> Callable[[], float]:
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
        with torch.autocast("cpu", torch.bfloat16, enabled=rounded):
            loss = theirs(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def compare_case(name: str, layers: int, heads: int, chain: bool, rounded: bool = False, *, repeats: int = 3) -> Timing:
    """Check that both descend alike, then time them interleaved, best of several."""
    task = ParitySequences(N, draw_secret(N, K, 0), chain)
    generator = seeded_generator(0, "start")
    model = GPT(task.length, layers, heads, WIDTH, MLP_WIDTH, rounded=rounded, generator=generator)
    tokens = task.tokens(HeldOut(N, 2048, 0).draw(BATCH, seeded_generator(0, "data")))
    theirs, ours = hugging_face_step(model, task, tokens, rounded), our_step(model, task, tokens)
    best = [(float("inf"), float("inf"))] * 2
    for _ in range(repeats):  # the first is the warm-up, the later losses see the earlier gradients
        losses: list[float] = []
        for side, step in enumerate((ours, theirs)):
            wall, cpu = measure(partial(_append, losses, step), 1)
            best[side] = (min(best[side][0], wall), min(best[side][1], cpu))
        limit = SAME_ROUNDED if rounded else SAME
        assert abs(losses[0] - losses[1]) < limit, f"the two trainings differ: {losses}"
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
        "factors": "bfloat16" if rounded else "float32",
        "cpu_seconds": round(my_cpu, 4),
        "other_cpu_seconds": round(other_cpu, 4),
        "wall_ratio": round(other / mine, 2),
        "ratio_is": "CPU time",
    }
    return Timing(name, other_cpu / my_cpu, mine, other, "Hugging Face GPT-2", setting)


def peak(sizes: tuple[int, ...] = (512, 768, 1024, 1536)) -> float:
    """Return the best floating-point operations per CPU second of square float32 products, on one thread."""
    best = 0.0
    for size in sizes:
        a, b = torch.randn(2, size, size)
        best = max(best, 2 * size**3 / measure(partial(torch.mm, a, b), 10)[1])
    return best


def compare_with_peak(name: str, k: int, width: int, mlp_width: int, heads: int, batch: int) -> Timing:
    """Set the time of a step's matrix products at the machine's peak beside the step's own, both in CPU time."""
    with single_threaded():
        step, *_ = _task(k, width, mlp_width, heads, batch, seed=0)
        with FlopCounterMode(display=False) as counter:
            step()
        best, highest = (float("inf"), float("inf")), 0.0
        for _ in range(5):
            wall, cpu = measure(step, 5)
            best, highest = (min(best[0], wall), min(best[1], cpu)), max(highest, peak())
    at_peak = counter.get_total_flops() / highest
    setting = {
        "n": N,
        "k": k,
        "heads": heads,
        "width": width,
        "mlp_width": mlp_width,
        "batch": batch,
        "gigaflop": round(counter.get_total_flops() / 1e9, 3),
        "peak_gigaflops": round(highest / 1e9, 1),
        "cpu_seconds": round(best[1], 4),
        "other_cpu_seconds": round(at_peak, 4),
        "ratio_is": "CPU time",
    }
    return Timing(name, at_peak / best[1], best[0], at_peak, "its matrix products at the machine's peak", setting)


def compare_with_batched(name: str, k: int, chain: bool) -> Timing:
    """Time one step of five seeds, one after another, against one step of all five with batched weights."""
    setting = {"n": N, "k": k, "width": LAPTOP_WIDTH, "seeds": SEEDS, "batch": LAPTOP_BATCH, "chain_of_thought": chain}
    size = (k, LAPTOP_WIDTH, 4 * LAPTOP_WIDTH, LAPTOP_HEADS, LAPTOP_BATCH)
    with single_threaded():
        parts = [_task(*size, seed=seed, chain=chain) for seed in range(SEEDS)]
        calls = (lambda: [step() for step, *_ in parts], _batched_step(parts))
        best = [(float("inf"), float("inf"))] * 2
        for _ in range(5):
            for side, call in enumerate(calls):
                wall, cpu = measure(call, 4)
                best[side] = (min(best[side][0], wall), min(best[side][1], cpu))
    (mine, my_cpu), (other, other_cpu) = best
    setting |= {"cpu_seconds": round(my_cpu, 4), "other_cpu_seconds": round(other_cpu, 4), "ratio_is": "CPU time"}
    return Timing(name, other_cpu / my_cpu, mine, other, "one program with batched weights", setting)


_Part = tuple[Callable[[], float], GPT, ParitySequences, torch.Tensor]


def _task(k: int, width: int, mlp_width: int, heads: int, batch: int, seed: int, chain: bool = True) -> _Part:
    keep_freed_memory()
    task = ParitySequences(N, draw_secret(N, k, seed), chain)
    model = GPT(task.length, 1, heads, width, mlp_width, generator=seeded_generator(seed, "start"))
    tokens = task.tokens(HeldOut(N, 2048, seed).draw(batch, seeded_generator(seed, "data")))
    return our_step(model, task, tokens), model, task, tokens


def _batched_step(parts: list[_Part]) -> Callable[[], float]:
    """Return one optimiser step of all seeds as one program: every weight has a first axis of runs."""
    models, task = [model for _, model, _, _ in parts], parts[0][2]
    weights = {name: w.detach().requires_grad_() for name, w in stack_module_state(models)[0].items()}
    optimiser = torch.optim.Adam(weights.values(), RATE, fused=True)
    tokens = torch.stack([one for *_, one in parts])
    targets = torch.stack([task.targets(one) for one in tokens]).flatten()
    logits = vmap(lambda own, one: functional_call(models[0], own, (one, task.label_positions)))

    def step() -> float:
        optimiser.zero_grad()
        loss = len(parts) * functional.cross_entropy(logits(weights, tokens).flatten(0, 2), targets)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def _append(losses: list[float], step: Callable[[], float]) -> None:
    losses.append(step())


def run() -> Iterator[Timing]:
    """Yield every measurement of this question."""
    for case in CASES:
        yield compare_case(*case)
    yield compare_with_peak("step, width 720", K, WIDTH, MLP_WIDTH, 1, BATCH)
    yield compare_with_peak("step, width 128", 12, LAPTOP_WIDTH, 4 * LAPTOP_WIDTH, LAPTOP_HEADS, LAPTOP_BATCH)
    yield compare_with_batched("5 seeds, CoT", 6, True)
    yield compare_with_batched("5 seeds, no CoT", 6, False)
