"""Imports go down the layers only, and optional libraries stay where they are used."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "parityscope"
# A package may import from those before it and from itself; those on one line do not know each other.
LAYERS = (
    ("core",),
    ("problems", "models", "theory"),
    ("risk",),
    ("measures",),
    ("records",),
    ("training",),
    ("fit", "language_models", "runs"),
    ("papers",),
    ("apps",),
    ("__main__",),
)
OPTIONAL = {
    "matplotlib": {"core.drawing", "fit", "papers", "apps"},
    "jinja2": {"apps.report"},
    "distributed": {"runs"},
    "dask_jobqueue": {"runs"},
    "tensorboard": {"records"},
    "transformers": {"language_models"},
    "gguf": {"language_models"},
    "pyarrow": {"records", "language_models", "fit"},
    "sklearn": {"fit", "papers"},
    "threadpoolctl": {"fit"},
    "pandas": {"records", "training", "fit"},
    "bed_reader": {"fit"},
    "skrebate": {"papers.own.fit_benchmark"},
    "lightgbm": {"papers.own.fit_benchmark", "fit"},
    "interpret": {"papers.own.fit_benchmark"},
    "shapiq": {"papers.own.fit_benchmark"},
    "fastapi": {"apps.explorer"},
    "uvicorn": {"apps.explorer", "apps.cli"},
    "websockets": {"apps.explorer"},
    "plotly": {"apps.explorer"},
}


def layer_of(module: str) -> int:
    package = module.split(".")[1]
    return next(place for place, packages in enumerate(LAYERS) if package in packages)


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "parityscope":
            names |= {f"parityscope.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    return names - {"parityscope", "parityscope.__version__"}


FILES = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down(path):
    own = module_of(path)
    package = own.split(".")[1]
    for name in imported(path):
        top, *rest = name.split(".")
        if top == "parityscope" and rest[0] != package:
            assert layer_of(name) < layer_of(own), f"{own} imports {name}"
        if top in OPTIONAL:
            assert any(own.startswith(f"parityscope.{home}") for home in OPTIONAL[top]), f"{own} imports {top}"


def test_papers_do_not_import_each_other():
    """What two papers share stands beside them; our own results may build on everybody's."""
    for path in (SOURCE / "papers").glob("[!o]*/**/*.py"):
        own = path.relative_to(SOURCE / "papers").parts[0]
        for name in imported(path):
            parts = name.split(".")
            if parts[:2] == ["parityscope", "papers"] and len(parts) > 3:
                assert parts[2] == own, f"{path} imports {name}"


def test_every_package_has_a_layer():
    packages = {module_of(path).split(".")[1] for path in FILES}
    assert packages == {name for layer in LAYERS for name in layer}


def test_models_never_import_problems():
    assert not any("parityscope.problems" in imported(path) for path in (SOURCE / "models").glob("*.py"))


def test_nothing_is_a_pickle():
    assert not any({"pickle", "cloudpickle"} & imported(path) for path in FILES)


def test_nothing_is_called_utils():
    forbidden = {"utils.py", "helpers.py", "base.py", "constants.py"}
    assert not forbidden & {path.name for path in FILES} - {"constants.py"}  # H1's claims on its constants are real
