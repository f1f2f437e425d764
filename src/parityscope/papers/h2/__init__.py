"""H2: two heads that learn a sparse XOR in one gradient step."""

from parityscope.papers import Paper

PAPER = Paper(
    name="H2",
    folder="h2",
    title="Two heads learn a sparse XOR in one gradient step",
    figures={
        "H2-one-step": "worst_loss",
        "H2-error": "worst_loss",
        "H2-parameters": "what_it_takes",
        "H2-samples": "what_it_takes",
        "H2-softmax": "worst_loss",
    },
    claims={
        "one_step": ("H2-one-step", "H2-parameters", "H2-every-input", "H2-initial-variance"),
        "substitutes": ("H2-softmax", "H2-temperature"),
        "samples": ("H2-samples",),
        "ffnn": ("H2-ffnn",),
    },
    shown={"H2-error": ("H2-every-input", "H2-initial-variance"), "H2-softmax": ("H2-temperature",)},
    not_its_own={"H2's page, machine-written": ("H2-samples", "H2-initial-variance", "H2-temperature")},
    provenance="H2 is known here only through its abstract and a machine-written page, whose review and simulated "
    "rebuttal are by a language model: the model is our reading, and nothing in the rebuttal is the authors'. That H2 "
    "is the later version of H1 (arXiv 2502.07553) is an inference: the page's references carry H1's running title.",
)
