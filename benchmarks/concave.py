"""One concave head: how far 2k harmonics and 2k log n random signs go, on fresh seeds, against the recipe bounded.

Run: OMP_NUM_THREADS=1 .venv/bin/python benchmarks/concave.py [harmonics|signs|against|margins]
"""

import sys

import torch

from parityscope import draw_problems, is_face, learn
from parityscope.core.statistics import median
from parityscope.models.positions import harmonics as harmonic_code

SEEDS = range(1000, 1032)
HARMONIC = [
    *[(12, 4), (20, 5), (40, 3), (100, 2)],
    *[(100, 3), (100, 5), (200, 2), (40, 5), (200, 5), (1000, 2), (1000, 3), (1000, 5), (10_000, 2)],
]
RANDOM = [(1000, 10, 32), (1000, 20, 32), (10_000, 5, 32), (100_000, 3, 16)]
COMPARED = [(20, 3), (100, 5), (1000, 10)]
HEADING = "| n, k | recipe | numbers | learned | steps: median, most | seconds a seed |\n|---|---|---|---|---|---|"


def line(n, k, seeds, recipe="concave", **overrides):
    run = learn(draw_problems(n, k, seeds), recipe, seeds, **overrides)
    steps = run.steps[run.learned].tolist() or [0]
    name = ", ".join([recipe, *map(str, overrides.values())])
    print(
        f"| {n}, {k} | {name} | {run.model.trained_parameters()} | {run.success} | {median(steps):g}, {max(steps)}"
        f" | {run.seconds / len(seeds):.4f} |",
        flush=True,
    )


def harmonics():
    print(f"\n{HEADING}")
    for n, k in HARMONIC:
        line(n, k, SEEDS, positions="harmonics")


def signs():
    print(f"\n{HEADING}")
    for n, k, count in RANDOM:
        line(n, k, SEEDS[:count])


def against():
    print(f"\n{HEADING}")
    for n, k in COMPARED:
        for recipe, overrides in (
            ("concave", {}),
            ("concave", {"optimiser": "armijo"}),
            ("mirror", {}),
            ("bounded", {}),
        ):
            line(n, k, SEEDS, recipe, **overrides)


def margins():
    """Show how little the scores of 2k harmonics have to tell apart: a margin of 1e-16 is what doubles end at."""
    print("\n| n, k | faces | margin: median, least |\n|---|---|---|")
    for n, k in HARMONIC:
        found = [is_face(harmonic_code(n, k), problem.support).margin for problem in draw_problems(n, k, SEEDS)]
        told = sum(margin > 0 for margin in found)
        print(f"| {n}, {k} | {told} of {len(SEEDS)} | {median(found):.1e}, {min(found):.1e} |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for part in sys.argv[1:] or ("harmonics", "signs", "against", "margins"):
        {"harmonics": harmonics, "signs": signs, "against": against, "margins": margins}[part]()
