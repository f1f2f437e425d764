"""Every public function and class says what it is and shows it with an example that runs (as a doctest)."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "parityscope"
PARTS = sorted(path.name for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())

# The contract of an experiment's file, with its configs, is explained in experiments/contract.py; docs show it at work.
CONTRACT = {"run", "run_batch", "batch_shape", "plot", "table", "findings"}


def public_definitions(part):
    """Yield (file, definition) of what a part defines at module level, without an underscore."""
    place = SOURCE / part
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                yield path, node


def needs_no_example(part, node):
    if part == "cli":  # commands: their examples are the docs' shell blocks
        return True
    if part != "experiments":
        return False
    bases = {base.id for base in getattr(node, "bases", []) if isinstance(base, ast.Name)}
    return node.name in {*CONTRACT, "Config"} or "Config" in bases


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
        if not needs_no_example(part, node) and not any(">>>" in text for text in texts(node))
    ]
    assert not missing


@pytest.mark.parametrize("part", PARTS)
def test_no_example_is_skipped(part):
    assert not any("doctest: +SKIP" in text for _, node in public_definitions(part) for text in texts(node))
