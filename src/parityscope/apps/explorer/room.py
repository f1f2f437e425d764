"""Where all clients' work is done: turns of live trainings in a fair order, single questions beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import torch

from parityscope.apps.explorer.live import LiveTraining
from parityscope.apps.explorer.settings import LiveSettings
from parityscope.core.errors import InvalidInput

T = TypeVar("T")
P = ParamSpec("P")

MOST_CLIENTS = 64
_WORKERS = 1  # with two, fifty clients on two cores got fewer frames in all: both wait for the interpreter lock
_MOST_QUESTIONS = 16  # waiting at a time; more are refused rather than piled up
_CYCLE_SECONDS = 0.12  # in which every training that wants to move gets a turn


class Room:
    """The threads that compute. A client has at most one turn waiting, and turns are taken first come, first served.

    >>> room = Room()
    >>> asyncio.run(room.ask(pow, 2, 10))
    1024
    >>> room.close()
    """

    def __init__(self) -> None:
        self._turns = ThreadPoolExecutor(_WORKERS, "parityscope-turn", initializer=torch.set_num_threads, initargs=(1,))
        self._questions = ThreadPoolExecutor(1, "parityscope-ask", initializer=torch.set_num_threads, initargs=(1,))
        # Tables are searched for as long as they are allowed to: other questions should not wait for that.
        self._searches = ThreadPoolExecutor(1, "parityscope-search")
        self._asked = 0
        self._waiting = 0
        self.clients = 0

    async def turn(self, training: LiveTraining, steps: int, until: int | None, stops: frozenset[int]) -> str:
        """Let a training take its next steps and return the frame; the more others wait, the shorter the turn."""
        self._waiting += 1
        try:
            seconds = _CYCLE_SECONDS * _WORKERS / self._waiting
            return await self._on(self._turns, training.turn, steps, seconds, until=until, stops=stops)
        finally:
            self._waiting -= 1

    async def open(self, settings: LiveSettings) -> LiveTraining:
        """Return a new training; making its model may take a moment."""
        return await self._on(self._turns, LiveTraining, settings)

    async def end(self, training: LiveTraining) -> None:
        """End a training for good, whatever happens to the client that asks."""
        await asyncio.shield(self._on(self._turns, training.end))

    async def ask(self, answer: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Return an answer that takes a while, computed away from the live trainings."""
        return await self._counted(self._questions, answer, *arguments, **options)

    async def search(self, answer: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Return an answer that may take a minute, one at a time."""
        return await self._counted(self._searches, answer, *arguments, **options)

    async def _counted(
        self, pool: ThreadPoolExecutor, answer: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T:
        if self._asked >= _MOST_QUESTIONS:
            raise InvalidInput(f"{self._asked} questions are waiting for an answer: try again in a moment")
        self._asked += 1
        try:
            return await self._on(pool, answer, *arguments, **options)
        finally:
            self._asked -= 1

    def close(self) -> None:
        """Let the threads finish what they are doing, and nothing after it."""
        for pool in (self._turns, self._questions, self._searches):
            pool.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    async def _on(pool: ThreadPoolExecutor, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.wrap_future(pool.submit(work, *arguments, **options))
