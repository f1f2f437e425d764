import torch

from parityscope import Parity
from parityscope.models import XorTransformer, positions, xor_transformer


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
