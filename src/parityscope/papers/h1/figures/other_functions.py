"""Other functions of few bits: learned attention with a trained classification head against FFNN-1 of matched size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Int64
from matplotlib.figure import Figure
from torch import Tensor, nn

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import median
from parityscope.core.ties import largest, predicts_plus
from parityscope.models import FFNN1, AttentionFFNN
from parityscope.models.positions import default_numbers_per_head, random_signs
from parityscope.papers.cells import of_learned, share_of
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.papers.h1.trainings import FreshTraining, Target, seeded_ffnn, stacked, train_on_fresh_examples
from parityscope.problems import bits_of, seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.training.learning import LEARNED_ACCURACY

ID = "H1-other-functions"
TITLE = "Beyond parity: other functions of few bits"
TEXT = (
    "Functions of three or four of n bits, the bits drawn again for every seed. Attention: 2k heads on random-sign "
    "positions (8⌈log₂ n⌉ parameters each), their outputs side by side, and an FFNN-1 of 16 neurons behind them, all "
    "trained together; averaging the heads as in H1 would only allow symmetric functions. FFNN-1: one hidden layer "
    "on all n bits, as wide as the same number of trained parameters allows. Both see the same fresh examples, Adam on "
    "the hinge loss, the best of several rates. A run learned when it classifies more than 99 % of 2^14 fresh "
    "examples right. Training is short, so a run that has not learned might with more steps. As n "
    "grows, attention's count grows with log n and the FFNN-1 of the same count gets narrower."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 11, "reference": 22}
Architecture = Literal["attention", "FFNN-1"]
_ARCHITECTURES: tuple[Architecture, ...] = get_args(Architecture)
_HEADS_PER_BIT, _WIDTH, _START_RADIUS, _CHECKED_ON = 2, 16, 2.0, 2**14


class _FewBits(NamedTuple):
    """A function of k signs χ_i = (−1)^{x_i}, and how it reads.

    >>> majority = FUNCTIONS["majority"]
    >>> majority.formula, majority.label(torch.tensor([1.0, -1.0, -1.0])).item()
    ('sign(χ₁ + χ₂ + χ₃)', -1.0)
    """

    k: int
    label: Callable[[Float[Tensor, "*batch k"]], Float[Tensor, "*batch"]]
    formula: str

    def labels(self) -> tuple[int, ...]:
        """Return the label of every input, that of bits x at index Σ x_i 2^i."""
        signs = 1.0 - 2 * bits_of(torch.arange(2**self.k), self.k)
        return tuple(self.label(signs).int().tolist())


def _product(signs: Tensor, *which: int) -> Tensor:
    return signs[..., list(which)].prod(-1)


FUNCTIONS: dict[str, _FewBits] = {
    "AND": _FewBits(3, lambda s: 2 * (s < 0).all(-1).to(s.dtype) - 1, "x₁ ∧ x₂ ∧ x₃"),
    "majority": _FewBits(3, lambda s: s.sum(-1).sign(), "sign(χ₁ + χ₂ + χ₃)"),
    "staircase": _FewBits(
        3, lambda s: (s[..., 0] + _product(s, 0, 1) + _product(s, 0, 1, 2)).sign(), "sign(χ₁ + χ₁χ₂ + χ₁χ₂χ₃)"
    ),
    # Where the two monomials cancel, half of χ₁ decides.
    "polynomial": _FewBits(
        4, lambda s: (_product(s, 0, 1) + _product(s, 2, 3) + s[..., 0] / 2).sign(), "sign(χ₁χ₂ + χ₃χ₄ + χ₁/2)"
    ),
    "parity": _FewBits(3, lambda s: s.prod(-1), "χ₁χ₂χ₃"),
}


class FunctionTrainingNumbers(Numbers):
    """What the best rate gave, one entry per seed."""

    learned: tuple[bool, ...]
    accuracy: tuple[float, ...]
    steps: tuple[int, ...]
    named: tuple[bool, ...] | None  # whether the most attended positions are the hidden bits; none without attention
    rate: float
    parameters: int


class FunctionTraining(Config):
    """One architecture on one function of k bits at one n; the labels are the function, its name is for people."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = FunctionTrainingNumbers

    function: str
    labels: tuple[int, ...]  # of all 2^k inputs
    n: int
    architecture: Architecture
    seeds: int
    steps: int
    batch: int
    rates: tuple[float, ...]

    @property
    def k(self) -> int:
        """The number of hidden bits."""
        return len(self.labels).bit_length() - 1

    def run(self) -> Result:
        """Train all seeds at all rates and keep the best rate."""
        seeds = [seed for _ in self.rates for seed in range(self.seeds)]
        rates = [rate for rate in self.rates for _ in range(self.seeds)]
        places = hidden_places(self.n, self.k, seeds)
        target = hidden_target(self.labels, places)
        network = self._networks(seeds).float()
        fresh = FreshTraining(steps=self.steps, batch=self.batch)
        state = train_on_fresh_examples(network, target, self.n, seeds, rates, fresh)
        shape = (len(self.rates), self.seeds)
        accuracy = _checked_accuracy(network, target, self.n, len(seeds)).reshape(shape)
        learned = accuracy > LEARNED_ACCURACY
        best = int(learned.sum(-1).argmax())
        named = None
        if isinstance(network, AttentionFFNN):
            looked = largest(network.attention().amax(-2), self.k)
            named = (looked == places.sort(-1).values).all(-1).reshape(shape)[best].tolist()
        return Result(
            FunctionTrainingNumbers(
                learned=learned[best].tolist(),
                accuracy=accuracy[best].tolist(),
                steps=state.finished_at.reshape(shape)[best].tolist(),
                named=named,
                rate=self.rates[best],
                parameters=network.trained_parameters(),
            )
        )

    def _networks(self, seeds: Sequence[int]) -> AttentionFFNN | FFNN1:
        attention = attention_networks(self.n, self.k, seeds)
        if self.architecture == "attention":
            return attention
        return seeded_ffnn(self.n, matched_width(attention.trained_parameters(), self.n), seeds)


_Row = Row[FunctionTraining, FunctionTrainingNumbers]


def _configs(
    sizes: Sequence[int], seeds: int, steps: int, batch: int, rates: tuple[float, ...]
) -> list[FunctionTraining]:
    return [
        FunctionTraining(
            function=name,
            labels=few.labels(),
            n=n,
            architecture=kind,
            seeds=seeds,
            steps=steps,
            batch=batch,
            rates=rates,
        )
        for name, few in FUNCTIONS.items()
        for n in sizes
        for kind in _ARCHITECTURES
    ]


CONFIGS: dict[Scale, list[FunctionTraining]] = {
    "smoke": _configs((8,), 3, 15, 64, (0.03,)),
    "demo": _configs((16, 64), 4, 150, 128, (0.1, 0.03)),
    "reference": _configs((16, 64), 8, 250, 128, (0.1, 0.03)),
}


def attention_networks(n: int, k: int, seeds: Sequence[int]) -> AttentionFFNN:
    """Return one network of separate heads per seed, on a run axis."""
    numbers = default_numbers_per_head(n)

    def one(seed: int) -> AttentionFFNN:
        positions = random_signs(n, numbers, seeded_generator(seed, "positions"))
        start = seeded_generator(seed, "start")
        return AttentionFFNN(positions, _HEADS_PER_BIT * k, _WIDTH, start_radius=_START_RADIUS, generator=start)

    return stacked([one(seed) for seed in seeds])


def matched_width(parameters: int, n: int) -> int:
    """Return the widest FFNN-1 on n bits with at most so many trained parameters, q(n + 2) + 1."""
    return max(1, (parameters - 1) // (n + 2))


def hidden_places(n: int, k: int, seeds: Sequence[int]) -> Tensor:
    """Return each seed's hidden bits in the order the function reads them, (runs, k)."""
    return torch.stack([torch.randperm(n, generator=seeded_generator(seed, "support"))[:k] for seed in seeds])


def hidden_target(labels: Sequence[int], places: Int64[Tensor, "runs k"]) -> Target:
    """Return the labels as a function of bits (runs, batch, n), of which only the places count."""
    answers, powers = torch.tensor(labels), 2 ** torch.arange(places.shape[-1])

    def label(x: Tensor) -> Tensor:
        seen = x.gather(-1, places.unsqueeze(1).expand(-1, x.shape[1], -1))
        return answers[(seen.long() * powers).sum(-1)].to(x.dtype)

    return label


def _checked_accuracy(network: nn.Module, target: Target, n: int, runs: int) -> Tensor:
    x = torch.randint(0, 2, (_CHECKED_ON, n), generator=seeded_generator(0, "held-out")).float().expand(runs, -1, -1)
    with torch.no_grad():
        return (predicts_plus(network(x)) == (target(x) > 0)).double().mean(-1)


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw one panel per n: functions side by side, both architectures."""
    sizes = sorted({row.config.n for row in rows})
    names = list(dict.fromkeys(row.config.function for row in rows))
    figure, panels = new_figure(max(8, 6.4 * len(sizes)), 4.8, 1, len(sizes), squeeze=False)
    for axes, n in zip(panels[0], sizes, strict=True):
        counts = {}
        for index, kind in enumerate(_ARCHITECTURES):
            chosen = [row for row in rows if (row.config.n, row.config.architecture) == (n, kind)]
            places = [names.index(row.config.function) + 0.16 * (index - 0.5) for row in chosen]
            style: dict[str, Any] = {"linestyle": "", "color": colour(index), "markersize": 8, "label": kind}
            draw_shares(axes, places, [share_of([row]) for row in chosen], **style)
            counts[kind] = sorted({row.numbers.parameters for row in chosen})
        described = "; ".join(f"{kind} {' or '.join(map(str, count))}" for kind, count in counts.items())
        axes.set_title(f"n = {n} (trained parameters: {described})", fontsize=10)
        axes.set_xticks(range(len(names)), [f"{name}\nk = {FUNCTIONS[name].k}" for name in names])
        axes.set(ylabel="share of seeds that learned", xlim=(-0.5, len(names) - 0.5))
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _named(numbers: FunctionTrainingNumbers) -> int | None:
    """Return how many of those that learned look at the hidden bits; none without attention."""
    return None if numbers.named is None else sum(of_learned(numbers, numbers.named))


def _median_steps(row: _Row) -> float | None:
    steps = of_learned(row.numbers, row.numbers.steps)
    return median(steps) if steps else None


table = table_of(
    TableColumn("function", lambda row: row.config.function),
    TableColumn("as a formula", lambda row: FUNCTIONS[row.config.function].formula),
    TableColumn("n", lambda row: row.config.n),
    TableColumn("architecture", lambda row: row.config.architecture),
    TableColumn("trained parameters", lambda row: row.numbers.parameters),
    TableColumn("learned", lambda row: share_of([row])),
    TableColumn("best rate", lambda row: row.numbers.rate, "g"),
    TableColumn("median accuracy", lambda row: median(row.numbers.accuracy), ".4f"),
    TableColumn("median steps", _median_steps, ".0f"),
    TableColumn("of those learned: support recovered", lambda row: _named(row.numbers)),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare both architectures per n, function by function."""
    sizes = sorted({row.config.n for row in rows})

    def compared(n: int) -> str:
        learned = {(r.config.function, r.config.architecture): sum(r.numbers.learned) for r in rows if r.config.n == n}
        parts = [
            f"{name} {learned[name, 'attention']} against {learned[name, 'FFNN-1']}"
            for name in dict.fromkeys(row.config.function for row in rows)
        ]
        return f"n = {n}: " + ", ".join(parts)

    attention = [row for row in rows if row.config.architecture == "attention"]
    found = sum(sum(row.numbers.learned) for row in attention)
    named = sum(_named(row.numbers) or 0 for row in attention)
    return [
        Finding(
            "Open question: does the parameter efficiency of transformers carry over to other low-sensitivity "
            "functions?",
            f"Seeds of {rows[0].config.seeds} that learned within {rows[0].config.steps} steps, attention "
            "against FFNN-1 of the same count. " + "; ".join(map(compared, sizes)) + ".",
        ),
        Finding(
            "(Do the heads find the bits?)",
            f"In {named} of {found} runs that learned with attention, the k most attended positions are the hidden "
            "bits.",
        ),
    ]
