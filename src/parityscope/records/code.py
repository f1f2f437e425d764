"""Which code decides a number: the definitions that a run can reach, and a hash of their text.

A row's address contains this hash, so that an edit makes exactly those rows stale whose computation could see it. The
unit is a top-level definition (a function, a class, a constant): from the config's class on, every name that a
definition mentions is followed, through imports, as long as it leads into this project or into a spec. Comments,
docstrings and blank lines do not count. Libraries do not count either; their versions are stored with the row.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PROJECT = "parityscope"
_SPEC = f"{_PROJECT}_spec_"  # and a hash of its text


@cache
def code_of(module: str, name: str) -> str:
    """Return a hash of the definition `name` of `module` and of every definition it can reach.

    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> code_of(WorkedExample.__module__, "WorkedExample") == WorkedExample().code()
    True
    """
    digest = hashlib.sha256()
    for place, text in sorted(reached(module, name).items()):
        # A spec is called after its whole text: a longer list of configs would make every row of it stale.
        known = place.partition(".")[2] if place.startswith(_SPEC) else place
        digest.update(f"{known}\n{text}\n".encode())
    return digest.hexdigest()[:16]


@cache
def reached(module: str, name: str) -> dict[str, str]:
    """Return the text of every definition that `name` of `module` can reach, by its full name.

    >>> "parityscope.core.errors.InvalidInput" in reached("parityscope.core.errors", "MissingExtra")
    True
    """
    found: dict[str, str] = {}
    waiting = [(module, name)]
    while waiting:
        place = _home(*waiting.pop())
        if place is None or ".".join(place) in found:
            continue
        source = _source(place[0])
        found[".".join(place)] = source.texts[place[1]]
        waiting += source.mentioned(place[1])
    return found


def _home(module: str, name: str) -> tuple[str, str] | None:
    """Return where a name is defined, following imports; none where that is outside the project."""
    top = name.split(".", maxsplit=1)[0]
    seen = set()
    while (module, top) not in seen:
        seen.add((module, top))
        if not _is_ours(module):
            return None
        source = _source(module)
        if top in source.texts:
            return module, top
        if top not in source.imports:
            return None  # a builtin, or a whole module
        module, top = source.imports[top]
    return None


def _is_ours(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] == _PROJECT or module.startswith(_SPEC)


@dataclass
class _Source:
    """One module: the text of its definitions, what it imports, and what each definition mentions."""

    module: str
    texts: dict[str, str] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # name → (module, name there; "" for a module)
    nodes: dict[str, list[ast.stmt]] = field(default_factory=dict)

    def mentioned(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield (module, name) of everything a definition mentions."""
        own = dict(self.imports)
        for node in self.nodes[name]:
            for inner in _walk(node):
                own |= _imported(inner)
        for node in self.nodes[name]:
            for inner in _walk(node):
                if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
                    module, there = own.get(inner.value.id, ("", ""))
                    whole = f"{module}.{there}" if there else module
                    if module and _is_module(whole):
                        yield whole, inner.attr
                elif isinstance(inner, ast.Name):
                    yield own.get(inner.id, (self.module, inner.id))


@cache
def _source(module: str) -> _Source:
    text = _text_of(module)
    tree = ast.parse(text)
    lines = _without_comments(text, tree)
    source = _Source(module=module)
    for node in _statements(tree.body):
        source.imports |= _imported(node)
        for name in _bound(node):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
            kept = (line.rstrip() for line in lines[first - 1 : node.end_lineno])
            part = "\n".join(line for line in kept if line)
            source.texts[name] = f"{source.texts[name]}\n{part}" if name in source.texts else part
            source.nodes.setdefault(name, []).append(node)
    return source


def _text_of(module: str) -> str:
    """Return the source of a module; that of a spec may exist in memory only."""
    loaded = sys.modules.get(module)
    path = getattr(loaded, "__file__", None) or _path_of(module)
    if path is None:
        return ""
    return "".join(linecache.getlines(path)) if not Path(path).is_file() else Path(path).read_text()


def _path_of(module: str) -> str | None:
    spec = find_spec(module)
    return None if spec is None else spec.origin


@cache
def _is_module(name: str) -> bool:
    if not _is_ours(name):
        return False
    try:
        return name in sys.modules or find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield top-level statements, also those inside `if`, `try` and `with`."""
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, part, []))
        else:
            yield node


def _bound(node: ast.stmt) -> list[str]:
    """Return the names a top-level statement defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else targets
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _imported(node: ast.AST) -> dict[str, tuple[str, str]]:
    """Return what an import statement binds."""
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return {
            alias.asname or alias.name: (whole, "")
            if _is_module(whole := f"{node.module}.{alias.name}")
            else (node.module, alias.name)
            for alias in node.names
        }
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.split(".")[0]: (alias.name if alias.asname else alias.name.split(".")[0], "")
            for alias in node.names
        }
    return {}


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below but for the types of arguments and results, which decide no number."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns") and not isinstance(node, ast.AnnAssign):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST):
                yield from _walk(one)


def _without_comments(text: str, tree: ast.Module) -> list[str]:
    """Return the lines of a module with comments and docstrings blanked; line numbers stay."""
    lines = [line.encode() for line in text.split("\n")]
    quoted: dict[int, list[tuple[int, int]]] = {}  # line → columns that are inside a string
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and isinstance(getattr(node, "value", ""), str | bytes):
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                start = node.col_offset if number == node.lineno else 0
                end = node.end_col_offset if number == node.end_lineno else len(lines[number - 1])
                quoted.setdefault(number, []).append((start, end or 0))
    for number, line in enumerate(lines, start=1):
        place = line.find(b"#")
        while place >= 0:
            if not any(start <= place < end for start, end in quoted.get(number, [])):
                lines[number - 1] = line[:place]
                break
            place = line.find(b"#", place + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                for number in range(first.lineno, (first.end_lineno or first.lineno) + 1):
                    lines[number - 1] = b""
    return [line.decode() for line in lines]
