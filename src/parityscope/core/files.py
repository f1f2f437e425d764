"""Files that are replaced as a whole: a kill at any moment leaves the old one or the new one."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is either the old one or the whole new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def remove_leftovers(folder: Path, seconds: float = 10.0) -> None:
    """Remove what writers left in a folder that were killed in the middle; those that live may be writing.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / ".run.json.999999999.part").touch()
    >>> remove_leftovers(folder, seconds=0)
    >>> list(folder.iterdir())
    []
    """
    for part in folder.glob(".*.part") if folder.is_dir() else ():
        writer = part.name.split(".")[-2]
        if writer.isdecimal() and not _lives(int(writer)):
            with suppress(FileNotFoundError):
                # In a folder of several machines it may be the file of another one's process, which takes a moment.
                if time.time() - part.stat().st_mtime >= seconds:
                    part.unlink()


def _lives(process: int) -> bool:
    """Say whether a process of this machine lives; one that nobody can have does not."""
    if os.name == "nt":  # where asking would end it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is somebody else's
        return True
    return True
