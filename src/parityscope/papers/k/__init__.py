"""K: a parity through a tree of 2-parities, with and without its steps as supervision."""

from parityscope.papers import Paper

PAPER = Paper(
    name="K",
    folder="k",
    title="Parity in one step, through a tree of 2-parities",
    figures={
        "K-figure-4": "experiments",
        "K-figure-5": "experiments",
        "K-where-it-begins": "examples_needed",
        "K-examples": "examples_needed",
    },
    claims={
        "hardness": ("K-theorem-2", "K-proposition-3", "K-lemma-8", "K-separation"),
        "learning": (
            "K-lemma-4",
            "K-theorem-5",
            "K-lemma-6",
            "K-theorem-7",
            "K-theorem-7-filter",
            "K-lemma-9",
        ),
        "experiments": ("K-figure-4", "K-figure-5"),
    },
    shown={"K-where-it-begins": ("K-theorem-5",), "K-examples": ("K-theorem-7",)},
)
