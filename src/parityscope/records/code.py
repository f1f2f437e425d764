"""Which code decides a number: the definitions that a run can reach, and a hash of them.

A row's address contains this hash, so that an edit makes exactly those rows stale whose computation could see it. The
unit is a top-level definition (a function, a class, a constant): from the config's class on, every name that a
definition mentions is followed, through imports, as long as it leads into this project, into a spec, or into the
package that the class is from. Comments, docstrings, layout and the types of arguments do not count; nor do libraries,
whose versions are stored with the row, nor `parityscope.records`, which stores numbers and decides none.

A module that is used as a value counts as a whole. What is not seen: names put together at run time (`import_module`,
`eval`, a table that definitions elsewhere enter themselves into), attributes of a module or class that another module
replaces, modules beside a spec that it imports, and files that are read; for these a config has its `VERSION`.
The source is read once per process, when it is first asked for.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from parityscope.core.errors import InvalidInput
from parityscope.records.source import source_of

_PROJECT, _SPEC = "parityscope", "parityscope_spec_"
_DECIDES_NOTHING = "parityscope.records"
_EVERYTHING = "*"


@cache
def code_of(module: str, name: str) -> str:
    """Return a hash of the definition `name` of `module` and of every definition it can reach.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> code_of(WorkedExample.__module__, "WorkedExample") == WorkedExample().code()
    True
    """
    digest = hashlib.sha256()
    for place, text in sorted(reached(module, name).items()):
        digest.update(f"{place}\n{text}\n".encode())
    return digest.hexdigest()[:16]


@cache
def reached(module: str, name: str) -> Mapping[str, str]:
    """Return the text of every definition that `name` of `module` can reach, by its full name.

    >>> list(reached("parityscope.core.errors", "MissingExtra"))
    ['parityscope.core.errors.MissingExtra', 'parityscope.core.errors.InvalidInput']
    """
    own = module.split(".", maxsplit=1)[0]
    found: dict[str, str] = {}
    waiting = list(_places(f"{module}.{name.split('.', maxsplit=1)[0]}", own))
    if not waiting or waiting[0][1] == _EVERYTHING:
        raise InvalidInput(
            f"the source of {name} in {module} cannot be found, so that its rows could not be told from those of other"
            " code: define it in a file"
        )
    while waiting:
        module, top = waiting.pop()
        if f"{_label(module)}.{top}" not in found:
            found[f"{_label(module)}.{top}"], places = _definition(module, top, own)
            waiting += places
    return found


@cache
def _definition(module: str, name: str, own: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the text of a definition, and the places of those that it mentions."""
    source = source_of(module)
    assert source is not None
    if name == _EVERYTHING:
        imported = [target for targets in source.imports.values() for target in targets]
        places = [place for target in (*source.stars, *imported) for place in _places(target, own)]
        return "", [*((module, one) for one in source.definitions), *places]
    lines, places = [source.text(name)], []
    for written, target in sorted(source.mentioned(name)):
        found = list(_places(target, own))
        places += found
        # What a name stands for is part of the text: an import may change while nothing else does.
        lines += [f"{written} = {_label(there)}.{one}" for there, one in found] or [f"{written} = {target}"]
    return "\n".join(lines), places


def code_of_value(value: object) -> str:
    """Return a hash of all source and settings that decide what a function, or a value with functions in it, does.

    >>> code_of_value(partial(round, ndigits=2)) == code_of_value(partial(round, ndigits=3))
    False
    >>> code_of_value(object())
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: a value of type object cannot be part of a row's address: use numbers, text, \
lists, dicts, dataclasses, and functions that are defined in files
    """
    return hashlib.sha256("\n".join(_parts(value)).encode()).hexdigest()[:16]


def _parts(value: Any) -> Iterator[str]:
    """Yield what decides a value, in an order of its own."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield repr(value)
    elif isinstance(value, partial):
        yield from _parts([value.func, value.args, value.keywords])
    elif isinstance(value, BaseModel):
        yield from _parts([type(value), value.model_dump_json()])
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _parts([type(value), {one.name: getattr(value, one.name) for one in fields(value)}])
    elif isinstance(value, list | tuple):
        if type(value) not in (list, tuple):
            yield from _parts(type(value))
        yield f"{len(value)} values"
        for one in value:
            yield from _parts(one)
    elif isinstance(value, set | frozenset):
        yield from _parts(sorted(code_of_value(one) for one in value))
    elif isinstance(value, Mapping):
        yield from _parts([part for item in value.items() for part in item])
    elif callable(value) and hasattr(value, "__qualname__"):
        yield from _function_parts(value)
    else:
        raise InvalidInput(
            f"a value of type {type(value).__name__} cannot be part of a row's address: use numbers, text, lists,"
            " dicts, dataclasses, and functions that are defined in files"
        )


def _function_parts(function: Any) -> Iterator[str]:
    """Yield the code of a function or class and what it carries along: a bound object, a closure, defaults."""
    module, name = function.__module__ or "builtins", function.__qualname__
    if not isinstance(bound := getattr(function, "__self__", None), ModuleType | None):
        yield from _parts(bound)
    if _is_library(module):
        yield f"{module}.{name}"
        return
    if name.startswith("<lambda>"):  # it has no name of its own: take the definition it stands in
        source = source_of(module)
        name = (source and source.definition_at(function.__code__.co_firstlineno)) or name
    yield code_of(module, name)
    if "<" in function.__qualname__:
        inner = inspect.unwrap(function)  # what a decorator adds stands in the text of the definition
        cells = [cell.cell_contents for cell in getattr(inner, "__closure__", None) or ()]
        fixed = [one for one in cells if one is not function]
        yield from _parts([fixed, getattr(inner, "__defaults__", None), getattr(inner, "__kwdefaults__", None)])


def _places(full_name: str, own: str) -> Iterator[tuple[str, str]]:
    """Yield where a dotted name is defined, following imports; nothing where that is a library's or a builtin."""
    seen: set[str] = set()
    waiting = [full_name]
    while waiting:
        name = waiting.pop()
        if name in seen or not _counts(name, own):
            continue
        seen.add(name)
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            module, rest = ".".join(parts[:length]), parts[length:]
            source = source_of(module)
            if source is None:
                continue
            targets = source.full_names(rest[0]) if rest else []
            if rest and rest[0] in source.definitions:
                yield module, rest[0]
            elif not rest or (not targets and not rest[0].startswith("__")):
                yield module, _EVERYTHING  # a module as a value, or a name that it makes in some other way
            waiting += [".".join([target, *rest[1:]]) for target in targets]
            break


def _counts(name: str, own: str) -> bool:
    top = name.split(".", maxsplit=1)[0]
    counts = top in (_PROJECT, own) or top.startswith(_SPEC)
    return counts and not f"{name}.".startswith(f"{_DECIDES_NOTHING}.")


def _label(module: str) -> str:
    """Return a module's name for the hash: a spec is called the same wherever it comes from and whatever else is in it.

    >>> _label("parityscope_spec_5d41402a"), _label("parityscope.runs")
    ('spec', 'parityscope.runs')
    """
    if module.startswith(_SPEC):
        return "spec"
    if module in ("__main__", "__mp_main__"):
        return Path(getattr(sys.modules[module], "__file__", None) or module).stem
    return module


def _is_library(module: str) -> bool:
    top = module.split(".", maxsplit=1)[0]
    if top == _PROJECT or top.startswith(_SPEC) or top in ("__main__", "__mp_main__"):
        return False
    place = getattr(sys.modules.get(module), "__file__", None)
    installed = [sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")]
    return place is None or any(Path(place).is_relative_to(folder) for folder in installed)
