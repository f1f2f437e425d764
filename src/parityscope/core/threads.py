"""How many threads torch may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def single_threaded(wanted: bool = True) -> Iterator[None]:
    """Keep torch on the calling thread: the barriers of a thread team cost milliseconds each on a busy machine."""
    threads = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
