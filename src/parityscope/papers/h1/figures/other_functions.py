"""Other functions of few bits: learned attention with a trained classification head against FFNN-1 of matched size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.ties import largest, predicts_plus
from parityscope.models import FFNN1, AttentionFFNN
from parityscope.models.positions import default_numbers_per_head, random_signs
from parityscope.papers.cells import share_of
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import seeded_generator
from parityscope.records import Config, Numbers, Result, Row
from parityscope.training.learning import LEARNED_ACCURACY
from parityscope.training.networks import FreshTraining, seeded_ffnn, stacked, train_on_fresh_examples

ID = "H1-other-functions"
TITLE = "Beyond parity: other functions of few bits"
TEXT = (
    "Functions of three or four of n bits, the bits drawn anew for every seed. Attention: 2k heads on random-sign "
    "positions (8⌈log₂ n⌉ numbers each), their outputs side by side, and an FFNN-1 of 16 neurons behind them, all "
    "trained together; averaging the heads as in H1 would only allow symmetric functions. FFNN-1: one hidden layer "
    "on all n bits, as wide as the same number of trained numbers allows. Both see the same fresh examples, Adam on "
    "the hinge loss, the best of several rates. A run learned when it classifies more than 99 % of 2^14 fresh "
    "examples right. Training is short below paper scale, so a run that has not learned might with more steps. As n "
    "grows, attention's count grows with log n and the FFNN-1 of the same count gets narrower."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 11, "reference": 22, "paper": 900}
Architecture = Literal["attention", "FFNN-1"]
_ARCHITECTURES: tuple[Architecture, ...] = get_args(Architecture)
_HEADS_PER_BIT, _WIDTH, _START_RADIUS, _CHECKED_ON = 2, 16, 2.0, 2**14


class FewBits(NamedTuple):
    """A function of k signs χ_i = (−1)^{x_i}, and how it reads.

    >>> majority = FUNCTIONS["majority"]
    >>> majority.formula, majority.label(torch.tensor([1.0, -1.0, -1.0])).item()
    ('sign(χ₁ + χ₂ + χ₃)', -1.0)
    """

    k: int
    label: Callable[[Float[Tensor, "*batch k"]], Float[Tensor, "*batch"]]
    formula: str


def _product(signs: Tensor, *which: int) -> Tensor:
    return signs[..., list(which)].prod(-1)


FUNCTIONS: dict[str, FewBits] = {
    "AND": FewBits(3, lambda s: 2 * (s < 0).all(-1).to(s.dtype) - 1, "x₁ ∧ x₂ ∧ x₃"),
    "majority": FewBits(3, lambda s: s.sum(-1).sign(), "sign(χ₁ + χ₂ + χ₃)"),
    "staircase": FewBits(
        3, lambda s: (s[..., 0] + _product(s, 0, 1) + _product(s, 0, 1, 2)).sign(), "sign(χ₁ + χ₁χ₂ + χ₁χ₂χ₃)"
    ),
    # Where the two monomials cancel, half of χ₁ decides.
    "polynomial": FewBits(
        4, lambda s: (_product(s, 0, 1) + _product(s, 2, 3) + s[..., 0] / 2).sign(), "sign(χ₁χ₂ + χ₃χ₄ + χ₁/2)"
    ),
    "parity": FewBits(3, lambda s: s.prod(-1), "χ₁χ₂χ₃"),
}


class TaskNumbers(Numbers):
    """TODO."""


class Task(Config):
    """One function at one n for one architecture."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = TaskNumbers

    function: str
    n: int
    architecture: Architecture
    seeds: int
    steps: int
    batch: int
    rates: tuple[float, ...]

    def run(self) -> Result:
        """Train all seeds at all rates and keep the best rate."""
        seeds = [seed for _ in self.rates for seed in range(self.seeds)]
        rates = [rate for rate in self.rates for _ in range(self.seeds)]
        few = FUNCTIONS[self.function]
        places = hidden_places(self.n, few.k, seeds)

        def target(x: Tensor) -> Tensor:
            return few.label(1 - 2 * x.gather(-1, places.unsqueeze(1).expand(-1, x.shape[1], -1)))

        attention = attention_networks(self.n, few.k, seeds)
        width = matched_width(attention.trained_parameters(), self.n)
        network: AttentionFFNN | FFNN1 = (
            attention if self.architecture == "attention" else seeded_ffnn(self.n, width, seeds)
        )
        network = network.float()
        training = FreshTraining(steps=self.steps, batch=self.batch)
        state = train_on_fresh_examples(network, target, self.n, seeds, rates, training)
        accuracy = _checked_accuracy(network, target, self.n, len(seeds)).reshape(len(self.rates), self.seeds)
        learned = accuracy > LEARNED_ACCURACY
        best = int(learned.sum(-1).argmax())
        steps = state.finished_at.reshape(learned.shape)[best][learned[best]]
        numbers: dict[str, Any] = {
            "learned": int(learned[best].sum()),
            "rate": self.rates[best],
            "parameters": network.trained_parameters(),
            "median_accuracy": float(accuracy[best].quantile(0.5)),
            "median_steps": float(steps.double().quantile(0.5)) if len(steps) else None,
        }
        if isinstance(network, AttentionFFNN):
            looked = largest(network.attention().amax(-2), few.k)
            named = (looked == places.sort(-1).values).all(-1).reshape(learned.shape)[best]
            numbers["named_among_learned"] = int((named & learned[best]).sum())
        return Result(numbers)


def _configs(sizes: Sequence[int], seeds: int, steps: int, batch: int, rates: tuple[float, ...]) -> list[Task]:
    return [
        Task(function=name, n=n, architecture=kind, seeds=seeds, steps=steps, batch=batch, rates=rates)
        for name in FUNCTIONS
        for n in sizes
        for kind in _ARCHITECTURES
    ]


_Row = Row[Task, TaskNumbers]

CONFIGS: dict[Scale, list[Task]] = {
    "smoke": _configs((8,), 3, 15, 64, (0.03,)),
    "demo": _configs((16, 64), 4, 150, 128, (0.1, 0.03)),
    "reference": _configs((16, 64), 8, 250, 128, (0.1, 0.03)),
    "paper": _configs((16, 32, 64, 128), 32, 10_000, 512, (0.1, 0.03, 0.01)),
}


def attention_networks(n: int, k: int, seeds: Sequence[int]) -> AttentionFFNN:
    """Return one network of separate heads per seed, on a run axis.

    >>> attention_networks(8, 3, range(5)).attention().shape  # two heads per hidden bit
    torch.Size([5, 6, 8])
    """
    numbers = default_numbers_per_head(n)

    def one(seed: int) -> AttentionFFNN:
        positions = random_signs(n, numbers, seeded_generator(seed, "positions"))
        start = seeded_generator(seed, "start")
        return AttentionFFNN(positions, _HEADS_PER_BIT * k, _WIDTH, start_radius=_START_RADIUS, generator=start)

    return stacked([one(seed) for seed in seeds])


def matched_width(parameters: int, n: int) -> int:
    """Return the widest FFNN-1 on n bits with at most so many trained numbers, q(n + 2) + 1.

    >>> matched_width(100, 8)
    9
    """
    return max(1, (parameters - 1) // (n + 2))


def hidden_places(n: int, k: int, seeds: Sequence[int]) -> Tensor:
    """Return each seed's hidden bits in the order the function reads them, (runs, k).

    >>> hidden_places(3, 3, [0, 1]).sort().values.tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    return torch.stack([torch.randperm(n, generator=seeded_generator(seed, "support"))[:k] for seed in seeds])


def _checked_accuracy(network: nn.Module, target: Callable[[Tensor], Tensor], n: int, runs: int) -> Tensor:
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
        axes.set_title(f"n = {n} (trained numbers: {described})", fontsize=10)
        axes.set_xticks(range(len(names)), [f"{name}\nk = {FUNCTIONS[name].k}" for name in names])
        axes.set(ylabel="share of seeds that learned", xlim=(-0.5, len(names) - 0.5))
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def table(rows: Sequence[_Row]) -> Table:
    """Return every task."""
    header = [
        "function",
        "as a formula",
        "n",
        "architecture",
        "trained numbers",
        "learned",
        "best rate",
        "median accuracy",
        "median steps",
        "of those learned: bits named",
    ]

    def line(row: _Row) -> list[str]:
        steps, named = row.numbers.median_steps, row.numbers.get("named_among_learned")
        return [
            row.config.function,
            FUNCTIONS[row.config.function].formula,
            str(row.config.n),
            row.config.architecture,
            str(row.numbers.parameters),
            str(share_of([row])),
            f"{row.numbers.rate:g}",
            f"{row.numbers.median_accuracy:.4f}",
            "–" if steps is None else f"{steps:.0f}",
            "–" if named is None else str(named),
        ]

    return Table(header, [line(row) for row in rows])


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Compare both architectures per n, function by function."""
    sizes = sorted({row.config.n for row in rows})

    def compared(n: int) -> str:
        cells = {(r.config.function, r.config.architecture): r for r in rows if r.config.n == n}
        parts = [
            f"{name} {cells[name, 'attention'].numbers['learned']} against {cells[name, 'FFNN-1'].numbers['learned']}"
            for name in dict.fromkeys(row.config.function for row in rows)
        ]
        return f"n = {n}: " + ", ".join(parts)

    attention = [row for row in rows if row.config.architecture == "attention"]
    learned = sum(row.numbers.learned for row in attention)
    named = sum(row.numbers.named_among_learned for row in attention)
    return [
        Finding(
            "Open question: does the parameter efficiency of transformers carry over to other low-sensitivity "
            "functions?",
            f"Seeds of {rows[0].config.seeds} that learned within {rows[0].config.steps} steps, attention "
            "against FFNN-1 of the same count. " + "; ".join(map(compared, sizes)) + ".",
        ),
        Finding(
            "(Do the heads find the bits?)",
            f"In {named} of {learned} runs that learned with attention, the k most attended positions are the hidden "
            "bits.",
        ),
    ]
