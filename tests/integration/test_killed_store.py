"""kill -9 while rows are written: what was acknowledged is there, nothing is there twice, the store opens."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# A process that has torch loaded forks writers and kills them, so that a kill costs milliseconds.
SCRIPT = """
import json, os, random, signal, sys, time
from pathlib import Path
import torch
from parityscope.papers.h1.figures.figure_1 import WorkedExample
from parityscope.records import Outcome, Store
from parityscope.records.row import array_bytes

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
moment = random.Random(7)
payload = array_bytes({"x": torch.arange(2000.0)})
acknowledged, in_write = 0, 0
config = WorkedExample(temperature=0.5)
config.code()  # once, for all writers

def write_from(first, pipe):
    store = Store(folder)
    n = first
    while True:
        os.write(pipe, b"w")  # about to write three rows
        three = [(config.model_copy(update={"temperature": float(m)}), {"n": m}) for m in range(n, n + 3)]
        store.add_all([(one, Outcome(numbers, payload)) for one, numbers in three])
        os.write(pipe, b"d")  # they are durable
        n += 3

for kill in range(kills):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        write_from(acknowledged, writer)
    os.close(writer)
    if kill % 10:  # mostly in the middle of the work, sometimes while the store is being opened
        os.read(reader, 1)
    time.sleep(moment.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    said = b""
    while part := os.read(reader, 65536):
        said += part
    os.close(reader)
    in_write += said.endswith(b"w") or (kill % 10 > 0 and said == b"")
    store = Store(folder)
    numbers = sorted(row.numbers["n"] for row in store.rows())
    assert numbers == list(range(len(numbers))), "a row is missing or there twice"
    assert len(numbers) % 3 == 0, "rows of one commit were separated"
    assert len(numbers) >= acknowledged + 3 * said.count(b"d"), "an acknowledged row is lost"
    acknowledged = len(numbers)
    if acknowledged > 600:  # keep the check fast: start the next stretch in a fresh table of the same file
        assert store.damaged() == {}
        with store._database.writing() as connection:
            connection.execute("DELETE FROM rows")
        acknowledged = 0
assert Store(folder).damaged() == {}
print(json.dumps({"kills": kills, "in_write": in_write}))
"""


@pytest.mark.parametrize(("kills", "in_write"), [(30, 5), pytest.param(200, 50, marks=pytest.mark.long)])
def test_kills_during_writes_lose_nothing(tmp_path, kills, in_write):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["in_write"] >= in_write
