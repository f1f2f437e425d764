"""Two classes, or one against the others; names that are nearly right."""

import pandas as pd
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables.table import table_of
from parityscope.fit.tables.target import classes_and_labels


def of(values, positive=None):
    return classes_and_labels(table_of(pd.DataFrame({"y": values})), 0, positive, "data.csv")


@pytest.mark.parametrize(
    ("values", "positive", "classes", "labels"),
    [
        ([0, 1, 1], None, ("0", "1"), [-1, 1, 1]),
        ([0, 1, 1], "0", ("1", "0"), [1, -1, -1]),
        ([1.5, 2.0], None, ("1.5", "2"), [-1, 1]),
        ([True, False], None, ("False", "True"), [1, -1]),
        (["no", "yes"], None, ("no", "yes"), [-1, 1]),
        ([3, 1, 2], "2", ("not 2", "2"), [-1, -1, 1]),
    ],
)
def test_classes_as_they_are_written(values, positive, classes, labels):
    found, signs = of(values, positive)
    assert (found, signs.tolist()) == (classes, labels)


@pytest.mark.parametrize(
    ("values", "positive", "sentence"),
    [
        ([1, 1], None, "y has one class only, 1: two classes are needed"),
        ([1, 2, 3], None, "y has 3 classes, 1, 2 and 3: choose one against all others with --positive CLASS"),
        (list(range(99)), None, r"y has 99 classes, 0, 1, .* and 87 others"),
        ([1, 2, 3], "4", "y has no class '4': it has 1, 2 and 3"),
    ],
)
def test_other_targets_are_one_sentence(values, positive, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        of(values, positive)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("falt", "did you mean 'fault'"),
        ("FAULT", "did you mean 'fault'"),
        (" shift", "did you mean 'shift'"),
        ("xyzzy", "it has fault, shift and c0, c1"),
    ],
)
def test_the_nearest_names_are_offered(asked, sentence):
    table = table_of(pd.DataFrame({"fault": [1], "shift": [1], **{f"c{column}": [0] for column in range(30)}}))
    with pytest.raises(InvalidInput) as refused:
        table.place_of(asked, "data.csv")
    assert sentence.replace(" and c0", ", c0") in str(refused.value)
