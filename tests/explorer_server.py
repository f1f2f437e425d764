"""A real server on a port of its own, for tests that talk to it as a browser does."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Server:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, bytes, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read(), response.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), error.headers

    def json(self, path: str, body: Any = None) -> tuple[int, Any]:
        status, content, _ = self.ask(path, body)
        return status, json.loads(content)

    def wait_for_health(self, seconds: float = 20, **expected: int) -> dict[str, int]:
        end = time.monotonic() + seconds
        while True:
            health = self.json("/api/health")[1]
            if all(health[name] == value for name, value in expected.items()) or time.monotonic() > end:
                return health
            time.sleep(0.05)


@contextmanager
def running_explorer(store: Path | None = None) -> Iterator[Server]:
    import uvicorn

    from parityscope.apps.explorer.app import create_app, server_config

    server = uvicorn.Server(server_config(create_app(store), port=0))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        yield Server(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
