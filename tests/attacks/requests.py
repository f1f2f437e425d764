"""Bad HTTP requests: bytes that no browser sends, and requests that other sites' pages would."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator

PATHS = tuple(
    f"/api/{name}" for name in ("snippet", "landscape", "polytope", "one-step", "chain", "tree", "fit", "shuffled")
)
VALUES = (None, True, -1, 0, 10**30, 1e308, "", "x", [], {}, [[]], "\x00", "9" * 400, [1] * 999)
FIELDS = ("n", "k", "support", "recipe", "seed", "temperature", "steps", "table", "target", "positive", "more", "step")
FIELDS += ("d", "link", "training", "examples", "bits", "secret")


def bad_requests() -> list[bytes]:
    """Return requests as they go over the wire."""
    return [*_bodies(), *_headers(), *_lines(), *_noise()]


def request(path: str, body: bytes = b"", method: str = "POST", **headers: str) -> bytes:
    """Return a request with a body of its length."""
    told = {"Host": "127.0.0.1", "Content-Length": str(len(body)), "Connection": "close", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in told.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def _bodies() -> Iterator[bytes]:
    odd = (
        b"",
        b"{",
        b"[",
        b"[" * 19_000,
        b'{"a":' * 3000,
        b"\xff",
        b"null",
        b"3",
        b'""',
        b"{}" * 9,
        b"x" * 20_001,
        b"\0",
    )
    for path in (*PATHS, "/api/table?name=x.csv", "/api/table?name=", "/api/table"):
        for body in odd:
            yield request(path, body)
        for number, field in enumerate(FIELDS):
            for value in VALUES[number % 2 :: 4]:
                yield request(path, json.dumps({field: value}).encode())


def _headers() -> Iterator[bytes]:
    for host in ("", "[", "]", "[::1", "evil.example", "127.0.0.1:99999", "a" * 999, "127.0.0.1, evil", "\xff", "@"):
        yield request("/", method="GET", Host=host)
        yield request("/api/snippet", b"{}", Host=host)
    for origin in (
        "http://[",
        "null",
        "http://evil.example",
        "http://127.0.0.1.evil",
        "",
        "://",
        "\xff",
        "http://[::1",
    ):
        yield request("/api/about", method="GET", Origin=origin)
        yield request("/api/snippet", b"{}", Origin=origin)
    for site in ("cross-site", "same-site", "x"):
        yield request("/api/about", method="GET", Sec_Fetch_Site=site)
        yield request("/api/results", method="GET", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")
    for length in ("-1", "x", "1e3", "9" * 5000, "1, 2", ""):
        yield request("/api/snippet", b"{}", Content_Length=length)
    for coding in ("chunked, chunked", "gzip", "x", "identity"):
        yield request("/api/snippet", b"zz\r\n{}\r\n0\r\n\r\n", Transfer_Encoding=coding)
    for path in ("/live", "/live?x"):
        yield request(path, method="GET", Upgrade="websocket", Sec_WebSocket_Version="99", Connection="Upgrade")


def _lines() -> Iterator[bytes]:
    places = (
        "/redoc",
        "/docs",
        "/openapi.json",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/%00",
        "//",
        "/%ff",
    )
    more = (
        "/api/results/%2e%2e",
        "/api/results/x/figure.svg?theme=%00",
        "/api/table/x",
        "/api/table/x/progress",
        "/?" + "a" * 9000,
    )
    for path in (*places, *more):
        for method in ("GET", "POST", "HEAD", "PUT", "TRACE", "X"):
            yield request(path, method=method)
    yield from (
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01",
        b"G" * 70_000,
    )


def _noise() -> Iterator[bytes]:
    chance, whole = random.Random(2), request("/api/snippet", b'{"n": 16}')
    for _ in range(60):
        changed = bytearray(whole)
        for _ in range(3):
            changed[chance.randrange(len(changed) - 9)] = chance.randrange(256)
        yield bytes(changed)


def answered(port: int, content: bytes, seconds: float = 60.0) -> str | None:
    """Send a request and say what is wrong with the answer: a fault of the server, or none in time."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        answer = b""
        try:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(2**16):
                answer += part
        except TimeoutError:
            return "hang"
        except ConnectionError:
            pass  # cut off, which is an answer too
    status = answer.split(b" ")[1:2]
    if status and status[0][:1] == b"5" and status[0] != b"503":
        return f"status {status[0].decode()}"
    return "traceback sent" if b"Traceback" in answer else None
