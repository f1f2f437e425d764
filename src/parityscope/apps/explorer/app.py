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
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar, get_args
from urllib.parse import urlsplit

import torch
import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response, WebSocket
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

import parityscope
from parityscope.apps.explorer.chain import ChainSettings, Decoders
from parityscope.apps.explorer.landscape import LandscapeSettings, landscape
from parityscope.apps.explorer.learn import CLOSED_FORM_BITS, MOST_HIDDEN, SPLIT_BITS, LiveSettings, read_request
from parityscope.apps.explorer.live import TRAINING_THREAD, Client
from parityscope.apps.explorer.one_step import OneStepSettings, one_step
from parityscope.apps.explorer.polytope import PolytopeSettings, polytope
from parityscope.apps.explorer.results import Results
from parityscope.apps.explorer.tree import TreeSettings, learned_tree
from parityscope.apps.explorer.your_data import LARGEST_TABLE, FitSettings, ShuffleSettings, Tables, example_table
from parityscope.core.errors import InvalidInput
from parityscope.training.recipes import DEFAULT_RECIPE, RECIPES, PositionCode

T = TypeVar("T")

_LONGEST_REQUEST = 20_000  # bytes, of a body and of a message on a socket
_HEADER_SECONDS, _BODY_SECONDS = 10.0, 30.0  # for a request to arrive
_LOOK_SECONDS = 0.25  # between two looks whether who asked is still there
_MOST_WAITING = {"questions": 32, "searches": 4}
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")
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
    worker, searcher = _Lane("questions"), _Lane("searches")  # a search of a minute keeps no question waiting

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for lane in (worker, searcher):
            lane.end()

    app = FastAPI(
        title="parityscope explorer",
        version=parityscope.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    for kind in (InvalidInput, HTTPException, Exception):
        app.add_exception_handler(kind, _sentence)
    # What is added last comes first. Other names must not be pointed here (DNS rebinding).
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    app.add_middleware(_Guard)
    _add_page(app, own_store=store is not None)
    tables = Tables()
    _add_questions(app, worker)
    _add_tables(app, searcher, tables)
    _add_results(app, worker, Results(store))
    _add_live(app, worker, searcher)
    return app


class _Lane:
    """Computations of a kind, made one after the other by a thread of their own: live trainings have the other cores.

    What nobody waits for any more is not begun; a search that is under way stops where it next says how far it is.
    """

    def __init__(self, name: str) -> None:
        self.name, self.waiting = name, 0
        self._thread = ThreadPoolExecutor(1, f"parityscope-{name}", initializer=torch.set_num_threads, initargs=(1,))

    async def answer(self, request: Request, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Return what the work gives, as long as who asked is there to hear it."""
        if self.waiting >= _MOST_WAITING[self.name]:
            raise HTTPException(503, f"{self.waiting} {self.name} are waiting already: ask again later")
        self.waiting += 1
        future = self._thread.submit(work, *arguments, **options)
        told = asyncio.ensure_future(wrap_future(future))
        try:
            while not (await asyncio.wait([told], timeout=_LOOK_SECONDS))[0]:
                if await request.is_disconnected():
                    raise HTTPException(499, "who asked has left")
            return told.result()
        finally:
            self.waiting -= 1
            told.cancel()  # and with it what has not begun

    def end(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)


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

        if _from_elsewhere(headers, scope.get("path")):
            await JSONResponse({"message": "this origin is not served"}, 403)(scope, receive, with_headers)
        else:
            await self._app(scope, receive, with_headers)


def _from_elsewhere(headers: Headers, path: str | None) -> bool:
    """Say whether a request comes from another site's page; a link to the page itself may stand anywhere."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None:
        try:
            return urlsplit(origin).netloc != headers.get("host")
        except ValueError:  # such as http://[
            return True
    linked = path == "/" and headers.get("sec-fetch-mode") == "navigate"
    return site not in ("none", "same-origin") and not linked


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


def _add_questions(app: FastAPI, worker: _Lane) -> None:
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
            return await worker.answer(request, answer, read_request(kind, await _json(request)))

    add("/api/landscape", LandscapeSettings, landscape)
    add("/api/polytope", PolytopeSettings, polytope)
    add("/api/one-step", OneStepSettings, one_step)
    add("/api/chain", ChainSettings, Decoders().look)
    add("/api/tree", TreeSettings, learned_tree)


def _add_tables(app: FastAPI, searcher: _Lane, tables: Tables) -> None:
    """Tables that users drop on the page: they are read and searched here, and go nowhere."""

    @app.get("/example.csv")
    async def example() -> Response:
        return Response(example_table(), media_type="text/csv")

    @app.post("/api/table")
    async def take(request: Request, name: str) -> dict[str, Any]:
        return await searcher.answer(request, tables.take, name, await _body(request, LARGEST_TABLE))

    @app.post("/api/fit")
    async def fit(request: Request) -> dict[str, Any]:
        asked, left = read_request(FitSettings, await _json(request)), threading.Event()
        try:
            return await searcher.answer(request, tables.fit, asked, left)
        finally:
            left.set()

    @app.post("/api/shuffled")
    async def shuffled(request: Request) -> dict[str, Any]:
        return await searcher.answer(request, tables.shuffled, read_request(ShuffleSettings, await _json(request)))

    @app.get("/api/table/{key}")
    async def about(key: str) -> dict[str, Any]:
        return tables.about(key)

    @app.get("/api/table/{key}/progress")
    async def progress(key: str) -> dict[str, Any]:
        return tables.progress(key)


def _add_results(app: FastAPI, worker: _Lane, results: Results) -> None:
    """What is stored in the folder that was named at the start."""

    @app.get("/api/results")
    async def summary(request: Request) -> dict[str, Any]:
        return await worker.answer(request, results.summary)

    @app.get("/api/results/{name}")
    async def experiment(request: Request, name: str) -> dict[str, Any]:
        return await worker.answer(request, results.experiment, name)

    @app.get("/api/results/{name}/figure.svg")
    async def figure(request: Request, name: str, theme: str = "light") -> Response:
        drawn = await worker.answer(request, results.figure, name, theme)
        return Response(drawn, media_type="image/svg+xml")


def _add_live(app: FastAPI, *lanes: _Lane) -> None:
    """Trainings, one for each page that is open, and how many there are."""
    pages: set[WebSocket] = set()

    @app.get("/api/health")
    async def health() -> dict[str, int]:
        return {
            "clients": len(pages),
            "trainings": sum(thread.name == TRAINING_THREAD for thread in threading.enumerate()),
            "tasks": len(asyncio.all_tasks()),
            **{lane.name: lane.waiting for lane in lanes},
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
    if not host:
        raise InvalidInput("the host is empty: 127.0.0.1 is this machine alone, 0.0.0.0 whoever reaches it")
    name = f"[{host}]" if ":" in host else host
    app = create_app(store, ("*",) if host in _EVERYWHERE else (*_LOOPBACK, name))
    # Trainings and the event loop take the interpreter lock in turns of well under a millisecond; 5 ms, the default,
    # would make each of them wait for the other most of the time.
    sys.setswitchinterval(5e-4)
    with _listening(host, port) as listening, suppress(KeyboardInterrupt):
        on_ready(f"http://{name}:{port}/")
        uvicorn.Server(server_config(app)).run(sockets=[listening])


def is_open(host: str) -> bool:
    """Say whether others than this machine reach an address.

    >>> is_open("0.0.0.0"), is_open("127.0.0.1"), is_open("::1"), is_open("localhost")
    (True, False, False, False)
    """
    try:
        return not ip_address(host).is_loopback
    except ValueError:  # a name
        return host != "localhost"


def server_config(app: FastAPI, **more: Any) -> uvicorn.Config:
    """Return how the application is served: messages on a socket have the limit of other requests."""
    return uvicorn.Config(
        app,
        log_level="warning",
        ws_max_size=_LONGEST_REQUEST,
        ws_ping_interval=20,
        ws_per_message_deflate=False,  # it costs more than this machine saves by it
        timeout_graceful_shutdown=2,
        http=_Impatient,
        **more,
    )


class _Impatient(H11Protocol):
    """A connection that is closed when a request's headers do not arrive: uvicorn itself would wait for ever."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Let a clock run from a connection's first moment, or a request's first byte, until its headers are there."""
        answered = self.cycle is None or self.cycle.response_complete
        if answered and self._timer is None:
            self._timer = self.loop.call_later(_HEADER_SECONDS, self._give_up)
        elif not answered and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        # A socket has a protocol of its own by now.
        if self.transport.get_protocol() is self and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that has the port; one that is taken, or no address of this machine, is a sentence."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise InvalidInput(f"port {port} of {host} is taken: choose another with --port") from None
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot listen on {host}, port {port}: {reason}") from None


async def _body(request: Request, most: int = _LONGEST_REQUEST) -> bytes:
    """Return a whole body, of which no more than `most` bytes are read, whatever the headers promise."""
    declared, content = request.headers.get("content-length", ""), bytearray()
    too_long = declared.isdigit() and int(declared[:18]) > most  # of more digits Python may refuse to make a number
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            stream = request.stream()
            while not too_long and (chunk := await anext(stream, None)) is not None:
                content += chunk
                too_long = len(content) > most
    except ClientDisconnect:
        raise HTTPException(499, "who asked has left") from None
    except TimeoutError:
        raise HTTPException(408, f"the request did not arrive within {_BODY_SECONDS:g} seconds") from None
    if too_long:
        raise HTTPException(413, f"a request has at most {most} bytes")
    return bytes(content)


async def _json(request: Request) -> dict[str, Any]:
    try:
        asked = json.loads(await _body(request))
    except (ValueError, RecursionError):
        raise InvalidInput("a request is a JSON object") from None
    if not isinstance(asked, dict):
        raise InvalidInput("a request is a JSON object")
    return asked


async def _sentence(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JSONResponse({"message": error.detail}, error.status_code, error.headers)
    if isinstance(error, InvalidInput):
        return JSONResponse({"message": str(error)}, 422)
    failed = f"this failed inside ({type(error).__name__}): the terminal that runs parityscope explore has the details"
    return JSONResponse({"message": failed}, 500)  # and the server still logs it


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
