"""H1: transformers whose heads learn a hidden k-parity."""

from parityscope.papers import Paper

PAPER = Paper(
    name="H1",
    folder="h1",
    title="Attention heads that learn a hidden k-parity",
    figures={
        "heads-lock-on": "heads",
        "H1-figure-1": "figure_1",
        "H1-figure-2": "heads",
        "H1-success": "recipes",
        "H1-where-it-ends": "failure",
        "H1-why-it-fails": "failure",
        "H1-temperature-constant": "failure",
        "H1-risk-curves": "recipes",
        "H1-parameter-efficiency": "parameter_efficiency",
        "H1-frozen-attention": "frozen_attention",
        "H1-adjacent-bits": "adjacent_bits",
        "H1-temperature": "temperature",
        "H1-large-n": "large_n",
        "H1-sgd": "recipes",
        "H1-reading-support": "reading_support",
        "H1-other-functions": "other_functions",
        "H1-input-laws": "input_laws",
    },
    claims={
        "parameters": ("H1-proposition-3-ffnn", "H1-proposition-3-transformer", "H1-proposition-4", "H1-section-3"),
        "convergence": ("H1-theorem-5", "H1-theorem-5-entries", "H1-lemma-8", "H1-remark-9", "H1-remark-10"),
        "frozen_attention": ("H1-theorem-11", "H1-theorem-11-norms", "H1-remark-12", "H1-remark-13", "H1-corollary-20"),
        "soft_and_hard": ("H1-figure-2", "H1-proposition-21", "H1-appendix-b", "H1-section-5"),
        "constants": (
            "H1-lemma-6",
            "H1-lemma-7",
            "H1-lemma-14",
            "H1-lemma-14-derivative",
            "H1-lemma-15",
            "H1-lemma-16",
        ),
        "gradients": ("H1-equation-7", "H1-appendix-a", "H1-lemma-17", "H1-lemma-18", "H1-lemma-19"),
    },
    shown={
        "H1-parameter-efficiency": ("H1-proposition-4", "H1-remark-9"),
        "H1-input-laws": ("H1-section-3",),
        "H1-where-it-ends": ("H1-theorem-5", "H1-theorem-5-entries", "H1-lemma-8"),
        "H1-success": ("H1-remark-10",),
        "H1-frozen-attention": (
            "H1-theorem-11",
            "H1-theorem-11-norms",
            "H1-remark-12",
            "H1-remark-13",
            "H1-corollary-20",
        ),
        "H1-adjacent-bits": ("H1-proposition-21", "H1-appendix-b"),
        "H1-reading-support": ("H1-section-5",),
    },
)
