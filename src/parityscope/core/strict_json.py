"""JSON that every reader accepts: the standard has no NaN and no Infinity."""

from __future__ import annotations

import json
import math
from typing import Any


def strict_json(value: Any, **options: Any) -> str:
    """Return the JSON of a value, null for numbers that are not finite; options are those of `json.dumps`.

    >>> strict_json({"risk": float("nan"), "accuracies": [0.5, float("inf")]})
    '{"risk": null, "accuracies": [0.5, null]}'
    """
    return json.dumps(_finite(value), allow_nan=False, **options)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value
