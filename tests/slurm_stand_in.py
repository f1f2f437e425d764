"""Slurm's two commands as far as dask-jobqueue uses them: jobs are real processes, and their scripts are kept."""

import subprocess

SBATCH = """#!/bin/sh
jobs=$(dirname "$0")
cp "$1" "$jobs/job-$$.sh"
setsid sh "$jobs/job-$$.sh" > "$jobs/log-$$" 2>&1 < /dev/null &
echo $! >> "$jobs/started"
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job in "$@"; do kill -9 -- "-$job"; done
"""


def install_slurm(folder):
    """Put both programs into the folder, which a test then puts on PATH."""
    folder.mkdir(exist_ok=True)
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def started_jobs(folder):
    started = folder / "started"
    return started.read_text().split() if started.exists() else []


def end_jobs(folder):
    for job in started_jobs(folder):
        subprocess.run(["kill", "-9", "--", f"-{job}"], capture_output=True, check=False)
