"""A config is frozen, strict, and has an address that covers everything that decides its row."""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from parityscope import InvalidInput
from parityscope.records import Config, LooseNumbers, Numbers, Result, Row


class Square(Config):
    """A number to square."""

    ROWS = "squares"
    x: float
    note: str = ""

    def run(self):
        """Square it."""
        return Result({"square": self.x**2})


class Labelled(Config):
    """A square with a label, which is stored as the square."""

    label: str
    square: Square

    def row_config(self):
        """Return the square."""
        return self.square


class Found(Numbers):
    """A typed result."""

    square: float


def test_configs_are_frozen_and_reject_unknown_fields():
    with pytest.raises(ValidationError):
        Square(x=3, y=1)
    with pytest.raises(ValidationError):
        Square(x=3).x = 4
    with pytest.raises(ValidationError):
        Found(square=9, cube=27)


def test_the_key_covers_fields_name_version_and_code(monkeypatch):
    keys = [Square(x=3).key, Square(x=4).key, Square(x=3, note="again").key]
    for attribute, value in (("ROWS", "other"), ("VERSION", 2), ("code", lambda self: "another")):
        with monkeypatch.context() as changed:
            changed.setattr(Square, attribute, value)
            keys.append(Square(x=3).key)
    assert len(set(keys)) == 6
    assert Square(x=3).key == Square(x=3.0, note="").key == keys[0]


@pytest.mark.slow
def test_a_key_is_the_same_in_another_process():
    print_it = "from parityscope.runs import training; print(training('bounded', 8, 2, seeds=[1]).key)"
    from parityscope.runs import training

    done = subprocess.run([sys.executable, "-c", print_it], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == training("bounded", 8, 2, seeds=[1]).key


def test_a_label_is_no_part_of_the_row_s_address():
    ours, theirs = (Labelled(label=label, square=Square(x=3)) for label in ("ours", "theirs"))
    assert ours.row_config().key == theirs.row_config().key == Square(x=3).key
    assert Square(x=3).row_config() == Square(x=3)


def test_a_config_without_a_run_says_so():
    with pytest.raises(NotImplementedError, match="Labelled has no run of its own"):
        Labelled(label="a", square=Square(x=1)).run()


def test_run_batch_is_run_one_by_one_unless_a_config_knows_better():
    configs = [Square(x=x) for x in (1, 2)]
    assert Square.run_batch(configs) == [config.run() for config in configs]
    assert configs[0].batch_shape() == configs[1].batch_shape()


def test_numbers_are_typed_where_the_config_says_of_which_type(monkeypatch):
    loose = Row.of(Square(x=3), Square(x=3).run())
    assert isinstance(loose.numbers, LooseNumbers)
    assert loose.numbers.square == 9
    monkeypatch.setattr(Square, "NUMBERS", Found)
    assert Row.of(Square(x=3), Square(x=3).run()).numbers == Found(square=9)
    assert Row.of(Square(x=3), Result(Found(square=1))).numbers == Found(square=1)
    sentence = "what Square returned does not have the numbers of Found: square: field required; cube: extra"
    with pytest.raises(InvalidInput, match=sentence):
        Row.of(Square(x=3), Result({"cube": 27}))
