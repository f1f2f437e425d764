"""The source of a module, cut into its definitions: what each consists of, and which names it mentions.

Nothing is imported to find out, so that the answer does not depend on what is installed or was imported before.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from threading import Lock

# CPython counts the depth of a tree being built in one place for all threads, and the garbage collector may let
# another one in: two that parse at once can both end in a SystemError.
_ONE_PARSES = Lock()

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass
class Source:
    """One module: the statements of each of its definitions, and what it imports.

    >>> source = parsed("from math import pi as π\\ndef area(r): return π * r**2  # of a circle", "circles")
    >>> source.imports, source.text("area") == parsed("def area(r):\\n  return π * r ** 2", "circles").text("area")
    ({'π': ['math.pi']}, True)
    >>> sorted(source.mentioned("area"))
    [('π', 'math.pi')]
    """

    module: str
    package: str  # what relative imports start from
    definitions: dict[str, list[ast.AST]] = field(default_factory=dict)
    imports: dict[str, list[str]] = field(default_factory=dict)  # name → where from, several with try and if
    stars: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        """Return what a definition consists of, the same for the same program in every layout."""
        return "\n".join(map(_dump, self.definitions[name]))

    def mentioned(self, name: str) -> set[tuple[str, str]]:
        """Return what a definition mentions from elsewhere: as it is written there, and its full dotted name."""
        visitor = _Mentions(self)
        for node in self.definitions[name]:
            visitor.visit(node)
        return visitor.found | {("*", star) for star in self.stars}  # anything may come from there

    def full_names(self, name: str) -> list[str]:
        """Return what a name of this module stands for: a definition, imports, or, for a builtin, nothing."""
        own = [f"{self.module}.{name}"] if name in self.definitions else []
        return own + self.imports.get(name, [])

    def definition_at(self, line: int) -> str | None:
        """Return the name of the definition that a line belongs to."""
        for name, nodes in self.definitions.items():
            for node in nodes:
                if getattr(node, "lineno", line + 1) <= line <= (getattr(node, "end_lineno", None) or 0):
                    return name
        return None

    def add_imports(self, node: ast.AST) -> None:
        """Note what an import statement binds."""
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            self.stars.append(self._from(node))
            return
        for name, target in self.imported(node):
            self.imports.setdefault(name, []).append(target)

    def imported(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Yield the names an import statement binds, and what to."""
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{self._from(node)}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2

    def _from(self, node: ast.ImportFrom) -> str:
        return resolve_name("." * node.level + (node.module or ""), self.package)


@cache
def source_of(module: str) -> Source | None:
    """Return the source of a module; none where there is none to read.

    >>> "source_of" in source_of("parityscope.records.source").definitions, source_of("parityscope.nowhere")
    (True, None)
    """
    in_memory: str | None = getattr(sys.modules.get(module), "__source__", None)  # of a spec
    if in_memory is not None:
        return parsed(in_memory, module)
    path = _path_of(module)
    if path is None or path.suffix != ".py":
        return None
    return parsed(path.read_bytes(), module, is_package=path.stem == "__init__")


def _path_of(module: str) -> Path | None:
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded is not None:
        return Path(loaded) if Path(loaded).is_file() else None
    top, *rest = module.split(".")
    if not rest:
        try:
            spec = find_spec(top)
        except ValueError:  # __main__ of an interactive session
            return None
        return Path(spec.origin) if spec and spec.has_location and spec.origin else None
    above = _path_of(top)
    if above is None or above.name != "__init__.py":
        return None
    place = above.parent.joinpath(*rest)
    found = (path for path in (place.with_name(f"{place.name}.py"), place / "__init__.py") if path.is_file())
    return next(found, None)


def parsed(text: str | bytes, module: str, *, is_package: bool = False) -> Source:
    """Return the definitions of a text.

    >>> sorted(parsed("a = b = 1\\na += 1\\nfor i in 1, 2:\\n  b += i", "letters").definitions)
    ['a', 'b', 'i']
    """
    with _ONE_PARSES:
        tree = ast.parse(text)
    _strip(tree)
    source = Source(module, module if is_package else module.rpartition(".")[0])
    effects: list[ast.stmt] = []
    for node, conditions in _statements(tree.body):
        source.add_imports(node)
        names = _defined(node)
        if not names and not isinstance(node, ast.Import | ast.ImportFrom):
            effects.append(node)
        for inner in ast.walk(node):
            names += inner.names if isinstance(inner, ast.Global) else []
        for name in names:
            source.definitions.setdefault(name, []).extend((node, *conditions))
    _attach(source, effects)
    return source


def _attach(source: Source, effects: Sequence[ast.stmt]) -> None:
    """Give loops, calls and the like to all definitions that they mention, or to all there are: they may change any."""
    for node in effects:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                source.definitions.setdefault(inner.id, [])
    for node in effects:
        mentioned = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} & set(source.definitions)
        for name in mentioned or set(source.definitions):
            source.definitions[name].append(node)
    # `@table.register` in front of a definition changes the table.
    for nodes in list(source.definitions.values()):
        for one in list(nodes):
            for decorator in getattr(one, "decorator_list", []):
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                base = _base(called) if isinstance(called, ast.Attribute) else None
                if base in source.definitions and one not in source.definitions[base]:
                    source.definitions[base].append(one)


def _statements(
    body: Sequence[ast.stmt], conditions: tuple[ast.expr, ...] = ()
) -> Iterator[tuple[ast.stmt, tuple[ast.expr, ...]]]:
    """Yield top-level statements, also those inside `if`, `try` and `with`, and what they depend on there."""
    for node in body:
        if isinstance(node, ast.If):
            if any(isinstance(one, ast.NamedExpr) for one in ast.walk(node.test)):
                yield ast.Expr(node.test), conditions
            yield from _statements([*node.body, *node.orelse], (*conditions, node.test))
        elif isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is not None:
                    yield ast.Assign([item.optional_vars], item.context_expr), conditions
            yield from _statements(node.body, (*conditions, *(item.context_expr for item in node.items)))
        elif isinstance(node, ast.Try):
            handled = [one for handler in node.handlers for one in handler.body]
            yield from _statements([*node.body, *handled, *node.orelse, *node.finalbody], conditions)
        else:
            yield node, conditions


def _defined(node: ast.stmt) -> list[str]:
    """Return the names a top-level statement defines or changes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else targets
    walrus = [one.target for one in ast.walk(node) if isinstance(one, ast.NamedExpr)] if targets else []
    return [name for target in (*targets, *walrus) for name in _target_names(target)]


def _target_names(target: ast.expr) -> Iterator[str]:
    for one in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
        if isinstance(one, ast.Tuple | ast.List):
            yield from _target_names(one)
        elif (name := _base(one)) is not None:
            yield name


def _base(node: ast.expr) -> str | None:
    """Return the name that an attribute or an element belongs to."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


class _Mentions(ast.NodeVisitor):
    """Collects the names that a definition takes from outside itself; what is local to its functions is not."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scopes: list[dict[str, list[str]]] = []  # of the functions around: local name → what it was imported from
        self.found: set[tuple[str, str]] = set()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts, inner = [inner.attr, *parts], inner.value
        if isinstance(inner, ast.Name):
            self._note(inner.id, parts)
        else:
            self.visit(inner)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._note(node.id, [])

    def _visit_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note what is imported into a class or a global name, which others may use; the rest when it is mentioned."""
        for name, target in self.source.imported(node):
            if not self.scopes or name not in self.scopes[-1]:
                self.found.add((name, target))

    visit_Import = visit_ImportFrom = _visit_import  # noqa: N815

    def _visit_function(self, node: _Function) -> None:
        outside = [*node.args.defaults, *node.args.kw_defaults, *getattr(node, "decorator_list", [])]
        for one in outside:
            if one is not None:
                self.visit(one)
        self.scopes.append(self._locals(node))
        for one in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(one)
        self.scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function  # noqa: N815

    def _visit_comprehension(self, node: _Comprehension) -> None:
        self.visit(node.generators[0].iter)  # the one part that is evaluated outside
        targets = {one.id for loop in node.generators for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
        self.scopes.append({name: [] for name in targets})
        for name, value in ast.iter_fields(node):
            if name != "generators":
                self.visit(value)
        for index, loop in enumerate(node.generators):
            for one in [*loop.ifs, *([loop.iter] if index else [])]:
                self.visit(one)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension  # noqa: N815

    def _note(self, name: str, attributes: Sequence[str]) -> None:
        local = next((scope[name] for scope in reversed(self.scopes) if name in scope), None)
        for target in self.source.full_names(name) if local is None else local:
            self.found.add((".".join([name, *attributes]), ".".join([target, *attributes])))

    def _locals(self, node: _Function) -> dict[str, list[str]]:
        """Return the names that are local to a function."""
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        names: dict[str, list[str]] = {one.arg: [] for one in named if one is not None}
        shared: set[str] = set()
        waiting: list[ast.AST] = list(node.body) if isinstance(node.body, list) else []
        while waiting:
            one = waiting.pop()
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.setdefault(one.name, [])
                continue
            if isinstance(one, ast.Lambda | _Comprehension):
                continue
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                names.setdefault(one.id, [])
            for name, target in self.source.imported(one):
                names.setdefault(name, []).append(target)
            if isinstance(one, ast.Global):
                shared |= set(one.names)
            waiting += ast.iter_child_nodes(one)
        return {name: targets for name, targets in names.items() if name not in shared}


def _strip(tree: ast.Module) -> None:
    """Remove what decides no number: docstrings, and types except those of fields."""
    fields = {id(one) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for one in node.body}
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [one for one in body if not (isinstance(one, ast.Expr) and _is_text(one.value))]
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign) and id(node) not in fields:
            node.annotation = ast.Constant(None)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _dump(node: object) -> str:
    """Return a tree as text; unlike that of `ast.dump` it is the same in all versions of Python."""
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    shown = (
        f"{name}={_dump(value)}"
        for name, value in ast.iter_fields(node)
        if name not in ("ctx", "kind", "type_comment") and value is not None and value != []
    )
    return f"{type(node).__name__}({', '.join(shown)})"
