"""H2 (our reading): one step, few parameters, every input, and the start that the step needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.core.statistics import median, wilson_share
from parityscope.models import Readout
from parityscope.papers.claim import Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least, at_most, below, bootstrap
from parityscope.papers.h2.one_gradient import best_step_loss, fitted_exponent, smallest_code
from parityscope.papers.h2.trainings import (
    IN_OUR_READING,
    ISOLATED,
    MOST,
    NEAR_ZERO,
    loss_again,
    one_step_training,
    seed_at,
    share_below,
)
from parityscope.problems import seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import law_of
from parityscope.runs.training import Training, TrainingNumbers
from parityscope.theory import initial_score_variance, polylog_numbers
from parityscope.training.learning import train


class PairAttentionNumbers(Numbers):
    """What each seed lost on its worst input and whether it recovered the pair; the least attention on its pair."""

    worst_loss: tuple[float, ...]
    recovered: tuple[bool, ...]
    least_on_pair: float


class PairAttention(Config):
    """A training whose heads are looked at, on the pair only: attention on all positions would be megabytes."""

    ROWS: ClassVar[str] = "H2-pair-attention"
    NUMBERS: ClassVar[type[Numbers]] = PairAttentionNumbers

    training: Training

    def run(self) -> Result:
        """Train, and add up every head's attention on its pair."""
        config, problems = self.training, self.training.problems()
        trained = train(problems, [config.recipe], config.seeds)
        assert trained.worst_loss is not None
        on_pair = [a[:, list(p.support)].sum(-1).min() for a, p in zip(trained.attention, problems, strict=True)]
        numbers = PairAttentionNumbers(
            worst_loss=tuple(trained.worst_loss.tolist()),
            recovered=tuple(trained.recovered.tolist()),
            least_on_pair=float(min(on_pair)),
        )
        return Result(numbers)


_FOUND, _NEAR = (
    "share of seeds whose pair is recovered",
    f"share of seeds that lose less than {NEAR_ZERO} on every input",
)
_ONE_STEP_CLAUSES = (
    Clause("one step finds the hidden pair", _FOUND, at_least(0.5), MOST),
    Clause("one step brings the loss near 0", _NEAR, at_least(0.5), MOST),
)


def _one_step_needs(context: Context) -> list[PairAttention]:
    n = context.at(smoke=10_000, reference=30_000)
    seeds = context.at(smoke=6, reference=16)
    return [PairAttention(training=one_step_training(n, seeds))]


def _one_step(context: Context) -> Measurement:
    """Take one step and count the seeds whose worst input loses less than 0.1."""
    row: Row[PairAttention, PairAttentionNumbers]
    (row,) = map(context.row, _one_step_needs(context))
    config, losses, recovered = row.config.training, row.numbers.worst_loss, row.numbers.recovered
    near = share_below(losses, NEAR_ZERO)
    return Measurement(
        {_FOUND: wilson_share(sum(recovered), len(recovered)), _NEAR: near},
        f"worst loss < {NEAR_ZERO} after one step: {near} at d = {config.n}",
        f"{len(losses)} seeds at d = {config.n}, each on its worst input",
        {
            "d": config.n,
            "r": config.recipe.numbers_per_head,
            "seeds": len(losses),
            "median_worst_loss": median(losses),
            "largest_worst_loss": max(losses),
            "least_attention_of_a_head_on_the_pair": row.numbers.least_on_pair,
        },
        "One population gradient step of 4 log d score units from initial scores of variance 1/log d; the loss on the"
        " worst of all 2^d inputs is Σ|c − 1_B|, computed exactly for every seed.",
        {_NEAR: seed_at(config, losses, losses.index(max(losses)))},
    )


_ENOUGH = f"share of codes of ⌈log² d⌉ signs with which a step loses less than {NEAR_ZERO} on every input, d ≥ 1000"
_PARAMETERS_CLAUSES = (Clause("⌈log² d⌉ parameters per head are enough, d ≥ 1000", _ENOUGH, at_least(0.5), MOST),)
_FIRST_FRESH = 5000  # seeds on which nothing was chosen


def _smallest_codes(context: Context) -> tuple[dict[int, list[float]], str]:
    """Return the fewest parameters of every seed by d, and where they come from."""
    rows = context.rows("H2-parameters")
    if rows:
        codes = {row.config.n: row.numbers.smallest for row in rows}
        source = "stored rows of H2-parameters"
    else:
        plan = [(300, 9), (3000, 9), (30_000, 3)]
        plan += [] if context.scale == "smoke" else [(100_000, 3)]
        codes = {
            n: tuple(smallest_code(n, seed, most=16 * math.ceil(math.log(n))) for seed in range(seeds))
            for n, seeds in plan
        }
        source = "computed here; `reproduce H2-parameters` goes to d = 10⁶"
    return {n: [math.inf if r is None else r for r in codes[n]] for n in sorted(codes)}, source


def _parameters(context: Context) -> Measurement:
    """Find the fewest parameters per head at growing d and fit their growth in log d."""
    least, source = _smallest_codes(context)

    def exponent(groups: Sequence[Tensor], size: Callable[[int], float] = float) -> float:
        return fitted_exponent([size(n) for n in least], [median(group.tolist()) for group in groups])

    groups = [torch.tensor(codes, dtype=torch.float64) for codes in least.values()]
    smallest = min(least)
    sizes = (1000, 3000, 10_000, 30_000)
    fresh = range(_FIRST_FRESH, _FIRST_FRESH + context.at(smoke=12, reference=16))
    losses = {n: [best_step_loss(n, polylog_numbers(n), seed) for seed in fresh] for n in sizes}
    enough = share_below([loss for some in losses.values() for loss in some], NEAR_ZERO)
    return Measurement(
        {_ENOUGH: enough},
        f"⌈log² d⌉ signs suffice for {', '.join(_counted(losses))} codes, {enough} in all; the smallest r (for a loss "
        f"of {ISOLATED}, ours) grows like d^{exponent(groups):.2f} or (log d)^{exponent(groups, math.log):.2f}, which "
        f"these d do"
        f" not tell apart; at d = {smallest} the median need is {median(least[smallest]):g}, ⌈log² d⌉ is"
        f" {polylog_numbers(smallest)}",
        f"{len(fresh)} random codes at each of {len(sizes)} sizes, 37 step lengths; {sum(map(len, least.values()))} "
        f"more for the growth",
        {
            "from": source,
            "smallest_r": {n: median(codes) for n, codes in least.items()},
            "codes": {n: len(codes) for n, codes in least.items()},
            "exponent_in_d": exponent(groups),
            "exponent_in_d_drawn_again": str(bootstrap(groups, exponent)),
            "exponent_in_log_d": exponent(groups, math.log),
            "log_squared": {n: polylog_numbers(n) for n in least},
        },
        "The least loss on the worst input over the lengths of a single step from uniform attention, for random codes"
        " of ⌈log² d⌉ signs. Beside it, and no clause of the abstract's: the fewest signs of nested codes with which"
        " that loss is below 0.5, where every input is classified right; exponents of the medians by least squares "
        "in log d and in log log d, codes drawn"
        " again for the interval.",
    )


def _counted(losses: Mapping[int, Sequence[float]]) -> list[str]:
    return [f"{sum(one < NEAR_ZERO for one in some)}/{len(some)} at d = {n}" for n, some in losses.items()]


def _worst_losses(context: Context, config: Training) -> tuple[float, ...]:
    row: Row[Training, TrainingNumbers] = context.row(config)
    assert row.numbers.worst_loss is not None
    return row.numbers.worst_loss


class InputSearchNumbers(Numbers):
    """The largest loss that a search over inputs found for each seed, beside the one that is certified."""

    found: tuple[float, ...]
    certified: tuple[float, ...]


class InputSearch(Config):
    """A training whose worst input is searched for by flipping bits, without the formula that says which it is."""

    ROWS: ClassVar[str] = "H2-input-search"
    NUMBERS: ClassVar[type[Numbers]] = InputSearchNumbers

    training: Training
    starts: int

    def run(self) -> Result:
        """Train, and climb from random inputs: every bit in turn is flipped where that raises the loss."""
        config, problems = self.training, self.training.problems()
        trained = train(problems, [config.recipe], config.seeds)
        assert trained.worst_loss is not None
        generators = [seeded_generator(seed, "held-out") for seed in config.seeds]
        bits = torch.stack([torch.rand(self.starts, config.n, generator=one) for one in generators]) < 0.5
        weights = trained.model.score_weights().detach()
        found = _climbed(weights, law_of(problems).mask, trained.model.readout, bits)
        numbers = InputSearchNumbers(found=tuple(found.tolist()), certified=tuple(trained.worst_loss.tolist()))
        return Result(numbers)


def _climbed(
    c: Float[Tensor, "seeds n"], hidden: Bool[Tensor, "seeds n"], readout: Readout, bits: Bool[Tensor, "seeds starts n"]
) -> Float[Tensor, " seeds"]:
    """Return the largest hinge loss at the end of two rounds of flips, from the given inputs."""
    signs = 1 - 2 * bits.to(c.dtype)
    score = (bits.to(c.dtype) * c[:, None]).sum(-1)
    label = torch.where(hidden[:, None], signs, torch.ones_like(signs)).prod(-1)
    loss = (1 - label * readout(score)).relu()
    for bit in [*range(c.shape[-1])] * 2:
        moved = score + signs[..., bit] * c[:, bit, None]
        turned = torch.where(hidden[:, bit, None], -label, label)
        after = (1 - turned * readout(moved)).relu()
        better = after > loss
        signs[..., bit] = torch.where(better, -signs[..., bit], signs[..., bit])
        score, label = torch.where(better, moved, score), torch.where(better, turned, label)
        loss = torch.where(better, after, loss)
    return loss.amax(-1)


_FALL_UNIFORM = "exponent in d of the mean worst loss, uniform initialisation"
_FALL_RANDOM = "exponent in d of the mean worst loss, variance 1/log d"
_EXCESS = "largest loss found by flipping bits, beyond the certified one"
_FALLING = "the sign of an exponent, the seeds drawn again for its interval"
_EVERY_INPUT_CLAUSES = (
    Clause("the loss is near 0 on every input, at the largest d", _NEAR, at_least(0.5), MOST),
    Clause("it falls with d on the whole, from uniform attention", _FALL_UNIFORM, below(0), _FALLING),
    Clause("it falls with d on the whole, from a random initialisation", _FALL_RANDOM, below(0), _FALLING),
    Clause(
        "no input loses more than Σ|c − 1_B|", _EXCESS, at_most(1e-9), "rounding of a sum of d weights", above(1e-6)
    ),
)


def _every_input_trainings(context: Context) -> list[Training]:
    sizes = (300, 1000, 3000) if context.scale == "smoke" else (1000, 3000, 10_000, 30_000)
    seeds = context.at(smoke=9, reference=15)
    return [one_step_training(n, seeds, variance) for n in sizes for variance in (0.0, None)]


def _input_search(context: Context) -> InputSearch:
    starts = context.at(smoke=20, reference=50)
    return InputSearch(training=one_step_training(1000, context.at(smoke=3, reference=5)), starts=starts)


def _every_input_needs(context: Context) -> list[Config]:
    return [*_every_input_trainings(context), _input_search(context)]


def _every_input(context: Context) -> Measurement:
    """Fit the rate at which the worst loss falls with d, from both starts, and search for a worse input."""
    trainings = _every_input_trainings(context)
    losses: dict[str, dict[int, Tensor]] = {"uniform": {}, "variance 1/log d": {}}
    for config in trainings:
        start = "uniform" if config.recipe.start_radius == 0 else "variance 1/log d"
        losses[start][config.n] = torch.tensor(_worst_losses(context, config), dtype=torch.float64)
    searched: Row[InputSearch, InputSearchNumbers] = context.row(_input_search(context))
    both = list(zip(searched.numbers.found, searched.numbers.certified, strict=True))
    excess = max(f - c for f, c in both)
    sizes = list(losses["uniform"])

    def exponent(groups: Sequence[Tensor]) -> float:
        return fitted_exponent([*map(float, sizes)], [float(group.mean()) for group in groups])

    falls = {start: bootstrap([*by_size.values()], exponent) for start, by_size in losses.items()}
    last = losses["variance 1/log d"][sizes[-1]].tolist()
    near = share_below(last, NEAR_ZERO)
    medians, means = (
        {start: {n: of(one.tolist()) for n, one in by_size.items()} for start, by_size in losses.items()}
        for of in (median, fmean)
    )
    exponents = {start: exponent([*by_size.values()]) for start, by_size in losses.items()}
    return Measurement(
        {_NEAR: near, _FALL_UNIFORM: falls["uniform"], _FALL_RANDOM: falls["variance 1/log d"], _EXCESS: excess},
        f"mean worst loss ∝ d^{exponents['uniform']:.2f} from a uniform initialisation, at d = {sizes[-1]}"
        f" {means['variance 1/log d'][sizes[-1]]:.1g} from a random one",
        f"{len(trainings)} × {len(trainings[0].seeds)} seeds, each on its worst input; {searched.config.starts} climbs"
        f" by flipped bits for each of {len(searched.numbers.found)} seeds",
        {
            "median_worst_loss": medians,
            "mean_worst_loss": means,
            "exponent_in_d": exponents,
            "seeds": len(trainings[0].seeds),
            "searched": {
                "d": searched.config.training.n,
                "largest_found_beyond_certified": excess,
                "least_found_of_the_certified": min(f / c for f, c in both if c > 0),
            },
        },
        "The exact loss on the worst input after one step, against d: exponents of its mean over seeds by least"
        " squares, seeds drawn again for their intervals. The formula was tested by a search over inputs.",
        {_NEAR: seed_at(trainings[-1], last, last.index(max(last)))},
    )


_FACTORS = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_WITHIN = (0.3, 1.0, 3.0)  # what c₁ and c₂ might be: neither is given
_INSIDE = f"least share of seeds that lose less than {ISOLATED} on every input at variances 0.3, 1 and 3/log d"
_VARIANCE_CLAUSES = (Clause("throughout a range around 1/log d the step works", _INSIDE, at_least(0.5), MOST),)


def _initial_variance_trainings(context: Context) -> list[Training]:
    n = context.at(smoke=1000, demo=3000, reference=10_000)
    seeds = context.at(smoke=7, demo=9, reference=15)
    return [one_step_training(n, seeds, factor * initial_score_variance(n)) for factor in _FACTORS]


def _initial_variance(context: Context) -> Measurement:
    """Scan the variance of initial scores over eight decades around 1/log d."""
    trainings = dict(zip(_FACTORS, _initial_variance_trainings(context), strict=True))
    losses = {factor: _worst_losses(context, config) for factor, config in trainings.items()}
    shares = {factor: share_below(one, ISOLATED) for factor, one in losses.items()}
    worst = min(_WITHIN, key=lambda factor: shares[factor].value)
    return Measurement(
        {_INSIDE: shares[worst]},
        f"at least {shares[worst]} from 0.3 to 3 times 1/log d; at a millionth of it {shares[1e-6]}, at a hundred times"
        f" {shares[100.0]}",
        f"{len(_FACTORS)} variances over eight decades, {len(losses[1.0])} seeds each",
        {
            "d": trainings[1.0].n,
            "seeds": len(trainings[1.0].seeds),
            "median_worst_loss_by_variance_times_log_d": {factor: median(one) for factor, one in losses.items()},
        },
        "One step from initial scores of variance f/log d for f from 10⁻⁶ to 100. Much larger variances do not work; "
        "much smaller ones do, at a larger loss, since both heads then stay on both bits. How the ends move with d is "
        "not tested: log d hardly varies.",
        {_INSIDE: seed_at(trainings[worst], losses[worst], losses[worst].index(max(losses[worst])))},
    )


_SENTENCE = (
    "with only O(polylog(d)) trainable parameters, Transformers can successfully discover the relevant features and "
    "drive the loss for every input to nearly 0 with one gradient step."
)
_MODEL = "single-layer, two-head Transformer; y = −x_i* x_j* for some unknown i*, j* ∈ [d]. (No sizes, no probability.)"
_READ = (
    f"The model is our reading (docs: One step). “Nearly 0” is a loss below {NEAR_ZERO}, a step that “can”"
    " is one that does for most seeds."
)
CLAIMS = (
    Claim(
        "H2-one-step",
        "One gradient step of a two-head softmax transformer finds the hidden pair and brings the loss near 0.",
        _ONE_STEP_CLAUSES,
        _one_step,
        "Abstract (our reading)",
        seconds=2,
        needs=_one_step_needs,
        replay={_NEAR: partial(loss_again, NEAR_ZERO)},
        printed=_SENTENCE,
        hypotheses=_MODEL,
        ours=f"{_READ} d = 30 000, r = ⌈log² d⌉, the step of 4 log d score units.",
        qualifier=IN_OUR_READING,
    ),
    Claim(
        "H2-parameters",
        "O(polylog d) trainable parameters are enough.",
        _PARAMETERS_CLAUSES,
        _parameters,
        "Abstract (our reading)",
        seconds=2,
        reads_figure=True,
        printed="with only O(polylog(d)) trainable parameters",
        hypotheses=_MODEL,
        ours=f"{_READ} d from 1000 to 30 000; polylog is read as ⌈log² d⌉ per head, and the best of 37 step lengths "
        f"counts. How the need grows is ours and no clause: at sizes up to 10⁶ a power of log d cannot be told from a "
        f"small power of d, and a loss below {ISOLATED} counts as found there.",
        qualifier=IN_OUR_READING,
    ),
    Claim(
        "H2-every-input",
        "After the one step the loss is near 0 on every input, and falls with d on the whole.",
        _EVERY_INPUT_CLAUSES,
        _every_input,
        "Abstract (our reading)",
        seconds=4,
        needs=_every_input_needs,
        replay={_NEAR: partial(loss_again, NEAR_ZERO)},
        printed="drive the loss for every input to nearly 0 with one gradient step.",
        hypotheses=_MODEL,
        ours=f"{_READ} d up to 30 000; that the loss falls with d on the whole, by an exponent over all d and not from "
        "each d to the next, is our reading of “nearly”.",
        qualifier=IN_OUR_READING,
    ),
    Claim(
        "H2-initial-variance",
        "The step works throughout a range [c₁/log d, c₂/log d] of initial variances.",
        _VARIANCE_CLAUSES,
        _initial_variance,
        "The machine-written page, simulated rebuttal (first comment); not the authors'",
        seconds=10,
        needs=_initial_variance_trainings,
        replay={_INSIDE: partial(loss_again, ISOLATED)},
        printed="a precise statement of the allowable variance range (σ² ∈ [c₁/log d, c₂/log d] for explicit "
        "constants c₁, c₂ > 0)",
        hypotheses="Written by a language model in the authors' place; neither c₁ nor c₂ is given.",
        ours="c₁ = 0.3 and c₂ = 3 are our choice, d = 10 000. That no variance outside the range works is nobody's "
        "claim, and smaller ones do.",
    ),
)
