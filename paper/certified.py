"""What the lattice proves of a value and of its gradient, and how wrong both really are: `python paper/certified.py`.

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
from parityscope.risk.engines.split.sums import split_mean

STORED = Path(__file__).parent / "certified.json"
LARGE, BESIDE_SPLIT = 200, 44  # n: beyond the exact engines, and where split still goes
KIND = "log-normal 1"


def certified(n: int) -> dict[str, Any]:
    """Return the proved errors at n, and the true ones where the exact engine goes."""
    bench = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "lattice.py"))
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
    }
    write_atomically(STORED, (json.dumps(stored, indent=1) + "\n").encode())
    print(STORED.read_text())


if __name__ == "__main__":
    main()
