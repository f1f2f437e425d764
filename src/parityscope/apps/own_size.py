"""W's trainings at W's own size, for as long as it is let: `make w-own-size`.

python -m parityscope.apps.own_size FOLDER            # trains what FOLDER/store has no row of, the most telling first
python -m parityscope.apps.own_size FOLDER --list     # what is there, what is not, and about what it takes

Stopped or killed at any moment it goes on where it was, also in the middle of a training. `make reference` then judges
and ships the rows that are there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from parityscope.core.errors import InvalidInput
from parityscope.core.files import remove_leftovers
from parityscope.papers.rendering import duration
from parityscope.papers.w.own_size import planned, step_seconds
from parityscope.papers.w.settings import ShownDecoder
from parityscope.records import Store
from parityscope.runs import Launcher, Processes, Work, run_together
from parityscope.training.checkpoint import checkpoints_in
from parityscope.training.decoders import _default_checkpoint  # another name would make all rows stale


def spoken(shown: ShownDecoder) -> str:
    """Return a training in a few words.

    >>> spoken(planned()[0])
    '1 × 4: (20, 6) without CoT, 1 × 4, pool 10,000, seed 2000'
    """
    training = shown.training
    chain = "with" if training.chain_of_thought else "without"
    data = "fresh samples" if training.pool is None else f"pool {training.pool:,}"
    return (
        f"{shown.label}: ({training.n}, {training.k}) {chain} CoT, {training.layers} × {training.heads}, {data}, "
        f"seed {training.seed}"
    )


_STEPS_WITH_CHAIN = 400  # that most chains need, of 19,531


def seconds_of(shown: ShownDecoder) -> float:
    """Return about how long a training takes on one core: without a chain as if it never learned."""
    training = shown.training
    steps = _STEPS_WITH_CHAIN + training.extra_steps if training.chain_of_thought else training.steps
    return steps * step_seconds(shown)


def listed(store: Store) -> list[str]:
    """Return a line on every training: what its row says, or about what it takes."""
    lines = []
    for shown, row in zip(planned(), store.row_of_each([one.row_config() for one in planned()]), strict=True):
        if row is None:
            lines.append(f"{spoken(shown)}: not yet, about {duration(seconds_of(shown))}")
        else:
            said = _outcome(row.numbers.samples[-1], row.numbers.steps)
            lines.append(f"{spoken(shown)}: {said}, about {duration(row.numbers.steps * step_seconds(shown))}")
    return lines


def _outcome(samples: int | None, steps: int) -> str:
    return f"not learned in {steps:,} steps" if samples is None else f"learned from {samples:,} samples"


def train_own_sizes(folder: Path, launcher: Launcher) -> None:
    """Train what has no row yet and print a line on each training that ends."""
    store, checkpoints = Store(folder / "store"), folder / "store" / "checkpoints"
    by_work = {spoken(shown): shown for shown in planned()}
    works = [Work(name, (shown.row_config(),)) for name, shown in by_work.items()]
    there = store.keys(among={config.key for work in works for config in work.configs})
    left = [shown for shown in by_work.values() if shown.row_config().key not in there]
    print(
        f"{len(there)} of {len(works)} rows are there; the others take about "
        f"{sum(map(seconds_of, left)) / 3600:,.0f} hours of one core, less where they learn without a chain. "
        "Stop at any time: the same command goes on.",
        flush=True,
    )

    def finished(work: Work) -> None:
        (config,) = work.configs
        with checkpoints_in(checkpoints):
            kept = _default_checkpoint(by_work[work.name].training)
        if kept is not None:
            kept.unlink(missing_ok=True)
        row = store.row(config)
        if row is not None and config.key not in there:
            said = _outcome(row.numbers.samples[-1], row.numbers.steps)
            print(f"{work.name}: {said} in {duration(row.seconds)}", flush=True)

    remove_leftovers(checkpoints)
    store.end_hints()  # what a kill interrupted goes on first, and not after everything else
    with checkpoints_in(checkpoints):
        run_together(works, store, launcher, on_finished=finished)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of `make reference`: reference-output")
    parser.add_argument("--workers", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--list", action="store_true", help="train nothing")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(listed(Store(arguments.folder / "store"))))
        return
    try:
        train_own_sizes(arguments.folder, Processes(arguments.workers))
    except InvalidInput as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    _main()
