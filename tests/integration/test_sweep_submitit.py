"""The submitit example of the documentation, as it stands, in Slurm jobs and in submitit's own local ones."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from parityscope.records import Store
from parityscope.runs import InProcess, load_spec, run_sweep
from sweep_specs import PACKED, contents, written

pytestmark = pytest.mark.slow

pytest.importorskip("submitit", reason="needs submitit: pip install 'parityscope[cluster]'")
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "sweeps.md"


def run_example(tmp_path, env, replace=str):
    (example,) = re.findall(r"<!-- run by: .*?```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    small = replace(example.replace("jobs=32", "jobs=2").replace("pack=100", "pack=3"))
    spec = written(tmp_path / "rates.py", PACKED, "[Point(x=x) for x in range(6)]")
    done = subprocess.run(
        [sys.executable, "-c", small], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert "Summary(done=6, failed=0, run_now=6)" in done.stdout, done.stderr
    run_sweep(load_spec(spec, pack=3), Store(tmp_path / "here"), InProcess())
    assert contents(tmp_path / "rates" / "store") == contents(tmp_path / "here")


def test_the_example_of_the_documentation_runs_in_local_jobs(tmp_path):
    def local(example):
        assert example.count('AutoExecutor("submitit-logs")') == 1
        return example.replace('AutoExecutor("submitit-logs")', 'AutoExecutor("submitit-logs", cluster="local")')

    run_example(tmp_path, os.environ, local)


def test_the_example_of_the_documentation_runs_in_slurm_jobs(tmp_path, slurm):
    before = set(slurm.jobs())
    run_example(tmp_path, slurm.env)
    assert len(set(slurm.jobs()) - before) == 2  # one for each pack
