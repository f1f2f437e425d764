"""Bad command lines: every option of every command with values that nobody should give it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

WHOLE = ("-1", "0", "4294967296", "18446744073709551616", "9" * 40, "", "x", "1e3", "nan", "0x10", " ", "1,5", "½")
REAL = ("nan", "inf", "-inf", "-1", "1e400", "-0.5", "", "x", "0,5", "1e-400", "2")
TEXT = ("", " ", "nope", "\udcff", "é" * 300, "a=b", "[", "$.x", "'; DROP TABLE rows; --", "\x1b[31m", "-", "a\nb")
PATHS = ("", " ", "missing/file", "plain.txt", "plain.txt/below", "/proc/nowhere", "x" * 300, "\udcff\udcfe")
READ = (*PATHS, "..", "/")  # for options that only read
BEYOND = ("100000000", "10000000000", "1000000000000000")  # sizes that no memory holds

TABLE = ("fit", "faults.csv", "--target", "fault", "--budget", "1s")
OPTIONS: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {
    ("learn", "--steps", "3"): {
        "--n": (*WHOLE, *BEYOND),
        "--k": (*WHOLE, *BEYOND),
        "--support": (*TEXT, "1,1", "1,99", "-1", "1,", ",", "1e3", "9" * 40),
        "--recipe": TEXT,
        "--runs": ("-1", "0", "", "x", "1e3", *BEYOND),
        "--seed": WHOLE,
        "--steps": ("-1", "", "x", "1e3", "nan", "9" * 40),
        "--samples": (*WHOLE[:2], *WHOLE[3:], *BEYOND),
        "--batch": (*WHOLE[:2], *WHOLE[3:], *BEYOND),
        "--noise": REAL,
        "--engine": TEXT,
        "--out": PATHS,
        "--set": (
            *TEXT,
            *(f"steps={value}" for value in ("-1", "", "x", "1e400", "nan", "9" * 40, "0.5")),
            *(f"learning_rate={value}" for value in REAL),
            *(f"temperature={value}" for value in ("nan", "inf", "-1", "0", "", "x", "1e-300")),
            *(f"start_radius={value}" for value in REAL),
            *(f"heads={value}" for value in (*WHOLE, *BEYOND)),
            *(f"numbers_per_head={value}" for value in (*WHOLE, *BEYOND)),
            *(f"patience={value}" for value in WHOLE),
            *(f"smoothing={value}" for value in REAL),
            *(f"beta1={value}" for value in REAL),
            *(f"stop_risk={value}" for value in REAL),
            *(
                f"{field}={value}"
                for field in ("readout", "positions", "loss", "optimiser", "schedule")
                for value in TEXT
            ),
        ),
    },
    ("learn", "--recipe", "concave", "--steps", "2"): {"--k-at-most": (*WHOLE, *BEYOND)},
    ("chain", "--n", "6", "--k", "2", "--steps", "2", "--width", "16"): {
        "--n": (*WHOLE, *BEYOND),
        "--k": WHOLE,
        "--secret": (*TEXT, "1,1", "1,99", "9" * 40),
        "--runs": ("-1", "0", "", "x"),
        "--seed": WHOLE,
        "--layers": ("-1", "0", "", "x", *BEYOND),
        "--heads": ("-1", "0", "3", "", "x", *BEYOND),
        "--width": ("-1", "0", "15", "", "x", *BEYOND),
        "--learning-rate": REAL,
        "--batch": ("-1", "0", "", "x", *BEYOND),
        "--steps": ("-1", "0", "", "x", "1e3"),
    },
    TABLE: {
        "--target": TEXT,
        "--positive": TEXT,
        "--missing": TEXT,
        "--group": TEXT,
        "--adjust": TEXT,
        "--k": (*WHOLE, *BEYOND),
        "--max-k": (*WHOLE, *BEYOND),
        "--solver": TEXT,
        "--alpha": REAL,
        "--budget": (*TEXT, *REAL, "-5s", "0s", "1e400s", "nan s", "5y"),
        "--seed": WHOLE,
        "--out": PATHS,
        "--save": PATHS,
    },
    ("predict", "model.json"): {"": READ},
    ("predict", "model.json", "faults.csv"): {"--out": PATHS, "--missing": TEXT, "--threshold": REAL},
    ("claims", "--scale", "smoke", "H1-lemma-15"): {"--scale": TEXT, "--out": ("", "plain.txt", "\udcff")},
    ("claims", "--scale", "smoke"): {"": TEXT[2:]},
    ("reproduce", "--scale", "smoke"): {"": TEXT[2:]},
    ("reproduce", "H1-figure-1", "--scale", "smoke"): {
        "--scale": TEXT,
        "--workers": ("-1", "0", "", "x", "9" * 40),
        "--scheduler": ("nowhere", "tcp://", "http://127.0.0.1:9", "\udcff", "tcp://127.0.0.1:99999999", "a..b:1"),
        "--out": (*PATHS[:2], *PATHS[3:8]),
    },
    ("sweep", "spec.py"): {
        "--workers": ("-1", "0", "", "x", "9" * 40),
        "--scheduler": ("nowhere", "tcp://", "http://127.0.0.1:9", "\udcff", "tcp://127.0.0.1:99999999", "a..b:1"),
        "--pack": ("-1", "0", "", "x", "9" * 40),
        "--slurm-option": TEXT,
        "--out": (*PATHS[:2], *PATHS[3:8]),
    },
    ("sweep",): {"": (*READ, *(f"spec-{number}.py" for number in range(44)))},
    ("compare", "MLP, SGD", "--scale", "smoke"): {
        "--own": (*READ, *(f"own-{number}.py" for number in range(20))),
        "--scale": TEXT,
        "--workers": ("-1", "0", "", "x", "9" * 40),
        "--out": (*PATHS[:2], *PATHS[3:7]),
    },
    ("compare", "--scale", "smoke"): {"": TEXT[2:]},
    ("rows", "stored"): {
        "--experiment": TEXT,
        "--where": (
            *TEXT,
            *(f"n={value}" for value in ("9" * 5000, "1e400", "-1e999", "NaN", "[", "[[[", "\udcff", "[" * 5000, "")),
            *(f"n={value}" for value in ("18446744073709551616", "[18446744073709551616]", "true", "null", '{"a": 1}')),
            *(
                f"{name}=1"
                for name in ("", ".", "..", "n.", '"', "n[0]", "[", "]", "\udcff", "$", "*", "é" * 300, "\\")
            ),
        ),
        "--export": (*PATHS, "file.xlsx", "a.csv.gz", ".csv", "missing/x.csv"),
    },
    ("rows",): {"": READ},
    ("entropy", "--limit", "1"): {"--model": ("", " ", "missing/model", "plain.txt", "\udcff", "broken.gguf", "/")},
    ("entropy", "--model", "empty-model", "--limit", "1"): {
        "--data": ("", "missing/file", "broken.parquet", "\udcff", "/"),
        "--dtype": TEXT[:3],
        "--device": TEXT[:3],
        "--limit": ("-1", "0", "", "x"),
        "--batch": ("-1", "0", "", "x"),
        "--seed": ("-1", "", "x"),
    },
    ("explore",): {
        "--port": ("-1", "0", "65536", "", "x", "1e3", "9" * 40),
        "--host": ("a..b", "", " ", "\udcff", "x" * 300, "256.256.256.256", "[::1", "http://localhost", "é" * 80, "-"),
        "--store": (*PATHS[2:-1], "..", "/"),  # no name that an earlier command may have made: it would be served
    },
    ("bench",): {"": TEXT},
    (): {"": TEXT},
}
CONFIG = b"from parityscope.records import Config\nclass C(Config):\n    ROWS = %s\n    x: %s\nCONFIGS = [C(x=%s)]"
RUNS = b"from parityscope.records import *\nclass C(Config):\n    ROWS = 'a'\n    def run(self): %s\nCONFIGS = [C()]"
# Files that are Python, or are not, and have CONFIGS, or do not.
SPECS = (
    b"",
    b"CONFIGS = 3",
    b"CONFIGS = []",
    b"CONFIGS = [1]",
    b"# caf\xe9\nCONFIGS = []",
    b"\xff\xfe\x00",
    b"import sys; sys.exit()",
    b"import sys; sys.exit(0)",
    b"import sys; sys.exit('no')",
    b"raise SystemExit(3)",
    b"raise BaseException('odd')",
    b"raise Exception('\\ud800')",
    b"exit()",
    b"quit(7)",
    b"1/0",
    b"def f(:",
    b"import nowhere",
    b"from parityscope import nowhere",
    b"CONFIGS = [None] * 3",
    b"def f(): f()\nf()",
    b"x = " + b"(" * 300 + b")" * 300,
    b"CONFIGS = iter([])",
    b"CONFIGS = {}",
    b"CONFIGS = 'abc'",
    b"\x00",
    b"# -*- coding: nonsense -*-\n",
    b"from parityscope.records import Config\nclass C(Config):\n    x: int\nCONFIGS = [C(x=1)]",
    CONFIG % (b"'a/b'", b"int", b"1"),
    CONFIG % (b"3", b"int", b"1"),
    CONFIG % (b"'a'", b"float", b"float('nan')"),
    CONFIG % (b"'a'", b"object", b"object()"),
    b"from parityscope.runs import training\nCONFIGS = [training('nope', 8, 2)]",
    b"from parityscope.runs import training\nCONFIGS = [training('bounded', 8, 99)]",
    b"from parityscope.runs import training\nCONFIGS = [training('bounded', 8, 2, seeds=[-1])]",
    b"from parityscope.runs import training\nCONFIGS = [training('bounded', 8, 2, steps='many')]",
    b"import os; os.chdir('/nowhere')",
    b"raise MemoryError",
    b"raise RecursionError",
    b"import warnings; warnings.warn('x')",
    RUNS % b"import sys; sys.exit(0)",
    RUNS % b"raise BaseException('odd')",
    RUNS % b"raise ValueError('\\ud800')",
    RUNS % b"return Result({'x': '\\ud800'})",
)
ANSWER = b"from parityscope.papers.own.compare.method import Answer\ndef solve(x, y, task): return Answer(%s)"
# Methods of one's own for `compare`, which raise, exit, or answer something else.
OWN = (
    *(spec for spec in SPECS[:3]),
    b"# caf\xe9\ndef solve(x, y, task): ...",
    b"# -*- coding: nonsense -*-\ndef solve(x, y, task): ...",
    b"import sys; sys.exit(0)",
    b"raise BaseException('odd')",
    b"def solve(x, y, task): raise ValueError('\\ud800 \\x1b[31m')",
    b"import sys\ndef solve(x, y, task): sys.exit(0)",
    b"def solve(x, y, task): raise BaseException('odd')",
    b"def solve(x, y, task): return solve(x, y, task)",
    b"def solve(): ...",
    b"solve = lambda x, y, task: None",
    b"from os.path import join as solve",
    b"SUPERVISION = []\ndef solve(x, y, task): ...",
    ANSWER % b"None",
    ANSWER % b"lambda fresh: None",
    ANSWER % b"lambda fresh: fresh[:, 0] / 0, -1, -1, float('nan')",
    ANSWER % b"lambda fresh: fresh[:, 0], 'x', 'x', 'x'",
    ANSWER % b"lambda fresh: fresh",
)


def prepare(folder: Path) -> None:
    """Put what commands need into a folder: a table, a model of it, a store, specs, and files that are no use."""
    from attacks import ended_here

    rows = [f"{a},{b},{c},{a ^ c}" for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 10
    (folder / "faults.csv").write_text("\n".join(["a,b,c,fault", *rows]))
    (folder / "plain.txt").write_text("nothing of use\n")
    (folder / "broken.gguf").write_bytes(b"GGUF\x03\0\0\0")
    (folder / "broken.parquet").write_bytes(b"PAR1 broken PAR1")
    (folder / "empty-model").mkdir()
    for number, content in enumerate(SPECS):
        (folder / f"spec-{number}.py").write_bytes(content)
    for number, content in enumerate(OWN):
        (folder / f"own-{number}.py").write_bytes(content)
    (folder / "spec.py").write_text(
        "from parityscope.runs import training\nCONFIGS = [training('bounded', 8, 2, seeds=[0], steps=2)]\n"
    )
    for command in ((*TABLE, "--save", "model.json", "--quiet"), ("sweep", "spec.py", "--out", "stored", "--quiet")):
        done = ended_here(command, folder, 900)  # with the time that importing everything takes
        assert done.code == 0, done.errors


def bad_commands() -> list[tuple[str, ...]]:
    """Return every bad command line; some are merely odd, and may succeed."""
    return list(_bad_commands())


def _bad_commands() -> Iterator[tuple[str, ...]]:
    for command, options in OPTIONS.items():
        for option, values in options.items():
            for value in values:
                yield (*command, option, value) if option else (*command, value)
    yield from (("learn", "--resume"), ("learn", "--out", "plain.txt", "--resume"), ("learn", "--set"), ("fit",))
    yield from (("predict",), ("predict", "plain.txt", "faults.csv"), ("predict", "faults.csv", "faults.csv"))
    yield from (("sweep", "spec.py", "--slurm", "--scheduler", "local"), ("rows", "stored", "--repair", "--where", "n"))
    yield from (("fit", "faults.csv"), ("fit", "faults.csv", "--target"), ("rows", "stored", "--failed", "--stale"))
    yield from (("fit", path, "--target", "fault") for path in READ)
