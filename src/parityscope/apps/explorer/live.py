"""A live training: the library's own `learn` on a thread that moves only in turns, which a browser asks for."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar

import torch
from fastapi import WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ConfigDict, Field

from parityscope.apps.explorer.learn import MOST_STEPS, LiveSettings, frame, opening, read_request
from parityscope.core.errors import InvalidInput
from parityscope.core.strict_json import strict_json
from parityscope.models import ParityTransformer
from parityscope.training.learning import LearnedRuns, TrainingProgress, learn

T = TypeVar("T")
P = ParamSpec("P")

TRAINING_THREAD = "parityscope-live"
_TURN_SECONDS = 0.12
_FRAMES_A_SECOND = 20
_REPLAY_FRAMES = 60
_log = logging.getLogger(__name__)


class _TrainingEnd(Exception):
    """Raised inside `learn` to end a training nobody watches any more."""


class LiveTraining:
    """A training that takes steps when asked to, and shows a frame after each turn.

    `learn` runs on a thread of its own and stops in its callback after every step; `turn` lets it go on for a while and
    takes the frame it left. The numbers are therefore those of `learn`, and a training without turns costs nothing.
    """

    def __init__(self, settings: LiveSettings) -> None:
        self.settings = settings
        self.recipe, self.problem = settings.resolved(), settings.problem()
        self.opening = strict_json(opening(settings, self.recipe, self.problem))
        self.finished = False
        self.step = -1
        self._model: ParityTransformer | None = None
        self._budget, self._deadline, self._until = 0, 0.0, None  # type: int, float, int | None
        self._stops: frozenset[int] = frozenset()
        # Two batons, both taken now: whoever releases one lets the other side go on. (Locks wake a thread several times
        # faster than semaphores do, and this happens twice per frame.)
        self._moves, self._rests = threading.Lock(), threading.Lock()
        self._moves.acquire()
        self._rests.acquire()
        self._turning = threading.Lock()
        self._ended = False
        self._shown, self._failure = "", None  # type: str, BaseException | None
        self._thread = threading.Thread(target=self._learn, name=TRAINING_THREAD, daemon=True)

    def turn(
        self, steps: int = 1, seconds: float = 10.0, *, until: int | None = None, stops: Collection[int] = ()
    ) -> str:
        """Take at most so many steps in about so many seconds (at least one step), and return a frame as JSON.

        The first turn shows the start. A turn ends early at step `until` and at every step in `stops`.
        """
        with self._turning:
            if self._failure is not None:
                raise self._failure
            if not self.finished and not self._ended:
                self._budget, self._deadline, self._until = steps, time.monotonic() + seconds, until
                self._stops = frozenset(stops)
                self._move()
            return self._shown

    def _move(self) -> None:
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._moves.release()
        self._rests.acquire()
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """End the training and its thread, after the turn it may be taking; may be called twice."""
        with self._turning:
            self._ended = True
            if self._thread.ident is not None and self._thread.is_alive():
                self._moves.release()
                self._thread.join()

    def _learn(self) -> None:
        torch.set_num_threads(1)
        try:
            run = learn(
                self.problem,
                self.settings.recipe,
                [self.settings.seed],
                on_record=self._remember,
                on_progress=self._after_step,
                **self.settings.overrides(),
            )
            self.finished = True
            self._show(self.step, float(run.risk[0]), run)
        except _TrainingEnd:
            pass
        except BaseException as error:
            self.finished, self._failure = True, error
        finally:
            self._rests.release()

    def _remember(self, step: int, model: ParityTransformer) -> None:
        self._model = model

    def _after_step(self, progress: TrainingProgress) -> None:
        first = self.step < 0
        self.step = progress.step
        self._budget -= 1
        # The last step is shown by `_learn`, with what was measured after it.
        if progress.finished or progress.step >= progress.steps:
            return
        rests = first or self._budget <= 0 or time.monotonic() > self._deadline
        if rests or self.step == self._until or self.step in self._stops:
            self._show(self.step, float(progress.risk[0]))
            self._rests.release()
            self._moves.acquire()
            if self._ended:
                raise _TrainingEnd

    def _show(self, step: int, risk: float, run: LearnedRuns | None = None) -> None:
        model = self._model if run is None else run.model
        assert model is not None
        content: dict[str, Any] = frame(model, self.problem, step, risk)
        content["done"] = run is not None
        content["diverged"] = run is not None and bool(run.diverged[0])
        self._shown = strict_json(content)


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
    """One page on a WebSocket. Its training rests until the last frame was acknowledged: no queue can grow.

    >>> heard = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": '{"do": "dance"}'}]
    >>> async def hear():
    ...     return heard.pop(0) if heard else {"type": "websocket.disconnect", "code": 1000}
    >>> async def tell(message):
    ...     print(message.get("text", message["type"]))
    >>> async def meet():
    ...     socket = WebSocket({"type": "websocket"}, hear, tell)
    ...     await socket.accept()
    ...     await Client(socket).serve()
    >>> asyncio.run(meet())
    websocket.accept
    {"type": "error", "message": "unknown command 'dance': choose one of start, train, pause, taken"}
    """

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
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
                await self._obey(await self._next_text())
        except (WebSocketDisconnect, RuntimeError):
            pass  # left or was cut off: all the same from here
        finally:
            driver.cancel()
            await asyncio.gather(driver, return_exceptions=True)
            await self._end()

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
        except InvalidInput as error:
            await self._say({"type": "error", "message": str(error)})
        except (ValueError, RecursionError):
            await self._say({"type": "error", "message": "a command is a JSON object"})

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
            await self._end()
            self._training = await _computed(LiveTraining, settings)
            await self._socket.send_text(self._training.opening)
        elif not self._running:
            return
        training = self._training
        if training is None:  # the one that was wanted could not be made
            return
        shown = await _computed(training.turn, self._pace, _TURN_SECONDS, until=self._until, stops=self._stops)
        if training.finished or (self._until is not None and training.step >= self._until):
            self._running = False
        self._taken.clear()
        await self._socket.send_text(shown)
        await self._taken.wait()

    async def _end(self) -> None:
        """End the training for good, whatever happens to the page that asks."""
        old, self._training = self._training, None
        if old is not None:
            await asyncio.shield(asyncio.to_thread(old.end))

    async def _say(self, message: dict[str, Any]) -> None:
        await self._socket.send_text(strict_json(message))


async def _computed(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Return what the work gives; a defect in it is told to the page and does not end the connection."""
    try:
        return await asyncio.to_thread(work, *arguments, **options)
    except InvalidInput:
        raise
    except Exception as error:
        _log.exception("a live training broke")
        raise InvalidInput(f"the training broke: {type(error).__name__}: {error}") from None
