"""W: transformers that learn parity through chain of thought."""

from parityscope.papers import Paper


def _lemmas(*numbers: int) -> tuple[str, ...]:
    return tuple(f"W-lemma-{number}" for number in numbers)


PAPER = Paper(
    name="W",
    folder="w",
    title="Parity through chain of thought",
    figures={
        "W-figure-1": "samples",
        "W-figure-2": "samples",
        "W-figure-3": "samples",
        "W-figure-4": "pools",
        "W-figure-5": "pools",
        "W-figure-6": "language_models",
        "W-figure-7": "language_models",
        "W-figure-8": "samples",
        "W-figure-9": "pools",
        "W-figure-10": "pools",
        "W-figure-11": "pools",
        "W-plateau": "plateau",
    },
    claims={
        "language_models": ("W-figure-6", "W-figure-6-fine-tuning", "W-figure-7"),
        "theorems": ("W-theorem-1", "W-theorem-2", "W-phase-1-uncorrelated", "W-theorem-3"),
        "figures": tuple(f"W-figure-{number}" for number in (1, 2, 3, "3-without", 4, 5, 8, 9, 10, 11)),
        "representation": _lemmas(1, 2, 3, 4),
        "assumptions": ("W-assumption-2", *_lemmas(5, 6, 7)),
        "start": _lemmas(8, 9, 10, 11),
        "first_step": _lemmas(*range(12, 18)),
        "second_step": _lemmas(*range(18, 23)),
        "third_step": _lemmas(*range(23, 28)),
        "random_vectors": _lemmas(*range(28, 33)),
    },
    shown={
        "W-figure-6": ("W-figure-6-fine-tuning",),
        "W-figure-1": ("W-theorem-2",),
        "W-figure-3": ("W-figure-3-without",),
    },
)
