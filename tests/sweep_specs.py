"""Specs for tests, as a user would write them, and how their rows are compared."""

from parityscope.records import Store

# What a config does is in it: be slow, raise, take its worker down, or only in a pack.
TROUBLE = """
import os, time
import torch
from parityscope.records import Config, Result

ID = "trouble"

class Point(Config):
    x: int
    what: str = ""
    seconds: float = 0.0

def run(config):
    time.sleep(config.seconds)
    if config.what == "raise":
        raise ValueError(f"no answer for {config.x}")
    if config.what == "die":
        os.kill(os.getpid(), 9)
    if config.what == "unstorable":
        return Result({"value": 1j})
    draw = torch.rand(3, generator=torch.Generator().manual_seed(config.x))
    return Result({"square": config.x**2, "threads": torch.get_num_threads()}, {"draw": draw})
"""
PACKED = """
def batch_shape(config):
    return config.x % 2

def run_batch(configs):
    if any(config.what for config in configs):
        raise RuntimeError("one of them is in trouble")
    return [Result({**run(config).numbers, "together": len(configs)}) for config in configs]
"""
TRAININGS = """
import time
from parityscope.runs import training as training_runs
from parityscope.runs.training import Training, batch_shape, run

ID = "trainings"
PACK = 4
CONFIGS = [Training(n=12, k=k, seed=seed, settings={"steps": 60}) for k in (2, 3) for seed in range(24)]

def run_batch(configs):
    time.sleep(0.5)  # long enough to be killed
    return training_runs.run_batch(configs)
"""


def written(path, text, configs=None):
    """Write a spec and return its path."""
    path.write_text(text + (f"\nCONFIGS = {configs}\n" if configs else ""))
    return path


def contents(folder, experiment=None):
    """Return what a store holds, by config: numbers, arrays as lists, traceback. Timings and origin are left out."""
    store = Store(folder)
    rows = [*store.rows(experiment), *store.rows(experiment, failed=True)]
    return {
        str(row.config): (row.numbers, {name: array.tolist() for name, array in row.arrays.items()}, row.traceback)
        for row in rows
    }
