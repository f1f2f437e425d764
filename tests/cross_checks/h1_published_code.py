"""H1's published code, written again from its description (docs/explanation/cross-checks.md), in plain torch.

It shares nothing with the project: its own positions, attention, network, loss, data and accuracy. Beside checking the
recipe `as-coded` step by step it can be run by itself:

    python tests/cross_checks/h1_published_code.py --n 12 --k 2 --seeds 32
"""

import argparse
import math

import torch


class PublishedModel(torch.nn.Module):
    """k heads, of which only A[0, 2] and A[0, 3] train, in front of k frozen ReLU neurons."""

    def __init__(self, n, k, entries):
        super().__init__()
        self.n, self.k = n, k
        self.entries = torch.nn.Parameter(entries.clone())  # (..., heads, 2)
        angle = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
        self.positions = torch.stack([torch.cos(angle), torch.sin(angle)], dim=-1)

    def forward(self, bits):
        """Return the output for bits (..., examples, n): about 1 for an odd and 0 for an even number of hidden ones."""
        bits = bits.double()
        tokens = torch.stack([bits, 1 - bits], dim=-1)  # the two coordinates that carry the bit
        scores = self.entries @ self.positions.T / (self.n / 4)  # (..., heads, n); the query is the first unit vector
        attention = torch.softmax(scores, dim=-1)
        attended = torch.einsum("...hj,...ejt->...eht", attention, tokens).mean(dim=-2)
        hidden = [torch.relu(self.k * attended[..., 0] - i - 0.5) for i in range(self.k)]
        return sum((-1) ** i * (2 + 4 * i) * neuron for i, neuron in enumerate(hidden))


def random_entries(seeds, k):
    """Return cos θ and sin θ for k uniform angles of each seed."""
    angles = torch.stack(
        [torch.rand(k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) for seed in seeds]
    )
    return torch.stack([torch.cos(2 * math.pi * angles), torch.sin(2 * math.pi * angles)], dim=-1)


def loss_of(output, target):
    """Return (the mean over the batch of the hinge)²: the square is outside of the mean."""
    return torch.relu(1 - (2 * output - 1) * (2 * target - 1)).mean(-1) ** 2


def trained(model, bits, target, steps, learning_rate, on_step=lambda loss: None):
    """Take Adam's steps on all examples at once; tell the loss before each."""
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = loss_of(model(bits), target)
        on_step(loss.detach().clone())
        loss.sum().backward()  # runs do not touch each other
        optimiser.step()
    return model


def target_of(bits, support):
    """Return the XOR of the hidden bits, for each run its own."""
    return torch.stack([run[:, hidden].sum(-1) % 2 for run, hidden in zip(bits, support, strict=True)])


def accuracies(n, k, seeds, epochs=2000, learning_rate=0.1):
    """Return each seed's accuracy on its held-out quarter of ⌊0.8·2^n⌋ draws with replacement."""
    if n > 17:
        raise ValueError(f"n = {n} needs minibatches, which are left out here: n up to 17 is one batch")
    generators = [torch.Generator().manual_seed(1_000_003 * (seed + 1)) for seed in seeds]
    support = [torch.randperm(n, generator=one)[:k] for one in generators]
    bits = torch.stack([torch.randint(2, (int(0.8 * 2**n), n), generator=one) for one in generators])
    target = target_of(bits, support)
    cut = int(0.75 * bits.shape[1])
    model = trained(
        PublishedModel(n, k, random_entries(seeds, k)), bits[:, :cut], target[:, :cut], epochs, learning_rate
    )
    with torch.no_grad():
        return ((model(bits[:, cut:]) >= 0.5).long() == target[:, cut:]).double().mean(-1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in (("--n", 12), ("--k", 2), ("--seeds", 32), ("--first-seed", 0), ("--epochs", 2000)):
        parser.add_argument(option, type=int, default=default)
    given = parser.parse_args()
    reached = accuracies(given.n, given.k, range(given.first_seed, given.first_seed + given.seeds), given.epochs)
    print(f"n = {given.n}, k = {given.k}: {int((reached > 0.99).sum())} of {given.seeds} seeds above 0.99")
