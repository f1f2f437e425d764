"""Specs for tests, as a user would write them, and how their rows are compared."""

from parityscope.records import Store

# What a config does is in it: be slow, raise, take its worker down, or only in a pack.
TROUBLE = """
import os, time
import torch
from parityscope.records import Config, Result

class Point(Config):
    ROWS = "trouble"

    x: int
    what: str = ""
    seconds: float = 0.0

    def run(self):
        time.sleep(self.seconds)
        if self.what == "raise":
            raise ValueError(f"no answer for {self.x}")
        if self.what == "die":
            os.kill(os.getpid(), 9)
        if self.what == "unstorable":
            return Result({"value": 1j})
        draw = torch.rand(3, generator=torch.Generator().manual_seed(self.x))
        return Result({"square": self.x**2, "threads": torch.get_num_threads()}, {"draw": draw})
"""
# The same class, whose configs of equal parity are one program.
PACKED = (
    TROUBLE
    + """
    PACK = 100

    def batch_shape(self):
        return self.x % 2

    @classmethod
    def run_batch(cls, configs):
        if any(config.what for config in configs):
            raise RuntimeError("one of them is in trouble")
        return [Result({**config.run().numbers, "together": len(configs)}) for config in configs]
"""
)
TRAININGS = """
import time
from parityscope.runs import Training, training

class SlowTraining(Training):
    ROWS = "trainings"
    PACK = 4

    @classmethod
    def run_batch(cls, configs):
        time.sleep(0.5)  # long enough to be killed
        return super().run_batch(configs)

ALL = [training(n=12, k=k, seeds=[seed], steps=60) for k in (2, 3) for seed in range(24)]
CONFIGS = [SlowTraining(**dict(config)) for config in ALL]
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
