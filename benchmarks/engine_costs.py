"""What the engines cost, measured: prints the constants of their cost models, and how far `auto` is from the best.

Run: python benchmarks/engine_costs.py [table]. The constants (`_CALL`, `_RUN`, … in `src/parityscope/risk/`) are CPU
seconds of the machine that measured them; `auto` compares engines with each other, so only their ratios matter.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

from parityscope.apps.benchmarking import measure
from parityscope.models import AdditiveScore, Cosine, Readout, Triangle, ZigZag
from parityscope.problems import Parity
from parityscope.risk import population_risk


class Weights(torch.nn.Module):
    """Free weights behind a readout."""

    def __init__(self, weights: torch.Tensor, readout: Readout) -> None:
        super().__init__()
        self.weights, self.readout = weights, readout

    def additive_score(self) -> AdditiveScore:
        return AdditiveScore(self.weights, torch.zeros((), dtype=torch.float64), self.readout)


def task(
    engine: str, n: int, k: int, runs: int, readout: Readout, loss: str = "squared-hinge", spread: float = 1.0
) -> Callable[[], str]:
    """Return a call that computes value and gradient and says which engine did."""
    noise = torch.randn(runs, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    start = k * torch.softmax(spread * noise, -1)
    problem = Parity(n, tuple(range(k)))

    def call() -> str:
        model = Weights(start.clone().requires_grad_(), readout)
        risk = population_risk(model, problem, loss=loss, engine=engine)
        risk.value.sum().backward()
        return risk.engine

    call()  # fits, checks and tables that are kept are not part of what a training pays
    return call


def cpu_seconds(call: Callable[[], object], repeats: int = 15) -> float:
    """Return the CPU time of the quickest of several calls."""
    return measure(call, repeats)[1]


def constants() -> None:
    """Print measurements from which each constant is read off."""
    settings = {
        "enumerate: call": ("enumerate", 4, 2, 1, ZigZag(2)),
        "enumerate: 2^16 inputs": ("enumerate", 16, 3, 1, ZigZag(3)),
        "split: small call": ("split", 4, 2, 1, ZigZag(2)),
        "split: 2^13 scores": ("split", 13, 3, 1, ZigZag(3)),
        "split: call": ("split", 14, 3, 1, ZigZag(3)),
        "split: 64 runs, n = 14": ("split", 14, 3, 64, ZigZag(3)),
        "split: n = 30": ("split", 30, 3, 1, ZigZag(3)),
        "closed-form: call": ("closed-form", 4, 2, 1, Cosine()),
        "closed-form: n = 10,000, 10 runs": ("closed-form", 10_000, 3, 10, Cosine()),
    }
    for name, setting in settings.items():
        print(f"{name:<35} {cpu_seconds(task(*setting)):.2e} s")
    others = {
        "grouped: run": ("grouped", 50, 3, 1, ZigZag(3), "squared-hinge", 0.0),
        "grouped: 4 · 1998 vectors": ("grouped", 2000, 3, 1, ZigZag(3), "squared-hinge", 0.0),
        "pair: run": ("pair", 50, 2, 1, Triangle(2), "hinge"),
        "pair: n = 10,000": ("pair", 10_000, 2, 1, Triangle(2), "hinge"),
        "spectral: n = 1000": ("spectral", 1000, 3, 1, ZigZag(3), "squared-hinge", 0.1),
    }
    for name, setting in others.items():
        print(f"{name:<35} {cpu_seconds(task(*setting), 3):.2e} s")


def table(sizes: tuple[int, ...] = (6, 8, 10, 12, 14, 16, 18, 20, 24)) -> None:
    """Print `auto` against the best engine for H1's readout, over n, k and runs: interleaved, best of several."""
    print("| n | k | runs | auto takes | auto | best | ratio |\n|---|---|---|---|---|---|---|")
    for n in sizes:
        for k in (2, 3, 5):
            for runs in (1, 8, 64):
                names = [name for name in ("enumerate", "split", "grouped") if _worth(name, n, runs)]
                calls = {name: task(name, n, k, runs, ZigZag(k)) for name in ("auto", *names)}
                best = dict.fromkeys(calls, float("inf"))
                for _ in range(12 if n <= 16 else 4):
                    for name, call in calls.items():
                        best[name] = min(best[name], cpu_seconds(call, 1))
                quickest = min(names, key=best.__getitem__)
                ratio = best["auto"] / best[quickest]
                print(
                    f"| {n} | {k} | {runs} | {calls['auto']()} | {1e6 * best['auto']:.0f} µs |"
                    f" {quickest} {1e6 * best[quickest]:.0f} µs | {ratio:.2f} |",
                    flush=True,
                )


def _worth(name: str, n: int, runs: int) -> bool:
    """Leave out what would take seconds."""
    most = {"enumerate": 2**19, "grouped": 2**13, "split": 2**40}
    return runs * 2**n <= most[name]


if __name__ == "__main__":
    table() if sys.argv[1:] == ["table"] else constants()
