"""The run-time type checker of the tests: shapes and types, an int being a float where one is asked for.

jaxtyping binds the arguments of every call twice to have names for what its shapes say. Where no annotation has a
shape there is nothing to name, and beartype alone checks the same types in a tenth of the time.
"""

import contextlib
from typing import Any, get_args

import jaxtyping
from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeException

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
_with_shapes = jaxtyping.jaxtyped


def check_quickly_what_has_no_shapes():
    """Let what jaxtyping instruments from now on be checked by beartype alone wherever no annotation has a shape."""
    jaxtyping.jaxtyped = _jaxtyped


def _jaxtyped(*, typechecker):
    def decorated(one):
        if not isinstance(one, type) and not _has_shapes(one):
            with contextlib.suppress(BeartypeException):  # such as one that names a class that is not there yet
                return checked(one)
        return _with_shapes(one, typechecker=typechecker)

    return decorated


def _has_shapes(function):
    """Whether an annotation has a shape, or cannot be told yet."""
    for annotation in function.__annotations__.values():
        try:
            known = eval(annotation, function.__globals__) if isinstance(annotation, str) else annotation
        except Exception:
            return True
        if _is_shape(known):
            return True
    return False


def _is_shape(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, jaxtyping.AbstractArray):
        return True
    parts = annotation if isinstance(annotation, list) else get_args(annotation)  # a list: of a Callable's arguments
    return any(map(_is_shape, parts))
