"""The scikit-learn face: find the few columns whose parity is the label, and say how sure that is.

A name is imported when it is first used: `parityscope fit` does without scikit-learn, which takes longer to load than
most tables take to search.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parityscope.fit.classifier import (
        NothingFound,
        NotSearched,
        RepeatedRows,
        SparseParityClassifier,
        SparseParityRegressor,
        TiedColumns,
    )

__all__ = [
    "NotSearched",
    "NothingFound",
    "RepeatedRows",
    "SparseParityClassifier",
    "SparseParityRegressor",
    "TiedColumns",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from parityscope.fit import classifier

    return getattr(classifier, name)
