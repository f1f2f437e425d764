"""What lattice and series prove of a value and its gradient, and how wrong they are: `python paper/certified.py`.

Writes paper/certified.json, which the paper quotes. The attention, the loss and the calls are those of
`parityscope bench lattice`; errors are kept, times are not, so that it may run on a busy machine.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import torch

from parityscope import __version__
from parityscope.core.files import write_atomically
from parityscope.problems import Parity
from parityscope.risk import population_risk
from parityscope.risk.engines.split.sums import split_mean

STORED = Path(__file__).parent / "certified.json"
LARGE, BESIDE_SPLIT = 200, 44  # n: beyond the exact engines, and where split still goes
KIND = "log-normal 1"
GRADIENT = 1e-7  # what is asked of the series; nothing can be asked of the lattice's gradient
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def by_series(n: int) -> dict[str, Any]:
    """Return what the spectral engine proves at n."""
    weights = runpy.run_path(str(BENCHMARKS / "lattice.py"))["attention"](KIND, n)
    model = runpy.run_path(str(BENCHMARKS / "certified.py"))["Weights"](weights)
    found = population_risk(model, Parity(n, (0, 1, 2)), engine="spectral", gradient_tolerance=GRADIENT)
    assert found.gradient_bound is not None
    return {"n": n, "proved": float(found.error_bound), "proved_gradient": float(found.gradient_bound)}


def certified(n: int) -> dict[str, Any]:
    """Return what the lattice proves at n, and the true errors where the exact engine goes."""
    bench = runpy.run_path(str(BENCHMARKS / "lattice.py"))
    weights, pieces = bench["attention"](KIND, n), bench["loss"]()
    found = bench["evaluate"](weights, pieces)
    numbers = {"n": n, "proved": found.error_bound, "proved_gradient": found.gradient_bound}
    if n <= BESIDE_SPLIT:
        mask, offset = torch.arange(n) < bench["K"], torch.zeros(1, dtype=torch.float64)
        exact = split_mean(weights[None], offset, mask[None], pieces)
        assert exact.by_weight is not None
        numbers["error"] = abs(found.value - exact.value.item())
        numbers["gradient_error"] = (found.by_weight - exact.by_weight[0]).abs().max().item()
    return numbers


def main() -> None:
    """Compute both and store them."""
    stored = {
        "parityscope": __version__,
        "attention": KIND,
        "large": certified(LARGE),
        "beside": certified(BESIDE_SPLIT),
        "series": by_series(LARGE),
    }
    write_atomically(STORED, (json.dumps(stored, indent=1) + "\n").encode())
    print(STORED.read_text())


if __name__ == "__main__":
    main()
