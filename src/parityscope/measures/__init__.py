"""What is measured: accuracy, the support that was found, attention entropy."""

from parityscope.measures.accuracy import Accuracy, AccuracyKind, measured_accuracy
from parityscope.measures.entropy import attention_entropy
from parityscope.measures.support import attended_support, found_support

__all__ = ["Accuracy", "AccuracyKind", "attended_support", "attention_entropy", "found_support", "measured_accuracy"]
