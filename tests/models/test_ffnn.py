import pytest
import torch

from parityscope import FFNN1, FrozenAttention, InvalidInput, Parity, ParityTransformer, parity_ffnn, population_risk
from parityscope.models import AttentionFFNN, XorTransformer, positions, xor_transformer
from parityscope.models.positions import orthogonal


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


def test_sharp_heads_hand_their_bits_to_the_ffnn_in_order():
    model = AttentionFFNN(orthogonal(5), heads=2, width=3, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.directions.zero_()
        model.directions[0, 4] = model.directions[1, 1] = 50.0
    x = torch.tensor([[0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [1, 1, 1, 1, 1]])
    signs = 2.0 * x[:, [4, 1]] - 1
    assert torch.allclose(model(x), model.ffnn(signs))
    assert not torch.allclose(model(x)[0], model(x)[1])  # an average could not tell the two apart


def test_positions_stay_frozen_and_are_not_counted():
    model = AttentionFFNN(torch.randn(6, 4, dtype=torch.float64), heads=3, width=5)
    assert not model.positions.requires_grad
    assert model.trained_parameters() == sum(p.numel() for p in model.parameters() if p.requires_grad)


def test_the_paper_and_the_library_are_one_model_with_the_label_turned():
    g = torch.Generator().manual_seed(0)
    problem = Parity(8, (2, 5))
    model = xor_transformer(2 * torch.randn(2, 6, generator=g, dtype=torch.float64), positions.random_signs(8, 6, g))
    paper = XorTransformer(model)
    for bits, label in problem.enumerate():
        signs = 1 - 2 * bits
        assert torch.allclose(paper(signs), -model(bits), atol=1e-12)
        assert torch.equal(-signs[:, 2] * signs[:, 5], -label)


def test_one_byte_signs_are_the_same_code():
    directions = torch.randn(3, 2, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    signs = torch.stack([positions.draw_signs(50, 7, torch.Generator().manual_seed(s)) for s in range(3)])
    gradients = []
    for code in (signs, signs.double() / 7**0.5):
        model = xor_transformer(directions, code)
        model.attention()[:, :, 4].prod().backward()
        gradients.append((model.attention().detach(), model._directions.grad))
    assert torch.allclose(gradients[0][0], gradients[1][0], atol=1e-14)
    assert torch.allclose(gradients[0][1], gradients[1][1], atol=1e-14)


def test_a_code_shared_by_all_runs_may_be_bytes_too():
    directions = torch.randn(3, 2, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    signs = positions.draw_signs(40, 9, torch.Generator().manual_seed(0))
    shared, repeated = (xor_transformer(directions, code) for code in (signs, signs.expand(3, 40, 9)))
    assert torch.equal(shared.attention(), repeated.attention())
