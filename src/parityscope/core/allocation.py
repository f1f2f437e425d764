"""Memory that a training frees and asks for again at every step."""

from __future__ import annotations

import ctypes

# Of malloc.h: what mallopt calls the two thresholds, and the largest value that the second one takes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGEST_MMAP_THRESHOLD = 2**30, 2**25


def keep_freed_memory() -> bool:
    """Let glibc keep freed memory for the next step instead of giving it back to the system; say whether it does.

    By default large buffers go back and every step faults all their pages in again: 10 of the 58 ms of a decoder's
    step (width 128, 12 links, batch 256). Other C libraries are left as they are.

    >>> keep_freed_memory() in (True, False)
    True
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc; a system without a C library by that name
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT) and mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD))
