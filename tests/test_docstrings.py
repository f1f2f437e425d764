"""Every public function and class says what it is and shows it with an example that runs (as a doctest)."""

import ast
import inspect
from pathlib import Path

import pytest

import parityscope

SOURCE = Path(__file__).parents[1] / "src" / "parityscope"
PARTS = sorted(path.name for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())

# The contract of a figure's file is explained in papers/figure.py; docs show it at work.
CONTRACT = {"plot", "table", "findings"}


def public_definitions(part):
    """Yield (file, definition) of what a part defines at module level, without an underscore."""
    place = SOURCE / part
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                yield path, node


def needs_no_example(path, node):
    """Commands are shown by the docs' shell blocks, figures by their report; configs and numbers list fields."""
    folders = path.relative_to(SOURCE).parts
    bases = {base.id for base in getattr(node, "bases", []) if isinstance(base, ast.Name)}
    in_paper = "papers" in folders and any(base.endswith("Config") for base in bases)
    return "cli" in folders or in_paper or ("figures" in folders and node.name in CONTRACT) or "Numbers" in bases


def texts(node):
    """The docstring of a function, or those of a class and its methods."""
    members = node.body if isinstance(node, ast.ClassDef) else []
    return [ast.get_docstring(one) or "" for one in (node, *(m for m in members if isinstance(m, ast.FunctionDef)))]


@pytest.mark.parametrize("part", PARTS)
def test_everything_public_has_a_docstring(part):
    missing = [f"{path.name}: {node.name}" for path, node in public_definitions(part) if not ast.get_docstring(node)]
    assert not missing


@pytest.mark.parametrize("part", PARTS)
def test_everything_public_shows_a_running_example(part):
    missing = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path, node in public_definitions(part)
        if not needs_no_example(path, node) and not any(">>>" in text for text in texts(node))
    ]
    assert not missing


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
