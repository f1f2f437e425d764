"""Parts of one's own in a recipe: what they are, and how a row says which one it was made with.

A part is a function, a class, a `functools.partial` of one, or an object whose attributes are plain values. It is
addressed by where it is defined and a hash of its code, so that other code is another recipe. What has no such place (a
lambda, a function within a function, an object with tensors, something typed at a prompt) can be used all the same, but
is "not addressable".

A row that was made with a part can be read where the part is not: nothing is imported then, and the part says that it
is not loaded. Only running its config imports the module that it names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Annotated, Any

from pydantic import AfterValidator, PlainSerializer, PlainValidator

from parityscope.core.errors import InvalidInput

_SPEC = "parityscope_spec"  # how the modules of specs are called
NOT_ADDRESSABLE = "not addressable"
PART_FIELDS = ("positions", "readout", "optimiser", "schedule")  # of a recipe


class OwnPart:
    """A part of one's own, with its address; equal when the addresses are.

    The address is where it is defined (module and qualified name), a hash of its code, what it uses in its own package
    included, and the arguments of a partial or the attributes of an object. `value` is the part itself; None: to be
    imported when it is needed.
    """

    def __init__(self, name: str, source: str, settings: Mapping[str, Any], value: Any = None) -> None:
        self.name, self.source, self.settings, self._value = name, source, dict(settings), value

    @classmethod
    def of(cls, value: Any) -> OwnPart:
        """Return a part with its address, as far as it has one."""
        definition, settings = _taken_apart(value)
        name = f"{_place(definition.__module__)}:{definition.__qualname__}"
        there = any(one is definition for one in _loaded(name))
        source = _hash_of(definition) if settings is not None and there else None
        return cls(name, source or NOT_ADDRESSABLE, settings if source and settings else {}, value)

    @classmethod
    def recorded(cls, record: Mapping[str, Any]) -> OwnPart:
        """Return the part of a record; nothing is imported before it is used."""
        if not {"part", "source"} <= set(record) <= {"part", "source", "settings"}:
            raise ValueError("not the record of a part")
        return cls(record["part"], record["source"], _with_tuples(record.get("settings", {})))

    def record(self) -> dict[str, Any]:
        """Return the address as plain values."""
        return {"part": self.name, "source": self.source, **({"settings": self.settings} if self.settings else {})}

    @property
    def addressable(self) -> bool:
        """Whether a row that was made with it can be told from one made with another."""
        return self.source != NOT_ADDRESSABLE

    @property
    def loaded(self) -> bool:
        """Whether it is here with the code it had; nothing is imported to see that."""
        return self._value is not None or self._definition() is not None

    @property
    def value(self) -> Any:
        """The part itself, imported if need be; one that is gone or has other code by now is refused."""
        if self._value is None:
            problem = _imported(self.name) if self.addressable else NOT_ADDRESSABLE
            definition = self._definition()
            if definition is None:
                problem = problem or "its code is another one than when the row was computed"
                raise InvalidInput(f"the part {self.name} cannot be found again: {problem}")
            self._value = _put_together(definition, self.settings)
        return self._value

    def _definition(self) -> Any:
        """Return the function or class that it is made of, if that is loaded with the same code."""
        return next((one for one in _loaded(self.name) if _hash_of(one) == self.source), None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OwnPart) or self.record() != other.record():
            return False
        return self.addressable or self._value is other._value

    def __hash__(self) -> int:
        return hash((self.name, self.source, json.dumps(self.settings, sort_keys=True)))

    def __repr__(self) -> str:
        return self.name if self.loaded or not self.addressable else f"{self.name} (not loaded)"


def _taken_apart(value: Any) -> tuple[Any, dict[str, Any] | None]:
    """Return the function or class of a part, and what it was made with; None where that is no plain value."""
    if isinstance(value, partial) and hasattr(value.func, "__qualname__"):
        given = {"arguments": value.args, "keywords": dict(value.keywords)}
        return value.func, _plain({name: some for name, some in given.items() if some})
    if hasattr(value, "__qualname__"):
        return value, {}
    if isinstance(value, partial) or not hasattr(value, "__dict__"):
        return type(value), None
    state = dict(vars(value))
    if _is_module(type(value)):
        if any(state[name] for name in ("_parameters", "_buffers", "_modules")):
            return type(value), None
        state = {name: some for name, some in state.items() if name not in vars(_empty_module(type(value)))}
    return type(value), _plain({"attributes": state})


def _put_together(definition: Any, settings: Mapping[str, Any]) -> Any:
    if "attributes" in settings:
        made = _empty_module(definition) if _is_module(definition) else definition.__new__(definition)
        vars(made).update(settings["attributes"])
        return made
    if settings:
        return partial(definition, *settings.get("arguments", ()), **settings.get("keywords", {}))
    return definition


def _is_module(kind: type) -> bool:
    return any(base.__module__ == "torch.nn.modules.module" for base in kind.__mro__)


def _empty_module(kind: Any) -> Any:
    """Return a module of some class with nothing in it yet, without calling its constructor."""
    from torch import nn

    made = kind.__new__(kind)
    nn.Module.__init__(made)
    return made


def _plain(settings: dict[str, Any]) -> dict[str, Any] | None:
    """Return settings that come back from a journey through JSON as they were; None where they do not."""
    try:
        return settings if _with_tuples(json.loads(json.dumps(settings, allow_nan=False))) == settings else None
    except (TypeError, ValueError):
        return None


def _with_tuples(value: Any) -> Any:
    """Return what JSON gave with tuples for its lists, since settings do not change."""
    if isinstance(value, Mapping):
        return {name: _with_tuples(some) for name, some in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list | tuple) else value


def _place(module: str) -> str:
    """Return what a module is called in an address: a sweep's spec the same whatever else is in it."""
    return _SPEC if module.startswith(_SPEC) else module


def _loaded(name: str) -> Iterator[Any]:
    """Yield what a place and a qualified name lead to in loaded modules, if anything; several specs may be loaded."""
    place, _, qualified = name.partition(":")
    for module in [one for one in sys.modules if one.startswith(_SPEC)] if place == _SPEC else [place]:
        found: Any = sys.modules.get(module)
        for one in qualified.split("."):
            # Not getattr, with which some modules import what they are asked for.
            found = getattr(found, "__dict__", {}).get(one)
        if found is not None:
            yield found


def _imported(name: str) -> str:
    """Import the module of a part; return why it cannot be used, or nothing."""
    place, _, qualified = name.partition(":")
    if place == _SPEC:
        problem = "load the spec that defines it first, with load_spec"
    else:
        try:
            import_module(place)
        except Exception as error:
            return f"the module {place} cannot be imported here ({type(error).__name__}: {error})"
        problem = f"the module {place} has no {qualified}"
    return "" if any(True for _ in _loaded(name)) else problem


def _hash_of(definition: Any) -> str | None:
    """Return a hash of the code of a function or class, if there is a file with it."""
    from parityscope.records.code import code_of_value  # here: the package loads torch, and help texts wait for nothing

    try:
        return code_of_value(definition)
    except InvalidInput:
        return None


def is_own(value: Any) -> bool:
    """Say whether what stands in a recipe's field is a part of one's own, not a name.

    >>> is_own("adam"), is_own(None), is_own(min)
    (False, False, True)
    """
    return value is not None and not isinstance(value, str)


def _as_part(value: Any) -> OwnPart:
    if isinstance(value, str | int | float) or value is None:
        raise ValueError("neither a name nor a part of your own")
    if isinstance(value, OwnPart):
        return value
    return OwnPart.recorded(value) if isinstance(value, Mapping) else OwnPart.of(value)


def _with_parts(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: _as_part(some) if name in PART_FIELDS and is_own(some) else some for name, some in changes.items()}


def _recorded(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: some.record() if isinstance(some, OwnPart) else some for name, some in changes.items()}


# Fields of a recipe: a part, and changes of fields that may be parts; both are written as records.
PartField = Annotated[OwnPart, PlainValidator(_as_part), PlainSerializer(OwnPart.record, when_used="json")]
Changes = Annotated[dict[str, Any], AfterValidator(_with_parts), PlainSerializer(_recorded, when_used="json")]
