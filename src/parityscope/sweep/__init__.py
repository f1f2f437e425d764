"""Many configs on any executor: packed into tensor programs, stored as they finish, never twice."""

from parityscope.sweep.launchers import DaskCluster, InProcess, Launcher, Processes, SlurmJobs
from parityscope.sweep.loop import Progress, Summary, run_sweep, run_together
from parityscope.sweep.spec import Work, load_spec

__all__ = [
    "DaskCluster",
    "InProcess",
    "Launcher",
    "Processes",
    "Progress",
    "SlurmJobs",
    "Summary",
    "Work",
    "load_spec",
    "run_sweep",
    "run_together",
]
