"""A spec is a list of configs: how it is read, packed and refused."""

import pytest

from parityscope import InvalidInput
from parityscope.records import Store
from parityscope.runs import InProcess, Work, load_spec, run_sweep, training
from parityscope.runs.spec import packs_of, spec_module
from sweep_specs import PACKED, TROUBLE, written

POINTS = "[Point(x=x) for x in range(10)]"


def sizes(path, pack=None):
    return [[config.x for config in pack.configs] for pack in packs_of(load_spec(path, pack))]


def test_every_config_is_its_own_pack_unless_its_class_or_the_user_says_otherwise(tmp_path):
    spec = written(tmp_path / "a.py", TROUBLE, POINTS)
    assert sizes(spec) == [[x] for x in range(10)]
    assert sizes(spec, 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_packs_have_one_shape_and_at_most_the_given_size(tmp_path):
    spec = written(tmp_path / "a.py", PACKED, POINTS)
    assert sizes(spec) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert sizes(spec, 3) == [[0, 2, 4], [6, 8], [1, 3, 5], [7, 9]]
    small = PACKED.replace("PACK = 100", "PACK = 4")
    assert sizes(written(tmp_path / "b.py", small, POINTS)) == [[0, 2, 4, 6], [8], [1, 3, 5, 7], [9]]
    with pytest.raises(InvalidInput, match="a pack holds at least 1 config, got 0"):
        sizes(spec, 0)


def test_a_config_that_is_listed_twice_is_run_once(tmp_path):
    assert sizes(written(tmp_path / "a.py", TROUBLE, "[Point(x=1), Point(x=2), Point(x=1, seconds=0.0)]")) == [[1], [2]]


def test_configs_of_several_classes_are_packed_apart():
    from parityscope.papers.h1.figures.figure_1 import WorkedExample

    configs = (training("bounded", 8, 2), WorkedExample(), training("bounded", 8, 2, seeds=[1]))
    assert [[type(one).__name__ for one in pack.configs] for pack in packs_of(Work("both", configs))] == [
        ["Training", "Training"],
        ["WorkedExample"],
    ]


def test_a_spec_may_list_trainings_and_the_configs_of_a_figure(tmp_path):
    text = """
from parityscope.papers.h1.figures.figure_1 import CONFIGS as OF_FIGURE
from parityscope.runs import training
CONFIGS = [*OF_FIGURE["smoke"], *(training("bounded", 8, 2, seeds=[seed], steps=5) for seed in range(3))]
"""
    work, store = load_spec(written(tmp_path / "a.py", text)), Store(tmp_path / "store")
    assert run_sweep(work, store, InProcess()).done == 4
    assert len(store.rows("H1-figure-1")) == 1
    assert len(store.rows("training")) == 3
    # Others that ask for the same training find it.
    assert training("bounded", 8, 2, seeds=[1], steps=5) in store


def test_what_else_is_in_a_spec_does_not_change_the_address_of_its_rows(tmp_path):
    specs = [
        written(tmp_path / "a.py", TROUBLE, "[Point(x=1)]"),
        written(tmp_path / "b.py", "# A longer list.\n" + TROUBLE, "[Point(x=x) for x in range(3)]"),
        written(tmp_path / "c.py", TROUBLE.replace("self.x**2", "self.x**3"), "[Point(x=1)]"),
    ]
    keys = [next(config.key for config in load_spec(path).configs if config.x == 1) for path in specs]
    assert keys[0] == keys[1] != keys[2]


def test_the_code_of_a_spec_is_that_of_the_text_that_was_read(tmp_path):
    """Its file may be edited before anybody asks, or be another one of that name on the machine of a worker."""
    spec = written(tmp_path / "a.py", TROUBLE, "[Point(x=5)]")
    (first,) = load_spec(spec).configs
    written(spec, TROUBLE.replace("self.x**2", "self.x**5"), "[Point(x=5)]")
    (edited,) = load_spec(spec).configs
    again = spec_module(TROUBLE + "\nCONFIGS = [Point(x=5)]\n", "elsewhere").CONFIGS[0]
    assert first.key == again.key != edited.key


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("CONFIGS = []", "needs CONFIGS, a list of at least one config"),
        ("CONFIGS = [1]", "needs CONFIGS, a list of at least one config"),
        ("", "needs CONFIGS"),
        (TROUBLE.replace('ROWS = "trouble"', "") + "\nCONFIGS = [Point(x=1)]", "Point in .* needs ROWS, the name"),
        ("1 / 0", r"cannot be run: ZeroDivisionError"),
        ("def", r"cannot be run: SyntaxError"),
        (TROUBLE + "\nCONFIGS = [Point(x=1, colour=2)]", r"cannot be run: ValidationError"),
    ],
)
def test_a_bad_spec_is_one_sentence(tmp_path, text, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        load_spec(written(tmp_path / "a.py", text))


def test_a_config_that_json_would_change_is_refused(tmp_path):
    work = load_spec(written(tmp_path / "a.py", TROUBLE, '[Point(x=1, seconds=float("inf"))]'))
    with pytest.raises(InvalidInput, match="changes when written as JSON"):
        run_sweep(work, Store(tmp_path / "store"), InProcess())
