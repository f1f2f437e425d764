"""Attacks on a release: generators of bad commands, tables, models, checkpoints and requests, and how they are counted.

An attack succeeds where a command ends in a traceback, does not end, or leaves something behind although it refused.
"""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from commands import ONE_THREAD
from warm_command import WARM

HANG_SECONDS = 300.0  # of the clock, where a busy machine makes a minute of a second; what hangs does so for ever
MEMORY_BYTES = 6 * 2**30  # of address space: what asks for more is to be refused, not to take the machine down


@dataclass(frozen=True)
class Ended:
    """How a command ended; no code where it did not."""

    arguments: tuple[str, ...]
    code: int | None
    printed: str
    errors: str
    made: tuple[str, ...] = ()  # files and folders that are new in the folder of the attack

    def wrong(self, codes: Sequence[int] = (0, 1, 2)) -> str | None:
        """Say what is wrong about it, or nothing."""
        last = (self.errors.strip().splitlines() or [""])[-1][:200]
        if self.code is None:
            return "hang"
        if "Traceback (most recent call last)" in self.errors + self.printed:
            return f"traceback: {last}"
        if self.code not in codes:
            return f"exit code {self.code}: {last}"
        if self.code == 2 and not self.errors.strip():
            return "refused without a sentence"
        if self.code == 2 and self.made:
            return f"refused, and made {', '.join(self.made)}: {last}"
        return None


def ended(arguments: Iterable[object], folder: Path, seconds: float = HANG_SECONDS) -> Ended:
    """Run a command in a process of its own, forked from one that has its libraries, in a folder of its own."""
    if WARM.process is None:  # importing its libraries takes a while, which no command is to blame for
        WARM.address(ONE_THREAD)
        ended(["claims", "--help"], folder, 600)
    told = tuple(map(str, arguments))
    before = _names(folder)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, socket.socket(socket.AF_UNIX) as call:
        call.settimeout(seconds)
        environment = {**ONE_THREAD, "PARITYSCOPE_TEST_MEMORY": str(MEMORY_BYTES), "HF_HUB_OFFLINE": "1"}
        call.connect(WARM.address(ONE_THREAD))
        with open(os.devnull) as nothing:
            socket.send_fds(call, [b"!"], [nothing.fileno(), out.fileno(), errors.fileno()])
        call.sendall(json.dumps([["parityscope", *told], str(folder), environment]).encode() + b"\n")
        try:
            code = int(call.recv(16) or 70)
        except TimeoutError:
            code = None  # the process ends when this connection does
        texts = []
        for stream in (out, errors):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return Ended(told, code, *texts, tuple(sorted(_names(folder) - before)))


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@dataclass
class Count:
    """How many attacks of a kind were made, and what was wrong with which."""

    attacks: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kinds: dict[str, int] = {}
        for one in self.wrong:
            kind = one.partition(" <- ")[0].partition(":")[0].partition(",")[0]
            kinds[kind] = kinds.get(kind, 0) + 1
        found = ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "nothing wrong"
        return f"{self.attacks} attacks: {found}"


def counted(attacks: Iterable[tuple[object, Callable[[], str | None]]]) -> Count:
    """Make attacks, each with a name, and count what was wrong."""
    count = Count()
    for name, attack in attacks:
        started = time.monotonic()
        wrong = attack()
        count.attacks += 1
        if wrong is not None:
            count.wrong.append(f"{wrong} <- {name} ({time.monotonic() - started:.1f} s)")
    return count


def sample(attacks: Sequence, share: int, first: int = 0) -> Iterator:
    """Return every so-many-th attack: a quick sample that meets every kind."""
    return iter(attacks[first::share])


def ended_here(arguments: Iterable[object], folder: Path, seconds: float = HANG_SECONDS) -> Ended:
    """Run a command in this process, which costs no fork: for attacks that cannot take the memory."""
    from parityscope.apps.cli import main

    told, before, here = tuple(map(str, arguments)), _names(folder), Path.cwd()
    out, errors, argv = io.StringIO(), io.StringIO(), sys.argv
    code: int | None = 0
    try:
        sys.argv = ["parityscope", *told]
        os.chdir(folder)
        with redirect_stdout(out), redirect_stderr(errors), _alarm(seconds):
            main()
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 0 if stopped.code is None else 1
    except _Hang:
        code = None
    except BaseException:
        errors.write(traceback.format_exc())
        code = 1
    finally:
        sys.argv = argv
        os.chdir(here)
    return Ended(told, code, out.getvalue(), errors.getvalue(), tuple(sorted(_names(folder) - before)))


class _Hang(BaseException):
    """Raised in a command that has taken too long."""


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: object) -> None:
        raise _Hang

    usual = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)
