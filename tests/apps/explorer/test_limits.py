"""However a long request arrives, little of it is read, the answer is a sentence, and the server goes on."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the explorer's web server is not installed")
websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")

from websockets.exceptions import ConnectionClosed  # noqa: E402

from explorer_server import Server, running_explorer  # noqa: E402
from parityscope.apps.explorer import app as app_module  # noqa: E402

LARGEST_TABLE, LONGEST_REQUEST = app_module.LARGEST_TABLE, app_module._LONGEST_REQUEST
SENTENCE = {"message": f"a request has at most {LONGEST_REQUEST} bytes"}
CHUNK = b"x" * 4096
OWN_PROGRAM = """
import sys; sys.path.insert(0, sys.argv[1])
from explorer_server import running_explorer
with running_explorer() as server:
    print(server.port, flush=True)
    sys.stdin.read()
"""


# The application, without a server


def asked(headers=(), chunks=(), path="/api/snippet", host=b"localhost"):
    """Return the status and the answer, and how many chunks were read."""
    told, left = [], list(chunks)

    async def receive():
        if not left:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message):
        told.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"name=t.csv",
        "headers": [(b"host", host), *headers],
    }
    asyncio.run(app_module.create_app()(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in told)
    answer = json.loads(body) if body.startswith(b"{") else body.decode()
    return told[0]["status"], answer, len(chunks) - len(left)


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"10")], [(b"content-length", b"many")]])
@pytest.mark.parametrize("path", ["/api/snippet", "/api/chain"])
def test_a_body_longer_than_it_says_is_read_up_to_the_limit(headers, path):
    status, answer, read = asked(headers, [CHUNK] * 1000, path)
    assert (status, answer) == (413, SENTENCE)
    assert read == LONGEST_REQUEST // len(CHUNK) + 1


@pytest.mark.parametrize("length", [b"20001", b"9" * 30, b"9" * 5000])
def test_a_body_that_is_announced_as_too_long_is_not_read(length):
    assert asked([(b"content-length", length)], [CHUNK] * 1000) == (413, SENTENCE, 0)


def test_a_body_in_chunks_up_to_the_limit_is_answered():
    body = json.dumps({"n": 16, "k": 3}).encode()
    padded = body + b" " * (LONGEST_REQUEST - len(body))
    status, answer, _ = asked(chunks=[padded[i : i + 1000] for i in range(0, len(padded), 1000)])
    assert status == 200
    assert "ps.learn" in answer["snippet"]
    assert asked(chunks=[padded, b" "])[0] == 413


MEGABYTE = b"1" * 1_000_000


def test_a_table_of_more_than_fifty_megabytes_is_not_read_on():
    status, answer, read = asked(chunks=[MEGABYTE] * 60, path="/api/table")
    assert (status, answer) == (413, {"message": f"a request has at most {LARGEST_TABLE} bytes"})
    assert read == 51
    declared = [(b"content-length", str(LARGEST_TABLE + 1).encode())]
    assert asked(declared, [MEGABYTE] * 3, "/api/table")[::2] == (413, 0)


@pytest.mark.parametrize(
    ("more", "path", "answered", "most"),
    [
        ({"host": b"evil.example"}, "/api/table", 400, 0),
        ({"headers": [(b"origin", b"http://evil.example")]}, "/api/table", 403, 0),
        ({}, "/api/table/", 307, 0),
        ({}, "/api/fit", 413, 1),
    ],
)
def test_nobody_else_and_no_other_path_gets_the_larger_limit(more, path, answered, most):
    status, _, read = asked(chunks=[MEGABYTE] * 5, path=path, **more)
    assert (status, read) == (answered, most)


@pytest.mark.parametrize(
    "content", [b"{", b"[1]", b'"n"', b"\xff\xfe", b'{"n": NaN}', b'{"n": 1e999}', b'{"n": ' + b"9" * 5000 + b"}"]
)
def test_what_is_no_object_of_numbers_is_refused_in_a_sentence(content):
    status, answer, _ = asked(chunks=[content])
    assert status == 422
    assert len(answer["message"]) < 6000


@pytest.mark.parametrize("path", ["/", "/api/nowhere", "/api/about"])
def test_a_body_that_nobody_asked_for_is_not_read(path):
    status, _, read = asked(chunks=[CHUNK] * 1000, path=path)
    assert (status in (404, 405), read) == (True, 0)


def test_the_server_of_the_command_has_the_same_limit(monkeypatch):
    served, told = [], []
    monkeypatch.setattr(app_module.uvicorn.Server, "run", lambda self, sockets: served.append((self.config, sockets)))
    monkeypatch.setattr(app_module.sys, "setswitchinterval", lambda _: None)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app_module.serve(port=port, on_ready=told.append)
    ((config, (listening,)),) = served
    assert config.ws_max_size == LONGEST_REQUEST
    assert told == [f"http://127.0.0.1:{port}/"]
    assert listening.fileno() == -1  # closed when the server ended


@pytest.mark.parametrize(
    ("host", "sentence"),
    [("127.0.0.1", "port {} of 127.0.0.1 is taken: choose another with --port"), ("192.0.2.1", "cannot listen on 192")],
)
def test_a_port_that_cannot_be_had_is_one_sentence_before_the_address_is_told(monkeypatch, capsys, host, sentence):
    from parityscope.apps.cli import main

    monkeypatch.setattr(app_module.sys, "setswitchinterval", lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["parityscope", "explore", "--host", host, "--port", str(port)])
        with pytest.raises(SystemExit) as stopped:
            main()
    printed = capsys.readouterr()
    assert (stopped.value.code, printed.out) == (2, "")
    assert sentence.format(port) in printed.err
    assert "Traceback" not in printed.err


# A server in a process of its own, so that its memory can be watched


@pytest.fixture(scope="module")
def process():
    command = [sys.executable, "-c", OWN_PROGRAM, str(Path(__file__).parents[2])]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes, env={**os.environ, "OMP_NUM_THREADS": "1"}) as started:
        yield started
        started.stdin.close()
        assert started.wait(60) == 0


@pytest.fixture(scope="module")
def server(process):
    running = Server(int(process.stdout.readline()))
    assert running.json("/api/snippet", {"n": 16})[0] == 200  # everything is loaded before memory is looked at
    return running


def resident_megabytes(process):
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        pytest.skip("this system does not show a process's memory as a file")
    return int(status.read_text().partition("VmRSS:")[2].split()[0]) / 1024


def poured(server, head, piece, megabytes=64, asking="POST /api/snippet", host="127.0.0.1"):
    """Send pieces until the server will not have more; return how many bytes it took, and what it answered."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**16)
        sent, answer = 0, b""
        with suppress(ConnectionError):
            connection.sendall(f"{asking} HTTP/1.1\r\nHost: {host}\r\n{head}\r\n\r\n".encode())
            while sent < megabytes * 2**20:
                connection.sendall(piece)
                sent += len(piece)
        with suppress(ConnectionError):
            while part := connection.recv(2**16):
                answer += part
    return sent, answer


def chunk(content):
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        ("Transfer-Encoding: chunked", chunk(b"x" * 2**16)),
        ("Transfer-Encoding: chunked", chunk(b"x" * 100)),
        ("Content-Length: 100000000000", b"x" * 2**16),
        ("Content-Length: 10", b"x" * 2**16),
    ],
    ids=["large chunks", "small chunks", "announced", "more than announced"],
)
def test_a_flood_is_cut_off(process, server, head, piece):
    before = resident_megabytes(process)
    sent, answer = poured(server, head, piece)
    assert sent < 16 * 2**20  # what fits into buffers on the way, not what was offered
    # A reset may overtake the answer.
    assert not answer or answer.split()[1] in (b"413", b"400", b"422")
    assert resident_megabytes(process) < before + 30
    assert server.json("/api/snippet", {"n": 16})[0] == 200


@pytest.mark.parametrize(
    ("asking", "head", "host"),
    [
        ("POST /", "Transfer-Encoding: chunked", "127.0.0.1"),
        ("POST /api/nowhere", "Transfer-Encoding: chunked", "127.0.0.1"),
        ("GET /api/about", "Transfer-Encoding: chunked", "127.0.0.1"),
        ("POST /api/table?name=t.csv", "Transfer-Encoding: chunked\r\nOrigin: http://evil.example", "127.0.0.1"),
        ("POST /api/table?name=t.csv", "Transfer-Encoding: chunked", "evil.example"),
    ],
    ids=["page", "nowhere", "read nothing", "other origin", "other host"],
)
def test_a_flood_that_nobody_asked_for_is_cut_off(process, server, asking, head, host):
    before = resident_megabytes(process)
    sent, _ = poured(server, head, chunk(b"x" * 2**16), asking=asking, host=host)
    assert sent < 16 * 2**20
    assert resident_megabytes(process) < before + 30
    assert server.json("/api/snippet", {"n": 16})[0] == 200


def test_the_answer_to_a_long_body_in_chunks(server):
    """Slowly, so that nothing is under way when the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        head = b"POST /api/snippet HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + chunk(b"x" * LONGEST_REQUEST))
        time.sleep(0.3)
        connection.sendall(chunk(b"x"))
        answer = b""
        while part := connection.recv(2**16):
            answer += part
    first, _, rest = answer.partition(b"\r\n")
    assert b"413" in first
    assert json.loads(rest.partition(b"\r\n\r\n")[2]) == SENTENCE


def test_a_long_message_and_one_of_bytes(server):
    address = f"ws://127.0.0.1:{server.port}/live"
    with websockets.connect(address, origin=server.url) as live:
        live.send(b"{}")
        assert json.loads(live.recv(timeout=20))["message"] == "a command is a JSON object"
        live.send("x" * (LONGEST_REQUEST + 1))
        with pytest.raises(ConnectionClosed, match="1009"):
            live.recv(timeout=20)
    assert server.wait_for_health(clients=0)["clients"] == 0


def test_a_test_server_in_this_process_is_limited_too():
    with running_explorer() as running:
        assert poured(running, "Transfer-Encoding: chunked", chunk(b"x" * 2**16))[0] < 16 * 2**20
        assert running.json("/api/health")[1]["clients"] == 0
