"""What is to be learned: parities of bits, and parities as token sequences."""

from parityscope.problems.parity import Parity, Stream, bits_of, draw_examples, draw_problems, seeded_generator

__all__ = ["Parity", "Stream", "bits_of", "draw_examples", "draw_problems", "seeded_generator"]
