"""Fifty browsers at once: frames keep coming, memory stays bounded, and nothing is left when they vanish."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from explorer_server import Server

pytestmark = pytest.mark.slow

pytest.importorskip("fastapi", reason="the explorer's web server is not installed")
websockets = pytest.importorskip("websockets", reason="websockets is not installed")

CLIENTS, SECONDS = 50, 30
MEDIAN_SECONDS, BYTES = 0.25, 1.5e9
TRAIN = json.dumps({"do": "train", "pace": 1})


@pytest.fixture
def process(free_port):
    command = [
        sys.executable,
        "-c",
        "from parityscope.apps.cli import main; main()",
        "explore",
        "--port",
        str(free_port),
    ]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    yield started
    started.terminate()
    started.wait(20)


@pytest.fixture
def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def one_client(server, seed, end, gaps):
    """Train one run after the other at n = 16, then vanish without a word."""
    async with websockets.connect(f"ws://127.0.0.1:{server.port}/live", origin=server.url, max_size=2**22) as socket:
        last = None
        await socket.send(json.dumps({"do": "start", "settings": {"n": 16, "seed": seed}}))
        await socket.send(TRAIN)
        while time.monotonic() < end:
            message = await asyncio.wait_for(socket.recv(), 30)
            assert '"type": "error"' not in message
            if not message.startswith('{"type": "frame"'):
                continue
            await socket.send('{"do": "taken"}')
            now = time.monotonic()
            gaps += [] if last is None else [now - last]
            last = now
            if '"done": true' in message[-60:]:
                seed, last = seed + CLIENTS, None
                await socket.send(json.dumps({"do": "start", "settings": {"n": 16, "seed": seed}}))
                await socket.send(TRAIN)
        socket.transport.abort()


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_fifty_clients(process, free_port):
    server = Server(free_port)
    for _ in range(600):
        try:
            before = server.json("/api/health")[1]
            break
        except OSError:
            time.sleep(0.1)
    gaps = []

    async def all_clients():
        end = time.monotonic() + SECONDS
        await asyncio.gather(*(one_client(server, seed, end, gaps) for seed in range(CLIENTS)))

    started, used = time.monotonic(), cpu_seconds(process.pid)
    asyncio.run(all_clients())
    share = (cpu_seconds(process.pid) - used) / (time.monotonic() - started)
    memory = resident_bytes(process.pid)
    median = statistics.median(gaps)
    print(f"median {median * 1e3:.0f} ms between frames with {share:.2f} cores, {memory / 1e6:.0f} MB")
    # On a machine that is busy with other things the server gets less than the core it can use; time counts in the
    # share it got.
    assert median * min(1.0, share) < MEDIAN_SECONDS
    assert memory < BYTES
    assert server.wait_for_health(clients=0, trainings=0, tasks=before["tasks"]) == before
