"""Which code decides a number: the definitions that a run can reach, and a hash of them.

A row's address contains this hash, so that an edit makes those rows stale whose computation could see it. From the
config's class on, every name that a top-level definition mentions is followed through imports, as long as it leads into
this project, into a spec, or into the package that the class is from. A name counts as what it leads to, so that it
does not matter in which file a definition stands. Comments, docstrings, layout and the types of arguments do not count;
nor do libraries, whose versions are stored with the row, nor `parityscope.records`, which stores numbers and decides
none.

A module that is used as a value counts as all that is in it, and what a file does besides defining (loops, calls, `if`)
counts for all its definitions. Not seen are names put together at run time (`import_module`, `eval`, a table that
definitions elsewhere enter themselves into), attributes of a module or class that another module replaces, modules
beside a spec that it imports, and files that are read; for these a config has its `VERSION`. The source is read once
per process, and nothing is imported to find out.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, partial
from importlib.util import find_spec, resolve_name
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from parityscope.core.errors import InvalidInput

Definition = tuple[str, str]  # its module and its name

_PROJECT, _SPEC, _DECIDES_NOTHING = "parityscope", "parityscope_spec_", "parityscope.records"
_EVERYTHING, _EFFECTS = "*", "!"  # stand for a name: all there is in a module, and what it does besides defining
_IMPORTS, _DEFINES = ast.Import | ast.ImportFrom, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# CPython counts the depth of a tree being built in one place for all threads, and the garbage collector may let
# another one in: two that parse at once can both end in a SystemError.
_ONE_PARSES = Lock()


@cache
def code_of(module: str, name: str) -> str:
    """Return a hash of the definition `name` of `module` and of every definition it can reach."""
    found = reached(module, name)
    hashes, kinds = dict.fromkeys(found, ""), 0
    # Definitions name each other in circles: every round tells apart what names something that was told apart before.
    while len(set(hashes.values())) > kinds:
        kinds = len(set(hashes.values()))
        hashes = {one: _hash([text, *(hashes[other] for other in named)]) for one, (text, named) in found.items()}
    return _hash([hashes[next(iter(found))], *sorted(set(hashes.values()))])


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@cache
def reached(module: str, name: str) -> Mapping[Definition, tuple[str, tuple[Definition, ...]]]:
    """Return the definitions that `name` of `module` can reach: the text of each, and those that it names in turn."""
    own = module.split(".", maxsplit=1)[0]
    waiting = [one for one, _ in _leads_to(f"{module}.{name.split('.', maxsplit=1)[0]}", own)]
    found: dict[Definition, tuple[str, tuple[Definition, ...]]] = {}
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) or (not found and one[1] == _EVERYTHING):
            raise InvalidInput(
                f"the source of {name} in {module} cannot be found, so that its rows could not be told from those of"
                " other code: define it in a file"
            )
        if one not in found:
            found[one] = _text_of(one, own)
            waiting += found[one][1]
    return found


@cache
def _text_of(definition: Definition, own: str) -> tuple[str, tuple[Definition, ...]]:
    """Return what a definition consists of, with numbers for the definitions it names, and those definitions."""
    module, name = definition
    source = _source_of(module)
    assert source is not None
    text = _Text(source, own)
    if name == _EVERYTHING:
        lines = [f"{one} {text.of_name(one)}" for one in sorted({*source.definitions, *source.imports})]
    else:
        lines = [text.of_statement(node) for node in source.definitions[name]]
    lines += [str(text.of_name(one)) for one in (_EVERYTHING, _EFFECTS)]  # from a star, or changed by a loop
    return "\n".join(lines), tuple(text.named)


class _Text:
    """Statements of a module as text: the same for the same program in every layout, file and version of Python."""

    def __init__(self, source: _Source, own: str) -> None:
        self.source, self.own = source, own
        self.imports: dict[str, list[str]] = {}  # of the statement itself
        self.named: dict[Definition, int] = {}

    def of_statement(self, node: ast.stmt) -> str:
        self.imports = _imports_in(node, self.source.package)
        # What is imported into a class, or for other functions to use, is not named here.
        unnamed = self.imports.keys() - {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        return "\n".join([self.of(node), *(f"{name} {self.of_name(name)}" for name in sorted(unnamed))])

    def of(self, node: object, within: object = None, local: frozenset[str] = frozenset()) -> str:
        if isinstance(node, list):
            seen = [one for one in node if not isinstance(one, _IMPORTS) and not _is_docstring(one)]
            return f"[{', '.join(self.of(one, within, local) for one in seen)}]"
        if not isinstance(node, ast.AST):
            return repr(node)
        if known := self._of_dotted(node, local):
            return known
        inner = local | (_local_names(node) - self.imports.keys())
        shown = [
            f"{name}={self.of(value, node, inner if name in ('body', 'elt', 'key', 'value', 'ifs') else local)}"
            for name, value in ast.iter_fields(node)
            if value is not None and value != [] and name not in ("ctx", "kind", "type_comment", "returns")
            if name != "annotation" or isinstance(within, ast.ClassDef)  # the type of a field may decide something
        ]
        return f"{type(node).__name__}({', '.join(shown)})"

    def _of_dotted(self, node: ast.AST, local: frozenset[str], *attributes: str) -> str | None:
        if isinstance(node, ast.Attribute):
            return self._of_dotted(node.value, local, node.attr, *attributes)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in local:
            return self.of_name(node.id, *attributes)
        return None

    def of_name(self, name: str, *attributes: str) -> str | None:
        """Return what a name leads to; nothing for builtins, arguments and local variables."""
        homes = [f"{self.source.module}.{name}"] if name in self.source.definitions else []
        homes += [*self.imports.get(name, ()), *self.source.imports.get(name, ())]
        shown: dict[str, None] = {}
        for target, rest in (one for home in homes for one in _leads_to(".".join([home, *attributes]), self.own)):
            known = target if isinstance(target, str) else f"<{self.named.setdefault(target, len(self.named))}>"
            shown[".".join([known, *rest])] = None
        return " or ".join(shown) or None


@cache
def _leads_to(full_name: str, own: str, seen: frozenset[str] = frozenset()) -> list[tuple[Definition | str, list[str]]]:
    """Return where a dotted name is defined, following imports, and the attributes of it; a library's name as it is."""
    parts = full_name.split(".")
    if parts[0] not in (_PROJECT, own) and not parts[0].startswith(_SPEC):
        return [(full_name, [])]
    length = next((one for one in range(len(parts), 0, -1) if _source_of(".".join(parts[:one]))), 0)
    module, rest = ".".join(parts[:length]), parts[length:]
    source = _source_of(module)
    if source is None or full_name in seen or f"{full_name}.".startswith(f"{_DECIDES_NOTHING}."):
        return [(parts[-1], [])]
    if not rest:
        return [((module, _EVERYTHING), [])]
    found: list[tuple[Definition | str, list[str]]] = []
    if rest[0] in source.definitions:
        found.append(((module, rest[0]), rest[1:]))
    for home in source.imports.get(rest[0], ()):
        found += _leads_to(".".join([home, *rest[1:]]), own, seen | {full_name})
    # Otherwise the module makes the name in some other way, unless Python does.
    return found or [(rest[0] if rest[0].startswith("__") else (module, _EVERYTHING), rest)]


@dataclass
class _Source:
    """A module: the statements of each of its definitions, and where the names that it imports are from."""

    module: str
    package: str  # what relative imports start from
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, list[str]] = field(default_factory=dict)  # several with try and if

    def add(self, node: ast.stmt) -> None:
        names = [*_bound(node), *(name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names)]
        if isinstance(node, _DEFINES):
            for decorator in node.decorator_list:  # `@table.register` changes the table
                root: ast.expr = decorator
                while isinstance(root, ast.Call | ast.Attribute):
                    root = root.func if isinstance(root, ast.Call) else root.value
                names += [root.id] if isinstance(root, ast.Name) and root.id in self.definitions else []
        else:
            for name, homes in _imports_in(node, self.package).items():
                self.imports[name] = [*self.imports.get(name, ()), *homes]
            leaves = [one for one in ast.walk(node) if isinstance(one, ast.stmt) and not hasattr(one, "body")]
            assigns = names and isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
            names += [] if assigns or all(isinstance(one, _IMPORTS) for one in leaves) else [_EFFECTS]
        for name in dict.fromkeys(names):
            self.definitions.setdefault(name, []).append(node)


@cache
def _source_of(module: str) -> _Source | None:
    """Return the source of a module; none where there is none to read."""
    path = _path_of(module)
    text: str | bytes | None = getattr(sys.modules.get(module), "__source__", None)  # of a spec
    if text is None and path is not None and path.suffix == ".py":
        text = path.read_bytes()
    return None if text is None else _parsed(text, module, is_package=path is not None and path.stem == "__init__")


def _parsed(text: str | bytes, module: str, *, is_package: bool = False) -> _Source:
    with _ONE_PARSES:
        waiting = ast.parse(text).body
    source = _Source(module, module if is_package else module.rpartition(".")[0])
    while waiting:
        node = waiting.pop(0)
        test = ast.unparse(node.test) if isinstance(node, ast.If) else ""
        # What is imported for types alone decides nothing, but tells where the names of a lazy package are defined.
        if test.startswith("__name__ ==") or (test.endswith("TYPE_CHECKING") and not is_package):
            waiting[:0] = getattr(node, "orelse", [])
        elif not _is_docstring(node):
            source.add(node)
    return source


def _path_of(module: str) -> Path | None:
    top, *rest = module.split(".")
    place = getattr(sys.modules.get(module), "__file__", None)
    if place is None and not rest:
        with suppress(ValueError):  # __main__ of an interactive session
            place = getattr(find_spec(top), "origin", None)
    if place is not None:
        return Path(place) if Path(place).is_file() else None
    above = _path_of(top) if rest else None
    if above is None or above.name != "__init__.py":
        return None
    inside = above.parent.joinpath(*rest)
    paths = (inside.with_name(f"{inside.name}.py"), inside / "__init__.py")
    return next((path for path in paths if path.is_file()), None)


def _imports_in(node: ast.AST, package: str) -> dict[str, list[str]]:
    """Return the names that the imports in a statement bind, and their homes; a star is a name too."""
    found: dict[str, list[str]] = {}
    for one in ast.walk(node):
        for alias in one.names if isinstance(one, _IMPORTS) else ():
            name, home = alias.asname or alias.name, alias.name
            if isinstance(one, ast.ImportFrom):
                above = resolve_name("." * one.level + (one.module or ""), package)
                home = above if name == _EVERYTHING else f"{above}.{home}"
            elif alias.asname is None:
                name = home = home.split(".")[0]
            found.setdefault(name, []).append(home)
    return found


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement defines for the whole module."""
    if isinstance(node, _DEFINES):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for one in ast.iter_child_nodes(node):
            yield from _bound(one)


def _local_names(node: ast.AST) -> set[str]:
    """Return the names that a function or a comprehension has of its own, other than by imports."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        names = {one.arg for one in ast.iter_child_nodes(node.args) if isinstance(one, ast.arg)}
        names |= {name for one in node.body for name in _bound(one)} if isinstance(node.body, list) else set()
        return names - {name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names}
    loops = [node] if isinstance(node, ast.comprehension) else getattr(node, "generators", [])
    return {one.id for loop in loops for one in ast.walk(loop.target) if isinstance(one, ast.Name)}


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def code_of_value(value: object) -> str:
    """Return a hash of all source and settings that decide what a function, or a value with functions in it, does."""
    return _hash(_parts(value))


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
    yield code_of(module, _around(function) if name.startswith("<lambda>") else name)
    if "<" in name:
        inner = inspect.unwrap(function)  # what a decorator adds stands in the text of the definition
        cells = [cell.cell_contents for cell in getattr(inner, "__closure__", None) or ()]
        fixed = [one for one in cells if one is not function]
        yield from _parts([fixed, getattr(inner, "__defaults__", None), getattr(inner, "__kwdefaults__", None)])


def _around(function: Any) -> str:
    """Return the name of the definition that a function without a name of its own stands in."""
    line, source = function.__code__.co_firstlineno, _source_of(function.__module__)
    for name, nodes in source.definitions.items() if source else ():
        if any(one.lineno <= line <= (one.end_lineno or 0) for one in nodes):
            return name
    return function.__qualname__


def _is_library(module: str) -> bool:
    top = module.split(".", maxsplit=1)[0]
    if top == _PROJECT or top.startswith(_SPEC) or top in ("__main__", "__mp_main__"):
        return False
    place = getattr(sys.modules.get(module), "__file__", None)
    installed = [sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")]
    return place is None or any(Path(place).is_relative_to(folder) for folder in installed)
