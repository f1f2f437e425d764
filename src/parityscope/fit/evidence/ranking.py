"""Which candidates are the strongest, equals in the order of their bits: the one rule of every exhaustive search.

Correlations are computed from whole numbers by elementwise operations, which every processor rounds alike, so equal
means equal here. What differs between processors is which of many equals a partial sort happens to keep.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int64
from numpy import ndarray


def strongest(strength: Float[ndarray, " candidates"], count: int) -> Int64[ndarray, " kept"]:
    """Return the places of the `count` largest |strength|, strongest first, equals in their own order.

    >>> strongest(np.array([0.5, -1.0, 0.0, 1.0, 0.5, 0.5]), 3).tolist()
    [1, 3, 0]
    """
    size = np.abs(strength)
    places = np.arange(len(size))
    if len(size) > count:
        # Everything as strong as the last one kept stays, so that the order decides among equals.
        places = np.flatnonzero(size >= np.partition(size, len(size) - count)[len(size) - count])
    return places[np.argsort(-size[places], kind="stable")[:count]]
