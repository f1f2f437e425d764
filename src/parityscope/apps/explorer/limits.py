"""How much anybody may send: bytes are counted as they arrive, whatever the headers promise."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_REQUEST = 20_000  # bytes, of a body and of a message on a socket
_MOST_LARGE = 2  # requests with a larger limit at a time
_SLOWEST = 120.0  # seconds for each of them: whoever sends nothing must not keep others out
_MESSAGE_TOO_BIG = 1009  # RFC 6455, section 7.4.1


class RequestLimit:
    """Gives an application whole requests of bounded length; a longer one is refused and read no further.

    A body may come in chunks without saying how long it is, or be longer than it says: it is read here, up to the
    limit, before the application sees any of it. A message on a socket was read by the server already, which should
    have the same limit; here it goes no further, whatever the server allows.

    A path of `larger` may be sent more, by whom the application would answer (`welcome`), and by a few at a time: what
    is read is held in memory.

    >>> import asyncio
    >>> async def endless():
    ...     return {"type": "http.request", "body": b"x" * 1000, "more_body": True}
    >>> async def tell(message):
    ...     print(message.get("status", message.get("body")))
    >>> asyncio.run(RequestLimit(app=print)({"type": "http", "headers": []}, endless, tell))
    413
    b'{"message":"a request has at most 20000 bytes"}'
    """

    def __init__(
        self,
        app: ASGIApp,
        larger: Mapping[str, int] | None = None,
        welcome: Callable[[Headers], bool] = lambda headers: True,
    ) -> None:
        self._app, self._larger, self._welcome = app, larger or {}, welcome
        self._reading = 0  # requests with a larger limit that are being read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or one socket."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._limit(scope)
        large = limit > LONGEST_REQUEST
        if large and self._reading >= _MOST_LARGE:
            await _refusal(503, f"{_MOST_LARGE} files are being read: try again in a moment")(scope, receive, send)
            return
        self._reading += large
        try:
            await self._read_and_served(scope, receive, send, limit, _SLOWEST if large else None)
        finally:
            self._reading -= large

    def _limit(self, scope: Scope) -> int:
        larger = self._larger.get(scope.get("path", ""), LONGEST_REQUEST)
        return larger if self._welcome(Headers(scope=scope)) else LONGEST_REQUEST

    async def _read_and_served(
        self, scope: Scope, receive: Receive, send: Send, limit: int, seconds: float | None
    ) -> None:
        read: deque[Message] = deque()
        length, more = _declared_length(scope), True
        try:
            async with asyncio.timeout(seconds):
                if length <= limit:  # what is announced as longer is not read at all
                    length = 0
                    while more and length <= limit:
                        read.append(message := await receive())
                        length += len(message.get("body", b""))
                        more = message.get("more_body", False)
        except TimeoutError:
            await _refusal(408, f"a file has to arrive within {seconds:g} seconds")(scope, receive, send)
            return
        if length > limit:
            await _refusal(413, _sentence("request", limit))(scope, receive, send)
            return

        async def read_already() -> Message:
            return read.popleft() if read else await receive()

        await self._app(scope, read_already, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        closed = False

        async def bounded() -> Message:
            nonlocal closed
            message = await receive()
            if message["type"] != "websocket.receive" or _size(message) <= LONGEST_REQUEST:
                return message
            closed = True
            await send({"type": "websocket.close", "code": _MESSAGE_TOO_BIG, "reason": _sentence("message")})
            return {"type": "websocket.disconnect", "code": _MESSAGE_TOO_BIG}

        async def while_open(message: Message) -> None:
            if not closed:
                await send(message)

        await self._app(scope, bounded, while_open)


def _refusal(status: int, sentence: str) -> JSONResponse:
    # Without closing, a server would go on reading the rest of the body to find the next request.
    return JSONResponse({"message": sentence}, status, {"Connection": "close"})


def _declared_length(scope: Scope) -> int:
    """Return what the request says of its length, 0 when it says nothing that can be read."""
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit():
            return int(value[:18])  # of more digits Python may refuse to make a number
    return 0


def _size(message: Message) -> int:
    return len(message.get("bytes") or b"") + len((message.get("text") or "").encode())


def _sentence(what: str, limit: int = LONGEST_REQUEST) -> str:
    return f"a {what} has at most {limit} bytes"
