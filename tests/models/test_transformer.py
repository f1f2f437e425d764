import pytest
import torch

from parityscope import Cosine, InvalidInput, Parity, ParityTransformer
from parityscope.models.positions import random_signs


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def by_hand(model, x):
    """H1, Section 2.2, token by token: embed, score with w_0ᵀ A w_j, softmax, average, classify."""
    n, m = model.n, model.heads
    total = 0.0
    for head in range(m):
        A = torch.zeros(4, 4, dtype=torch.float64)
        A[0, 2:] = model.directions[head]
        w0 = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)
        tokens = []
        for j in range(1, n + 1):
            angle = torch.tensor(2 * torch.pi * j / n, dtype=torch.float64)
            bit = float(x[j - 1])
            tokens.append(torch.tensor([bit, 1 - bit, angle.sin(), angle.cos()], dtype=torch.float64))
        scores = torch.stack([w0 @ A @ w for w in tokens]) / model.temperature
        weights = scores.exp() / scores.exp().sum()
        total = total + sum(g * w for g, w in zip(weights, tokens, strict=True))
    v = total / m
    return model.readout(model.k * v[:1])[0]


@pytest.mark.parametrize("heads", [1, 3, 5])
def test_forward_is_the_papers_network(heads):
    model = ParityTransformer(7, 3, heads, 0.3, smoothing=0.01, generator=generator())
    x = torch.randint(0, 2, (6, 7), generator=generator(1))
    expected = torch.stack([by_hand(model, row) for row in x])
    assert torch.allclose(model(x), expected, atol=1e-12)


def test_the_full_matrix_starts_as_the_same_network_and_then_sees_the_bits():
    plain = ParityTransformer(8, 2, temperature=0.2, generator=generator(3))
    full = ParityTransformer(8, 2, temperature=0.2, generator=generator(3), full_matrix=True)
    x = torch.randint(0, 2, (10, 8), generator=generator(4))
    assert torch.allclose(plain(x), full(x), atol=1e-12)
    full(x).sum().backward()
    gradient = full.matrix.grad
    assert (gradient[:, 1:] == 0).all()  # rows other than the first have no gradient
    assert gradient[:, 0, :2].abs().max() > 0  # but a11 and a12 do: they change the scores through x
    assert full.additive_score() is None
    with pytest.raises(InvalidInput, match="attention depends on the input"):
        full.attention()


def test_aligned_heads_at_low_temperature_compute_the_parity():
    support = (1, 4, 8)
    model = ParityTransformer(10, 3, temperature=1e-3)
    with torch.no_grad():
        model.directions.copy_(model.positions[list(support)])  # H1, Eq. (2): a13 = sin, a14 = cos of B_i
    problem = Parity(10, support)
    for x, y in problem.enumerate():
        assert torch.allclose(model(x), y.double(), atol=1e-9)
        assert torch.allclose(model(x, hard=True), y.double(), atol=1e-12)


def test_weights_add_up_to_k_for_any_number_of_heads():
    for heads in (1, 2, 7):
        model = ParityTransformer(9, 3, heads, generator=generator())
        assert model.score_weights().sum().item() == pytest.approx(3)
        assert model.score_weights(hard=True).sum().item() == pytest.approx(3)


def test_a_run_axis_gives_the_same_as_one_model_per_run():
    directions = torch.randn(4, 2, 24, dtype=torch.float64, generator=generator())
    code = torch.stack([random_signs(9, 24, generator(s)) for s in range(4)])
    x = torch.randint(0, 2, (5, 9), generator=generator(9))
    batch = ParityTransformer(9, 2, 2, 1.0, positions=code, directions=directions, readout=Cosine())
    assert batch(x).shape == (4, 5)
    for run in range(4):
        alone = ParityTransformer(9, 2, 2, 1.0, positions=code[run], directions=directions[run], readout=Cosine())
        assert torch.allclose(batch(x)[run], alone(x), atol=1e-12)
        assert torch.allclose(batch.attention()[run], alone.attention(), atol=1e-12)


def test_inputs_may_differ_between_runs():
    directions = torch.randn(3, 2, 2, dtype=torch.float64, generator=generator())
    model = ParityTransformer(6, 2, directions=directions)
    x = torch.randint(0, 2, (3, 4, 6), generator=generator(1))
    shared = torch.stack([model(x[run])[run] for run in range(3)])
    assert torch.allclose(model(x), shared, atol=1e-12)


def test_parameters_are_counted_as_the_paper_counts_and_as_trained():
    model = ParityTransformer(20, 4)
    assert model.trained_parameters() == 2 * 4
    assert ParityTransformer(20, 4, full_matrix=True).trained_parameters() == 16 * 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n": 5, "k": 6}, "k must lie between 1 and n = 5, got 6"),
        ({"n": 5, "k": 2, "heads": 0}, "heads must be at least 1, got 0"),
        ({"n": 5, "k": 2, "temperature": 0.0}, r"temperature must be positive, got 0\.0"),
    ],
)
def test_bad_input_is_named(arguments, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        ParityTransformer(**arguments)


def test_a_temperature_per_run_is_each_runs_own():
    temperatures = torch.tensor([0.1, 1.0, 3.0], dtype=torch.float64)
    directions = torch.randn(3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    batch = ParityTransformer(9, 2, temperature=temperatures, directions=directions)
    assert torch.equal(batch.temperature, temperatures)
    x = torch.randint(0, 2, (5, 9), generator=torch.Generator().manual_seed(1))
    for run, temperature in enumerate(temperatures.tolist()):
        alone = ParityTransformer(9, 2, temperature=temperature, directions=directions[run])
        assert torch.allclose(batch.attention()[run], alone.attention(), rtol=1e-12, atol=1e-15)
        assert torch.allclose(batch(x)[run], alone(x), atol=1e-12)
    full = ParityTransformer(9, 2, temperature=temperatures, directions=directions, full_matrix=True)
    assert torch.allclose(full.attention(x)[:, 0], batch.attention(), atol=1e-12)
    with pytest.raises(InvalidInput, match=r"temperature must be positive, got -1\.0"):
        ParityTransformer(9, 2, temperature=torch.tensor([1.0, -1.0]), directions=directions[:2])
