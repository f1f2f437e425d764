"""The project's own: closed forms of the bounded readout, geometry of log C (docs/explanation/bounded-readout.md)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from parityscope.models import AdditiveScore, Cosine
from parityscope.papers.claim import Check, Claim, Context
from parityscope.problems import Parity, seeded_generator
from parityscope.risk import law_of
from parityscope.risk.closed_form import closed_form_mean
from parityscope.risk.losses import named_loss
from parityscope.risk.worst_case import worst_loss
from parityscope.training.objectives import log_correlation


def bounded_score(c: Tensor) -> AdditiveScore:
    """Return the score S = c·x behind the bounded readout ŷ = cos(πS).

    >>> risk = closed_form_mean(bounded_score(torch.tensor([0.0, 1.0])), law_of(Parity(2, (1,))), named_loss("hinge"))
    >>> round(abs(float(risk)), 12)  # weight 1 on the hidden bit: every input is right
    0.0
    """
    return AdditiveScore(c, torch.zeros(()), Cosine())


def _closed_form(context: Context) -> Check:
    """Compare the products with a sum over all inputs."""
    cases, worst = context.at(smoke=60, reference=600), 0.0
    g = seeded_generator(0, "data")
    for case in range(cases):
        n = 2 + case % 9
        problem = Parity.random(n, 1 + case % n, g, bias=(0.5, 0.3)[case % 2], noise=(0.0, 0.2)[case // 2 % 2])
        c = problem.k * torch.softmax(2 * torch.randn(n, generator=g, dtype=torch.float64), -1)
        x, y = next(problem.enumerate())
        ones = x.sum(-1, dtype=torch.float64)
        weight = problem.bias**ones * (1 - problem.bias) ** (n - ones)
        for name in ("hinge", "squared-hinge"):
            loss = named_loss(name)
            margin = y * torch.cos(math.pi * (x.double() @ c))
            by_inputs = (1 - problem.noise) * loss.of_margin(margin) + problem.noise * loss.of_margin(-margin)
            ours = closed_form_mean(bounded_score(c), law_of(problem), loss)
            worst = max(worst, float((ours - (weight * by_inputs).sum()).abs()))
    return Check(
        "holds" if worst < 1e-12 else "fails",
        f"largest difference {worst:.1e} in {2 * cases} cases",
        {"cases": 2 * cases, "largest_difference": worst},
        "Hinge and squared-hinge risks as products, against sums over all inputs: random n ≤ 10, k, weights, noise.",
    )


def _in_domain(problem: Parity, g: torch.Generator) -> Tensor:
    """Return a random point of D: 0 < c_j < 2 on B, 0 ≤ c_j < 1 off B, Σc = k."""
    while True:
        spread = float(torch.rand((), generator=g)) * 3
        noise = torch.softmax(spread * torch.randn(problem.n, generator=g, dtype=torch.float64), -1)
        mix = torch.rand((), generator=g, dtype=torch.float64)
        c = mix * problem.k * noise + (1 - mix) * problem.mask()
        limit = 1 + problem.mask().double()
        if bool((c < limit - 1e-6).all()) and bool((c[problem.mask()] > 1e-6).all()):
            return c


def _concavity(context: Context) -> Check:
    """Attack midpoint concavity on D, and find where it ends outside."""
    attacks, margin = context.at(smoke=300, demo=2000, reference=5000), math.inf
    g = seeded_generator(1, "data")
    for attack in range(attacks):
        problem = Parity.random(3 + attack % 20, 1 + attack % 3, g)
        law = law_of(problem)
        a, b = _in_domain(problem, g), _in_domain(problem, g)
        middle, ends = log_correlation((a + b) / 2, law), (log_correlation(a, law) + log_correlation(b, law)) / 2
        margin = min(margin, float((middle - ends) / (a - b).square().sum()))
    # Every second derivative is −(π/2)²/sin² or −(π/2)²/cos², so at most −π²/4: midpoints gain at least π²/32·‖a − b‖².
    outside = torch.tensor([1 / 3, 1 / 3, 4 / 3], dtype=torch.float64)
    c = outside.clone().requires_grad_()
    C = 1 - closed_form_mean(bounded_score(c), law_of(Parity(3, (0, 1))), named_loss("hinge"))
    holds = margin >= math.pi**2 / 32 - 1e-9
    return Check(
        "holds" if holds and float(C.detach()) < 0 else "fails",
        f"smallest gain of a midpoint {margin:.4f}·‖a−b‖² (bound π²/32 = {math.pi**2 / 32:.4f})",
        {"attacks": attacks, "smallest_margin": margin, "bound": math.pi**2 / 32, "C_outside_D": float(C.detach())},
        "log C at midpoints of random pairs of D; outside D, at c = (⅓, ⅓, 4/3) with k = 2, C is negative.",
    )


def _gradient_signs(context: Context) -> Check:
    """Check the signs of ∂log C/∂c_j and the only point with C = 1."""
    attacks, wrong, largest = context.at(smoke=300, demo=2000, reference=5000), 0, 0.0
    g = seeded_generator(2, "data")
    for attack in range(attacks):
        problem = Parity.random(3 + attack % 20, 1 + attack % 3, g)
        mask = problem.mask()
        c = _in_domain(problem, g).requires_grad_()
        (slope,) = torch.autograd.grad(log_correlation(c, law_of(problem)), c)
        on, off = slope[mask], slope[~mask]
        wrong += int(((on > 0) != (c[mask] < 1)).sum()) + int((off > 1e-12).sum())
        distance = float((c.detach() - mask.double()).abs().sum())
        value = float(log_correlation(c.detach(), law_of(problem)).exp())
        largest = max(largest, value if distance > 1e-3 else 0.0)
    return Check(
        "holds" if wrong == 0 and largest < 1 else "fails",
        f"{wrong} wrong signs in {attacks} points of D",
        {"attacks": attacks, "wrong_signs": wrong, "largest_C_away_from_the_ideal": largest},
        "(π/2)cot(πc/2) on B, positive below 1; −(π/2)tan(πc/2) off B, never positive; by automatic differentiation.",
    )


def _one_head(context: Context) -> Check:
    """Integrate one head's gradient flow on log C from random starts in D and fit its tail."""
    starts = context.at(smoke=8, reference=64)
    problem = Parity(30, (1, 4, 9))
    law, mask = law_of(problem), problem.mask()
    g = seeded_generator(3, "start")
    c = torch.stack([_in_domain(problem, g) for _ in range(starts)])
    c[0] = problem.k / problem.n
    scores, step, time, marks = c.log(), 0.02, 0.0, {}
    falls = 0.0
    before = log_correlation(c, law)
    while time < 120:
        c = problem.k * torch.softmax(scores, -1)
        half = math.pi / 2 * c
        slope = torch.where(mask, math.pi / 2 / half.tan(), -math.pi / 2 * half.tan())
        # Gradient flow of the logits: ds_j/dt = c_j(g_j − ḡ)
        rate = c * (slope - (c * slope).sum(-1, keepdim=True) / problem.k)
        scores, time = scores + step * rate, time + step
        value = log_correlation(problem.k * torch.softmax(scores, -1), law)
        falls = max(falls, float((before - value).max()))
        before = value
        if abs(time - 60) < step / 2 or time >= 120:
            marks[round(time)] = float(1 - value[0].exp())
    gap = 1 - value.exp()
    tail = marks[120] * 120 / (problem.k / 4)
    return Check(
        "holds" if bool((gap < 0.05).all()) and 0.5 < tail < 2 and falls < 1e-9 else "holds in part",
        f"{int((gap < 0.05).sum())} of {starts} starts in D converge; 1 − C ≈ {tail:.2f}·k/(4t)",
        {"starts": starts, "largest_gap_at_t_120": float(gap.max()), "largest_fall_of_log_C": falls, "gap": marks},
        "Gradient flow of one head with a free logit per position (n = 30, k = 3, Euler steps of 0.02) from random"
        " points of D; log C never falls, and the tail is k/(4t), which is not linear convergence.",
    )


def _worst_loss(context: Context) -> Check:
    """Compare the certificate with the largest loss over all inputs."""
    g, difference, cases = seeded_generator(5, "data"), 0.0, context.at(smoke=50, reference=500)
    used = 0
    for case in range(cases):
        problem = Parity.random(8, 1 + case % 4, g)
        c = _in_domain(problem, g)
        if float((c - problem.mask().double()).abs().sum()) > 2:
            continue
        x, y = next(problem.enumerate())
        largest = float((1 - y * torch.cos(math.pi * (x.double() @ c))).max())
        certificate = worst_loss(bounded_score(c), law_of(problem))
        assert certificate is not None
        difference, used = max(difference, abs(float(certificate) - largest)), used + 1
    return Check(
        "holds" if difference < 1e-12 else "fails",
        f"largest difference {difference:.1e} in {used} cases",
        {"cases": used, "largest_difference": difference},
        "1 − cos(πD/2) with D = Σ|c − 1_B| against the largest hinge loss over all 2^8 inputs.",
    )


CLAIMS = (
    Claim("P-closed-form", "Risks of ŷ = cos(πS) are products over positions.", _closed_form, seconds=1),
    Claim("P-worst-loss", "The loss on the worst of all inputs is 1 − cos(πΣ|c − 1_B|/2).", _worst_loss, seconds=1),
    Claim("P-concavity", "log C is strictly concave on D, which contains uniform attention.", _concavity, seconds=3),
    Claim(
        "P-gradient-signs",
        "On D the gradient of log C raises hidden weights below 1 and no other.",
        _gradient_signs,
        seconds=4,
    ),
    Claim("P-one-head", "One head converges from every start in D, with 1 − C ≈ k/(4t).", _one_head, seconds=2),
)
