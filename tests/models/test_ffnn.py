import pytest
import torch

from parityscope import FFNN1, FrozenAttention, InvalidInput, Parity, ParityTransformer, parity_ffnn, population_risk


@pytest.mark.parametrize("support", [(0,), (2, 5), (0, 3, 4, 7), tuple(range(8))])
def test_the_construction_of_proposition_3_has_no_risk(support):
    problem = Parity(8, support)
    assert population_risk(parity_ffnn(8, support), problem).value.item() == 0.0


def test_forward_is_equation_1():
    net = FFNN1(5, 3, smoothing=0.2, generator=torch.Generator().manual_seed(0))
    x = torch.rand(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = net.bias + sum(
        net.alpha[i] * ((z := x @ net.beta[i] + net.hidden_bias[i]) + (z**2 + 0.2).sqrt()) / 2 for i in range(3)
    )
    assert torch.allclose(net(x), expected, atol=1e-12)
    assert net.trained_parameters() == sum(p.numel() for p in net.parameters())


def test_runs_do_not_mix():
    net = FFNN1(5, 3, runs=(2,), generator=torch.Generator().manual_seed(0))
    x = torch.rand(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    net(x)[0].sum().backward()
    assert net.beta.grad[0].abs().max() > 0
    assert net.beta.grad[1].abs().max() == 0


def test_frozen_attention_is_a_function_of_the_additive_score():
    heads = ParityTransformer(9, 3, temperature=0.4, generator=torch.Generator().manual_seed(0))
    model = FrozenAttention(heads, 6, generator=torch.Generator().manual_seed(1))
    x = torch.randint(0, 2, (20, 9), generator=torch.Generator().manual_seed(2))
    score = model.additive_score()
    assert torch.allclose(model(x), score.readout(x.double() @ score.weights), atol=1e-12)
    assert not any(p.requires_grad for p in model.heads.parameters())


def test_an_empty_layer_is_refused():
    with pytest.raises(InvalidInput, match="width must be at least 1, got 0"):
        FFNN1(3, 0)
