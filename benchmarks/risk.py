"""Is the exact engine faster than visiting every input, by how much, and how does it grow?

`parityscope bench risk` prints these ratios. Every pair is timed in one run, interleaved, best of several; wall time
counts and CPU time stands beside it. The baseline is what a competent person writes in torch: the 2^n × n bit matrix is
built outside the timing, then S = X c, the zig-zag by k ReLUs, squared hinge, mean, and autograd's backward pass.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from parityscope.apps.benchmarking import Timing, compare, measure
from parityscope.models import AdditiveScore, ZigZag
from parityscope.papers.own.figures.engine_cost import Attention, log_attention
from parityscope.problems import Parity, bits_of, draw_problems
from parityscope.risk import population_risk
from parityscope.training.learning import learn

K = 3


class Weights(nn.Module):
    """Free weights behind the zig-zag: the smallest model the engines take."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = weights
        self.readout = ZigZag(K)

    def additive_score(self) -> AdditiveScore:
        return AdditiveScore(self.weights, torch.zeros((), dtype=torch.float64), self.readout)


class Network(nn.Module):
    """A model without an additive score: one hidden layer of 64 ReLUs, in single precision."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(n, 64), nn.Linear(64, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x.float()).relu()).squeeze(-1)


class Attending(nn.Module):
    """Attention that depends on the bits: embeddings of 16, one head, one hidden layer, in single precision."""

    def __init__(self, n: int, width: int = 16) -> None:
        super().__init__()
        self.bit = nn.Embedding(2, width)
        self.position = nn.Parameter(torch.randn(n, width))
        self.query = nn.Parameter(torch.randn(width) / 4)
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.bit(x.long()) + self.position
        attention = (tokens @ self.query).softmax(-1)
        read = (attention.unsqueeze(1) @ tokens).squeeze(1)
        return self.outer(self.inner(read).relu()).squeeze(-1)


def enumeration(n: int) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return value and gradient by visiting all 2^n inputs, as fast as plain torch does it."""
    x = bits_of(torch.arange(2**n), n).double()
    y = 1 - 2 * (x[:, :K].sum(1) % 2)

    def evaluate(c: Tensor) -> tuple[Tensor, Tensor]:
        c = c.clone().requires_grad_()
        S = x @ c
        prediction = torch.ones_like(S)
        for i in range(1, K + 1):
            prediction = prediction + (-1) ** i * (8 * i - 4) * torch.relu(S + 0.5 - i)
        loss = torch.relu(1 - y * prediction).square().mean()
        loss.backward()
        assert c.grad is not None
        return loss.detach(), c.grad

    return evaluate


def engine(name: str, n: int) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return value and gradient by a named engine, for one run or a batch."""
    problem = Parity(n, tuple(range(K)))

    def evaluate(c: Tensor) -> tuple[Tensor, Tensor]:
        c = c.clone().requires_grad_()
        value = population_risk(Weights(c), problem, engine=name).value
        value.sum().backward()
        assert c.grad is not None
        return value.detach(), c.grad

    return evaluate


def attention(n: int, runs: int | None = None, spread: float = 1.0) -> Tensor:
    """Return c = k·softmax(spread·noise), one row per run."""
    shape = (n,) if runs is None else (runs, n)
    noise = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    return K * torch.softmax(spread * noise, -1)


def against_enumeration() -> Iterator[Timing]:
    """Split against enumeration, one run, and per run in a batch of 64."""
    for n in (12, 16, 20, 24):
        slow, fast, c = enumeration(n), engine("split", n), attention(n)
        _agree(slow(c), fast(c))
        yield compare(
            f"split n={n}", partial(fast, c), partial(slow, c), "torch enumeration", {"n": n, "k": K, "runs": 1}
        )
        if n <= 20:
            batch = attention(n, 64)
            setting = {"n": n, "k": K, "runs": 64}
            yield compare(
                f"split n={n}, per run of 64", partial(fast, batch), partial(slow, c), "torch enumeration", setting, 64
            )


def general_models() -> Iterator[Timing]:
    """Models that go through `forward`, value and gradient: ours against all inputs as one tensor, made beforehand."""
    for kind, most in ((Network, 20), (Attending, 18)):
        for n in range(10, most + 1, 2):
            model, problem = kind(n), Parity(n, tuple(range(K)))
            x = bits_of(torch.arange(2**n), n).float()
            y = 1 - 2 * (x[:, :K].sum(1) % 2)

            def ours(model: nn.Module = model, problem: Parity = problem) -> None:
                population_risk(model, problem).value.backward()

            def plain(model: nn.Module = model, x: Tensor = x, y: Tensor = y) -> None:
                torch.relu(1 - y * model(x)).square().mean().backward()

            yield compare(f"{kind.__name__} n={n}", ours, plain, "one tensor in torch", {"n": n, "k": K, "runs": 1})


def growth() -> Iterator[Timing]:
    """Split alone where nothing else goes: time and peak memory of the process."""
    smaller: tuple[int, float] | None = None
    for n in (30, 36, 40, 44, 48):
        c, fast = attention(n), engine("split", n)
        repeats = 3 if n <= 40 else 1
        seconds, cpu = measure(partial(fast, c), repeats)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        setting = {"n": n, "k": K, "peak_gigabytes": round(peak, 2), "cpu_seconds": round(cpu, 4)}
        if smaller is not None:
            setting["growth_per_bit"] = round((seconds / smaller[1]) ** (1 / (n - smaller[0])), 2)
        smaller = (n, seconds)
        yield Timing(f"split n={n}", None, seconds, None, None, setting)


def spectral() -> Iterator[Timing]:
    """Spectral where both run, and at n = 1000, with the error it estimates."""
    for n in (40, 48):
        c = attention(n, spread=0.1)
        fast, slow = engine("spectral", n), engine("split", n)
        yield compare(
            f"spectral n={n}", partial(fast, c), partial(slow, c), "split", {"n": n, "k": K, "spread": 0.1}, repeats=1
        )
    for n in (100, 200):
        model, problem = Weights(attention(n)), Parity(n, (0, 1, 2))
        certified = partial(population_risk, model, problem, gradient_tolerance=1e-7)
        risk = certified()
        seconds, cpu = measure(certified, 1)
        setting = {"n": n, "error_bound": float(risk.error_bound), "gradient_bound": risk.gradient_bound}
        setting["cpu_seconds"] = round(cpu, 4)
        yield Timing(f"{risk.engine} n={n}, gradient to 1e-7", None, seconds, None, None, setting)
    for spread in (0.1, 0.01, 0.0):
        c, problem = attention(1000, spread=spread), Parity(1000, (0, 1, 2))
        risk = population_risk(Weights(c), problem)
        seconds, cpu = measure(partial(engine("auto", 1000), c), 3)
        setting = {"n": 1000, "spread": spread, "error_bound": float(risk.error_bound), "cpu_seconds": round(cpu, 4)}
        yield Timing(f"{risk.engine} n=1000, spread {spread}", None, seconds, None, None, setting)


def every_size() -> Iterator[Timing]:
    """Whichever engine answers, for three kinds of attention, with its bound: no size without one."""
    kinds: tuple[Attention, ...] = ("even", "log-normal", "half-trained")
    for n in (12, 20, 40, 60, 100, 200, 1000):
        for kind in kinds:
            c = K * log_attention(kind, n, K).softmax(0)
            risk = population_risk(Weights(c), Parity(n, tuple(range(K))))
            seconds, cpu = measure(partial(engine("auto", n), c), 1)
            setting = {"n": n, "attention": kind, "error_bound": float(risk.error_bound), "cpu_seconds": round(cpu, 4)}
            yield Timing(f"{risk.engine} n={n}, {kind}", None, seconds, None, None, setting)


def batching() -> Iterator[Timing]:
    """One batch of 64 runs against 64 single runs, and a training of 64 runs × 500 steps."""
    n, fast = 20, engine("split", 20)
    batch = attention(n, 64)
    yield compare(
        "64 runs in a batch",
        partial(fast, batch),
        lambda: [fast(row) for row in batch],
        "the same runs one by one",
        {"n": n, "k": K, "runs": 64},
    )
    large, steps = range(32), 20  # what the codes of all runs take is kept as bytes
    together = partial(learn, draw_problems(9000, 6, large), "mirror", large, steps=steps)

    def alone() -> None:
        for seed in large:
            learn(draw_problems(9000, 6, [seed]), "mirror", [seed], steps=steps)

    setting = {"n": 9000, "k": 6, "runs": len(large), "steps": steps}
    yield compare("mirror, 32 runs in a batch, n=9000", together, alone, "the same runs one by one", setting, repeats=1)
    seeds = range(64)
    train = partial(learn, draw_problems(n, K, seeds), "as-coded", seeds, steps=500)
    seconds, cpu = measure(train, 1)
    setting = {"n": n, "runs": 64, "steps": 500, "cpu_seconds": round(cpu, 2)}
    yield Timing("as-coded, 64 runs × 500 steps, n=20", None, seconds, None, None, setting)


def _agree(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> None:
    """A ratio between two things that differ would mean nothing."""
    for a, b in zip(first, second, strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-11), "the engines disagree"


def run() -> Iterator[Timing]:
    """Yield every measurement of this question."""
    # Growth comes first and ascends, so that the peak memory of the process is each size's own.
    yield from growth()
    yield from against_enumeration()
    yield from general_models()
    yield from batching()
    yield from spectral()
    yield from every_size()
