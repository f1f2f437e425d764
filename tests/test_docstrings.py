"""Every public function and class says what it is; what a package exports shows it with an example that runs."""

import ast
import inspect
from pathlib import Path

import pytest

import parityscope

SOURCE = Path(__file__).parents[1] / "src" / "parityscope"
PARTS = sorted(path.name for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())


def public_definitions(part):
    """Yield (file, definition) of what a part defines at module level, without an underscore."""
    place = SOURCE / part
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                yield path, node


def exported(part):
    """Yield (file, definition) of what a part exports: the definitions that an `__all__` above them names."""
    listed = {
        (path.parent, element.value)
        for path in SOURCE.rglob("__init__.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
        for element in node.value.elts
    }
    for path, node in public_definitions(part):
        if path.parent == SOURCE or any((folder, node.name) in listed for folder in path.parents):
            yield path, node


def texts(node):
    """The docstring of a function, or those of a class and its methods."""
    members = node.body if isinstance(node, ast.ClassDef) else []
    return [ast.get_docstring(one) or "" for one in (node, *(m for m in members if isinstance(m, ast.FunctionDef)))]


@pytest.mark.parametrize("part", PARTS)
def test_everything_public_has_a_docstring(part):
    missing = [f"{path.name}: {node.name}" for path, node in public_definitions(part) if not ast.get_docstring(node)]
    assert not missing


@pytest.mark.parametrize("part", [part for part in PARTS if part != "apps"])  # the docs' shell blocks show commands
def test_everything_exported_shows_a_running_example(part):
    missing = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path, node in exported(part)
        if not any(">>>" in text for text in texts(node))
    ]
    assert not missing


def test_much_is_exported():
    assert sum(1 for part in PARTS for _ in exported(part)) > 80


@pytest.mark.parametrize("part", PARTS)
def test_no_example_is_skipped(part):
    assert not any("doctest: +SKIP" in text for _, node in public_definitions(part) for text in texts(node))


def takes_something(public):
    parameters = inspect.signature(public).parameters
    return callable(public) and bool(set(parameters) - {"self", "args", "kwargs"})


@pytest.mark.parametrize("name", sorted(set(parityscope.__all__) - {"RECIPES", "theory", "InvalidInput"}))
def test_everything_a_user_imports_says_what_its_arguments_are(name):
    public = getattr(parityscope, name)
    text = inspect.getdoc(public) or ""
    assert not takes_something(public) or "Parameters\n----------\n" in text
