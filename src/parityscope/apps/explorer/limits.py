"""How much anybody may send: bytes are counted as they arrive, whatever the headers promise."""

from __future__ import annotations

from collections import deque

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_REQUEST = 20_000  # bytes, of a body and of a message on a socket
_MESSAGE_TOO_BIG = 1009  # RFC 6455, section 7.4.1


class RequestLimit:
    """Gives an application whole requests of bounded length; a longer one is refused and read no further.

    A body may come in chunks without saying how long it is, or be longer than it says: it is read here, up to the
    limit, before the application sees any of it. A message on a socket was read by the server already, which should
    have the same limit; here it goes no further, whatever the server allows.

    >>> import asyncio
    >>> async def endless():
    ...     return {"type": "http.request", "body": b"x" * 1000, "more_body": True}
    >>> async def tell(message):
    ...     print(message.get("status", message.get("body")))
    >>> asyncio.run(RequestLimit(app=print)({"type": "http", "headers": []}, endless, tell))
    413
    b'{"message":"a request has at most 20000 bytes"}'
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or one socket."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        read: deque[Message] = deque()
        length, more = _declared_length(scope), True
        if length <= LONGEST_REQUEST:  # what is announced as longer is not read at all
            length = 0
            while more and length <= LONGEST_REQUEST:
                read.append(message := await receive())
                length += len(message.get("body", b""))
                more = message.get("more_body", False)
        if length > LONGEST_REQUEST:
            # Without closing, a server would go on reading the rest of the body to find the next request.
            refusal = JSONResponse({"message": _sentence("request")}, 413, {"Connection": "close"})
            await refusal(scope, receive, send)
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


def _declared_length(scope: Scope) -> int:
    """Return what the request says of its length, 0 when it says nothing that can be read."""
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit():
            return int(value[:18])  # of more digits Python may refuse to make a number
    return 0


def _size(message: Message) -> int:
    return len(message.get("bytes") or b"") + len((message.get("text") or "").encode())


def _sentence(what: str) -> str:
    return f"a {what} has at most {LONGEST_REQUEST} bytes"
