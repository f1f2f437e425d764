"""The submitit example of the documentation, as it stands, with submitit's own local jobs in place of Slurm's."""

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


def test_the_example_of_the_documentation_runs(tmp_path):
    (example,) = re.findall(r"<!-- run by: .*?```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    local = example.replace('AutoExecutor("submitit-logs")', 'AutoExecutor("submitit-logs", cluster="local")')
    local = local.replace("jobs=32", "jobs=2").replace("pack=100", "pack=3")
    assert local.count("local") == 1
    spec = written(tmp_path / "rates.py", PACKED, "[Point(x=x) for x in range(6)]")
    done = subprocess.run(
        [sys.executable, "-c", local], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert "Summary(done=6, failed=0, run_now=6)" in done.stdout, done.stderr
    run_sweep(load_spec(spec, pack=3), Store(tmp_path / "here"), InProcess())
    assert contents(tmp_path / "rates" / "store") == contents(tmp_path / "here")
