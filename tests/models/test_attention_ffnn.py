import torch

from parityscope.models import AttentionFFNN
from parityscope.models.positions import orthogonal


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
