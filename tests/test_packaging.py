"""What is installed, what it costs to import, and what a user is told when an extra is missing."""

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import parityscope
from parityscope.apps.cli import app
from parityscope.apps.cli.application import COMMANDS
from parityscope.core.errors import EXTRA_OF
from parityscope.papers.registry import CLAIM_IDS, short_claim_names
from parityscope.training.recipes import RECIPES
from test_architecture import OPTIONAL

pytestmark = pytest.mark.slow  # most of them start Python anew

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "parityscope"
WITHOUT = ROOT / "tests" / "without_libraries.py"
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def python(*arguments, **environment):
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def without(libraries, work):
    return python(WITHOUT, json.dumps(sorted(libraries)), json.dumps(work), OMP_NUM_THREADS="1")


# The core


def test_the_core_loads_nothing_optional():
    code = (
        "import sys, torch\n"
        "before = set(sys.modules)\n"
        "import parityscope as ps, parityscope.apps.cli, parityscope.apps.terminal\n"
        "[getattr(ps, name) for name in ps.__all__ if not name.startswith(('SparseParity', 'phase_diagram'))]\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    loaded = python("-c", code).split()
    assert "parityscope" in loaded
    assert not set(loaded) & set(EXTRA_OF)


def test_help_version_and_completion_do_not_wait_for_torch():
    answers = json.loads(
        without({"torch", *EXTRA_OF}, [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)])
    )
    assert [code for code, _ in answers] == [0] * len(answers)
    assert answers[0][1].strip() == parityscope.__version__


TABLE = "a,b,c,y\n" + "".join(f"{a},{b},{c},{a ^ c}\n" for a in (0, 1) for b in (0, 1) for c in (0, 1)) * 10


def test_fit_does_without_torch_and_scikit_learn(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    program = (
        f"code, said = answer(['fit', {str(tmp_path / 'table.csv')!r}, '--target', 'y', '--json'])\n"
        "print(json.dumps([code, json.loads(said)['columns'], [name for name in ('torch', 'sklearn', 'scipy')"
        " if name in sys.modules]]))"
    )
    assert json.loads(without((), program)) == [0, ["a", "c"], []]


def test_the_estimator_does_without_torch_until_attention_is_asked():
    program = (
        "import sys, numpy as np, parityscope as ps\n"
        "X = np.random.RandomState(0).randint(2, size=(400, 12))\n"
        "y = X[:, 1] ^ X[:, 6] ^ (np.random.RandomState(1).rand(400) < 0.1)\n"
        "for solver in ('auto', 'exhaustive', 'elimination', 'attention'):\n"
        "    model = ps.SparseParityClassifier(2, solver=solver, random_state=0).fit(X, y)\n"
        "    print(model.support_.tolist() == [1, 6], 'torch' in sys.modules)"
    )
    said = python("-c", program).split()
    assert said[:4] == ["True", "False"] * 2
    assert said[5::2] == ["False", "True"]


@pytest.mark.parametrize("command", ["learn --n 8 --k 2", "claims H1-lemma-19 --scale smoke"])
def test_short_commands_do_not_wait_for_what_they_do_not_use(command):
    heavy = ("torch._dynamo", "sympy", "matplotlib", "sklearn", "pandas", "transformers", "scipy")
    program = (
        f"code, said = answer({command.split()!r})\n"
        f"print(json.dumps([code, [name for name in {heavy!r} if name in sys.modules]]))"
    )
    assert json.loads(without((), program)) == [0, []]


def test_every_public_name_has_one_home():
    module = ast.parse((SOURCE / "__init__.py").read_text())
    typed = {alias.name for node in ast.walk(module) if isinstance(node, ast.ImportFrom) for alias in node.names}
    homes = [name for names in parityscope._HOMES.values() for name in names]
    assert sorted(homes) == sorted(parityscope.__all__) == sorted(typed - {"TYPE_CHECKING", "Any", "import_module"})
    assert set(parityscope.__all__) <= set(dir(parityscope))
    for name in parityscope.__all__:
        assert getattr(parityscope, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'lern'"):
        parityscope.lern  # noqa: B018


# Missing extras


def distribution(requirement):
    return re.match(r"[\w.-]+", requirement)[0].replace("_", "-")


def test_every_optional_library_names_an_extra_that_brings_it():
    names = {
        "sklearn": "scikit-learn",
        "dask_jobqueue": "dask-jobqueue",
        "bed_reader": "bed-reader",
        "interpret": "interpret-core",
    }
    extras = METADATA["optional-dependencies"]
    for library, extra in EXTRA_OF.items():
        assert names.get(library, library) in {distribution(line) for line in extras[extra]}, library
    assert set(OPTIONAL) <= set(EXTRA_OF)


def test_all_is_everything_a_user_may_want():
    extras = METADATA["optional-dependencies"]
    (line,) = extras["all"]
    apart = {"all", "peers", "docs", "package", "paper", "cross-checks", "test"}
    assert set(re.search(r"\[(.*)\]", line)[1].split(",")) == set(extras) - apart


SPEC = """
from parityscope.runs import training
CONFIGS = [training("bounded", 8, 2, seeds=[seed]) for seed in range(2)]
"""
NEEDS = {
    "reproduce": "plots",
    "reproduce --list": "plots",
    "reproduce H1-figure-1 --scale smoke": "plots",
    "learn --n 8 --k 2 --out run": "plots",
    "fit table.csv --target y": "sklearn",
    "entropy --model folder": "lm",
    "explore": "web",
    "bench cot": "lm",
    "bench estimator": "sklearn",
    "sweep spec.py --scheduler local --out rows": "cluster",
    "sweep spec.py --scheduler tcp://127.0.0.1:1 --out rows": "cluster",
    "sweep spec.py --slurm --out rows": "cluster",
    "rows rows --export rows.parquet": "export",
    "rows rows --export events": "export",
}
WORKS = (
    "sweep spec.py --out rows",
    "rows rows --export rows.csv",
    "learn --n 8 --k 2",
    "claims H1-lemma-17 W-theorem-2",
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the core alone answers to every command, in one process."""
    folder = tmp_path_factory.mktemp("core")
    (folder / "spec.py").write_text(SPEC)
    (folder / "table.csv").write_text("a,b,y\n0,1,1\n1,1,0\n")
    commands = [*WORKS, *NEEDS]
    program = (
        f"import os; os.chdir({str(folder)!r})\n"
        f"print(json.dumps([answer(command.split()) for command in {commands!r}]))"
    )
    return dict(zip(commands, json.loads(without(EXTRA_OF, program)), strict=True))


@pytest.mark.parametrize("command", NEEDS)
def test_a_missing_extra_is_one_sentence_with_the_pip_command(answers, command):
    code, said = answers[command]
    sentence = said.strip().splitlines()[-1]
    assert code == 2, said
    assert re.fullmatch(
        rf"parityscope: this needs \w+, which is not installed: pip install 'parityscope\[{NEEDS[command]}\]'", sentence
    )
    assert "Traceback" not in said


@pytest.mark.parametrize("command", WORKS)
def test_the_core_alone(answers, command):
    code, said = answers[command]
    assert code == 0, said


def test_a_claim_that_needs_an_extra_says_so_and_stops_no_other(answers):
    said = " ".join(answers["claims H1-lemma-17 W-theorem-2"][1].split())
    assert "fails" in said
    assert "open" in said


def test_files_that_need_a_library_of_their_own(tmp_path):
    table, model = tmp_path / "table.parquet", tmp_path / "model.gguf"
    table.touch()
    model.touch()
    commands = [["fit", str(table), "--target", "y"], ["entropy", "--model", str(model)]]
    (_, fit), (_, entropy) = json.loads(without({"pyarrow", "gguf"}, commands))
    assert "this needs pyarrow, which is not installed: pip install 'parityscope[export]'" in fit
    assert "this needs gguf, which is not installed: pip install 'parityscope[lm]'" in entropy


def test_in_python_it_is_an_import_error_too():
    modules = ("fit.classifier", "core.drawing", "apps.explorer.app", "language_models.loading")
    program = (
        "import importlib, parityscope as ps\n"
        "def said(action):\n"
        "    try: action()\n"
        "    except ImportError as error: assert isinstance(error, ps.InvalidInput); return str(error)\n"
        "print(said(lambda: ps.SparseParityClassifier))\n"
        f"for name in {modules}: print(said(lambda: importlib.import_module('parityscope.' + name)))"
    )
    extras = re.findall(r"pip install 'parityscope\[(\w+)\]'", without(EXTRA_OF, program))
    assert extras == ["sklearn", "sklearn", "plots", "web", "lm"]


# The shell


def completions(line):
    """Return what a shell is offered, and at the end the libraries that were loaded for it, with commas between."""
    return python(
        "-c",
        "import atexit, sys; sys.argv[0] = 'parityscope'; from parityscope.apps.cli import main\n"
        "atexit.register(lambda: print(*{name.partition('.')[0] for name in sys.modules}, sep=','))\n"
        "main()",
        _PARITYSCOPE_COMPLETE="complete_bash",
        COMP_WORDS=line,
        COMP_CWORD=str(line.count(" ")),
    ).split()


COMPLETIONS = {
    "parityscope ": COMMANDS,
    "parityscope learn --recipe re": ("repaired",),
    "parityscope learn --recipe ": RECIPES,
    "parityscope reproduce H1-figure-1 H2-e": ("H2-error", *(name for name in CLAIM_IDS if name.startswith("H2-e"))),
    "parityscope reproduce W-lemma-1": [name for name in CLAIM_IDS if name.startswith("W-lemma-1")],
    "parityscope rows folder --experiment phase-n": ("phase-n-k",),
    "parityscope claims H1-th": [name for name in CLAIM_IDS if name.startswith("H1-th")],
    "parityscope claims theorem-": [name for name in short_claim_names() if name.startswith("theorem-")],
    "parityscope claims --scale ": ("smoke", "demo", "reference"),
    "parityscope bench ri": ("risk",),
}


@pytest.mark.parametrize(("line", "expected"), COMPLETIONS.items())
def test_the_shell_completes_without_waiting_for_torch(line, expected):
    *names, libraries = completions(line)
    assert names == list(expected)
    assert "torch" not in libraries.split(",")


def test_the_completion_script():
    code = "import sys; sys.argv[0] = 'parityscope'; from parityscope.apps.cli import main; main()"
    script = python("-c", code, "--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "complete -o default -F _parityscope_completion parityscope" in script


def test_every_command_is_listed():
    assert {command.callback.__name__ for command in app.registered_commands} == set(COMMANDS)


# The archives


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    python("-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


def kept(folder):
    return {path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(archives):
    (wheel,) = archives.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = {path.relative_to(ROOT / "src").as_posix() for path in kept(SOURCE)}
    benchmarks = {f"parityscope/_benchmarks/{path.name}" for path in kept(ROOT / "benchmarks")}
    rows = {f"parityscope/_reference/rows/{path.name}" for path in kept(ROOT / "reference")}
    figures = {f"parityscope/_reference/figures/{path.name}" for path in kept(ROOT / "docs" / "results" / "figures")}
    assert names == package | benchmarks | rows | figures
    assert {
        "parityscope/py.typed",
        "parityscope/apps/explorer/static/index.html",
        "parityscope/_benchmarks/risk.py",
        "parityscope/_reference/rows/claims.jsonl",
    } <= names


@pytest.mark.slow
def test_the_sdist_holds_what_tests_and_builds_need(archives):
    (sdist,) = archives.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    whole = {
        path.relative_to(ROOT).as_posix()
        for name in ("src", "tests", "benchmarks", "reference", "paper")
        for path in kept(ROOT / name)
        if "build" not in path.parts
    }
    assert whole | {"Makefile", "constraints.txt", "LICENSE", "CITATION.cff", ".ci/check-package"} <= names
