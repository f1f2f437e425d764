"""One browser on a WebSocket: at most one training, at most one frame under way."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

from fastapi import WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ConfigDict, Field

from parityscope.apps.explorer.live import LiveTraining
from parityscope.apps.explorer.room import Room
from parityscope.apps.explorer.settings import MOST_STEPS, LiveSettings, read_request
from parityscope.core.errors import InvalidInput

T = TypeVar("T")
_log = logging.getLogger(__name__)
_FRAMES_A_SECOND = 20
_REPLAY_FRAMES = 60
_SLOWEST_CLIENT = 30.0  # seconds to take a frame before the connection counts as dead
_IDLE_SECONDS = 3600.0


class _StartCommand(BaseModel):
    """Begin a training; with `until` it runs to that step and rests there, showing also every step in `stops`."""

    model_config = ConfigDict(extra="forbid")

    settings: dict[str, Any] = {}
    until: int | None = Field(0, ge=0, le=MOST_STEPS)
    stops: list[int] = Field([], max_length=100)


class _TrainCommand(BaseModel):
    """Go on, so many steps between frames; until a step, or to the end."""

    model_config = ConfigDict(extra="forbid")

    pace: int = Field(1, ge=1, le=MOST_STEPS)
    until: int | None = Field(None, ge=0, le=MOST_STEPS)


class Client:
    """The state of one connection. Its training rests until the last frame was acknowledged: no queue can grow.

    >>> heard = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": '{"do": "dance"}'}]
    >>> async def hear():
    ...     return heard.pop(0) if heard else {"type": "websocket.disconnect", "code": 1000}
    >>> async def tell(message):
    ...     print(message.get("text", message["type"]))
    >>> async def meet():
    ...     socket = WebSocket({"type": "websocket"}, hear, tell)
    ...     await socket.accept()
    ...     await Client(socket, Room()).serve()
    >>> asyncio.run(meet())
    websocket.accept
    {"type": "error", "message": "unknown command 'dance': choose one of start, train, pause, taken"}
    """

    def __init__(self, socket: WebSocket, room: Room) -> None:
        self._socket, self._room = socket, room
        self._training: LiveTraining | None = None
        self._wanted: LiveSettings | None = None
        self._pace, self._until, self._stops = 1, None, frozenset()  # type: int, int | None, frozenset[int]
        self._begun = self._running = self._hurried = False
        self._work, self._taken = asyncio.Event(), asyncio.Event()

    async def serve(self) -> None:
        """Obey commands until the browser leaves; leave nothing behind."""
        driver = asyncio.create_task(self._drive())
        try:
            while True:
                await self._obey(await asyncio.wait_for(self._next_text(), _IDLE_SECONDS))
        except (WebSocketDisconnect, TimeoutError, RuntimeError):
            pass  # left, fell asleep, or was cut off: all the same from here
        finally:
            driver.cancel()
            await asyncio.gather(driver, return_exceptions=True)
            if self._training is not None:
                await self._room.end(self._training)

    async def _next_text(self) -> str:
        try:
            return await self._socket.receive_text()
        except KeyError:
            return ""  # a message of bytes has no text, and is no command either

    async def _obey(self, text: str) -> None:
        try:
            message = json.loads(text)
            if not isinstance(message, dict):
                raise InvalidInput("a command is an object")
            self._command(str(message.pop("do", "")), message)
        except json.JSONDecodeError:
            await self._say({"type": "error", "message": "a command is a JSON object"})
        except InvalidInput as error:
            await self._say({"type": "error", "message": str(error)})

    def _command(self, do: str, message: dict[str, Any]) -> None:
        if do == "taken":
            self._taken.set()
        elif do == "start":
            start = read_request(_StartCommand, message)
            settings = read_request(LiveSettings, start.settings)
            settings.resolved()
            self._begun, self._wanted, self._running = True, settings, start.until != 0
            self._until, self._stops = start.until, frozenset(start.stops)
            # A state that was shared is reached in a hurry, with enough frames on the way to look back at.
            self._pace, self._hurried = 1 + (start.until or MOST_STEPS) // _REPLAY_FRAMES, True
            self._work.set()
        elif do == "train":
            train = read_request(_TrainCommand, message)
            if not self._begun:
                raise InvalidInput("there is no training yet: start one")
            self._pace, self._until, self._running, self._hurried = train.pace, train.until, True, False
            self._work.set()
        elif do == "pause":
            self._running = False
        else:
            raise InvalidInput(f"unknown command {do!r}: choose one of start, train, pause, taken")

    async def _drive(self) -> None:
        """Give the training its turns, one frame at a time."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._work.wait()
            started = clock()
            try:
                await self._take_turn()
            except InvalidInput as error:
                self._running = False
                await self._say({"type": "error", "message": str(error)})
            if self._training is None:
                self._running = False
            if not self._running and self._wanted is None:
                self._work.clear()
                await self._say({"type": "resting"})
            await asyncio.sleep(0 if self._hurried else started + 1 / _FRAMES_A_SECOND - clock())

    async def _take_turn(self) -> None:
        if self._wanted is not None:
            settings, self._wanted = self._wanted, None
            old, self._training = self._training, None
            if old is not None:
                await self._room.end(old)
            self._training = await _unbroken(self._room.open(settings))
            await self._send(self._training.opening)
        elif not self._running:
            return
        training = self._training
        if training is None:  # the one that was wanted could not be made
            return
        shown = await _unbroken(self._room.turn(training, self._pace, self._until, self._stops))
        if training.finished or (self._until is not None and training.step >= self._until):
            self._running = False
        self._taken.clear()
        await self._send(shown)
        await asyncio.wait_for(self._taken.wait(), _IDLE_SECONDS)

    async def _say(self, message: dict[str, Any]) -> None:
        await self._send(json.dumps(message))

    async def _send(self, text: str) -> None:
        try:
            await asyncio.wait_for(self._socket.send_text(text), _SLOWEST_CLIENT)
        except TimeoutError:
            await self._socket.close(code=1013, reason="too slow")
            raise asyncio.CancelledError from None


async def _unbroken(work: Awaitable[T]) -> T:
    """Return what the work gives; a defect in it is told to the client and does not end the connection."""
    try:
        return await work
    except InvalidInput:
        raise
    except Exception as error:
        _log.exception("a live training broke")
        raise InvalidInput(f"the training broke: {type(error).__name__}: {error}") from None
