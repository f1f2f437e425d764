"""What is packing worth, and what are processes worth?

`parityscope bench sweep` prints these ratios. Packed against one at a time is measured in CPU time of one process, on
the 2000 trainings of the default recipe that a phase diagram is made of (n = 12…16, k = 2…3, 200 steps), through the
whole of `run_sweep` with its store; one at a time is a plain loop over a fair sample of the same configs, without any
store. Two worker processes against one are measured in wall time on work that cannot be packed, once the workers are
warm; on a machine that is busy with something else that ratio says more about the machine.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from parityscope.core.benchmarking import Measurement
from parityscope.records import Config, Result
from parityscope.runs.training import Training
from parityscope.runs.training import run as train
from parityscope.records import Store
from parityscope.runs import InProcess, Processes, Work, load_spec, run_sweep
from parityscope.core.threads import single_threaded

PACKED = """
from parityscope.runs.training import Training, batch_shape, run, run_batch
ID = "default-recipe"
CONFIGS = [
    Training(n=n, k=k, seed=seed, settings={"steps": 200}) for n in range(12, 17) for k in (2, 3) for seed in range(200)
]
"""
UNPACKED = """
import torch
from parityscope.records import Config, Result
ID = "unpackable"
class Matrix(Config):
    seed: int
def run(config):
    value = torch.rand(300, 300, generator=torch.Generator().manual_seed(config.seed))
    for _ in range(400):
        value = torch.tanh(value @ value / 300)
    return Result({"sum": float(value.sum())})
CONFIGS = [Matrix(seed=seed) for seed in range(COUNT)]
"""


def packed() -> Iterator[Measurement]:
    """2000 trainings in packs against the same ones by one."""
    work = _work(PACKED)
    with tempfile.TemporaryDirectory() as folder, single_threaded():
        train(Training(n=12, k=2))  # torch loads half of itself at the first training
        together, alone, count = 0.0, 0.0, 0
        store = Store(Path(folder))
        # Interleaved: the trainings of one size in packs, some of the same by one, then the next size.
        for first in range(0, len(work.configs), 200):
            size = work.configs[first : first + 200]
            began = time.process_time()
            run_sweep(Work(work.experiment, size, work.source), store, InProcess())
            together += time.process_time() - began
            began = time.process_time()
            results = [train(config) for config in size[::40]]
            alone += time.process_time() - began
            count += len(results)
            _agree(store, size[::40], results)
    ours, theirs = together / len(work.configs), alone / count
    setting = {
        "configs": len(work.configs),
        "timed_alone": count,
        "per_second": round(1 / ours),
        "ratio_is": "CPU time",
    }
    yield Measurement("packed, per training", theirs / ours, ours, theirs, "one at a time, no store", setting)


def processes() -> Iterator[Measurement]:
    """Two processes against one, on work that cannot be packed; both pools are warm before the clock starts."""
    count = 48
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for workers, seconds in times.items():
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(_seconds_when_warm(workers, count, Store(Path(folder))))
    one, two = min(times[1]), min(times[2])
    setting = {"configs": count, "cores": torch.get_num_threads()}
    yield Measurement("two workers", one / two, two, one, "one worker", setting)


def _seconds_when_warm(workers: int, count: int, store: Store) -> float:
    """Return the wall time per sweep from the moment a tenth is done, scaled to the whole."""
    times: list[tuple[float, int]] = []
    work = _work(UNPACKED.replace("COUNT", str(count)))
    run_sweep(work, store, Processes(workers), on_progress=lambda p: times.append((time.perf_counter(), p.done)))
    start = next(point for point in times if point[1] >= count // 10)
    return (times[-1][0] - start[0]) * count / (count - start[1])


def _work(text: str) -> Work:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.py"
        path.write_text(text)
        return load_spec(path)


def _agree(store: Store, configs: tuple[Config, ...], results: list[Result]) -> None:
    """A ratio between two things that differ would mean nothing."""
    for config, alone in zip(configs, results, strict=True):
        row = store.row("default-recipe", config)
        assert row is not None
        assert row.numbers["learned"] == alone.numbers["learned"], "the verdicts differ"
        assert abs(row.numbers["risk"] - alone.numbers["risk"]) < 1e-9, "the risks differ"


def run() -> Iterator[Measurement]:
    """Yield every measurement of this question."""
    yield from packed()
    yield from processes()
