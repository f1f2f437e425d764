import pytest

from parityscope import InvalidInput
from parityscope.records import Store
from parityscope.runs import InProcess, load_spec, run_sweep
from parityscope.runs.spec import packs_of
from sweep_specs import PACKED, TROUBLE, written

POINTS = "[Point(x=x) for x in range(10)]"


def sizes(path, pack=None):
    return [[config.x for config in pack.configs] for pack in packs_of(load_spec(path, pack))]


def test_without_run_batch_every_config_is_its_own_pack_unless_asked_otherwise(tmp_path):
    spec = written(tmp_path / "a.py", TROUBLE, POINTS)
    assert sizes(spec) == [[x] for x in range(10)]
    assert sizes(spec, 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_packs_have_one_shape_and_at_most_the_given_size(tmp_path):
    spec = written(tmp_path / "a.py", TROUBLE + PACKED, POINTS)
    assert sizes(spec) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert sizes(spec, 3) == [[0, 2, 4], [6, 8], [1, 3, 5], [7, 9]]
    assert sizes(written(tmp_path / "b.py", TROUBLE + PACKED + "PACK = 4", POINTS)) == [
        [0, 2, 4, 6],
        [8],
        [1, 3, 5, 7],
        [9],
    ]


def test_a_config_that_is_listed_twice_is_run_once(tmp_path):
    assert sizes(written(tmp_path / "a.py", TROUBLE, "[Point(x=1), Point(x=2), Point(x=1, seconds=0.0)]")) == [[1], [2]]


def test_a_spec_may_name_an_experiment(tmp_path):
    text = (
        "from parityscope.papers.h1.figures.figure_1 import CONFIGS as ALL\n"
        'EXPERIMENT = "H1-figure-1"\nCONFIGS = list(ALL["smoke"])'
    )
    work = load_spec(written(tmp_path / "a.py", text))
    summary = run_sweep(work, Store(tmp_path / "store"), InProcess())
    assert (summary.done, summary.failed) == (len(work.configs), 0)
    assert len(Store(tmp_path / "store").rows("H1-figure-1")) == len(work.configs)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("CONFIGS = []", "needs CONFIGS, a list of at least one config"),
        ("CONFIGS = [1]", "needs CONFIGS, a list of at least one config"),
        ("", "needs CONFIGS"),
        (TROUBLE.replace('ID = "trouble"', "") + "\nCONFIGS = [Point(x=1)]", "needs EXPERIMENT"),
        (TROUBLE + '\nCONFIGS = [Point(x=1)]\nEXPERIMENT = "H9"', "unknown experiment 'H9'"),
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
