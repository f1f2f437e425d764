"""The stated bounds against exact fractions and interval arithmetic, without any slack."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from mpmath import iv, mp, mpf

from additive_model import AdditiveModel
from parityscope import Cosine, Parity, Triangle, ZigZag, population_risk
from parityscope.risk.engines.spectral import engine as spectral
from parityscope.risk.pieces import represent
from parityscope.risk.pieces.rounding import UNIT, chain


def exact_risk(weights, support, linear, power):
    """The mean hinge loss in fractions, for the very numbers that floating point holds."""
    c = [Fraction(w) for w in weights.tolist()]
    total = Fraction(0)
    for bits in itertools.product((0, 1), repeat=len(c)):
        S = sum(w for w, bit in zip(c, bits, strict=True) if bit)
        segment = next(s for s in linear.segments() if s.high > S)
        f = Fraction(segment.value) + Fraction(segment.slope) * (S - Fraction(segment.anchor))
        margin = (-1) ** sum(bits[i] for i in support) * f
        total += max(Fraction(0), 1 - margin) ** power
    return total / 2 ** len(c)


@pytest.mark.parametrize("readout", [ZigZag(3), Triangle(3)])
@pytest.mark.parametrize(("loss", "power"), [("hinge", 1), ("squared-hinge", 2)])
def test_exact_engines_stay_within_their_rounding_of_exact_fractions(readout, loss, power):
    weights = 2 * torch.rand(9, dtype=torch.float64, generator=torch.Generator().manual_seed(power))
    truth = exact_risk(weights, (1, 4, 6), readout.piecewise_linear(), power)
    for engine in ("enumerate", "split", "grouped"):
        risk = population_risk(AdditiveModel(weights, readout), Parity(9, (1, 4, 6)), loss=loss, engine=engine)
        assert abs(Fraction(risk.value.item()) - truth) <= Fraction(risk.error_bound.item())
        assert risk.bound_is == "proved"
        assert risk.error_bound < 1e-12 * (1 + risk.value)


@pytest.mark.parametrize("runs", [1, 40])  # scores visited one by one, and cut in two
def test_a_batch_has_the_same_truth(runs):
    weights = 2 * torch.rand(8, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    truth = exact_risk(weights, (0, 3), ZigZag(2).piecewise_linear(), 2)
    model = AdditiveModel(weights.expand(runs, 8).clone(), ZigZag(2), torch.zeros(runs))
    risk = population_risk(model, Parity(8, (0, 3)), engine="split")
    assert abs(Fraction(risk.value[-1].item()) - truth) <= Fraction(risk.error_bound[-1].item())


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "log-correlation"])
def test_the_closed_form_stays_within_its_rounding_of_forty_digits(loss):
    weights = 2 * torch.rand(12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    risk = population_risk(AdditiveModel(weights, Cosine()), Parity(12, (1, 5)), loss=loss)
    with mp.workdps(40):
        total = mpf(0)
        for bits in itertools.product((0, 1), repeat=12):
            margin = (-1) ** (bits[1] + bits[5]) * mp.cos(mp.pi * mp.fdot(map(mpf, weights.tolist()), bits))
            total += {"hinge": 1 - margin, "squared-hinge": (1 - margin) ** 2, "log-correlation": margin}[loss]
        truth = total / 2**12 if loss != "log-correlation" else -mp.log(abs(total / 2**12))
        if loss == "log-correlation" and total <= 0:
            assert torch.isinf(risk.value)
            return
        assert abs(mpf(risk.value.item()) - truth) <= mpf(risk.error_bound.item())
    assert risk.error_bound < 1e-9


def test_esseens_constant_in_intervals():
    quarter = iv.mpf(1) / 4
    assert (iv.sin(quarter) / quarter).a >= iv.mpf(95) / 96  # sin x/x falls, so this is its least value up to ¼
    assert abs(spectral._ESSEEN - (96 / 95) ** 2) < 1e-15


@pytest.mark.parametrize("at", [-4.0, -0.5, 0.0, 2.0, 6.0])
@pytest.mark.parametrize(("across", "up"), [(0.4, 0.1), (1.0, 1.4), (2.0, 2.9), (3.0, 3.5)])
def test_the_bernstein_maximum_of_softplus_holds_in_intervals(at, across, up):
    bound = represent._softplus_peak(at, 1.0, across, up)
    for turn in range(64):
        angle = 2 * iv.pi * turn / 64
        w = iv.mpc(at + across * iv.cos(angle), up * iv.sin(angle))
        if up >= np.pi and abs(at) <= across:
            assert bound == np.inf
            return
        value = represent._softplus(np.array([complex(float(w.real.mid), float(w.imag.mid))]))[0]
        assert abs(value) <= bound


def test_a_chain_is_no_shorter_than_that_of_a_sum():
    """The bound on a sum of equal terms in fractions: what torch and numpy lose is below chain·u."""
    terms = np.full(2**20, 0.1)
    truth = Fraction(0.1) * 2**20
    for total in (terms.sum(), torch.from_numpy(terms).sum().item()):
        assert abs(Fraction(float(total)) - truth) <= Fraction(chain(2**20) * UNIT) * truth
