"""P: the project's own results, and figures that are about no single paper."""

from parityscope.papers.paper import Paper

PAPER = Paper(
    name="P",
    folder="own",
    title="Our own results",
    figures={
        "P-every-k": "every_k",
        "engine-cost": "engine_cost",
        "estimator-benchmark": "estimator_benchmark",
        "phase-temperature-rate": "phase_temperature_rate",
        "phase-n-k": "phase_n_k",
        "phase-heads-noise": "phase_heads_noise",
    },
    claims={
        "closed_forms": ("P-closed-form", "P-worst-loss"),
        "bounded": ("P-concavity", "P-gradient-signs"),
        "one_head": ("P-one-head",),
        "learning": ("P-one-step", "P-few-steps", "P-squared-hinge"),
        "circle": ("P-theorem-5-circle",),
        "examples": ("P-samples", "P-noise-and-bias"),
    },
)
