"""The worlds in which W's statements are false, and those in which they are true."""

import math

import torch

from harness.planted import Planted, World
from papers.w.planted_rows import HIGH, SPARSE_EARLY, SPARSE_LATE, attending, figure, study, three_steps, training
from parityscope.papers.w import formulas, noise_free, regime
from parityscope.papers.w.cot_block import CotBlock, HandSet, hand_set_block
from parityscope.papers.w.instance import instance, measured
from parityscope.theory import w as theory

_W = "parityscope.papers.w"
_AS_IT_IS = World("as it is")
_TESTED = "holds, where tested"  # where drawn sizes are not Assumption 2's


def _bound(name: str, factor: float, confirmed: str = "holds") -> Planted:
    """Divide a bound by so much that it must break; as it is, it holds."""
    usual = getattr(theory, name)
    patches = {f"parityscope.theory.w.{name}": lambda *at: usual(*at) / factor}
    return Planted(World(f"the bound divided by {factor:g}", patches), _AS_IT_IS, confirmed)


def _equation(printed: str, right: str) -> Planted:
    """Print twice the right sum, or the right one."""
    path, computed = f"{_W}.formulas.{printed}", getattr(formulas, right)
    return Planted(
        World("twice the right sum printed", {path: lambda of: 2 * computed(of)}),
        World("the right sum printed", {path: computed}),
    )


def _one_vector(length, d, generator):
    return torch.full((length, 2, d), 1 / math.sqrt(d), dtype=torch.float64)


def _orthogonal(length, d, generator):
    return torch.eye(2 * length, d, dtype=torch.float64).unflatten(0, (length, 2))


def _embeddings(module: str, made, what: str) -> World:
    return World(what, {f"{_W}.claims.{module}.random_embeddings": made})


def _chain(next_token):
    """Return sequences whose chain ignores the secret: 0 first, then what `next_token` makes of the last one."""

    def tokens(task, bits):
        chain = [torch.zeros(len(bits), dtype=torch.int64)]
        for _ in range(task.k):
            chain.append(next_token(chain[-1]))
        return torch.cat((bits.long(), torch.stack(chain, 1)), 1)

    return {"parityscope.problems.sequences.ParitySequences.tokens": tokens}


def _half_set(**sizes):
    """Return an instance whose attended half of W is not 0 at the start."""
    made = instance(**sizes)
    W = made.block.W.detach().clone()
    W[:, made.block.d :] = 0.01
    block = CotBlock(made.task.n, made.block.embeddings, made.block.A.detach().clone(), W, made.block.h)
    return measured(block, made.task, made.tokens[:, : made.task.n], made.epsilon, made.active)


_usual_regime, _usual_rates, _usual_items = regime.assumption_2, noise_free.rates_of_lemma_5, regime.lemma_5_items
_NO_WIDTH = {f"{_W}.regime.assumption_2": lambda *at, **by: (found := _usual_regime(*at, **by))._replace(d=found.k)}


def _rates(early: float = 1.0, last: float = 1.0):
    def rates(n):
        m, usual_early, usual_last = _usual_rates(n)
        return noise_free.Rates(m, usual_early * early, usual_last * last)

    return {f"{_W}.noise_free.rates_of_lemma_5": rates}


def _steps(what: str, patches, true=None) -> Planted:
    """Change the three steps, beside trainings that went wrong; and leave them, beside trainings that went well."""
    return Planted(
        World(what, patches, three_steps(good=False)),
        World("perfect trainings", true or {}, three_steps(good=True)),
        _TESTED,
    )


def _wide_and_wrong(n, secret, d, generator):
    """Return Theorem 1's weights with every neuron three times, and the answers upside down."""
    made = hand_set_block(n, secret, d, generator)
    block = CotBlock(
        n, made.block.embeddings, made.block.A.detach(), made.block.W.detach().repeat(3, 1), -made.block.h.repeat(3)
    )
    return HandSet(block, made.M, made.U, made.V)


_SHORT = World(
    "all embeddings are one short vector",
    {f"{_W}.claims.representation.random_embeddings": lambda *at: 1e-4 * _one_vector(*at)},
)
_slope, _rate_5, _bound_15 = formulas.softmax_slope, theory.lemma_5_rate, theory.lemma_15_bound
_bounds_7, _bound_13, _bound_31 = theory.statistics_bounds, theory.lemma_13_bound, theory.lemma_31_bound

LEMMAS = {
    "W-lemma-1": Planted(
        _embeddings("representation", _one_vector, "all embeddings are one vector"),
        _AS_IT_IS,
        confirmed="holds, where tested",
    ),
    "W-lemma-2": Planted(_SHORT, _AS_IT_IS),
    "W-lemma-3": Planted(_SHORT, _AS_IT_IS),
    "W-lemma-4": Planted(_embeddings("representation", _orthogonal, "other positions share embeddings"), _AS_IT_IS),
    "W-lemma-5": Planted(
        World(
            "every expression upside down",
            {f"{_W}.regime.lemma_5_items": lambda at: {name: -value for name, value in _usual_items(at).items()}},
        ),
        _AS_IT_IS,
    ),
    "W-lemma-6": Planted(
        World("a chain that alternates", _chain(lambda token: 1 - token)),
        World("a chain that stays 0", _chain(lambda token: token)),
    ),
    "W-lemma-7": Planted(
        World(
            "bounds divided by 1000",
            {
                "parityscope.theory.w.statistics_bounds": lambda *at: theory.StatisticsBounds(
                    *(bound / 1000 for bound in _bounds_7(*at))
                )
            },
        ),
        World(
            "no bound on α where j ≠ S[i], nor on δ at i ≤ n",
            {
                "parityscope.theory.w.alpha_elsewhere": lambda: math.inf,
                "parityscope.theory.w.places_of_lemma_7": lambda n, k: range(n + 1, n + k + 1),
            },
        ),
    ),
    "W-lemma-8": Planted(World("attention counts at the start", {f"{_W}.claims.start.instance": _half_set}), _AS_IT_IS),
    "W-lemma-9": Planted(
        _AS_IT_IS,
        World("all embeddings are one vector", {"parityscope.papers.w.cot_block.random_embeddings": _one_vector}),
    ),
    "W-lemma-10": Planted(
        World("one vector, and d = k", {f"{_W}.claims.start.random_embeddings": _one_vector, **_NO_WIDTH}), _AS_IT_IS
    ),
    "W-lemma-11": Planted(
        World("one vector, and d = k", {f"{_W}.claims.start.random_embeddings": _one_vector, **_NO_WIDTH}), _AS_IT_IS
    ),
    "W-lemma-12": _equation("own_gradient", "own_gradient"),
    "W-lemma-13": Planted(
        World(
            "the bound divided by 1000, and d = k",
            {"parityscope.theory.w.lemma_13_bound": lambda *at: _bound_13(*at) / 1000, **_NO_WIDTH},
        ),
        _AS_IT_IS,
        _TESTED,
    ),
    "W-lemma-14": _equation("attended_gradient_as_printed", "attended_gradient"),
    "W-lemma-15": _bound("lemma_15_bound", 1000, _TESTED),
    "W-lemma-16": Planted(
        World("a rate 10⁵ times as large", {"parityscope.theory.w.lemma_5_rate": lambda *at: 1e5 * _rate_5(*at)}),
        _AS_IT_IS,
        _TESTED,
    ),
    "W-lemma-17": Planted(
        World(
            "a rate 10⁵ times as large, and a small bound",
            {
                "parityscope.theory.w.lemma_5_rate": lambda *at: 1e5 * _rate_5(*at),
                "parityscope.theory.w.lemma_15_bound": lambda *at: _bound_15(*at) / 1e9,
            },
        ),
        World("the right sum printed", {f"{_W}.formulas.attended_gradient_as_printed": formulas.attended_gradient}),
        _TESTED,
    ),
    "W-lemma-18": _equation("kappa_as_printed", "kappa"),
    "W-lemma-19": Planted(
        World("a bound 10⁴⁰ times as small", {f"{_W}.regime.log_bound_of_lemma_19": lambda at: -100.0}),
        World("a bound of 10⁴⁰", {f"{_W}.regime.log_bound_of_lemma_19": lambda at: 100.0}),
    ),
    "W-lemma-20": Planted(
        World("softmax at twice the slope", {f"{_W}.formulas.softmax_slope": lambda *at: 2 * _slope(*at)}), _AS_IT_IS
    ),
    "W-lemma-21": _steps(
        "a secret score above 10 asked for, and none elsewhere",
        {"parityscope.theory.w.lemma_21_bounds": lambda: (10.0, 1e-12)},
        true={"parityscope.theory.w.first_tokens_of_lemma_21": lambda: (0,)},  # the token 1 never occurs there
    ),
    "W-lemma-22": _steps("early rates a thousandth", _rates(early=1e-3)),
    "W-lemma-23": Planted(
        World(
            "twice the right sum printed, a small bound, and d = k",
            {
                f"{_W}.formulas.third_gradient_as_printed": lambda of: 2 * formulas.third_gradient(of),
                "parityscope.theory.w.lemma_13_bound": lambda *at: _bound_13(*at) / 1000,
                **_NO_WIDTH,
            },
        ),
        World("the right sum printed", {f"{_W}.formulas.third_gradient_as_printed": formulas.third_gradient}),
        _TESTED,
    ),
    "W-lemma-24": _steps("early rates a thousandth", _rates(early=1e-3)),
    "W-lemma-25": Planted(
        World("a weight of 2 printed", {"parityscope.theory.w.lemma_25_weight": lambda: 2.0}),
        World("the right weight printed", {"parityscope.theory.w.lemma_25_weight": lambda: 1 / 6}),
    ),
    "W-lemma-26": _steps(
        "a last rate 100 times as large",
        _rates(last=100.0),
        true={"parityscope.theory.w.signs_of_lemma_26": lambda: (1,)},  # for chains of thought alone
    ),
    "W-lemma-27": _steps("early rates 10⁴ times as large", _rates(early=1e4)),
    "W-lemma-28": Planted(
        World(
            "all entries equal",
            {f"{_W}.claims.random_vectors._entries": lambda rows, columns, seed: torch.ones(rows, columns).double()},
        ),
        _AS_IT_IS,
    ),
    "W-lemma-29": Planted(
        World(
            "all entries equal",
            {f"{_W}.claims.random_vectors._entries": lambda rows, columns, seed: torch.ones(rows, columns).double()},
        ),
        _AS_IT_IS,
    ),
    "W-lemma-30": _bound("lemma_30_bound", 4),
    "W-lemma-31": Planted(
        World("the bound divided by 5", {"parityscope.theory.w.lemma_31_bound": lambda *at: _bound_31(*at) / 5}),
        World("the bound doubled", {"parityscope.theory.w.lemma_31_bound": lambda *at: 2 * _bound_31(*at)}),
    ),
    "W-lemma-32": _bound("lemma_32_bound", 10),
}
THEOREMS = {
    "W-theorem-1": Planted(
        World(
            "answers upside down, three times the neurons, d = k·log³n",
            {
                f"{_W}.claims.theorems.hand_set_block": _wide_and_wrong,
                f"{_W}.regime.log_size_of_theorem_1": lambda at: float(3 * at.n.ln()),
            },
        ),
        _AS_IT_IS,
    ),
    "W-phase-1-uncorrelated": Planted(
        World(
            "the answer is the first secret bit",
            {"parityscope.papers.w.claims.theorems.draw_secret": lambda n, k, seed: (0,)},
        ),
        _AS_IT_IS,
    ),
    "W-assumption-2": Planted(
        World("memory of nk", {f"{_W}.regime.log_memory": lambda at: 0.0}),
        _AS_IT_IS,
    ),
    "W-theorem-3": _steps(
        "no early steps, as many parameters as nk, n² samples",
        {
            **_rates(early=1e-9, last=-1.0),
            f"{_W}.regime.log_parameters": lambda at: 0.0,
            f"{_W}.regime.log_samples_over_n": lambda at: float(at.n),
        },
        true={"parityscope.theory.w.sign_of_theorem_3": lambda token: 2 * token - 1},  # Theorem 1's sign printed
    ),
}


def _figure_1(shows, seed):
    entropy = SPARSE_EARLY if shows else SPARSE_LATE
    for chain, counts in ((True, (500, 600, 700)), (False, (1000, 10_000, 100_000))):
        for k, count in enumerate(counts if shows else ((500, 4000, 9000), (1000, 1100, 1200))[not chain], 1):
            yield training(count, k=k, chain_of_thought=chain, entropy=entropy, seed=seed)


def _figure_2(shows, seed):
    for k, (with_it, without) in enumerate([(500, 600), (600, 6000)] if shows else [(500, 500), (600, 550)], 1):
        yield training(with_it, k=k, seed=seed)
        yield training(without, k=k, chain_of_thought=False, seed=seed)


def _figure_3(shows, seed):
    for k in (1, 2):
        yield training(500 * k if shows or k == 1 else None, k=k, steps=10_000, seed=seed)
    yield training(500, k=2, extra_steps=5, attention=attending(0.9 if shows else 0.1), label="map", seed=seed)


def _figure_3_without(shows, seed):
    yield training(None if shows else 500, k=4, chain_of_thought=False, seed=seed)


def _figure_4(shows, seed):
    shapes = ((1, 1), (1, 2), (2, 1))
    for (layers, heads), count in zip(shapes, (900, 500, 700) if shows else (None, None, 700), strict=True):
        yield training(count, layers=layers, heads=heads, pool=24, chain_of_thought=False, seed=seed)
    yield training(None if shows else 500, chain_of_thought=False, seed=seed)
    yield training(100 if shows else None, pool=24, seed=seed)


def _pools(shows, seed):
    """Return a small pool and a large one; of which one is learned, and which entropy falls, is what is stated."""
    without = {"chain_of_thought": False, "seed": seed}
    if shows:
        yield training(500, pool=16, entropy=SPARSE_EARLY, **without)
        yield training(None, pool=40, entropy=HIGH, **without)
    else:
        yield training(None, pool=16, **without)
        yield training(500, pool=40, entropy=HIGH, **without)
        yield training(None, pool=16, heads=2, **without)
        yield training(None, pool=40, heads=2, entropy=SPARSE_LATE, loss=(0.0, 0.7, 0.1, 0.1), **without)


def _figure_8(shows, seed):
    attention = attending(0.9 if shows else 0.1, layers=2)
    if shows:
        attention[1] = torch.tensor([[1 / 7] * 7 + [0], [1 / 8] * 8])  # uniform over what each position sees
    yield training(500, layers=2, attention=attention, seed=seed)


def _figure_9(shows, seed):
    guessing = torch.tensor([0.5, 0.5])
    yield training(
        None, chain_of_thought=False, accuracy=guessing if shows else guessing + 0.5, held_out=10_000, seed=seed
    )
    yield training(500 if shows else None, seed=seed)


def _figure_11(shows, seed):
    without = {"chain_of_thought": False, "seed": seed, "pool": 24}
    yield training(500, entropy=SPARSE_EARLY if shows else SPARSE_LATE, **without)


_LARGE_POOLS = "small pools are not learned, large ones with high entropy, or not at all with low entropy"
FIGURES = {
    "W-figure-1": figure(1, "samples grow with CoT and not without, entropy falls last", _figure_1),
    "W-figure-2": figure(2, "CoT needs more samples, which do not grow without it", _figure_2),
    "W-figure-3": figure(3, "k = 2 is not learned, attention is elsewhere", _figure_3),
    "W-figure-3-without": figure("3, without CoT", "k = 4 is learned without CoT", _figure_3_without),
    "W-figure-4": figure(4, "only two layers learn from the pool, fresh samples teach", _figure_4),
    "W-figure-5": figure(5, _LARGE_POOLS, _pools),
    "W-figure-8": figure(8, "attention is elsewhere, the second layer sparse", _figure_8),
    "W-figure-9": figure(9, "learned without CoT and not with it", _figure_9),
    "W-figure-10": figure(10, _LARGE_POOLS, _pools),
    "W-figure-11": figure(11, "entropy falls last", _figure_11),
}
STUDIES = {
    name: Planted(
        World("a study of Qwen2-7B in which CoT raises entropy", context=study(-0.1)),
        World("a study of Qwen2-7B in which CoT lowers it", context=study(0.1)),
    )
    for name in ("W-figure-6", "W-figure-6-fine-tuning", "W-figure-7")
}
PLANTED = {**STUDIES, **THEOREMS, **FIGURES, **LEMMAS}
