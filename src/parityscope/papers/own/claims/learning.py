"""The project's own: what the bounded readout learns, in how many steps and from how many examples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from parityscope.papers.claim import Check, Claim, Context
from parityscope.papers.own.claims.bounded import bounded_score
from parityscope.problems import Parity, seeded_generator
from parityscope.records import Row
from parityscope.risk import law_of
from parityscope.risk.closed_form import closed_form_mean
from parityscope.risk.losses import named_loss
from parityscope.runs.training import Training, TrainingNumbers, training
from parityscope.theory import one_gradient_samples
from parityscope.training.one_gradient import counts_around, smallest_samples
from parityscope.training.pair_step import fitted_exponent

_NOISE = 0.2


def _rows(context: Context, trainings: Sequence[Training]) -> list[Row[Training, TrainingNumbers]]:
    return [context.row(one) for one in trainings]


def _one_step_trainings(context: Context) -> list[Training]:
    """Return one plain gradient step from exactly uniform logits, orthogonal positions, every k."""
    n, seeds = 100, range(context.at(smoke=4, reference=32))
    return [
        training(
            "bounded",
            n,
            k,
            seeds=seeds,
            positions="orthogonal",
            heads=1,
            start_radius=0.0,
            optimiser="gradient-descent",
            # At uniform attention ∂log C/∂s_j = (1_B − k/n)·π/(n·sin(πk/n))·k: 40 units are far more than log n.
            learning_rate=40 * n * math.sin(math.pi * k / n) / (k * math.pi),
            steps=1,
        )
        for k in range(2, 11)
    ]


def _one_step(context: Context) -> Check:
    """Take the largest loss on any input of any seed, by k."""
    rows = _rows(context, _one_step_trainings(context))
    n, seeds = rows[0].config.n, len(rows[0].config.seeds)
    losses = {row.config.k: max(row.numbers.worst_loss or ()) for row in rows}
    return Check(
        "holds" if max(losses.values()) < 1e-6 else "fails",
        f"worst loss over all inputs at most {max(losses.values()):.1e} for k = 2 … 10, {seeds} of {seeds} seeds",
        {"n": n, "seeds": seeds, "largest_worst_loss_by_k": losses},
        "One gradient step on −log C, one logit per position, from exactly equal logits; every input certified.",
    )


def _few_steps_trainings(context: Context) -> list[Training]:
    seeds = range(context.at(smoke=4, reference=16))
    sizes = ((100, 3), (100, 10)) if context.scale == "smoke" else ((100, 3), (100, 10), (1000, 3), (1000, 10))
    return [training("one-step", n, k, seeds=seeds) for n, k in sizes]


def _few_steps(context: Context) -> Check:
    """Count the steps of one head with ⌈3k log n⌉ numbers."""
    rows = _rows(context, _few_steps_trainings(context))
    seeds, most = len(rows[0].config.seeds), max(max(row.numbers.steps) for row in rows)
    learned, trials = sum(sum(row.numbers.learned) for row in rows), seeds * len(rows)
    return Check(
        "holds" if learned == trials and most <= 3 else "holds in part",
        f"{learned} of {trials} seeds in at most {most} steps",
        {
            "sizes": [[row.config.n, row.config.k] for row in rows],
            "seeds": seeds,
            "learned": learned,
            "most_steps": most,
        },
        "Gauss–Newton steps on log C from exactly uniform attention, random-sign positions, one head, r = ⌈3k log n⌉.",
    )


def _squared_hinge_trainings(context: Context) -> list[Training]:
    seeds = range(context.at(smoke=4, reference=8))
    losses = ("hinge", "squared-hinge", "log-correlation")
    return [training("bounded", 60, 5, seeds=seeds, loss=loss, steps=400) for loss in losses]


def _squared_hinge(context: Context) -> Check:
    """Show that squared hinge adds a term without B, and what it costs."""
    g = seeded_generator(4, "data")
    difference = 0.0
    for attack in range(context.at(smoke=50, reference=500)):
        n, k = 6 + attack % 30, 1 + attack % 4
        one, other = (Parity.random(n, k, g) for _ in range(2))
        c = k * torch.softmax(torch.randn(n, generator=g, dtype=torch.float64), -1)
        extra = [
            closed_form_mean(bounded_score(c), law_of(p), named_loss("squared-hinge"))
            - 2 * closed_form_mean(bounded_score(c), law_of(p), named_loss("hinge"))
            for p in (one, other)
        ]
        difference = max(difference, float((extra[0] - extra[1]).abs()))
    rows = _rows(context, _squared_hinge_trainings(context))
    learned = {row.config.recipe.loss: sum(row.numbers.learned) for row in rows}
    seeds, squared, clean = len(rows[0].config.seeds), learned["squared-hinge"], learned["log-correlation"]
    return Check(
        "holds" if difference < 1e-12 and squared < clean else "holds in part",
        f"(60, 5): {squared} of {seeds} with squared hinge, {clean} with log C",
        {
            "largest_dependence_on_B": difference,
            "learned": {"hinge": learned["hinge"], "squared-hinge": squared, "log C": clean},
            "seeds": seeds,
        },
        "The squared-hinge risk minus twice the hinge risk was compared for two supports at the same weights; then the"
        " same training with three losses, near-uniform start, 400 steps.",
    )


def _circle_trainings(context: Context) -> list[Training]:
    sizes = ((12, 2),) if context.scale == "smoke" else ((12, 3), (16, 4))
    seeds = range(context.at(smoke=4, reference=16))
    return [training("repaired", n, k, seeds=seeds) for n, k in sizes]


def _circle(context: Context) -> Check:
    """Train H1's own model with the bounded readout."""
    rows = _rows(context, _circle_trainings(context))
    seeds = len(rows[0].config.seeds)
    learned = {f"{row.config.n}, {row.config.k}": sum(row.numbers.learned) for row in rows}
    complete = all(count == seeds for count in learned.values())
    return Check(
        "holds in part" if complete else "fails",
        f"{sum(learned.values())} of {seeds * len(rows)} seeds learn with 2k numbers",
        {"learned": learned, "seeds": seeds},
        "H1's circle, k heads, 2k numbers, bounded readout. In part: near-uniform distinct heads, a rate of 1/t and"
        " not a linear one, measured and not proved for k heads; docs/explanation/repaired-circle.md has all sizes.",
    )


def _samples(context: Context) -> Check:
    """Fit the smallest N of one widened gradient against n for k = 2, 3, 4."""
    trials = context.at(smoke=20, reference=40)
    plan = {2: (50, 100, 200), 3: (12, 20, 32), 4: (10, 14, 20)}
    if context.scale == "smoke":
        plan = {2: (25, 50, 100), 3: (10, 14, 20), 4: (10, 14, 20)}
    powers, expected, ratios, found = {}, {}, [], {}
    for k, sizes in plan.items():
        predicted = [one_gradient_samples(n, k) for n in sizes]
        measured = [
            float(smallest_samples(n, k, trials, counts_around(N)).samples or math.nan)
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


def _noise_and_bias_trainings(context: Context) -> list[Training]:
    seeds = range(context.at(smoke=4, reference=16))
    return [training("one-step", 60, 4, seeds=seeds, bias=0.3, noise=_NOISE)]


def _noise_and_bias(context: Context) -> Check:
    """Train on noisy labels and biased bits, from the population and from examples."""
    (row,) = _rows(context, _noise_and_bias_trainings(context))
    found, seeds = sum(row.numbers.recovered), len(row.config.seeds)
    clean, noisy = (
        smallest_samples(50, 2, 20, counts_around(one_gradient_samples(50, 2) / keep**2), noise=p).samples
        for p, keep in ((0.0, 1.0), (_NOISE, 1 - 2 * _NOISE))
    )
    ratio = (noisy or math.nan) / (clean or math.nan)
    return Check(
        "holds" if found == seeds and 1.4 < ratio < 5 else "holds in part",
        f"{found} of {seeds} at bias 0.3, noise 0.2; noise costs {ratio:.1f} times the examples",
        {"seeds": seeds, "found": found, "ratio_of_examples": ratio, "predicted_ratio": 1 / (1 - 2 * _NOISE) ** 2},
        "Label noise η scales C by 1 − 2η, so examples grow by 1/(1 − 2η)²; the closed form covers biased bits.",
    )


CLAIMS = (
    Claim(
        "P-one-step",
        "One gradient step from exactly uniform logits is exact for every k (orthogonal positions).",
        _one_step,
        seconds=1,
        figure="P-every-k",
        needs=_one_step_trainings,
    ),
    Claim(
        "P-few-steps",
        "With random-sign positions one head of 3k log n numbers needs at most three second-order steps.",
        _few_steps,
        seconds=1,
        figure="P-every-k",
        needs=_few_steps_trainings,
    ),
    Claim(
        "P-squared-hinge",
        "Squared hinge adds a term that does not depend on B.",
        _squared_hinge,
        seconds=2,
        needs=_squared_hinge_trainings,
    ),
    Claim(
        "P-theorem-5-circle",
        "Theorem 5 of H1, repaired: the circle with 2k numbers learns.",
        _circle,
        seconds=1,
        needs=_circle_trainings,
    ),
    Claim(
        "P-samples",
        "One widened gradient names B from about n^{k−1} log n examples.",
        _samples,
        seconds=3,
        figure="H2-samples",
    ),
    Claim(
        "P-noise-and-bias",
        "Label noise and biased bits change constants only.",
        _noise_and_bias,
        seconds=1,
        needs=_noise_and_bias_trainings,
    ),
)
