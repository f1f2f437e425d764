"""How far do two numbers per head go? Prints the tables of docs/explanation/repaired-circle.md.

Run: .venv/bin/python benchmarks/circle.py [near|sharp|far|stuck]
"""

import sys

import torch

from parityscope import draw_problems, learn
from parityscope.core.statistics import wilson_share

SMALL = [(n, k) for n in (12, 16, 20) for k in (2, 3, 4)]
FAR = [(40, 5), (60, 5), (100, 3), (100, 5), (100, 10), (200, 5), (200, 10), (500, 5), (1000, 3), (1000, 5)]
VARIANTS = {
    "Adam 0.5, hinge": {"optimiser": "adam", "learning_rate": 0.5, "beta1": 0.9, "beta2": 0.999, "loss": "hinge"},
    "Adam 0.5, squared hinge": {
        "optimiser": "adam",
        "learning_rate": 0.5,
        "beta1": 0.9,
        "beta2": 0.999,
        "loss": "squared-hinge",
    },
    "width-aware step, hinge": {"loss": "hinge"},
    "width-aware step, −log C with wrong signs held (`repaired`)": {},
}


def count(n, k, seeds, **overrides):
    run = learn(draw_problems(n, k, seeds), "repaired", seeds, **overrides)
    return run, wilson_share(int(run.learned.sum()), len(seeds))


def near():
    print("\n| n, k | learned | most steps |\n|---|---|---|")
    for n, k in SMALL:
        run, share = count(n, k, range(160))
        print(f"| {n}, {k} | {share} | {int(run.steps.max())} |", flush=True)


def sharp():
    print("\n| step and objective | " + " | ".join(f"{n}, {k}" for n, k in SMALL) + " |")
    print("|---" * (len(SMALL) + 1) + "|")
    for name, changes in VARIANTS.items():
        shares = [str(count(n, k, range(160), start_radius=float(n), **changes)[1]) for n, k in SMALL]
        print(f"| {name} | " + " | ".join(shares) + " |", flush=True)


def far():
    print("\n| n, k | near-uniform start | sharp start | most steps | seconds |\n|---|---|---|---|---|")
    for n, k in FAR:
        run, share = count(n, k, range(32))
        sharp_run, sharp_share = count(n, k, range(32), start_radius=float(n))
        steps = int(max(run.steps.max(), sharp_run.steps.max()))
        print(f"| {n}, {k} | {share} | {sharp_share} | {steps} | {run.seconds + sharp_run.seconds:.0f} |", flush=True)


def stuck():
    """Show runs that plain hinge loses from the sharp start: where the weight sits and how flat it is there."""
    print("\n| n, k | seed | hidden | largest weights c | E[yŷ] | risk |\n|---|---|---|---|---|---|")
    for n, k in ((12, 2), (16, 3), (20, 3)):
        run, _ = count(n, k, range(32), start_radius=float(n), **VARIANTS["Adam 0.5, hinge"])
        for row in (~run.learned).nonzero().flatten().tolist()[:2]:
            c = run.model.score_weights()[row].detach()
            top = c.topk(3).indices.tolist()
            weights = ", ".join(f"c_{j} = {c[j]:.2f}" for j in top)
            hidden, C = run.problems[row].support, 1 - run.risk[row]
            print(f"| {n}, {k} | {row} | {hidden} | {weights} | {C:.1e} | {run.risk[row]:.4f} |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for part in sys.argv[1:] or ("near", "sharp", "far", "stuck"):
        {"near": near, "sharp": sharp, "far": far, "stuck": stuck}[part]()
