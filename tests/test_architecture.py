"""Imports point up the list in the README only, and models never know about problems."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "parityscope"

README = (Path(__file__).parents[1] / "README.md").read_text()
# A file may import from those above it in the README's source tree, and from its own package.
ORDER = re.findall(r"^      (\w+)(?:\.py|/) ", README, flags=re.M)
OPTIONAL = {
    "matplotlib": {"figures", "estimator", "experiments"},
    "jinja2": {"report"},
    "distributed": {"sweep"},
    "dask_jobqueue": {"sweep"},
    "tensorboard": {"store"},
    "transformers": {"language_models"},
    "gguf": {"language_models"},
    "pyarrow": {"store", "language_models", "estimator"},
    "sklearn": {"estimator"},
    "threadpoolctl": {"estimator"},
    "pandas": {"estimator"},
    "skrebate": {"estimator"},
    "fastapi": {"explorer"},
    "uvicorn": {"explorer"},
    "websockets": {"explorer"},
    "plotly": {"explorer"},
}


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= (
                {f"{node.module}.{alias.name}" for alias in node.names}
                if node.module == "parityscope"
                else {node.module}
            )
    return names


FILES = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_up(path):
    own = part_of(path)
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "parityscope" and len(parts) > 1 and parts[1] != own:
            assert ORDER.index(parts[1]) < ORDER.index(own), f"{own} imports {parts[1]}"
        if parts[0] in OPTIONAL:
            assert own in OPTIONAL[parts[0]], f"{own} imports the optional {parts[0]}"


def test_every_part_is_in_the_order():
    assert {part_of(path) for path in FILES} == set(ORDER)


def test_models_never_import_problems():
    assert not any("parityscope.problems" in imported(path) for path in (SOURCE / "models").glob("*.py"))


def test_nothing_is_a_pickle():
    assert not any({"pickle", "cloudpickle"} & imported(path) for path in FILES)
