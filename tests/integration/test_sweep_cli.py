"""`parityscope sweep` and `rows` as a user meets them, also where there is no room."""

import json
import os
import signal
import subprocess

import pytest

from commands import COMMAND, ONE_THREAD, mounted, started, wait_for
from parityscope.records import Store
from sweep_specs import PACKED, TROUBLE, contents, written

pytestmark = pytest.mark.slow


def parityscope(*arguments):
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=ONE_THREAD, timeout=180, check=False)


def test_a_sweep_from_start_to_export(tmp_path):
    configs = '[Point(x=1), Point(x=2), Point(x=3, what="raise")]'
    spec, out = written(tmp_path / "spec.py", TROUBLE, configs), tmp_path / "out"
    first = parityscope("sweep", spec, "--out", out)
    assert first.returncode == 1
    assert "2 done, 1 failed, 3 of them now" in first.stdout
    assert "first failure: ValueError: no answer for 3" in first.stdout
    assert "--retry-failed runs them again" in first.stdout
    again = parityscope("sweep", spec, "--out", out, "--json")
    assert json.loads(again.stdout) == {"done": 2, "failed": 1, "run_now": 0, "store": str(out / "store")}
    rows = [json.loads(line) for line in parityscope("rows", out, "--where", "x=2").stdout.splitlines()]
    assert [row["numbers.square"] for row in rows] == [4]
    assert "ValueError: no answer for 3" in parityscope("rows", out, "--failed").stdout
    exported = parityscope("rows", out, "--export", tmp_path / "rows.csv")
    assert "2 rows written" in exported.stdout
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 3


def test_a_pack_that_falls_apart_is_said_also_beside_a_progress_bar(tmp_path):
    spec = written(tmp_path / "spec.py", PACKED, '[Point(x=0), Point(x=2, what="raise")]')
    done = parityscope("sweep", spec, "--out", tmp_path / "out")
    assert "1 done, 1 failed" in done.stdout
    assert "2 configs of Point failed together and are run one by one:" in done.stderr
    assert "RuntimeError: one of them is in trouble" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("sweep", "nowhere.py"), "nowhere.py"),
        (("sweep", "SPEC", "--slurm", "--scheduler", "tcp://127.0.0.1:1"), "--slurm and --scheduler are two places"),
        (("sweep", "SPEC", "--scheduler", "tcp://127.0.0.1:1", "--workers", 2), "leave --workers out"),
        (("sweep", "SPEC", "--slurm-option", "queue"), "--slurm-option 'queue' is not of the form"),
        (("sweep", "SPEC", "--workers", 0), "--workers"),
        (("sweep", "SPEC", "--out", "/proc/nowhere"), "/proc/nowhere"),
        (("rows", "nowhere"), "nowhere holds no rows"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path, monkeypatch, said, arguments, sentence):
    spec = written(tmp_path / "spec.py", TROUBLE, "[Point(x=1)]")
    monkeypatch.chdir(tmp_path)
    code, lines, errors = said(*(spec if argument == "SPEC" else argument for argument in arguments))
    assert (code, lines) == (2, [])
    assert sentence in errors


def test_ctrl_c_ends_the_workers_and_says_how_to_go_on(tmp_path):
    configs = "[Point(x=x, seconds=600 * (x > 1)) for x in range(60)]"  # two are quick, no worker finishes another
    spec, store = written(tmp_path / "spec.py", TROUBLE, configs), Store(tmp_path / "store")
    process = started("sweep", spec, "--workers", 2, "--out", tmp_path, start_new_session=True)
    wait_for(lambda: len(store.keys("trouble")) == 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the parent and to every worker
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; what was finished is stored, and the same command continues from there" in errors
    assert "Traceback" not in errors
    assert output == ""
    assert len(store.keys("trouble")) == 2


def test_a_full_disk_is_one_sentence_and_keeps_what_it_has(tmp_path):
    disk = mounted(tmp_path / "disk", "256k")
    try:
        spec = written(tmp_path / "spec.py", TROUBLE, "[Point(x=x) for x in range(2000)]")
        done = parityscope("sweep", spec, "--out", disk, "--pack", 20)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert "full" in done.stderr
        subprocess.run(["mount", "-o", "remount,size=8M", str(disk)], check=True)
        kept = len(Store(disk / "store").rows("trouble"))
        assert kept > 0
        assert Store(disk / "store").damaged() == {}
        more = parityscope("sweep", spec, "--out", disk, "--pack", 20, "--json")
        assert json.loads(more.stdout)["run_now"] == 2000 - kept
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_read_only_folder_is_one_sentence(tmp_path):
    disk = mounted(tmp_path / "disk", "1M")
    try:
        spec = written(tmp_path / "spec.py", TROUBLE, "[Point(x=1)]")
        assert parityscope("sweep", spec, "--out", disk).returncode == 0
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        spec.write_text(spec.read_text().replace("x=1", "x=2"))
        done = parityscope("sweep", spec, "--out", disk)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert str(disk) in done.stderr
        assert done.stderr.count("\n") <= 2
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_reproduce_on_workers_gives_the_rows_of_reproduce(tmp_path):
    arguments = ("reproduce", "phase-heads-noise", "engine-cost", "--scale", "smoke", "--out")
    for place, options in (("here", ()), ("there", ("--workers", 2))):
        done = parityscope(*arguments, tmp_path / place, *options)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / place / "report.html").exists()
    here, there = (contents(tmp_path / place / "store", "training") for place in ("here", "there"))
    assert len(here) > 0
    assert here == there
