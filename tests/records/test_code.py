"""An edit changes the hash of exactly the configs that can reach it: a small laboratory, edited file by file."""

import gc
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import partial, wraps

import pytest

from parityscope import InvalidInput
from parityscope.records import Config, Result, Row, code, source
from parityscope.records.code import code_of, code_of_value, reached

LABORATORY = {
    "__init__.py": "from lab.tools import exported\nfrom lab import tools as kit\n",
    "tools.py": '''
"""Tools."""
from __future__ import annotations
import math
from math import pi as turn
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from torch import Tensor

RATE = 0.5  # how fast
TEXT = f"a # b {RATE} # c"

def helper(x: Tensor) -> Tensor:
    """Help."""
    return inner(x) + 1

def inner(x):
    text = """one # two
    three # four"""
    return len(text) * x

def exported(x):
    return x * turn

def by_module(x):
    return math.floor(x)

def unrelated(x):
    return -x
''',
    "bases.py": """
class Base:
    def step(self):
        return 1

class Middle(Base):
    pass

class Other:
    def step(self):
        return 2
""",
    "decorated.py": """
import functools
from lab.tools import inner as wrapped_inner
TABLE = {}

def loud(function):
    @functools.wraps(function)
    def call(*arguments):
        return wrapped_inner(function(*arguments))
    return call

@loud
def shout(x):
    return x + 7

def whisper(x):
    return x - 7

TABLE["whisper"] = whisper

@functools.singledispatch
def dispatched(x):
    return 0

@dispatched.register
def _(x: int):
    return 1
""",
    "configs.py": """
from dataclasses import dataclass, field
import lab
import lab.bases
from lab import tools
from lab.bases import Middle
from lab.decorated import TABLE, dispatched, shout
from lab.tools import RATE, TEXT, helper
from parityscope.records import Config

class Helped(Config):
    def run(self): return helper(2)

class Constant(Config):
    rate: float = RATE
    def run(self): return self.rate

class Text(Config):
    def run(self): return TEXT

class Inherited(Config, Middle):
    def run(self): return self.step()

class Dotted(Config):
    def run(self): return lab.bases.Other().step()

class Late(Config):
    def run(self):
        from lab.tools import inner as used
        return used(1)

class Exported(Config):
    def run(self):
        from lab import exported
        return exported(1)

class ByModule(Config):
    def run(self): return tools.by_module(1.5)

class ReExportedModule(Config):
    def run(self): return lab.kit.by_module(1.5)

class Decorated(Config):
    def run(self): return shout(1)

class Registered(Config):
    def run(self): return TABLE["whisper"](1)

class Dispatched(Config):
    def run(self): return dispatched(1)

class Own(Config):
    attribute: int = 3
    key_of = staticmethod(lambda pair: pair[0])
    def method(self): return self.attribute
    def run(self): return self.method()

@dataclass
class Defaults:
    values: list = field(default_factory=lambda: [tools.unrelated(1)])

class WithDefaults(Config):
    def run(self): return Defaults().values

class Whole(Config):
    def run(self): return getattr(tools, "unre" + "lated")(1)

class Shadowing(Config):
    def run(self, helper=None):
        inner = helper
        return [shout for shout in [inner]]
""",
}
CONFIGS = [
    line.split("(")[0].removeprefix("class ")
    for line in LABORATORY["configs.py"].splitlines()
    if line.startswith("class ") and "Config" in line
]


class Laboratory:
    """A package in a folder of its own, whose files are edited but never imported."""

    def __init__(self, folder):
        self.folder, self.texts = folder / "lab", dict(LABORATORY)
        self.folder.mkdir()

    def hashes(self, names=CONFIGS, **changed):
        """Return the hash of every config after some files were replaced."""
        for name, text in {**self.texts, **changed}.items():
            (self.folder / name).write_text(text)
        forget()
        return {name: code_of("lab.configs", name) for name in names}

    def stale(self, file, old, new):
        """Return the configs whose hash an edit changes."""
        assert self.texts[file].count(old) == 1, f"{old!r} should be in {file} once"
        before = self.hashes()
        after = self.hashes(**{file: self.texts[file].replace(old, new)})
        return {name for name in CONFIGS if before[name] != after[name]}


def forget():
    for module in (code, source):
        for one in vars(module).values():
            getattr(one, "cache_clear", lambda: None)()


@pytest.fixture
def laboratory(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Laboratory(tmp_path)
    forget()


INNER = {"Helped", "Late", "Decorated", "Whole"}  # all that can come to `inner`


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        pytest.param("tools.py", "inner(x) + 1", "inner(x) + 2", {"Helped", "Whole"}, id="a helper function"),
        pytest.param("tools.py", "len(text) * x", "len(text) + x", INNER, id="a helper's helper, late and renamed"),
        pytest.param("tools.py", "RATE = 0.5", "RATE = 0.6", {"Constant", "Text", "Whole"}, id="a constant"),
        pytest.param("tools.py", "a # b", "a # d", {"Text", "Whole"}, id="a hash sign in an f-string"),
        pytest.param("tools.py", "one # two", "one # 2", INNER, id="a hash sign in a long string"),
        pytest.param("tools.py", "three # four", "three # 4", INNER, id="a hash sign in its second line"),
        pytest.param("bases.py", "return 1", "return 3", {"Inherited"}, id="a base class of a base class"),
        pytest.param("bases.py", "class Middle(Base)", "class Middle(Other)", {"Inherited"}, id="other bases"),
        pytest.param("bases.py", "return 2", "return 3", {"Dotted"}, id="package.module.name"),
        pytest.param("tools.py", "x * turn", "x / turn", {"Exported", "Whole"}, id="a name exported by the package"),
        pytest.param("tools.py", "pi as turn", "tau as turn", {"Exported", "Whole"}, id="what a name is imported from"),
        pytest.param(
            "tools.py", "math.floor", "math.ceil", {"ByModule", "ReExportedModule", "Whole"}, id="module.name"
        ),
        pytest.param(
            "__init__.py", "tools as kit", "bases as kit", {"ReExportedModule"}, id="a module under another name"
        ),
        pytest.param("decorated.py", "x + 7", "x + 8", {"Decorated"}, id="a decorated function"),
        pytest.param("decorated.py", "call(*arguments)", "call(*values)", {"Decorated"}, id="its decorator"),
        pytest.param("decorated.py", "x - 7", "x - 8", {"Registered"}, id="a function in a table"),
        pytest.param("decorated.py", "return 1", "return 2", {"Dispatched"}, id="a registered function"),
        pytest.param("configs.py", "attribute: int = 3", "attribute: int = 4", {"Own"}, id="a class attribute"),
        pytest.param("configs.py", "pair[0]", "pair[1]", {"Own"}, id="a lambda in a class body"),
        pytest.param("configs.py", "return self.attribute", "return 5", {"Own"}, id="a method"),
        pytest.param("configs.py", "[tools.unrelated(1)]", "[2]", {"WithDefaults"}, id="a default of a field"),
        pytest.param("tools.py", "return -x", "return +x", {"WithDefaults", "Whole"}, id="what a default calls"),
    ],
)
def test_an_edit_makes_exactly_those_stale_that_can_reach_it(laboratory, file, old, new, stale):
    assert laboratory.stale(file, old, new) == stale


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("tools.py", "  # how fast", "  # how slow", id="a comment"),
        pytest.param("tools.py", '"""Help."""', '"""Help, with "quotes" and # signs."""', id="a docstring"),
        pytest.param("tools.py", "def inner(x):\n", "def inner(x):\n\n    # why\n\n", id="blank lines"),
        pytest.param("tools.py", "return inner(x) + 1", "return (\n        inner(x)\n        + 1\n    )", id="layout"),
        pytest.param("tools.py", "from torch import Tensor", "from numpy import ndarray as Tensor", id="a type"),
        pytest.param("tools.py", "x: Tensor) -> Tensor", "x: float) -> float", id="annotations"),
        pytest.param("bases.py", "class Other", "class Another:\n    pass\n\nclass Other", id="a new definition"),
        pytest.param("tools.py", '"""Tools."""', '"""Tools."""\nimport os', id="an import that nobody uses"),
    ],
)
def test_what_decides_nothing_makes_nothing_stale(laboratory, file, old, new):
    assert laboratory.stale(file, old, new) == set()


def test_a_local_name_is_not_the_module_s_function_of_that_name(laboratory):
    laboratory.hashes()
    assert [name for name in reached("lab.configs", "Shadowing") if not name.startswith("lab.configs")] == []


EXTRAS = {
    "a star": ("from lab.tools import *\ndef f(): return unrelated(1)", "return -x"),
    "a relative import": ("from .tools import unrelated as u\ndef f(): return u(1)", "return -x"),
    "a relative module": ("from . import tools\ndef f(): return tools.unrelated(1)", "return -x"),
    "global": ("LEVEL = 1\ndef f():\n  global unrelated\n  from lab.tools import unrelated\n  return g()\n"
               "def g(): return unrelated(1)", "return -x"),
    "a condition": ("from lab.tools import RATE\nif RATE > 1:\n  def f(): return 1\nelse:\n  def f(): return 2",
                    "= 0.5"),
    "a fallback": ("try:\n  from lab.nothing import u\nexcept ImportError:\n  from lab.tools import unrelated as u\n"
                   "def f(): return u(1)", "return -x"),
    "a handler's definition": ("try:\n  import nothing\nexcept ImportError:\n  from lab.tools import unrelated\n"
                               "  nothing = unrelated\ndef f(): return nothing(1)", "return -x"),
    "a loop": ("from lab.tools import unrelated\nTABLE = {}\nfor i in range(3):\n  TABLE[i] = unrelated\n"
               "def f(): return TABLE[1](1)", "return -x"),
    "a call": ("from lab.tools import unrelated\nTABLE = []\nTABLE.append(unrelated)\ndef f(): return TABLE[0](1)",
               "return -x"),
    "a call by itself": ("from lab.tools import unrelated\nunrelated(1)\ndef f(): return 1", "return -x"),
    "two imports of one name": ("from lab.tools import unrelated as u\nclass f:\n  def a(self):\n"
                                "    from lab.bases import Base as u\n    return u\n  def b(self): return u(1)",
                                "return -x"),
    "an import in a class body": ("class f:\n  from lab.tools import unrelated", "return -x"),
    "a name made by the package": ("from lab import made\ndef f(): return made", "return -x"),
    "a walrus": ("from lab.tools import unrelated\nif (u := unrelated):\n  pass\ndef f(): return u(1)", "return -x"),
    "a default argument": ("from lab.tools import unrelated\ndef f(x, g=unrelated): return g(x)", "return -x"),
    "the first loop of a comprehension": ("from lab.tools import unrelated\n"
                                          "def f(): return [unrelated for unrelated in unrelated(1)]", "return -x"),
    "a name in a string annotation of nothing": ("from lab.tools import unrelated\nclass f:\n  g: object = unrelated",
                                                 "return -x"),
}  # fmt: skip


@pytest.mark.parametrize("case", EXTRAS)
def test_unusual_ways_to_reach_a_definition(laboratory, case):
    text, target = EXTRAS[case]
    laboratory.texts["extra.py"] = text
    laboratory.texts["__init__.py"] += "globals()['made'] = kit.unrelated\n"
    laboratory.hashes(())
    before = code_of("lab.extra", "f")
    changed = laboratory.texts["tools.py"].replace(target, target.replace("-x", "+x").replace("0.5", "0.7"))
    laboratory.hashes((), **{"tools.py": changed})
    assert code_of("lab.extra", "f") != before


PRINT = """
import importlib, sys
for name in sys.argv[2:]:
    importlib.import_module(name)
from parityscope.records.code import code_of
print([code_of("lab.configs", name) for name in sys.argv[1].split(",")])
"""


@pytest.mark.slow
def test_neither_imports_nor_the_seed_of_hashes_nor_the_folder_matter(laboratory, tmp_path):
    """Two processes: one has imported nothing, the other everything, from another folder."""
    laboratory.hashes()
    elsewhere = tmp_path / "elsewhere" / "with a space"
    elsewhere.mkdir(parents=True)
    (elsewhere / "lab").mkdir()
    for path in laboratory.folder.glob("*.py"):
        (elsewhere / "lab" / path.name).write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    printed = [
        subprocess.run(
            [sys.executable, "-c", PRINT, ",".join(CONFIGS), *modules],
            env={"PYTHONPATH": f"{folder}:{':'.join(sys.path)}", "PYTHONHASHSEED": seed, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for modules, folder, seed in [
            ((), tmp_path, "1"),
            (("lab.bases", "lab.decorated", "lab.configs"), elsewhere, "2"),
        ]
    ]
    assert len(set(printed)) == 1
    assert len(printed[0]) > 17 * len(CONFIGS)


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
    assert {name.rpartition(".")[2] for name in reached(__name__, "Here")} == {"Here", "OFFSET"}
    assert Row.of(Here(), Here().run()).code == code_of(__name__, "Here")


def test_the_store_decides_no_number():
    assert not any(name.startswith("parityscope.records") for name in reached("parityscope.runs.training", "Training"))


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
        found.extend(len(source.parsed(text, "many").definitions) for _ in range(20))

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
