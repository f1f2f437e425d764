"""How a ratio is measured, where the benchmark files are found, and what is kept of a run of them."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.core.strict_json import strict_json

_FOLDERS = (Path(__file__).parents[3] / "benchmarks", Path(__file__).parents[1] / "_benchmarks")


@dataclass(frozen=True)
class Timing:
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


def _ratio_text(ratio: float) -> str:
    """Return a ratio to two digits: more would not be the same tomorrow.

    >>> [_ratio_text(r) for r in (1.934, 31.5, 165.2, 1043.0)]
    ['1.9×', '32×', '170×', '1,000×']
    """
    return f"{float(f'{ratio:.2g}'):,.{0 if ratio >= 9.95 else 1}f}×"


def _duration_text(seconds: float) -> str:
    """Return a time to two digits in the unit that suits it.

    >>> [_duration_text(s) for s in (0.00123, 0.352, 12.3, 254.0)]
    ['1.2 ms', '350 ms', '12 s', '250 s']
    """
    if seconds < 1e-3:
        return f"{float(f'{1e6 * seconds:.2g}'):g} µs"
    return f"{float(f'{1e3 * seconds:.2g}'):g} ms" if seconds < 1 else f"{float(f'{seconds:.2g}'):g} s"


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
) -> Timing:
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
    return Timing(name, theirs / (mine / per), mine / per, theirs, other_name, {**setting, **cpu_times})


COLUMNS = ("question", "what", "ratio", "ours", "the other", "notes")


def table_rows(results: Sequence[tuple[str, Timing]]) -> list[tuple[str, ...]]:
    """Return what a table shows of measurements: a text for each of `COLUMNS`.

    >>> table_rows([("risk", Timing("n=20", 32.1, 0.0012, 0.0385, "enumeration", {"cpu_seconds": 0.0012}))])
    [('risk', 'n=20', '32×', '1.2 ms', '38 ms, enumeration', 'CPU 1.2 ms')]
    """
    return [
        (
            question,
            one.name,
            "–" if one.ratio is None else _ratio_text(one.ratio),
            _duration_text(one.ours_seconds),
            "–" if one.other_seconds is None else f"{_duration_text(one.other_seconds)}, {one.other}",
            _note(one.setting),
        )
        for question, one in results
    ]


def _note(setting: dict[str, Any]) -> str:
    """Return what else a reader of the ratio should know: CPU time, memory, error, what was found."""
    notes = []
    if "cpu_seconds" in setting:
        other = setting.get("other_cpu_seconds")
        against = "" if other is None else f" against {_duration_text(other)}"
        notes.append(f"CPU {_duration_text(setting['cpu_seconds'])}{against}")
    if "peak_gigabytes" in setting:
        notes.append(f"process peak {setting['peak_gigabytes']:g} GB")
    if "error_bound" in setting:
        notes.append(f"error at most {setting['error_bound']:.0e}")
    if "proved_error" in setting:
        notes.append(
            f"proved error {setting['proved_error']:.0e}, of the gradient {setting['proved_gradient_error']:.0e}"
        )
    if "found" in setting:
        notes.append(f"found {setting['found']}, the other {setting['other_found']}")
    if "ratio_is" in setting:
        notes.append(f"ratio of {setting['ratio_is']}")
    return "; ".join(notes)


def stored_text(results: Sequence[tuple[str, Timing]]) -> str:
    """Return the text of a file of measurements, with the machine and the versions they belong to.

    >>> list(json.loads(stored_text([])))
    ['measured', 'cores', 'architecture', 'python', 'torch', 'parityscope', 'measurements']
    """
    machine = {"cores": os.cpu_count(), "architecture": platform.machine(), "python": platform.python_version()}
    measured = [{"question": question, **one.to_json()} for question, one in results]
    when = time.strftime("%Y-%m-%d", time.gmtime())
    about = {"measured": when, **machine, "torch": version("torch"), "parityscope": version("parityscope")}
    return strict_json({**about, "measurements": measured}, indent=1, ensure_ascii=False) + "\n"


def stored_results(text: str) -> list[tuple[str, Timing]]:
    """Return the measurements of a stored file."""
    return [(one.pop("question"), Timing(**one)) for one in json.loads(text)["measurements"]]


def benchmark_names() -> list[str]:
    """Return the questions that have a benchmark file with a `run`."""
    folder = _folder()
    return sorted(path.stem for path in folder.glob("*.py") if "def run()" in path.read_text())


def run_benchmark(name: str) -> Iterator[Timing]:
    """Yield the measurements of one question.

    >>> next(run_benchmark("speed"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    parityscope.core.errors.InvalidInput: unknown benchmark 'speed': choose one of cot, ...
    """
    if name not in benchmark_names():
        raise InvalidInput(f"unknown benchmark {name!r}: choose one of {', '.join(benchmark_names())}")
    spec = importlib.util.spec_from_file_location(f"parityscope_benchmark_{name}", _folder() / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with naming_the_extra():
        spec.loader.exec_module(module)
        yield from module.run()


def measured_alone(name: str) -> list[Timing]:
    """Return the measurements of one question, taken in a fresh process: no other question's memory or threads.

    >>> measured_alone("speed")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    parityscope.core.errors.InvalidInput: unknown benchmark 'speed': choose one of cot, ...
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_all_of, name).result()


def _all_of(name: str) -> list[Timing]:
    return list(run_benchmark(name))


def _folder() -> Path:
    for folder in _FOLDERS:
        if folder.is_dir():
            return folder
    raise InvalidInput("the benchmark files were not installed: run parityscope bench from a clone of the project")
