"""The web application: one page, a WebSocket for live trainings, questions as JSON."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

import parityscope
from parityscope.apps.explorer.chain import ChainSettings, Decoders
from parityscope.apps.explorer.client import Client
from parityscope.apps.explorer.landscape import LandscapeSettings, landscape
from parityscope.apps.explorer.limits import LONGEST_REQUEST, RequestLimit
from parityscope.apps.explorer.live import TRAINING_THREAD
from parityscope.apps.explorer.one_step import OneStepSettings, one_step
from parityscope.apps.explorer.polytope import PolytopeSettings, polytope
from parityscope.apps.explorer.results import Results
from parityscope.apps.explorer.room import MOST_CLIENTS, Room
from parityscope.apps.explorer.settings import CLOSED_FORM_BITS, MOST_HIDDEN, SPLIT_BITS, LiveSettings, read_request
from parityscope.apps.explorer.your_data import LARGEST_TABLE, FitSettings, ShuffleSettings, Tables
from parityscope.core.errors import InvalidInput
from parityscope.training.recipes import DEFAULT_RECIPE, RECIPES, PositionCode

_TABLE = "/api/table"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
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


def create_app(store: Path | None = None, hosts: tuple[str, ...] | None = LOOPBACK) -> FastAPI:
    """Return the application; `hosts` are the names it answers to, None any (and then origins must match the name).

    >>> [route.path for route in create_app().routes if route.path.startswith("/api/results")]
    ['/api/results', '/api/results/{name}', '/api/results/{name}/figure.svg']
    """
    room = Room()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        room.close()

    app = FastAPI(title="parityscope explorer", version=parityscope.__version__, lifespan=lifespan, docs_url=None)
    app.state.room = room
    app.add_exception_handler(InvalidInput, _sentence)

    _guard(app, hosts)
    # Around everything: what is added last comes first.
    app.add_middleware(RequestLimit, larger={_TABLE: LARGEST_TABLE}, welcome=partial(_welcome, hosts=hosts))
    _add_page(app, own_store=store is not None)
    _add_questions(app, room, Decoders())
    _add_tables(app, room, Tables())
    _add_results(app, room, Results(store))
    _add_live(app, room, hosts)
    return app


def _guard(app: FastAPI, hosts: tuple[str, ...] | None) -> None:
    """Refuse foreign addresses and origins, and say what a page may load."""

    @app.middleware("http")
    async def guarded(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        if not _welcome(request.headers, hosts):
            return JSONResponse({"message": "this address or origin is not served"}, 403)
        response = await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response


def _add_page(app: FastAPI, *, own_store: bool) -> None:
    """The page itself, and what it needs to know first."""

    @app.get("/")
    async def page() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    @app.get("/plotly.js")
    async def plotly() -> FileResponse:
        return FileResponse(_plotly_script(), media_type="text/javascript")

    @app.get("/api/about")
    async def about() -> dict[str, Any]:
        return _about() | {"own_store": own_store}

    app.mount("/static", StaticFiles(directory=_STATIC), name="static")


def _add_questions(app: FastAPI, room: Room, decoders: Decoders) -> None:
    """Computations with one answer."""

    @app.post("/api/snippet")
    async def snippet(request: Request) -> dict[str, str]:
        asked = await _body(request)
        step = asked.pop("step", 0)
        if not isinstance(step, int) or step < 0:
            raise InvalidInput(f"step must be 0 or more, got {step!r}")
        settings = read_request(LiveSettings, asked)
        settings.resolved()
        return {"snippet": settings.snippet(step)}

    @app.post("/api/landscape")
    async def over_angles(request: Request) -> dict[str, Any]:
        return await room.ask(landscape, read_request(LandscapeSettings, await _body(request)))

    @app.post("/api/polytope")
    async def faces(request: Request) -> dict[str, Any]:
        return await room.ask(polytope, read_request(PolytopeSettings, await _body(request)))

    @app.post("/api/one-step")
    async def before_and_after(request: Request) -> dict[str, Any]:
        return await room.ask(one_step, read_request(OneStepSettings, await _body(request)))

    @app.post("/api/chain")
    async def chain(request: Request) -> dict[str, Any]:
        return await room.ask(decoders.look, read_request(ChainSettings, await _body(request)))


def _add_tables(app: FastAPI, room: Room, tables: Tables) -> None:
    """Tables that users drop on the page: they are read and searched here, and go nowhere."""

    @app.post(_TABLE)
    async def take(request: Request, name: str) -> dict[str, Any]:
        return await room.search(tables.take, name, await request.body())

    @app.get("/api/table/{key}")
    async def about(key: str) -> dict[str, Any]:
        return tables.about(key)

    @app.get("/api/table/{key}/progress")
    async def progress(key: str) -> dict[str, Any]:
        return tables.progress(key)

    @app.post("/api/fit")
    async def fit(request: Request) -> dict[str, Any]:
        return await room.search(tables.fit, read_request(FitSettings, await _body(request)))

    @app.post("/api/shuffled")
    async def shuffled(request: Request) -> dict[str, Any]:
        return await room.search(tables.shuffled, read_request(ShuffleSettings, await _body(request)))


def _add_results(app: FastAPI, room: Room, results: Results) -> None:
    """What is stored in the folder that was named at the start."""

    @app.get("/api/results")
    async def summary() -> dict[str, Any]:
        return await room.ask(results.summary)

    @app.get("/api/results/{name}")
    async def experiment(name: str) -> dict[str, Any]:
        return await room.ask(results.experiment, name)

    @app.get("/api/results/{name}/figure.svg")
    async def figure(name: str, theme: str = "light") -> Response:
        return Response(await room.ask(results.figure, name, theme), media_type="image/svg+xml")


def _add_live(app: FastAPI, room: Room, hosts: tuple[str, ...] | None) -> None:
    """Trainings, one per client, and how many there are."""

    @app.get("/api/health")
    async def health() -> dict[str, int]:
        return {
            "clients": room.clients,
            "trainings": sum(thread.name == TRAINING_THREAD for thread in threading.enumerate()),
            "tasks": len(asyncio.all_tasks()),
        }

    @app.websocket("/live")
    async def live(socket: WebSocket) -> None:
        if not _welcome(socket.headers, hosts):
            await socket.close(code=1008, reason="this origin is not served")
            return
        await socket.accept()
        if room.clients >= MOST_CLIENTS:
            await socket.close(code=1013, reason=f"{MOST_CLIENTS} clients are training: try again later")
            return
        room.clients += 1
        try:
            await Client(socket, room).serve()
        finally:
            room.clients -= 1


def _plotly_script() -> Path:
    """Return plotly.js as the installed wheel brings it."""
    return Path(str(files("plotly") / "package_data" / "plotly.min.js"))


def serve(
    host: str = "127.0.0.1",
    port: int = 8321,
    store: Path | None = None,
    on_ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the explorer until interrupted. Only this machine is answered unless `host` says otherwise.

    `on_ready` is told the address once the port is this server's. What is missing is said before the port is opened:

    >>> serve(store=Path("nowhere"))
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: there is no store in nowhere: give the --out folder of reproduce or sweep
    """
    anywhere = host in ("0.0.0.0", "::", "")
    app = create_app(store, None if anywhere else (*LOOPBACK, host))
    # Trainings and the event loop take the interpreter lock in turns of well under a millisecond; 5 ms, the default,
    # would make each of them wait for the other most of the time.
    sys.setswitchinterval(5e-4)
    config = uvicorn.Config(
        app,
        log_level="warning",
        ws_max_size=LONGEST_REQUEST,
        ws_ping_interval=20,
        ws_per_message_deflate=False,  # it costs more than this machine saves by it
        timeout_graceful_shutdown=2,
    )
    with _listening(host, port) as listening, suppress(KeyboardInterrupt):
        on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        uvicorn.Server(config).run(sockets=[listening])


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


def _welcome(headers: Any, hosts: tuple[str, ...] | None) -> bool:
    """Say whether a request names this server and, if a page of another origin made it, refuse.

    The first keeps other names from being pointed here (DNS rebinding); the second keeps other sites' pages out.
    """
    own = urlsplit(f"//{headers.get('host', '')}")
    origin = headers.get("origin")
    named = hosts is None or own.hostname in hosts
    return named and (origin is None or urlsplit(origin).netloc == own.netloc)


async def _body(request: Request) -> dict[str, Any]:
    try:
        asked = await request.json()
    except ValueError:
        raise InvalidInput("a request is a JSON object") from None
    if not isinstance(asked, dict):
        raise InvalidInput("a request is a JSON object")
    return asked


async def _sentence(_: Request, error: Exception) -> Response:
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
