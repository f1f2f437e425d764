"""The smallest model with an additive score: free weights and an offset behind any readout."""

import torch
from torch import nn

from parityscope.models import AdditiveScore


class AdditiveModel(nn.Module):
    def __init__(self, weights, readout, offset=0.0):
        super().__init__()
        self.weights, self.readout = nn.Parameter(weights), readout
        self.offset = nn.Parameter(torch.as_tensor(offset, dtype=torch.float64).clone())

    def additive_score(self):
        return AdditiveScore(self.weights, self.offset, self.readout)

    def forward(self, x):
        return self.readout(x.double() @ self.weights + self.offset)
