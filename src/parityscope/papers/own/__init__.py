"""P: the project's own results, and figures that are about no single paper."""

from parityscope.papers import Paper

PAPER = Paper(
    name="P",
    folder="own",
    title="Our own results",
    figures={
        "P-faces": "faces",
        "P-numbers": "numbers",
        "P-concave-bounds": "concave_bounds",
        "P-margins": "margins",
        "P-three-heads": "three_heads",
        "P-every-k": "every_k",
        "P-examples-concave": "examples_concave",
        "engine-cost": "engine_cost",
        "estimator-benchmark": "estimator_benchmark",
        "phase-temperature-rate": "phase",
        "phase-n-k": "phase",
        "phase-heads-noise": "phase",
    },
    claims={
        "closed_forms": ("P-closed-form", "P-worst-loss"),
        "bounded": ("P-concavity", "P-gradient-signs"),
        "one_head": ("P-one-head",),
        "concave": ("P-concave",),
        "faces": ("P-face",),
        "two_k_numbers": ("P-two-k-numbers",),
        "many_heads": ("P-k-heads",),
        "mirror": ("P-mirror-rate",),
        "coherence": ("P-few-numbers",),
        "clipped": ("P-clipped",),
        "certificates": ("P-certificate",),
        "softmax_trap": ("P-softmax-trap",),
        "learning": ("P-one-step", "P-few-steps", "P-squared-hinge"),
        "circle": ("P-theorem-5-circle",),
        "paths": ("P-paths",),
        "examples": ("P-samples", "P-noise-and-bias"),
    },
    shown={
        "P-every-k": ("P-one-step", "P-few-steps"),
        "P-examples-concave": ("P-paths",),
        "H2-samples": ("P-samples",),
    },
)
