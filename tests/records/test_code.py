"""An edit changes the hash of what can reach it, and moving code about changes none: small packages, never imported."""

import gc
import importlib
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import partial, wraps

import pytest

from parityscope import InvalidInput
from parityscope.records import Config, Result, Row, code
from parityscope.records.code import code_of, code_of_value, reached

TOOLS = '''
"""Tools."""
from __future__ import annotations
import math
from math import pi as turn
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from torch import Tensor
RATE = 0.5  # how fast

def helper(x: Tensor) -> Tensor:
    """Help."""
    level: float = 1
    return inner(x) + level

def inner(x):
    return x * RATE + len("one # two")

def exported(x):
    return x * turn

def unrelated(x):
    return -x
'''
LABORATORY = {
    "__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lab.tools import exported\n",
    "tools.py": TOOLS,
    "bases.py": "class Base:\n    x: int = 3\n    def step(self): return 1\nclass Middle(Base):\n    pass\n",
    "others.py": "def helper(x):\n    return x\n",
    "kit/__init__.py": "from .deep import inner_of_kit as kitted\nfrom lab import tools as kept\n",
    "kit/deep.py": "def inner_of_kit(x):\n    return x + 1\n",
}


@pytest.fixture
def hash_of(tmp_path, monkeypatch):
    """Return the hash of the function `f` of a module in a package of these files."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def of(files, module="lab.main"):
        shutil.rmtree(tmp_path / "lab", ignore_errors=True)
        for name, text in files.items():
            path = tmp_path / "lab" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        importlib.invalidate_caches()
        forget()
        return code_of(module, "f")

    yield of
    forget()


def forget():
    for one in vars(code).values():
        getattr(one, "cache_clear", lambda: None)()


def edited(files, old, new):
    assert sum(text.count(old) for text in files.values()) == 1, f"{old!r} should be there once"
    return {name: text.replace(old, new) for name, text in files.items()}


HELPED = "from lab.tools import helper\ndef f(): return helper(1)"
BY_TABLE = "TABLE = {}\ndef f(): return TABLE[1](1)\ndef one(x): return x\n"
REACHED = {
    "a function": (HELPED, "inner(x) + level", "inner(x) - level"),
    "a function's function": (HELPED, "x * RATE", "x / RATE"),
    "a constant": (HELPED, "RATE = 0.5", "RATE = 0.6"),
    "a hash sign in a text": (HELPED, "one # two", "one # 2"),
    "a base class of a base class": ("from lab.bases import Middle\nclass f(Middle): pass", "return 1", "return 3"),
    "other bases": ("from lab.bases import Middle\nclass f(Middle): pass", "Middle(Base)", "Middle"),
    "the type of a field": ("from lab.bases import Middle\nclass f(Middle): pass", "x: int", "x: float"),
    "package.module.name": ("import lab.bases\ndef f(): return lab.bases.Base().step()", "return 1", "return 3"),
    "the lazy package": ("import lab as l\ndef f(): return l.exported(1)", "x * turn", "x / turn"),
    "from the lazy package": ("from lab import exported\ndef f(): return exported(1)", "x * turn", "x / turn"),
    "a library's name": ("from lab import exported\ndef f(): return exported(1)", "pi as turn", "tau as turn"),
    "a re-export": ("from lab.kit import kitted\ndef f(): return kitted(1)", "x + 1", "x + 2"),
    "a re-exported module": ("import lab.kit\ndef f(): return lab.kit.kept.unrelated(1)", "-x", "+x"),
    "an import in a function": ("def f():\n  from lab.tools import unrelated as u\n  return u(1)", "-x", "+x"),
    "an import in a class": ("class f:\n  from lab.tools import unrelated", "-x", "+x"),
    "an import for other functions": ("def f():\n  load()\n  return unrelated(1)\ndef load():\n  global unrelated\n"
                                      "  from lab.tools import unrelated", "-x", "+x"),
    "two imports of one name": ("from lab.tools import unrelated as u\nclass f:\n  def a(self):\n"
                                "    from lab.bases import Base as u\n    return u\n  def b(self): return u(1)",
                                "-x", "+x"),
    "a relative import": ("from .tools import unrelated as u\ndef f(): return u(1)", "-x", "+x"),
    "a star": ("from lab.tools import *\ndef f(): return unrelated(1)", "-x", "+x"),
    "a module as a value": ("from lab import tools\ndef f(): return getattr(tools, 'unre' + 'lated')(1)", "-x", "+x"),
    "a name that a module makes": ("from lab.late import made\ndef f(): return made(1)", "-x", "+x"),
    "a fallback": ("try:\n  from lab.nothing import u\nexcept ImportError:\n  from lab.tools import unrelated as u\n"
                   "def f(): return u(1)", "-x", "+x"),
    "a condition": ("from lab.tools import RATE\nif RATE > 1:\n  def f(): return 1\nelse:\n  def f(): return 2",
                    "RATE = 0.5", "RATE = 1.5"),
    "a walrus": ("from lab.tools import unrelated\nif (u := unrelated):\n  pass\ndef f(): return u(1)", "-x", "+x"),
    "a default": ("from lab.tools import unrelated\ndef f(x, g=unrelated): return g(x)", "-x", "+x"),
    "a table": (BY_TABLE + "from lab.tools import unrelated\nTABLE[1] = unrelated", "-x", "+x"),
    "a loop": (BY_TABLE + "from lab.tools import unrelated\nfor i in [1, 2]: TABLE[i] = unrelated", "-x", "+x"),
    "a call": (BY_TABLE + "from lab.tools import unrelated\nTABLE.update({1: unrelated})", "-x", "+x"),
    "a decorator": ("def loud(g): return lambda x: 2 * g(x)\n@loud\ndef f(x): return x", "2 * g(x)", "3 * g(x)"),
    "a registered function": ("import functools\n@functools.singledispatch\ndef f(x): return 0\n"
                              "@f.register\ndef _(x: int): return 5", "return 5", "return 6"),
    "another order": ("import lab.others, lab.tools\ndef f(): return lab.others.helper(1) - lab.tools.helper(1)",
                      "lab.others.helper(1) - lab.tools.helper(1)", "lab.tools.helper(1) - lab.others.helper(1)"),
    "another function of that name": (HELPED, "from lab.tools import helper", "from lab.others import helper"),
}  # fmt: skip


@pytest.mark.parametrize("case", REACHED)
def test_an_edit_of_what_is_reached_changes_the_hash(hash_of, case):
    text, old, new = REACHED[case]
    late = "from lab.tools import unrelated\nglobals()['made'] = unrelated\n"
    files = {**LABORATORY, "main.py": text, "late.py": late}
    assert hash_of(files) != hash_of(edited(files, old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("  # how fast", "  # how slow", id="a comment"),
        pytest.param('"""Help."""', '"""Help, with "quotes" and # signs."""', id="a docstring"),
        pytest.param("return inner(x) + level", "return (\n\n        inner(x)\n        + level\n    )", id="layout"),
        pytest.param("from torch import Tensor", "from lab.bases import Base as Tensor", id="a type"),
        pytest.param("x: Tensor) -> Tensor", "x: float) -> float", id="the types of arguments"),
        pytest.param("level: float", "level: int", id="the type of a variable"),
        pytest.param("return -x", "return +x", id="an unrelated function"),
        pytest.param('"""Tools."""', '"""Tools."""\nimport os\nNEW = 1', id="a new definition and import"),
        pytest.param("class Middle", "class Another: pass\nclass Middle", id="an unrelated file"),
        pytest.param(
            "def exported", "if __name__ == '__main__':\n    unrelated(1)\ndef exported", id="a script's part"
        ),
    ],
)
def test_what_decides_nothing_leaves_the_hash(hash_of, old, new):
    files = {**LABORATORY, "main.py": HELPED}
    assert hash_of(files) == hash_of(edited(files, old, new))


NETWORK = {
    "__init__.py": "",
    "main.py": "from lab.nets import Net\nimport lab.steps\nSIZE = 3\n"
    "def f(): return Net(SIZE).run(lab.steps.step) + lab.steps.other(1)\n",
    "nets.py": "from lab.steps import step as once\nclass Net:\n  def run(self, given):\n"
    "    from lab.steps import other\n    SIZE = given\n    return [other(once(RATE)) for RATE in SIZE]\n",
    "steps.py": "import numpy as np\nRATE = 1\ndef step(x): return np.mean(x) * RATE\n"
    "def other(x): return step(x) if x else other(RATE)\n",
}
IN_SUB = {name: text.replace("lab.steps", "lab.sub.steps") for name, text in NETWORK.items()}
MOVED = {
    "a file into another package": {
        **IN_SUB, "sub/__init__.py": "", "sub/steps.py": NETWORK["steps.py"], "steps.py": "",
    },
    "a module renamed": {
        **{name: text.replace("lab.steps", "lab.paces") for name, text in NETWORK.items()},
        "paces.py": NETWORK["steps.py"],
        "steps.py": "",
    },
    "a file moved, the old one re-exports": {
        **NETWORK, "paces.py": NETWORK["steps.py"], "steps.py": "from lab.paces import other, step",
    },
    "a definition into another file": {
        **NETWORK,
        "rates.py": "UNUSED = 2\nRATE = 1\n",
        "steps.py": NETWORK["steps.py"].replace("RATE = 1", "from lab.rates import RATE"),
    },
    "all in one file, under their own names": {
        "__init__.py": "",
        "main.py": "import numpy\nSIZE = 3\nRATE = 1\ndef f(): return Net(SIZE).run(step) + other(1)\n"
        "class Net:\n  def run(self, given):\n    SIZE = given\n    return [other(step(RATE)) for RATE in SIZE]\n"
        "def other(x): return step(x) if x else other(RATE)\ndef step(x): return numpy.mean(x) * RATE\n",
    },
}  # fmt: skip


@pytest.mark.parametrize("case", MOVED)
def test_moving_code_leaves_the_hash(hash_of, case):
    assert hash_of(MOVED[case]) == hash_of(NETWORK)


def test_the_entry_itself_may_move(hash_of):
    moved = {**NETWORK, "inner/__init__.py": "", "inner/first.py": NETWORK["main.py"]}
    assert hash_of(moved, "lab.inner.first") == hash_of(NETWORK)


def test_equal_texts_that_lead_elsewhere_are_told_apart(hash_of):
    """Two files of the same text but for what the last function in a chain returns; all of both is reached."""
    chain = "def a(): return b()\ndef b(): return c()\ndef c(): return {}\n"
    files = {"__init__.py": "", "one.py": chain.format(1), "two.py": chain.format(2)}
    lines = "from lab import one, two\ndef f(): return {}.a() - {}.a()\n"
    first, second = ({**files, "main.py": lines.format(*names)} for names in (("one", "two"), ("two", "one")))
    assert hash_of(first) != hash_of(second)


def test_a_local_name_is_not_the_module_s_function_of_that_name(hash_of):
    text = "def f(g, *h, i=0):\n  j = [k for k in h if k]\n  return g(lambda l: l + i + j)\n"
    hash_of({"__init__.py": "", "main.py": text + "".join(f"def {name}(): pass\n" for name in "ghijkl")})
    assert list(reached("lab.main", "f")) == [("lab.main", "f")]


def test_a_loop_s_first_values_and_a_default_are_from_outside(hash_of):
    hash_of({"__init__.py": "", "main.py": "def f(h=h): return [g for g in g(1)]\ndef g(): pass\ndef h(): pass\n"})
    assert {name for _, name in reached("lab.main", "f")} == {"f", "g", "h"}


PRINT = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
from parityscope.records.code import code_of
print(code_of("lab.main", "f"))
"""


@pytest.mark.slow
def test_neither_imports_nor_the_seed_of_hashes_nor_the_folder_matter(hash_of, tmp_path):
    """Two processes: one has imported nothing, the other everything, from another folder."""
    here = hash_of({**LABORATORY, "main.py": HELPED})
    elsewhere = tmp_path / "elsewhere" / "with a space"
    shutil.copytree(tmp_path / "lab", elsewhere / "lab")
    for path in elsewhere.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    printed = [
        subprocess.run(
            [sys.executable, "-c", PRINT, *modules],
            env={"PYTHONPATH": f"{folder}:{':'.join(sys.path)}", "PYTHONHASHSEED": seed, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for modules, folder, seed in [((), tmp_path, "1"), (("lab.bases", "lab.main"), elsewhere, "2")]
    ]
    assert printed == [f"{here}\n"] * 2


def test_what_has_no_source_is_refused_rather_than_given_the_address_of_nothing():
    made = type("Made", (Config,), {"ROWS": "made", "run": lambda self: Result({}), "__module__": "builtins"})
    with pytest.raises(InvalidInput, match="the source of Made in builtins cannot be found"):
        made().code()
    with pytest.raises(InvalidInput, match=r"the source of Nowhere in parityscope\.core\.errors cannot be found"):
        code_of("parityscope.core.errors", "Nowhere")


class Here(Config):
    """A config of a package that is not the project's."""

    ROWS = "here"

    def run(self):
        return Result({"offset": OFFSET})


OFFSET = 4


def test_a_config_of_somebody_else_s_package_has_its_source_too():
    assert {name for _, name in reached(__name__, "Here")} == {"Here", "OFFSET"}
    assert Row.of(Here(), Here().run()).code == code_of(__name__, "Here")


def test_the_store_decides_no_number():
    found = reached("parityscope.runs.training", "Training")
    assert not any(module.startswith("parityscope.records") for module, _ in found)


@dataclass(frozen=True)
class Setting:
    """A value with a function in it."""

    level: float
    curve: object


def curved(x):
    return x * OFFSET


def made(level):
    return lambda x: x * level


def loud(function):
    @wraps(function)
    def call(*arguments):
        return function(*arguments)

    return call


def made_loud(level):
    @loud
    def inner(x):
        return x * level

    return inner


TWICE = made(2)
SETTING = Setting(1.0, curved)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (made(2), made(3)),
        (made_loud(2), made_loud(3)),
        (partial(curved, 1), partial(curved, 2)),
        (partial(curved, x=1), partial(curved, x=2)),
        (Setting(1.0, curved), Setting(2.0, curved)),
        (Setting(1.0, curved), Setting(1.0, made(1))),
        ([curved, [1]], [[curved], 1]),
        ({"a": 1}, {"a": 2}),
        (max, min),
        (Here(), SETTING),
        (1, True),
        ("1", 1),
    ],
)
def test_values_are_told_apart(one, other):
    assert code_of_value(one) != code_of_value(other)
    assert code_of_value(one) == code_of_value(one)


def test_equal_values_are_equal_also_when_made_anew():
    assert code_of_value(made(2)) == code_of_value(TWICE)
    assert code_of_value(Setting(1.0, curved)) == code_of_value(SETTING)
    assert code_of_value({"b", "a"}) == code_of_value({"a", "b"})
    assert code_of_value(SETTING.__eq__) == code_of_value(Setting(1.0, curved).__eq__)


def test_a_value_without_an_address_says_so():
    with pytest.raises(InvalidInput, match="a value of type object cannot be part of a row's address"):
        code_of_value(partial(curved, object()))


def test_threads_that_parse_at_once_do_not_disturb_each_other():
    text = "\n".join(f"def f{i}(x): return [x + {i}, (x * 2, (x,))]" for i in range(100))
    found, interval = [], sys.getswitchinterval()

    def parse():
        found.extend(len(code._parsed(text, "many").definitions) for _ in range(20))

    def let_another_thread_in(phase, info):
        for _ in range(200):
            pass

    sys.setswitchinterval(1e-6)
    gc.callbacks.append(let_another_thread_in)
    try:
        threads = [threading.Thread(target=parse) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(let_another_thread_in)
        sys.setswitchinterval(interval)
    assert found == [100] * 60
