"""`learn` trains any module: through `forward` or an additive score, or it says what is missing."""

import pytest
import torch
from torch import nn

import parityscope as ps
from parityscope.models import AdditiveScore


class Network(nn.Module):
    def __init__(self, n, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.inner = nn.Parameter(torch.randn(n, 32, generator=generator) / n**0.5)
        self.shift = nn.Parameter(torch.randn(32, generator=generator))
        self.outer = nn.Parameter(torch.randn(32, generator=generator) / 6)

    def forward(self, x):
        return (x.float() @ self.inner + self.shift).relu() @ self.outer


class Weighted(nn.Module):
    def __init__(self, n, readout):
        super().__init__()
        self.c = nn.Parameter(torch.full((n,), 2 / n, dtype=torch.float64))
        self.readout = readout

    def forward(self, x):
        return self.readout(x.to(self.c) @ self.c)

    def additive_score(self):
        return AdditiveScore(self.c, torch.zeros(()), self.readout)


@pytest.mark.parametrize("asked", [{}, {"samples": 400}, {"batch": 128}], ids=["population", "samples", "batches"])
def test_a_network_learns_and_its_bits_are_named(asked):
    problem = ps.Parity(8, (1, 5))
    start = Network(8)
    kept = start.inner.detach().clone()
    run = ps.learn(problem, model=start, seeds=range(2), **asked)
    assert run.found.tolist() == [[1, 5], [1, 5]]
    assert bool(run.learned.all())
    assert torch.equal(start.inner, kept)
    right = [((one(x) > 0) == (y > 0)).double().mean() for one in run.model for x, y in problem.enumerate()]
    assert run.accuracy.tolist() == pytest.approx([float(share) for share in right])
    assert run.to_json()["parameters"] == 8 * 32 + 64


def test_an_additive_score_trains_at_any_n():
    run = ps.learn(
        ps.Parity(40, (1, 5)), model=Weighted(40, ps.Cosine()), loss="log-correlation", learning_rate=0.02, steps=300
    )
    assert run.found.tolist() == [[1, 5]]
    assert bool(run.learned.all())


def test_a_seed_has_its_own_module_and_gives_the_same_alone():
    problem, models = ps.Parity(8, (1, 5)), [Network(8, seed) for seed in (3, 4)]
    together = ps.learn(problem, model=models, seeds=(3, 4), samples=300, steps=20)
    alone = ps.learn(problem, model=models[1], seeds=(4,), samples=300, steps=20)
    assert together.risk[1].item() == pytest.approx(alone.risk[0].item(), rel=1e-5)
    assert together.risk[0].item() != pytest.approx(alone.risk[0].item(), rel=1e-5)


@pytest.mark.parametrize(
    ("model", "more", "sentence"),
    [
        (nn.Identity(), {}, "Identity has nothing to train"),
        (nn.Linear(5, 1), {}, r"Linear needs a forward that takes bits \(batch, 8\) of dtype int8"),
        (nn.ParameterList([torch.zeros(1)]), {}, "ParameterList needs a forward"),
        (nn.Embedding(2, 3), {}, "Embedding needs a forward|maps 2 inputs to the shape"),
        ([Network(8)], {"seeds": range(2)}, "one torch module for all seeds, or one per seed: 2 seeds"),
        (Network(8), {"loss": "log-correlation"}, "log-correlation needs .* which Network does not say"),
        (Network(8), {"optimiser": "newton"}, "newton steps are those of ParityTransformer"),
        (Network(8), {"k_at_most": 3}, "are for ParityTransformer: leave them out"),
        (Network(8), {"heads": 3}, "a ready model has its own heads"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(model, more, sentence):
    with pytest.raises(ps.InvalidInput, match=sentence):
        ps.learn(ps.Parity(8, (1, 5)), model=model, **more)
