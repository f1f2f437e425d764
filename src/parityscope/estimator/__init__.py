"""The scikit-learn face: find the few columns whose parity is the label, and say how sure that is."""

from parityscope.errors import naming_the_extra

with naming_the_extra():
    from parityscope.estimator.classifier import NothingFound, SparseParityClassifier, TiedColumns

__all__ = ["NothingFound", "SparseParityClassifier", "TiedColumns"]
