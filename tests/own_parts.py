"""Parts of a user's own, for tests: a position code, readouts, an optimiser, a schedule."""

import math

import torch

from parityscope.models import Readout, Wave


def length(r):
    return 1 / math.sqrt(r)


def gaussian(n, r, generator):
    return torch.randn(n, r, generator=generator, dtype=torch.float64) * length(r)


class Steep(Readout):
    """(1 + w)·cos(πS) − w·cos(3πS): bounded for 0 ≤ w ≤ ⅛, and steeper than the cosine where it changes sign."""

    bounded = True

    def __init__(self, w=0.125):
        super().__init__()
        self.w = w

    def forward(self, S):
        return (1 + self.w) * (math.pi * S).cos() - self.w * (3 * math.pi * S).cos()

    def cosine_series(self):
        return (Wave(1.0, 1 + self.w), Wave(3.0, -self.w))


class Silent(Readout):
    """The same function at w = ⅛, which says nothing of itself but that it is bounded."""

    bounded = True

    def forward(self, S):
        wave = (math.pi * S).cos()
        return 1.5 * wave - 0.5 * wave**3


def slow_adam(parameters):
    return torch.optim.Adam(parameters, lr=0.04)


def decay(step):
    return 1 / (1 + step / 50)


class Decay:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, step):
        return 1 / (1 + step / self.steps)
