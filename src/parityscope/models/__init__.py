"""One architecture per file, read bottom-up: positions, readouts, the transformer, FFNN-1."""

from parityscope.models.additive import AdditiveScore, additive_score
from parityscope.models.faces import Face, is_face
from parityscope.models.ffnn import FFNN1, AttentionFFNN, FrozenAttention, XorTransformer, parity_ffnn, xor_transformer
from parityscope.models.gpt import GPT
from parityscope.models.readouts import Cosine, PiecewiseLinear, Readout, Triangle, Wave, ZigZag
from parityscope.models.transformer import ParityTransformer, parity_transformer

__all__ = [
    "FFNN1",
    "GPT",
    "AdditiveScore",
    "AttentionFFNN",
    "Cosine",
    "Face",
    "FrozenAttention",
    "ParityTransformer",
    "PiecewiseLinear",
    "Readout",
    "Triangle",
    "Wave",
    "XorTransformer",
    "ZigZag",
    "additive_score",
    "is_face",
    "parity_ffnn",
    "parity_transformer",
    "xor_transformer",
]
