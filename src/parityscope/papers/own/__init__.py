"""P: the project's own results, and figures that are about no single paper."""

from parityscope.papers import Paper

PAPER = Paper(
    name="P",
    folder="own",
    title="Our own results",
    figures={
        "compare": "compare",
        "P-faces": "faces",
        "P-numbers": "numbers",
        "P-concave-bounds": "concave_bounds",
        "P-margins": "margins",
        "P-three-heads": "three_heads",
        "P-every-k": "every_k",
        "P-examples-concave": "examples_concave",
        "P-heads-rate": "proved",
        "P-proved-examples": "proved",
        "engine-cost": "engine_cost",
        "estimator-benchmark": "estimator_benchmark",
        "phase-temperature-rate": "phase",
        "phase-n-k": "phase",
        "phase-heads-noise": "phase",
    },
    claims={
        "bounded": ("P-closed-form", "P-worst-loss", "P-concavity", "P-gradient-signs"),
        "flows": ("P-one-head", "P-k-heads", "P-rate-of-heads"),
        "concave": ("P-concave", "P-softmax-trap"),
        "faces": ("P-face", "P-newton", "P-two-k-numbers"),
        "mirror": ("P-mirror-rate",),
        "few_numbers": ("P-few-numbers", "P-clipped"),
        "certificates": ("P-certificate",),
        "chain": ("P-chain", "P-chain-above"),
        "learning": ("P-one-step", "P-few-steps", "P-squared-hinge", "P-theorem-5-circle"),
        "examples": ("P-paths", "P-one-step-from-examples", "P-samples", "P-noise-and-bias"),
    },
    shown={
        "P-every-k": ("P-one-step", "P-few-steps"),
        "P-examples-concave": ("P-paths",),
        "P-heads-rate": ("P-rate-of-heads",),
        "P-proved-examples": ("P-one-step-from-examples",),
        "H2-samples": ("P-samples",),
    },
)
