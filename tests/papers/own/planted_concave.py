"""The worlds in which our statements on concave learning are false, and those in which they are true."""

from dataclasses import replace
from fractions import Fraction

import torch

from harness.planted import Planted, World
from parityscope.models.faces import is_face
from parityscope.models.positions import harmonics
from parityscope.papers.exact_faces import is_exact_face
from parityscope.papers.own.claims.concave import best_scale
from parityscope.papers.own.claims.few_numbers import code_with
from parityscope.papers.own.claims.mirror import squared_log_over_slope
from parityscope.papers.own.exponential import climb
from parityscope.papers.own.flow import Followed, HeadFlow
from parityscope.problems import Parity
from parityscope.theory import path_signal
from parityscope.training.attention_path import named_set, path_gradients
from parityscope.training.steps.certificate import Certificate
from parityscope.training.steps.log_attention import log_attention, log_value
from parityscope.training.steps.mirror import AttentionGradient

_CLAIMS = "parityscope.papers.own.claims"
_STEPS = "parityscope.training.steps.mirror.log_attention"
_AS_IT_IS = World("as it is")
_certified = AttentionGradient.certificate


def _no_face(code, support):
    return not is_face(code, support)


def _downhill(flow, z, end):
    """Return where one step down log C ends that moves all logits alike besides."""
    new = z - 0.5 * flow.rate(z).detach() - 0.01
    return Followed(new, float((flow.height(z) - flow.height(new)).max()), 1)


def _gradient_times(factor):
    """Return log C with a wrong gradient."""

    def scaled(c, hidden):
        at = log_attention(c, hidden)
        return at._replace(gradient=factor * at.gradient)

    return scaled


def _wavering(scores, hidden, k):
    return best_scale(scores, hidden, k) - 6 - 3 * (7 * scores.sum(-1)).sin()


def _blaming_faces(model, law, steps):
    """Return a training that certifies what it learns to be out of reach, and nothing else."""
    climbed = climb(model, law, steps)
    at_least = climbed.learned.double()
    return replace(climbed, certificate=Certificate(at_least + torch.inf, at_least, "nothing"))


def _boasting(rule):
    found = _certified(rule)
    return found._replace(at_most=found.at_most / 1000)


def _lifted_gradients(x, y, named, k):
    return path_gradients(x, y, named, k) + 0.1


def _next_door(x, y, k):
    """Return the named set with every position moved by one."""
    found = named_set(x, y, k)
    return found._replace(support=tuple(sorted((position + 1) % x.shape[1] for position in found.support)))


def _bent(c, hidden):
    """Return log C with a hundredth of its slope, and a curvature that falls."""
    at = log_attention(c, hidden)
    return at._replace(gradient=0.01 * at.gradient, curvature=1 / c)


_rate = HeadFlow.rate


def _staying(flow, z, end, *, tolerance=0.01, watch=None):
    if watch is not None:
        watch(torch.full((len(z),), float(end), dtype=z.dtype), z)
    return Followed(z, 0.0, 1)


PLANTED = {
    "P-chain": Planted(
        false=World(
            "a correlation that hardly depends on attention",
            {f"{_CLAIMS}.chain.characteristic": lambda node, angles: (0.4 - angles.cos().mean(-1) / 5) + 0j},
        ),
        true=_AS_IT_IS,
    ),
    "P-chain-above": Planted(
        false=World(
            "a correlation that hardly depends on attention",
            {f"{_CLAIMS}.chain.characteristic": lambda node, angles: (0.4 - angles.cos().mean(-1) / 5) + 0j},
        ),
        true=_AS_IT_IS,
    ),
    "P-newton": Planted(
        false=World(
            "a hundredth of the slope, and steps that stay",
            {
                f"{_CLAIMS}.faces.log_attention": _bent,
                f"{_CLAIMS}.faces.DampedNewton.step": lambda newton: None,
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-rate-of-heads": Planted(
        false=World(
            "heads that hardly move",
            {
                "parityscope.papers.own.flow.HeadFlow.rate": lambda flow, logits: 1e-6 * _rate(flow, logits),
                f"{_CLAIMS}.flows.follow": _staying,
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-one-step-from-examples": Planted(
        false=World(
            "half the signal, and a step that leaves attention uniform",
            {
                f"{_CLAIMS}.examples.path_signal": lambda n, k, m: path_signal(n, k, m) / 2,
                f"{_CLAIMS}.examples.one_mirror_step": lambda g, k: torch.full_like(g, k / g.shape[-1]),
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-concave": Planted(
        false=World(
            "log C upside down, and a sine above its argument",
            {
                f"{_CLAIMS}.concave.log_value": lambda c, hidden: -log_value(c, hidden),
                f"{_CLAIMS}.concave._distance_to_the_sine": lambda w, arithmetic: arithmetic.sin(w) - w,
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-face": Planted(false=World("faces taken for others", {f"{_CLAIMS}.faces.is_face": _no_face}), true=_AS_IT_IS),
    "P-two-k-numbers": Planted(
        false=World(
            "one harmonic too few, and faces taken for others",
            {
                f"{_CLAIMS}.faces.harmonics": lambda n, k: harmonics(n, max(1, k - 1)),
                f"{_CLAIMS}.faces.is_face": _no_face,
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-k-heads": Planted(
        false=World(
            "a flow downhill, and equal slopes wherever it may rest",
            {
                f"{_CLAIMS}.flows.follow": _downhill,
                f"{_CLAIMS}.flows._resting_levels": lambda problem, masses, at: [Fraction(1, 2)] * problem.n,
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-mirror-rate": Planted(
        false=World(
            "a gradient a hundred times too small, and a logarithm too large",
            {
                f"{_CLAIMS}.mirror.log_attention": _gradient_times(0.01),
                _STEPS: _gradient_times(0.01),
                f"{_CLAIMS}.mirror.squared_log_over_slope": lambda c, at: 2 * squared_log_over_slope(c, at),
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-few-numbers": Planted(
        false=World(
            "a gradient of the wrong sign, and faces taken for others",
            {
                f"{_CLAIMS}.few_numbers.log_attention": _gradient_times(-1.0),
                _STEPS: _gradient_times(-1.0),
                f"{_CLAIMS}.few_numbers.is_face": _no_face,
                f"{_CLAIMS}.few_numbers._SIZES": (Parity(5, (1, 3)),),  # where all steps that are allowed are few
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-clipped": Planted(
        false=World(
            "a clip ten times too large, short codes, and faces taken for others",
            {
                f"{_CLAIMS}.few_numbers._towards": lambda c, hidden: 10 * (hidden.to(c.dtype) - c),
                f"{_CLAIMS}.few_numbers.code_with": lambda gram: 1e-3 * code_with(gram),
                f"{_CLAIMS}.few_numbers.is_exact_face": lambda code, support: not is_exact_face(code, support),
                "parityscope.papers.own.flow._MOST_STEPS": 150,  # such a flow is stiffer than its matrix says
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-certificate": Planted(
        false=World(
            "faces certified to be none, and upper bounds a thousand times too small",
            {
                f"{_CLAIMS}.certificates.climb": _blaming_faces,
                "parityscope.training.steps.mirror.AttentionGradient.certificate": _boasting,
            },
        ),
        true=_AS_IT_IS,
    ),
    "P-paths": Planted(
        false=World(
            "a gradient that is lifted everywhere, and sets moved by one position",
            {f"{_CLAIMS}.examples.path_gradients": _lifted_gradients, f"{_CLAIMS}.examples.named_set": _next_door},
        ),
        true=_AS_IT_IS,
    ),
    "P-softmax-trap": Planted(
        false=World(
            "no position beside B, a head that does not move, and a mass that wavers",
            {
                f"{_CLAIMS}.concave.PULL": 0.0,
                f"{_CLAIMS}.concave.climb": lambda model, law: climb(model, law, steps=0),
                f"{_CLAIMS}.concave.best_scale": _wavering,
            },
        ),
        true=_AS_IT_IS,
    ),
}
