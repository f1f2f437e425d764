"""A file is the old one or the whole new one, and what killed writers left goes."""

import os
import subprocess
import sys
import time

import pytest

from parityscope.core.files import remove_leftovers, write_atomically

# A writer that is killed with -9 when it has written and not yet renamed.
KILLED = """
import os, sys
from pathlib import Path
from parityscope.core.files import write_atomically
os.fsync = lambda file: os.kill(os.getpid(), 9)
write_atomically(Path(sys.argv[1]), b"new")
"""


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_what_a_killed_writer_left_goes_and_what_a_living_one_writes_stays(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=120)
    assert killed.returncode == -9
    assert path.read_bytes() == b"old"
    (left,) = tmp_path.glob(".*.part")
    living = tmp_path / f".file.{os.getpid()}.part"
    living.touch()
    remove_leftovers(tmp_path)  # another machine may have a process of that number, which is writing
    assert left.exists()
    for part in (left, living):
        os.utime(part, (time.time() - 11,) * 2)
    remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [living, path]
