"""One live training: the library's own `learn`, on a thread that moves only while it has a turn."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection
from typing import Any

import torch

from parityscope.apps.explorer.frames import frame, opening
from parityscope.apps.explorer.settings import LiveSettings
from parityscope.models import ParityTransformer
from parityscope.training.learning import LearnedRuns, TrainingProgress, learn

TRAINING_THREAD = "parityscope-live"


class _TrainingEnd(Exception):
    """Raised inside `learn` to end a training nobody watches any more."""


class LiveTraining:
    """A training that takes steps when asked to, and shows a frame after each turn.

    `learn` runs on a thread of its own and stops in its callback after every step; `turn` lets it go on for a while and
    takes the frame it left. The numbers are therefore those of `learn`, and a training without turns costs nothing.

    >>> training = LiveTraining(LiveSettings(n=12, k=2))
    >>> first, later = (json.loads(training.turn(steps=30))["step"] for _ in range(2))
    >>> training.end()
    >>> first, later
    (0, 30)
    """

    def __init__(self, settings: LiveSettings) -> None:
        self.settings = settings
        self.recipe, self.problem = settings.resolved(), settings.problem()
        self.opening = json.dumps(opening(settings, self.recipe, self.problem))
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
        self,
        steps: int = 1,
        seconds: float = 10.0,
        *,
        until: int | None = None,
        stops: Collection[int] = (),
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
        self._shown = json.dumps(content)
