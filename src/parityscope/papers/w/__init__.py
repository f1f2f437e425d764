"""W: transformers that learn parity through chain of thought."""

from parityscope.papers.paper import Paper


def _lemmas(*numbers: int) -> tuple[str, ...]:
    return tuple(f"W-lemma-{number}" for number in numbers)


PAPER = Paper(
    name="W",
    folder="w",
    title="Parity through chain of thought",
    figures={f"W-figure-{number}": f"figure_{number}" for number in range(1, 12)},
    claims={
        "language_models": ("W-figure-6", "W-figure-6-fine-tuning", "W-figure-7"),
        "theorems": ("W-theorem-1", "W-theorem-2", "W-theorem-3"),
        "figures": tuple(f"W-figure-{number}" for number in (1, 2, 3, 4, 5, 8, 9, 10, 11)),
        "concentration": _lemmas(1, 2, 3, 4, 5, 28, 29, 30, 31, 32),
        "first_step": _lemmas(*range(6, 18)),
        "later_steps": _lemmas(*range(18, 28)),
    },
)
