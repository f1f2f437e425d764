"""Who is at work on a store: a sign of life that the kernel takes down when its process dies, however it dies.

A sweep holds a lock on a file of its own while it runs. Whoever finds that lock free knows that its owner is gone and
takes over what it had leased. No clock is compared and no time-out waited for, also between machines on one folder.
Where the file system has no locks at all, nobody looks present: work may then be done twice, but no row is stored
twice.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # no Unix
    fcntl = None  # type: ignore[assignment]


@contextmanager
def present_in(folder: Path) -> Iterator[str]:
    """Be present under a new name until the block ends or the process dies.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with present_in(folder) as name:
    ...     is_present(folder, name)
    True
    >>> is_present(folder, name)
    False
    """
    name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    path = _sign(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Python closes files in the programs it starts, so no surviving worker inherits the lock.
    with path.open("w") as file:
        with suppress(OSError):
            _lock(file)
        try:
            yield name
        finally:
            path.unlink(missing_ok=True)


def is_present(folder: Path, name: str) -> bool:
    """Say whether the process of that name still lives; its sign is removed when it does not.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with present_in(folder) as name:
    ...     is_present(folder, name), is_present(folder, "somebody-else")
    (True, False)
    """
    path = _sign(folder, name)
    try:
        with path.open("r+") as file:
            _lock(file)
            path.unlink(missing_ok=True)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def _sign(folder: Path, name: str) -> Path:
    return folder / "present" / f"{name}.lock"


def _lock(file: IO[str]) -> None:
    if fcntl is None:
        raise OSError("this system has no such locks")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
