"""Numbers of trainings as a planted world has them."""

from parityscope.runs.training import Training, TrainingNumbers


def trained(config: Training, *, learned: bool = True, worst_loss: float = 0.0, steps: int = 1) -> TrainingNumbers:
    """Return what a training says in a world in which all of its seeds come out alike."""
    seeds = len(config.seeds)
    supports = tuple(problem.support for problem in config.problems())
    return TrainingNumbers(
        supports=supports,
        found=supports if learned else ((0,) * config.k,) * seeds,
        recovered=(learned,) * seeds,
        learned=(learned,) * seeds,
        risk=(0.0 if learned else 1.0,) * seeds,
        accuracy=(1.0 if learned else 0.5,) * seeds,
        accuracy_is="exact",
        worst_loss=(worst_loss,) * seeds,
        steps=(steps,) * seeds,
        diverged=(False,) * seeds,
        parameters=2,
        engine="planted",
    )
