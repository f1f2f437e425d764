"""The project's own: each step of the proof that the bounded readout learns (docs/explanation/bounded-readout.md)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from parityscope.claims.contract import Check, Claim, Context
from parityscope.learning import learn
from parityscope.models import AdditiveScore, Cosine
from parityscope.problems import Parity, draw_problems, seeded_generator
from parityscope.risk import law_of
from parityscope.risk.closed_form import closed_form_mean
from parityscope.risk.losses import named_loss
from parityscope.risk.worst_case import worst_loss
from parityscope.theory import one_gradient_samples
from parityscope.training.objectives import log_correlation
from parityscope.training.one_gradient import smallest_samples
from parityscope.training.pair_step import fitted_exponent

_GRID = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)


def _score(c: Tensor) -> AdditiveScore:
    return AdditiveScore(c, torch.zeros(()), Cosine())


def _closed_form(context: Context) -> Check:
    """Compare the products with a sum over all inputs."""
    cases, worst = context.at(smoke=60, laptop=600), 0.0
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
            ours = closed_form_mean(_score(c), law_of(problem), loss)
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
    attacks, margin = context.at(smoke=300, laptop=5000), math.inf
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
    C = 1 - closed_form_mean(_score(c), law_of(Parity(3, (0, 1))), named_loss("hinge"))
    holds = margin >= math.pi**2 / 32 - 1e-9
    return Check(
        "holds" if holds and float(C.detach()) < 0 else "fails",
        f"smallest gain of a midpoint {margin:.4f}·‖a−b‖² (bound π²/32 = {math.pi**2 / 32:.4f})",
        {"attacks": attacks, "smallest_margin": margin, "bound": math.pi**2 / 32, "C_outside_D": float(C.detach())},
        "log C at midpoints of random pairs of D; outside D, at c = (⅓, ⅓, 4/3) with k = 2, C is negative.",
    )


def _gradient_signs(context: Context) -> Check:
    """Check the signs of ∂log C/∂c_j and the only point with C = 1."""
    attacks, wrong, largest = context.at(smoke=300, laptop=5000), 0, 0.0
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
    starts = context.at(smoke=8, laptop=64)
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


def _one_step(context: Context) -> Check:
    """Take one plain gradient step from exactly uniform logits, orthogonal positions, every k."""
    n, seeds = 100, context.at(smoke=4, laptop=32)
    losses = {}
    for k in range(2, 11):
        # At uniform attention ∂log C/∂s_j = (1_B − k/n)·π/(n·sin(πk/n))·k: 40 units are far more than log n.
        rate = 40 * n * math.sin(math.pi * k / n) / (k * math.pi)
        run = learn(
            draw_problems(n, k, range(seeds)),
            "bounded",
            range(seeds),
            positions="orthogonal",
            heads=1,
            start_radius=0.0,
            optimiser="gradient-descent",
            learning_rate=rate,
            steps=1,
        )
        assert run.worst_loss is not None
        losses[k] = float(run.worst_loss.max())
    return Check(
        "holds" if max(losses.values()) < 1e-6 else "fails",
        f"worst loss over all inputs at most {max(losses.values()):.1e} for k = 2 … 10, {seeds} of {seeds} seeds",
        {"n": n, "seeds": seeds, "largest_worst_loss_by_k": losses},
        "One gradient step on −log C, one logit per position, from exactly equal logits; every input certified.",
    )


def _few_steps(context: Context) -> Check:
    """Count the steps of one head with ⌈3k log n⌉ numbers."""
    seeds = context.at(smoke=4, laptop=16)
    sizes = ((100, 3), (100, 10)) if context.scale == "smoke" else ((100, 3), (100, 10), (1000, 3), (1000, 10))
    most, learned, trials = 0, 0, 0
    for n, k in sizes:
        run = learn(draw_problems(n, k, range(seeds)), "one-step", range(seeds))
        most, learned, trials = max(most, int(run.steps.max())), learned + run.success.successes, trials + seeds
    return Check(
        "holds" if learned == trials and most <= 3 else "holds in part",
        f"{learned} of {trials} seeds in at most {most} steps",
        {"sizes": [list(size) for size in sizes], "seeds": seeds, "learned": learned, "most_steps": most},
        "Gauss–Newton steps on log C from exactly uniform attention, random-sign positions, one head, r = ⌈3k log n⌉.",
    )


def _squared_hinge(context: Context) -> Check:
    """Show that squared hinge adds a term without B, and what it costs."""
    g = seeded_generator(4, "data")
    difference = 0.0
    for attack in range(context.at(smoke=50, laptop=500)):
        n, k = 6 + attack % 30, 1 + attack % 4
        one, other = (Parity.random(n, k, g) for _ in range(2))
        c = k * torch.softmax(torch.randn(n, generator=g, dtype=torch.float64), -1)
        extra = [
            closed_form_mean(_score(c), law_of(p), named_loss("squared-hinge"))
            - 2 * closed_form_mean(_score(c), law_of(p), named_loss("hinge"))
            for p in (one, other)
        ]
        difference = max(difference, float((extra[0] - extra[1]).abs()))
    seeds = context.at(smoke=4, laptop=8)
    shares = {}
    for loss in ("hinge", "squared-hinge"):
        run = learn(draw_problems(60, 5, range(seeds)), "bounded", range(seeds), loss=loss, steps=400)
        shares[loss] = run.success.successes
    clean = learn(draw_problems(60, 5, range(seeds)), "bounded", range(seeds), steps=400).success.successes
    return Check(
        "holds" if difference < 1e-12 and shares["squared-hinge"] < clean else "holds in part",
        f"(60, 5): {shares['squared-hinge']} of {seeds} with squared hinge, {clean} with log C",
        {"largest_dependence_on_B": difference, "learned": {**shares, "log C": clean}, "seeds": seeds},
        "The squared-hinge risk minus twice the hinge risk was compared for two supports at the same weights; then the"
        " same training with three losses, near-uniform start, 400 steps.",
    )


def _circle(context: Context) -> Check:
    """Train H1's own model with the bounded readout."""
    seeds = context.at(smoke=4, laptop=16)
    sizes = ((12, 2),) if context.scale == "smoke" else ((12, 3), (16, 4))
    learned = {
        f"{n}, {k}": learn(draw_problems(n, k, range(seeds)), "repaired", range(seeds)).success.successes
        for n, k in sizes
    }
    complete = all(count == seeds for count in learned.values())
    return Check(
        "holds in part" if complete else "fails",
        f"{sum(learned.values())} of {seeds * len(sizes)} seeds learn with 2k numbers",
        {"learned": learned, "seeds": seeds},
        "H1's circle, k heads, 2k numbers, bounded readout. In part: near-uniform distinct heads, a rate of 1/t and"
        " not a linear one, measured and not proved for k heads; docs/explanation/repaired-circle.md has all sizes.",
    )


def _samples(context: Context) -> Check:
    """Fit the smallest N of one widened gradient against n for k = 2, 3, 4."""
    trials = context.at(smoke=20, laptop=40)
    plan = {2: (50, 100, 200), 3: (12, 20, 32), 4: (10, 14, 20)}
    if context.scale == "smoke":
        plan = {2: (25, 50, 100), 3: (10, 14, 20), 4: (10, 14, 20)}
    powers, expected, ratios, found = {}, {}, [], {}
    for k, sizes in plan.items():
        predicted = [one_gradient_samples(n, k) for n in sizes]
        measured = [
            float(smallest_samples(n, k, trials, [int(f * N) for f in _GRID]).samples or math.nan)
            for n, N in zip(sizes, predicted, strict=True)
        ]
        found[k] = dict(zip(sizes, measured, strict=True))
        powers[k], expected[k] = (
            fitted_exponent([float(n) for n in sizes], [N / math.log(n) for n, N in zip(sizes, counts, strict=True)])
            for counts in (measured, predicted)
        )
        ratios += [m / p for m, p in zip(measured, predicted, strict=True)]
    near = all(1 / 3 < ratio < 3 for ratio in ratios)
    grows = all(abs(power - expected[k]) < 0.8 for k, power in powers.items())
    return Check(
        "holds" if near and grows else "holds in part",
        "N/log n ∝ " + ", ".join(f"n^{power:.1f} (k={k}, predicted {expected[k]:.1f})" for k, power in powers.items()),
        {
            "trials": trials,
            "smallest_N": found,
            "exponents": powers,
            "predicted_exponents": expected,
            "measured_over_predicted": ratios,
        },
        "Smallest N with which one gradient at uniform attention, phase widened to λ ≈ (2/π)√((k−1)n), names B in 90 %"
        " of trials; exponents after division by log n, to compare with k − 1. In part where n is so small that the"
        " exponents differ: at k = 4 the count reaches its prediction only by n = 20.",
    )


def _noise_and_bias(context: Context) -> Check:
    """Train on noisy labels and biased bits, from the population and from examples."""
    seeds = context.at(smoke=4, laptop=16)
    problems = draw_problems(60, 4, range(seeds), bias=0.3, noise=0.2)
    run = learn(problems, "one-step", range(seeds))
    noise = 0.2
    clean, noisy = (
        smallest_samples(50, 2, 20, [int(f * one_gradient_samples(50, 2) / keep**2) for f in _GRID], noise=p).samples
        for p, keep in ((0.0, 1.0), (noise, 1 - 2 * noise))
    )
    ratio = (noisy or math.nan) / (clean or math.nan)
    found = int(run.recovered.sum())
    return Check(
        "holds" if found == seeds and 1.4 < ratio < 5 else "holds in part",
        f"{found} of {seeds} at bias 0.3, noise 0.2; noise costs {ratio:.1f} times the examples",
        {"seeds": seeds, "found": found, "ratio_of_examples": ratio, "predicted_ratio": 1 / (1 - 2 * noise) ** 2},
        "Label noise η scales C by 1 − 2η, so examples grow by 1/(1 − 2η)²; the closed form covers biased bits.",
    )


def _worst_loss(context: Context) -> Check:
    """Compare the certificate with the largest loss over all inputs."""
    g, difference, cases = seeded_generator(5, "data"), 0.0, context.at(smoke=50, laptop=500)
    used = 0
    for case in range(cases):
        problem = Parity.random(8, 1 + case % 4, g)
        c = _in_domain(problem, g)
        if float((c - problem.mask().double()).abs().sum()) > 2:
            continue
        x, y = next(problem.enumerate())
        largest = float((1 - y * torch.cos(math.pi * (x.double() @ c))).max())
        certificate = worst_loss(_score(c), law_of(problem))
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
    Claim(
        "P-one-step",
        "One gradient step from exactly uniform logits is exact for every k (orthogonal positions).",
        _one_step,
        seconds=1,
        experiment="P-every-k",
    ),
    Claim(
        "P-few-steps",
        "With random-sign positions one head of 3k log n numbers needs at most three second-order steps.",
        _few_steps,
        seconds=1,
        experiment="P-every-k",
    ),
    Claim("P-squared-hinge", "Squared hinge adds a term that does not depend on B.", _squared_hinge, seconds=2),
    Claim("P-theorem-5-circle", "Theorem 5 of H1, repaired: the circle with 2k numbers learns.", _circle, seconds=1),
    Claim(
        "P-samples",
        "One widened gradient names B from about n^{k−1} log n examples.",
        _samples,
        seconds=3,
        experiment="H2-samples",
    ),
    Claim("P-noise-and-bias", "Label noise and biased bits change constants only.", _noise_and_bias, seconds=1),
)
