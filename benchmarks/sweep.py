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
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from parityscope.apps.benchmarking import Timing
from parityscope.core.threads import single_threaded
from parityscope.records import Result, Row, Store
from parityscope.runs import InProcess, Processes, Training, Work, load_spec, run_sweep, training

UNPACKED = """
import torch
from parityscope.records import Config, Result
class Matrix(Config):
    ROWS = "unpackable"
    seed: int
    def run(self):
        value = torch.rand(300, 300, generator=torch.Generator().manual_seed(self.seed))
        for _ in range(400):
            value = torch.tanh(value @ value / 300)
        return Result({"sum": float(value.sum())})
CONFIGS = [Matrix(seed=seed) for seed in range(COUNT)]
"""


def packed(seeds: int = 200) -> Iterator[Timing]:
    """Trainings of ten sizes in packs against the same ones by one."""
    sizes = [(n, k) for n in range(12, 17) for k in (2, 3)]
    configs = [training(n=n, k=k, seeds=[seed], steps=200) for n, k in sizes for seed in range(seeds)]
    with tempfile.TemporaryDirectory() as folder, single_threaded():
        training(n=12, k=2).run()  # torch loads half of itself at the first training
        together, alone, count = 0.0, 0.0, 0
        store = Store(Path(folder))
        # Interleaved: the trainings of one size in packs, some of the same by one, then the next size.
        for first in range(0, len(configs), seeds):
            size = configs[first : first + seeds]
            began = time.process_time()
            run_sweep(Work("default recipe", tuple(size)), store, InProcess())
            together += time.process_time() - began
            began = time.process_time()
            results = [config.run() for config in size[::40]]
            alone += time.process_time() - began
            count += len(results)
            _agree(store, size[::40], results)
    ours, theirs = together / len(configs), alone / count
    setting = {
        "configs": len(configs),
        "timed_alone": count,
        "per_second": round(1 / ours),
        "ratio_is": "CPU time",
    }
    yield Timing("packed, per training", theirs / ours, ours, theirs, "one at a time, no store", setting)


def processes(count: int = 48) -> Iterator[Timing]:
    """Two processes against one, on work that cannot be packed; both pools are warm before the clock starts."""
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for workers, seconds in times.items():
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(_seconds_when_warm(workers, count, Store(Path(folder))))
    one, two = min(times[1]), min(times[2])
    setting = {"configs": count, "cores": torch.get_num_threads()}
    yield Timing("two workers", one / two, two, one, "one worker", setting)


def _seconds_when_warm(workers: int, count: int, store: Store) -> float:
    """Return the wall time per sweep from the moment a tenth is done, scaled to the whole."""
    times: list[tuple[float, int]] = []
    spec = store.path / "spec.py"
    spec.write_text(UNPACKED.replace("COUNT", str(count)))
    work = load_spec(spec)
    run_sweep(work, store, Processes(workers), on_progress=lambda p: times.append((time.perf_counter(), p.done)))
    start = next(point for point in times if point[1] >= count // 10)
    return (times[-1][0] - start[0]) * count / (count - start[1])


def _agree(store: Store, configs: Sequence[Training], results: Sequence[Result]) -> None:
    """A ratio between two things that differ would mean nothing."""
    for config, alone in zip(configs, results, strict=True):
        row, expected = store.row(config), Row.of(config, alone)
        assert row is not None
        assert row.numbers.learned == expected.numbers.learned, "the verdicts differ"
        assert abs(row.numbers.risk[0] - expected.numbers.risk[0]) < 1e-9, "the risks differ"


def run() -> Iterator[Timing]:
    """Yield every measurement of this question."""
    yield from packed()
    yield from processes()
