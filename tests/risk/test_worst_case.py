import pytest
import torch

from parityscope import Parity
from parityscope.models import AdditiveScore, Cosine, Triangle, ZigZag
from parityscope.risk import law_of
from parityscope.risk.worst_case import certified_by_worst_loss, worst_loss


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kind", ["cosine", "triangle"])
def test_it_is_the_largest_loss_over_all_inputs(k, kind):
    readout = Cosine() if kind == "cosine" else Triangle(k)
    problem = Parity(9, tuple(range(2, 2 + k)))
    ((x, y),) = list(problem.enumerate())
    for seed in range(30):
        g = torch.Generator().manual_seed(seed)
        mix = torch.rand((), generator=g, dtype=torch.float64)
        noise = torch.softmax(2 * torch.randn(9, generator=g, dtype=torch.float64), -1) * k
        c = mix * noise + (1 - mix) * problem.mask()
        worst = worst_loss(AdditiveScore(c, torch.zeros(()), readout), law_of(problem)).item()
        largest = (1 - y * readout(x.double() @ c)).max().item()
        if (c - problem.mask().double()).abs().sum() <= 2:
            assert worst == pytest.approx(largest, abs=1e-12)
        assert largest <= worst + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_a_score_shifted_by_what_its_mass_misses_has_the_same_certificate(seed):
    problem, g = Parity(8, (1, 3, 4)), torch.Generator().manual_seed(seed)
    ((x, y),) = list(problem.enumerate())
    c = (problem.mask() + 0.15 * torch.randn(8, generator=g, dtype=torch.float64)).abs()
    offset = (3 - c.sum()) / 2
    worst = worst_loss(AdditiveScore(c, offset, Cosine()), law_of(problem)).item()
    largest = (1 - y * Cosine()(x.double() @ c + offset)).max().item()
    if (c - problem.mask().double()).abs().sum() <= 2:
        assert worst == pytest.approx(largest, abs=1e-12)
    assert worst_loss(AdditiveScore(c, offset + 0.1, Cosine()), law_of(problem)) is None


def test_there_is_no_certificate_without_a_bounded_readout_or_whole_weights():
    law, offset = law_of(Parity(3, (0, 1))), torch.zeros(())
    ideal = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    assert worst_loss(None, law) is None
    assert worst_loss(AdditiveScore(ideal, offset, ZigZag(2)), law) is None
    assert worst_loss(AdditiveScore(ideal, offset + 0.1, Cosine()), law) is None
    assert worst_loss(AdditiveScore(1.1 * ideal, offset, Cosine()), law) is None
    assert worst_loss(AdditiveScore(ideal, offset, Triangle(3)), law) is None
    assert worst_loss(AdditiveScore(ideal, offset, Triangle(2)), law).item() == 0.0


def test_one_negative_weight_among_others_has_no_certificate():
    score = AdditiveScore(torch.tensor([1.1, 1.0, -0.1], dtype=torch.float64), torch.zeros(()), Triangle(2))
    assert worst_loss(score, law_of(Parity(3, (0, 1)))) is None


def test_where_there_is_no_score_no_run_is_certified():
    assert certified_by_worst_loss(None, law_of([Parity(3, (0, 1)), Parity(3, (0, 2))])).tolist() == [False, False]
