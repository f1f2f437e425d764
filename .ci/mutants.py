"""Plant small faults one by one, and list those that no test notices.

    python .ci/mutants.py verdicts               # every fault in papers/criterion.py
    python .ci/mutants.py risk --each 5          # five of each file of risk/, drawn with a seed
    python .ci/mutants.py risk --only losses     # of the files whose name has this in it

A fault is one change in the syntax tree: another comparison, operation, sign, truth value, number or function. It is
put into a copy of the source, and the tests of that file are run in a process of their own, forked from one that has
loaded the libraries. A fault whose tests take ten times as long as they should counts as noticed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "parityscope"
RISK = ("test_population.py", "test_engines.py")  # what reaches every engine through the one door
SETS: dict[str, dict[str, tuple[str, ...]]] = {
    "verdicts": {
        "papers/criterion.py": ("papers/test_criterion.py",),
        "papers/claim.py": ("papers/test_rules.py", "papers/test_replaying.py", "papers/test_claim.py"),
    },
    "fit": {
        "fit/loop.py": ("fit/test_steps.py", "fit/test_loop.py"),
        **{
            f"fit/{name}.py": (f"fit/{name.replace('/', '/test_')}.py",)
            for name in ("evidence/evidence", "evidence/promise", "evidence/score", "solvers/scan")
        },
    },
    "k": {f"papers/k/{name}.py": ("papers/k/test_chain.py",) for name in ("chain", "population", "training")},
    "risk": {
        f"risk/{name}.py": tuple(f"risk/{test}" for test in (*own, *RISK))
        for name, own in {
            "engine": ("test_registry.py", "pieces/test_agreement.py"),
            "engines/closed_form": ("engines/test_closed_form.py", "test_log_correlation.py"),
            "engines/enumeration": ("engines/test_enumeration.py",),
            "engines/grouped": ("engines/test_split.py", "test_large_n.py"),
            "engines/lattice/engine": ("engines/test_lattice.py", "test_registry.py"),
            "engines/lattice/grid": ("engines/test_lattice.py",),
            "engines/pair": ("engines/test_pair.py",),
            "engines/spectral/engine": ("engines/test_spectral.py",),
            "engines/spectral/scan": ("engines/test_spectral.py",),
            "engines/spectral/series": ("engines/test_spectral.py",),
            "engines/split/engine": ("engines/test_split.py",),
            "engines/split/sums": ("engines/test_split.py",),
            "engines/subsets": ("engines/test_subsets.py",),
            "jittered": ("engines/test_spectral.py",),
            "law": (),
            "losses": ("test_losses.py",),
            "means": ("engines/test_split.py",),
            "pieces/agreement": ("pieces/test_agreement.py",),
            "pieces/pieces": ("engines/test_split.py",),
            "pieces/represent": ("test_bounds.py", "pieces/test_agreement.py", "engines/test_lattice.py"),
            "pieces/rounding": ("test_bounds.py",),
            "population": ("pieces/test_agreement.py", "test_registry.py"),
            "sampling": ("test_log_correlation.py",),
            "worst_case": ("test_worst_case.py",),
        }.items()
    },
}
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATIONS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
NAMES = {"min": "max", "max": "min", "amin": "amax", "amax": "amin", "exp": "log", "log": "exp", "sin": "cos"}
LIBRARIES = ("torch", "numpy", "scipy.stats", "hypothesis", "pydantic", "pytest", "rich", "beartype", "jaxtyping")
NAMES |= {"cos": "sin", "any": "all", "all": "any", "argmax": "argmin", "ceil": "floor", "floor": "ceil"}


@dataclass(frozen=True)
class Mutant:
    """One fault: where it is, and the source with it."""

    file: str
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  →  {self.after}"


class _Places(ast.NodeVisitor):
    """Collects what computes: no annotations, no texts of errors, no decorators."""

    def __init__(self) -> None:
        self.nodes: list[ast.AST] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """What an error says is no computation."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """What cannot happen is not tested."""

    def generic_visit(self, node: ast.AST) -> None:
        self.nodes.append(node)
        super().generic_visit(node)


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node could wrongly have been."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield ast.Compare(node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        yield ast.BinOp(node.left, OPERATIONS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield ast.Attribute(node.value, NAMES[node.attr], node.ctx)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield ast.Name(NAMES[node.id], node.ctx)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)


def mutants_of(file: str) -> list[Mutant]:
    """Return every fault of a file."""
    text = (SOURCE / file).read_text()
    places = _Places()
    places.visit(ast.parse(text))
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in places.nodes:
        for changed in changes(node):
            first = starts[node.lineno - 1] + node.col_offset  # ast counts in bytes
            last = starts[node.end_lineno - 1] + node.end_col_offset
            new = ast.unparse(ast.fix_missing_locations(changed))
            raw = text.encode()
            mutated = (raw[:first] + f"({new})".encode() + raw[last:]).decode()
            with contextlib.suppress(SyntaxError):
                compile(mutated, file, "exec")
                found.append(Mutant(file, node.lineno, ast.unparse(node), new, mutated))
    return found


def noticed(copy: Path, mutant: Mutant, tests: tuple[str, ...], seconds: float) -> str:
    """Run the tests on a copy with this fault; return "killed", "slow" or "survived"."""
    place = copy / "parityscope" / mutant.file
    original = place.read_text()
    place.write_text(mutant.text)
    for stale in (place.parent / "__pycache__").glob(f"{place.stem}.*.pyc"):
        stale.unlink()
    child = os.fork()
    if child == 0:
        os._exit(_tested(copy, (place, *(ROOT / "tests" / test for test in tests))))
    try:
        return _awaited(child, seconds)
    finally:
        place.write_text(original)


def _tested(copy: Path, paths: tuple[Path, ...]) -> int:
    import pytest

    os.setsid()
    sys.path[:0] = [str(copy), str(ROOT / "tests")]
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    # Without checks of shapes: they would notice more, but every import takes seconds with them.
    plain = [
        "-o",
        "addopts=",
        "-o",
        f"pythonpath={copy} {ROOT / 'tests'}",
        "-p",
        "no:cacheprovider",
        "--doctest-modules",
    ]
    chosen = ["--import-mode=importlib", "-m", "not slow and not long", "-x", "-q", f"--rootdir={ROOT}"]
    return int(pytest.main([*plain, *chosen, *map(str, paths)]))


def _awaited(child: int, seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "slow"


def main() -> None:
    """Plant, run, count, list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", choices=SETS)
    parser.add_argument("--each", type=int, help="so many faults of each file, drawn; all without")
    parser.add_argument("--only", default="", help="of files whose name has this in it")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for library in LIBRARIES:
        import_module(library)
    import_module("torch").set_num_threads(1)
    sys.dont_write_bytecode = True
    counts, survivors = {"killed": 0, "slow": 0, "survived": 0}, []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(SOURCE, copy / "parityscope")
        files = {file: tests for name in given.sets for file, tests in SETS[name].items() if given.only in file}
        for file, tests in files.items():
            planted = mutants_of(file)
            if given.each is not None:
                planted = random.Random(f"{given.seed} {file}").sample(planted, min(given.each, len(planted)))
            nothing = Mutant(file, 0, "", "", (SOURCE / file).read_text())
            began = time.monotonic()
            if noticed(copy, nothing, tests, 3600) != "survived":
                raise SystemExit(f"the tests of {file} fail without any fault: {', '.join(tests)}")
            limit = 30 + 10 * (time.monotonic() - began)
            for mutant in planted:
                outcome = noticed(copy, mutant, tests, limit)
                counts[outcome] += 1
                if outcome == "survived":
                    survivors.append(mutant)
                    print(f"survived: {mutant}", flush=True)
            print(f"{file}: {len(planted)} faults, limit {limit:.0f} s, so far {counts}", flush=True)
    total = sum(counts.values())
    print(f"{counts['killed'] + counts['slow']} of {total} faults noticed, {len(survivors)} not")


if __name__ == "__main__":
    main()
