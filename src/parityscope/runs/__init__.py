"""Many configs on any executor: packed into tensor programs, stored as they finish, never twice."""

from parityscope.runs.decoder import DecoderTraining
from parityscope.runs.launchers import DaskCluster, InProcess, Launcher, Processes, SlurmJobs
from parityscope.runs.loop import Summary, SweepProgress, run_sweep, run_together
from parityscope.runs.spec import Work, load_spec
from parityscope.runs.training import Training, training

__all__ = [
    "DaskCluster",
    "DecoderTraining",
    "InProcess",
    "Launcher",
    "Processes",
    "SlurmJobs",
    "Summary",
    "SweepProgress",
    "Training",
    "Work",
    "load_spec",
    "run_sweep",
    "run_together",
    "training",
]
