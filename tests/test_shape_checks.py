"""The checker of types and shapes that every test of this folder runs under notices what it is there for."""

import jaxtyping
import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float
from torch import Tensor

from parityscope.models.readouts import Cosine
from parityscope.theory import h2
from shape_checks import checked

instrumented = jaxtyping.jaxtyped(typechecker=checked)


@instrumented
def plus_one(number: float) -> float:
    return str(number) if number == 3 else number + 1


@instrumented
def dot(a: Float[Tensor, " n"], b: Float[Tensor, " n"]) -> Float[Tensor, ""]:
    return a @ b if len(a) != 3 else a


@instrumented
def first(several: "list[Later]") -> "Later":
    return several[0]


class Later:
    pass


def test_types_are_checked_where_nothing_has_a_shape():
    assert plus_one(1) == 2
    for wrong in ("1", None, 3):
        with pytest.raises(BeartypeCallHintViolation):
            plus_one(wrong)


def test_shapes_are_checked_where_there_are_some():
    assert dot(torch.ones(2), torch.ones(2)) == 2
    for a, b in ((2, 4), (3, 3)):
        with pytest.raises(jaxtyping.TypeCheckError):
            dot(torch.ones(a), torch.ones(b))


def test_a_class_that_is_not_there_yet_is_no_obstacle():
    one = Later()
    assert first([one]) is one


def test_the_package_is_checked():
    with pytest.raises(BeartypeCallHintViolation):
        h2.best_uniform_step("20", 2)
    with pytest.raises(jaxtyping.TypeCheckError):
        Cosine()([0.5])
