"""A part is found again by its address, and only the same text is the same part."""

import sys
from dataclasses import dataclass
from functools import partial

import pytest
import torch

import own_parts
from parityscope import InvalidInput, Triangle
from parityscope.models import Readout
from parityscope.training.parts import NOT_ADDRESSABLE, OwnPart


@dataclass
class Straight:
    slope: float
    ends: tuple[float, ...] = (0.0, 1.0)

    def __call__(self, step):
        return 1 - self.slope * step


class WithTensor(Readout):
    def __init__(self):
        super().__init__()
        self.register_buffer("numbers", torch.ones(2))


@pytest.mark.parametrize(
    "value",
    [
        own_parts.gaussian,
        own_parts.Steep,
        own_parts.Steep(0.1),
        own_parts.Silent(),
        own_parts.Decay(7),
        partial(own_parts.gaussian, 5),
        partial(torch.optim.Adam, lr=0.1),
        min,
        Triangle(3),
    ],
    ids=[
        "function",
        "class",
        "object",
        "bare object",
        "callable object",
        "partial",
        "of a library",
        "builtin",
        "of the project",
    ],
)
def test_a_part_is_found_again(value):
    part = OwnPart.of(value)
    again = OwnPart.recorded(part.record())
    assert part.addressable
    assert again == part
    assert hash(again) == hash(part)
    assert type(again.value) is type(value)
    if isinstance(value, Readout):
        S = torch.linspace(0, 3, 7)
        assert torch.equal(again.value(S), value(S))
    elif isinstance(value, partial):
        assert (again.value.func, again.value.args, again.value.keywords) == (value.func, value.args, value.keywords)


def inner():
    def code(n, r, generator):
        return torch.zeros(n, r)

    return code


@pytest.mark.parametrize(
    "value",
    [lambda step: 1.0, inner(), WithTensor(), partial(own_parts.gaussian, torch.ones(1)), Straight(0.1, [1.0])],
    ids=["lambda", "inner function", "tensor", "partial of a tensor", "list"],
)
def test_what_has_no_address_says_so(value):
    part = OwnPart.of(value)
    assert part.record()["source"] == NOT_ADDRESSABLE
    assert part.value is value
    assert part == OwnPart.of(value)
    with pytest.raises(InvalidInput, match="cannot be found again: not addressable"):
        _ = OwnPart.recorded(part.record()).value


def test_two_lambdas_are_two_parts():
    assert OwnPart.of(lambda step: 1.0) != OwnPart.of(lambda step: 2.0)


def test_settings_are_part_of_the_address():
    assert OwnPart.of(own_parts.Steep(0.1)) != OwnPart.of(own_parts.Steep(0.05))
    assert OwnPart.of(own_parts.Silent()) != OwnPart.of(own_parts.Silent)


def test_another_text_is_another_part(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    records = []
    for factor in (1, 2):
        path = tmp_path / f"mine_{factor}.py"
        path.write_text(f"def schedule(step):\n    return {factor} / (1 + step)\n")
        part = OwnPart.of(__import__(path.stem).schedule)
        records.append(part.record()["source"])
    assert records[0] != records[1]
    changed = {"part": "mine_1:schedule", "source": records[1]}
    with pytest.raises(InvalidInput, match="mine_1:schedule cannot be found again: its code is another one"):
        _ = OwnPart.recorded(changed).value
    for name, why in {
        "nowhere:schedule": r"the module nowhere cannot be imported here \(ModuleNotFoundError: No module",
        "mine_1:decay": "the module mine_1 has no decay",
        "parityscope_spec:schedule": "load the spec that defines it first, with load_spec",
    }.items():
        part = OwnPart.recorded({"part": name, "source": records[1]})
        assert (str(part), part.loaded) == (f"{name} (not loaded)", False)
        with pytest.raises(InvalidInput, match=f"the part {name} cannot be found again: {why}"):
            _ = part.value
    for name in ("mine_1", "mine_2"):
        del sys.modules[name]


@pytest.mark.parametrize("record", [{}, {"part": "a:b"}, {"part": "a:b", "source": "c", "colour": "d"}])
def test_another_mapping_is_no_record(record):
    with pytest.raises(ValueError, match="not the record of a part"):
        OwnPart.recorded(record)
