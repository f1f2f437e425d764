"""How a ratio is measured, and where the benchmark files are found."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parityscope.errors import InvalidInput, naming_the_extra

_FOLDERS = (Path(__file__).parents[2] / "benchmarks", Path(__file__).parent / "_benchmarks")


@dataclass(frozen=True)
class Measurement:
    """Ours against another way, in seconds of wall time; `ratio` is None where there is nothing to compare with."""

    name: str
    ratio: float | None
    ours_seconds: float
    other_seconds: float | None
    other: str | None
    setting: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `bench --json` lists."""
        return asdict(self)


def measure(call: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    """Return the best wall time and the best CPU time of several calls."""
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus)


def compare(
    name: str,
    ours: Callable[[], object],
    other: Callable[[], object],
    other_name: str,
    setting: dict[str, Any],
    per: int = 1,
    repeats: int | None = None,
) -> Measurement:
    """Time two ways interleaved, best of several; `per` divides our time, for a batch of that many runs.

    Without `repeats` pairs are timed for about two seconds, at least five of them.
    """
    calls = (ours, other)
    first = [measure(call, 1)[0] for call in calls]
    # Short calls come in bursts of about 50 ms, as they do in a training, so that none is timed on cold caches only.
    bursts = [max(1, int(0.05 / max(seconds, 1e-6))) for seconds in first]
    best = [(float("inf"), float("inf"))] * 2
    for _ in range(repeats or max(5, min(20, int(2 / sum(first))))):
        for index, call in enumerate(calls):
            wall, cpu = measure(call, bursts[index])
            best[index] = (min(best[index][0], wall), min(best[index][1], cpu))
    (mine, my_cpu), (theirs, their_cpu) = best
    cpu_times = {"cpu_seconds": round(my_cpu / per, 6), "other_cpu_seconds": round(their_cpu, 6)}
    return Measurement(name, theirs / (mine / per), mine / per, theirs, other_name, {**setting, **cpu_times})


def benchmark_names() -> list[str]:
    """Return the questions that have a benchmark file with a `run`."""
    folder = _folder()
    return sorted(path.stem for path in folder.glob("*.py") if "def run()" in path.read_text())


def run_benchmark(name: str) -> Iterator[Measurement]:
    """Yield the measurements of one question."""
    if name not in benchmark_names():
        raise InvalidInput(f"unknown benchmark {name!r}: choose one of {', '.join(benchmark_names())}")
    spec = importlib.util.spec_from_file_location(f"parityscope_benchmark_{name}", _folder() / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with naming_the_extra():
        spec.loader.exec_module(module)
        yield from module.run()


def _folder() -> Path:
    for folder in _FOLDERS:
        if folder.is_dir():
            return folder
    raise InvalidInput("the benchmark files were not installed: run parityscope bench from a clone of the project")
