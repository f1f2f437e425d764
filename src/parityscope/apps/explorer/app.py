"""The web application: one page, a WebSocket for live trainings, questions as JSON."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import sys
import threading
from asyncio import wrap_future
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import torch
import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response, WebSocket
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import parityscope
from parityscope.apps.explorer.chain import ChainSettings, Decoders
from parityscope.apps.explorer.landscape import LandscapeSettings, landscape
from parityscope.apps.explorer.learn import CLOSED_FORM_BITS, MOST_HIDDEN, SPLIT_BITS, LiveSettings, read_request
from parityscope.apps.explorer.live import TRAINING_THREAD, Client
from parityscope.apps.explorer.one_step import OneStepSettings, one_step
from parityscope.apps.explorer.polytope import PolytopeSettings, polytope
from parityscope.apps.explorer.results import Results
from parityscope.apps.explorer.your_data import LARGEST_TABLE, FitSettings, ShuffleSettings, Tables
from parityscope.core.errors import InvalidInput
from parityscope.training.recipes import DEFAULT_RECIPE, RECIPES, PositionCode

_LONGEST_REQUEST = 20_000  # bytes, of a body and of a message on a socket
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_STATIC = Path(__file__).parent / "static"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline';"
        " frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def create_app(store: Path | None = None, hosts: tuple[str, ...] = _LOOPBACK) -> FastAPI:
    """Return the application for one user; `hosts` are the names it answers to, "*" any."""
    # Computations are made one after the other, by one thread: live trainings have the other cores.
    worker = ThreadPoolExecutor(1, "parityscope-ask", initializer=torch.set_num_threads, initargs=(1,))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        worker.shutdown(wait=False, cancel_futures=True)

    app = FastAPI(title="parityscope explorer", version=parityscope.__version__, lifespan=lifespan, docs_url=None)
    for kind in (InvalidInput, HTTPException):
        app.add_exception_handler(kind, _sentence)
    # What is added last comes first. Other names must not be pointed here (DNS rebinding).
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    app.add_middleware(_Guard)
    _add_page(app, own_store=store is not None)
    tables = Tables()
    _add_questions(app, worker, tables)
    _add_tables(app, worker, tables)
    _add_results(app, worker, Results(store))
    _add_live(app)
    return app


class _Guard:
    """Refuses requests and sockets of other sites' pages, and says what this one's page may load."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] in ("http", "websocket") else Headers()
        # Without closing, a server would read whatever is left of a body to find the next request.
        closing = {"Connection": "close"} if "content-length" in headers or "transfer-encoding" in headers else {}

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS | closing)
            await send(message)

        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            await JSONResponse({"message": "this origin is not served"}, 403)(scope, receive, with_headers)
        else:
            await self._app(scope, receive, with_headers)


def _add_page(app: FastAPI, *, own_store: bool) -> None:
    """The page itself, and what it needs to know first."""

    @app.get("/")
    async def page() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    @app.get("/plotly.js")
    async def plotly() -> FileResponse:
        return FileResponse(Path(str(files("plotly") / "package_data" / "plotly.min.js")), media_type="text/javascript")

    @app.get("/api/about")
    async def about() -> dict[str, Any]:
        return _about() | {"own_store": own_store}

    app.mount("/static", StaticFiles(directory=_STATIC), name="static")


def _add_questions(app: FastAPI, worker: ThreadPoolExecutor, tables: Tables) -> None:
    """Computations with one answer; each takes the settings of its tab as JSON."""

    @app.post("/api/snippet")
    async def snippet(request: Request) -> dict[str, str]:
        asked = await _json(request)
        step = asked.pop("step", 0)
        if not isinstance(step, int) or step < 0:
            raise InvalidInput(f"step must be 0 or more, got {step!r}")
        settings = read_request(LiveSettings, asked)
        settings.resolved()
        return {"snippet": settings.snippet(step)}

    def add(path: str, kind: type[BaseModel], answer: Callable[[Any], dict[str, Any]]) -> None:
        @app.post(path)
        async def question(request: Request) -> dict[str, Any]:
            return await wrap_future(worker.submit(answer, read_request(kind, await _json(request))))

    add("/api/landscape", LandscapeSettings, landscape)
    add("/api/polytope", PolytopeSettings, polytope)
    add("/api/one-step", OneStepSettings, one_step)
    add("/api/chain", ChainSettings, Decoders().look)
    add("/api/fit", FitSettings, tables.fit)
    add("/api/shuffled", ShuffleSettings, tables.shuffled)


def _add_tables(app: FastAPI, worker: ThreadPoolExecutor, tables: Tables) -> None:
    """Tables that users drop on the page: they are read and searched here, and go nowhere."""

    @app.post("/api/table")
    async def take(request: Request, name: str) -> dict[str, Any]:
        return await wrap_future(worker.submit(tables.take, name, await _body(request, LARGEST_TABLE)))

    @app.get("/api/table/{key}")
    async def about(key: str) -> dict[str, Any]:
        return tables.about(key)

    @app.get("/api/table/{key}/progress")
    async def progress(key: str) -> dict[str, Any]:
        return tables.progress(key)


def _add_results(app: FastAPI, worker: ThreadPoolExecutor, results: Results) -> None:
    """What is stored in the folder that was named at the start."""

    @app.get("/api/results")
    async def summary() -> dict[str, Any]:
        return await wrap_future(worker.submit(results.summary))

    @app.get("/api/results/{name}")
    async def experiment(name: str) -> dict[str, Any]:
        return await wrap_future(worker.submit(results.experiment, name))

    @app.get("/api/results/{name}/figure.svg")
    async def figure(name: str, theme: str = "light") -> Response:
        drawn = await wrap_future(worker.submit(results.figure, name, theme))
        return Response(drawn, media_type="image/svg+xml")


def _add_live(app: FastAPI) -> None:
    """Trainings, one for each page that is open, and how many there are."""
    pages: set[WebSocket] = set()

    @app.get("/api/health")
    async def health() -> dict[str, int]:
        return {
            "clients": len(pages),
            "trainings": sum(thread.name == TRAINING_THREAD for thread in threading.enumerate()),
            "tasks": len(asyncio.all_tasks()),
        }

    @app.websocket("/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        pages.add(socket)
        try:
            await Client(socket).serve()
        finally:
            pages.remove(socket)


def serve(
    host: str = "127.0.0.1",
    port: int = 8321,
    store: Path | None = None,
    on_ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the explorer until interrupted. Only this machine is answered unless `host` says otherwise.

    `on_ready` is told the address once the port is this server's. What is missing is said before the port is opened:
    """
    name = f"[{host}]" if ":" in host else host
    app = create_app(store, ("*",) if host in ("0.0.0.0", "::", "") else (*_LOOPBACK, name))
    # Trainings and the event loop take the interpreter lock in turns of well under a millisecond; 5 ms, the default,
    # would make each of them wait for the other most of the time.
    sys.setswitchinterval(5e-4)
    with _listening(host, port) as listening, suppress(KeyboardInterrupt):
        on_ready(f"http://{name}:{port}/")
        uvicorn.Server(server_config(app)).run(sockets=[listening])


def server_config(app: FastAPI, **more: Any) -> uvicorn.Config:
    """Return how the application is served: messages on a socket have the limit of other requests."""
    return uvicorn.Config(
        app,
        log_level="warning",
        ws_max_size=_LONGEST_REQUEST,
        ws_ping_interval=20,
        ws_per_message_deflate=False,  # it costs more than this machine saves by it
        timeout_graceful_shutdown=2,
        **more,
    )


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that has the port; one that is taken, or no address of this machine, is a sentence."""
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InvalidInput(
                f"port {port} of {host or 'this machine'} is taken: choose another with --port"
            ) from None
        raise InvalidInput(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None


async def _body(request: Request, most: int = _LONGEST_REQUEST) -> bytes:
    """Return a whole body, of which no more than `most` bytes are read, whatever the headers promise."""
    declared, content = request.headers.get("content-length", ""), bytearray()
    too_long = declared.isdigit() and int(declared[:18]) > most  # of more digits Python may refuse to make a number
    if not too_long:
        async for chunk in request.stream():
            content += chunk
            too_long = len(content) > most
            if too_long:
                break
    if too_long:
        raise HTTPException(413, f"a request has at most {most} bytes")
    return bytes(content)


async def _json(request: Request) -> dict[str, Any]:
    try:
        asked = json.loads(await _body(request))
    except ValueError:
        raise InvalidInput("a request is a JSON object") from None
    if not isinstance(asked, dict):
        raise InvalidInput("a request is a JSON object")
    return asked


async def _sentence(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JSONResponse({"message": error.detail}, error.status_code, error.headers)
    return JSONResponse({"message": str(error)}, 422)


def _about() -> dict[str, Any]:
    return {
        "version": parityscope.__version__,
        "recipes": [
            {"name": recipe.name, "summary": recipe.summary, "positions": recipe.positions}
            for recipe in RECIPES.values()
        ],
        "default_recipe": DEFAULT_RECIPE,
        "positions": list(get_args(PositionCode)),
        "limits": {"n": CLOSED_FORM_BITS, "k": MOST_HIDDEN, "split": SPLIT_BITS},
    }
