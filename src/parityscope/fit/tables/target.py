"""The column with the classes: two of them, or one against all others."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int8
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables.table import DataTable, listed

_LISTED = 12  # classes in a sentence


def classes_and_labels(
    table: DataTable, place: int, positive: str | None, source: object
) -> tuple[tuple[str, str], Int8[ndarray, " rows"]]:
    """Return the two classes as they are written, and every row's as a sign: −1 for the first, 1 for the second.

    `positive` names the second class; where there are more than two, all others together are the first.

    >>> import pandas as pd
    >>> from parityscope.fit.tables.table import table_of
    >>> table = table_of(pd.DataFrame({"kind": ["cat", "dog", "eel"]}))
    >>> classes, labels = classes_and_labels(table, 0, "dog", "pets.csv")
    >>> classes, labels.tolist()
    (('not dog', 'dog'), [-1, 1, -1])
    >>> classes_and_labels(table, 0, None, "pets.csv")
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: kind has 3 classes, cat, dog and eel: choose one against all others with \
--positive CLASS
    """
    name = table.names[place]
    values, codes = np.unique(table.column(place).astype(object), return_inverse=True)
    written = [spelled(value, table.words.get(place)) for value in values]
    if len(written) == 1:
        raise InvalidInput(f"{name} has one class only, {written[0]}: two classes are needed")
    if positive is None:
        if len(written) > 2:
            raise InvalidInput(
                f"{name} has {len(written)} classes, {listed(written, most=_LISTED)}: "
                "choose one against all others with --positive CLASS"
            )
        positive = written[1]
    if positive not in written:
        raise InvalidInput(f"{name} has no class {positive!r}: it has {listed(written, most=_LISTED)}")
    chosen = written.index(positive)
    rest = written[1 - chosen] if len(written) == 2 else f"not {positive}"
    return (rest, positive), np.where(codes == chosen, 1, -1).astype(np.int8)


def is_measured(table: DataTable, place: int) -> bool:
    """Say whether a column holds measured numbers rather than classes: more than twelve different ones.

    >>> import pandas as pd
    >>> from parityscope.fit.tables.table import table_of
    >>> table = table_of(pd.DataFrame({"kind": [0, 1] * 10, "weight": range(20)}))
    >>> is_measured(table, 0), is_measured(table, 1)
    (False, True)
    """
    return place not in table.texts and place not in table.words and len(np.unique(table.column(place))) > _LISTED


def spelled(value: object, words: tuple[str, ...] | None = None) -> str:
    """Return a value as a person would write it.

    >>> spelled(2.0), spelled(0.25), spelled("two"), spelled(1.0, ("False", "True"))
    ('2', '0.25', 'two', 'True')
    """
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    if words is not None and number in range(len(words)):
        return words[int(number)]
    return f"{number:.15g}"
