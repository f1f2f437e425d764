"""The scikit-learn face: find the few columns whose parity is the label, and say how sure that is."""

from parityscope.errors import InvalidInput

try:
    import sklearn  # noqa: F401
except ImportError:
    raise InvalidInput("SparseParityClassifier needs scikit-learn: pip install 'parityscope[sklearn]'") from None

from parityscope.estimator.classifier import NothingFound, SparseParityClassifier, TiedColumns

__all__ = ["NothingFound", "SparseParityClassifier", "TiedColumns"]
