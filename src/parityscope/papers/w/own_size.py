"""W's trainings at W's own size: which of them, for which figure, the most telling first.

Width 720, MLP 3072, batch 512, Adam with rate 1e-4 falling linearly over W's budget of 10⁷ samples, 2048 held-out
inputs (W, Appendix C.1). They take minutes to an hour each on one core, so `make w-own-size` computes them, for as long
as it is let, and the reference run only reads what is stored. Products behind attention take factors rounded to
bfloat16, which halves the time; float32 stands beside the first of them. Trainings of several layers without a chain
(Figure 5, most of Figures 4 and 10) would take 13 to 38 hours each and are not planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from parityscope.papers.figure import Finding
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    FRESH,
    OWN_WIDTH,
    DecoderCell,
    DecoderRow,
    ShownDecoder,
    best_accuracy,
    of_own_size,
    samples,
)

OWN_COMMAND = "make w-own-size"
_STEPS = 19_531  # of 512 samples: 10⁷ in all, and 1000 epochs of 10⁴
_POOL = 10_000
BESIDE = "beside it: "  # labels of trainings that are compared with, and judge nothing
AT_OWN_SIZE = ", W's size"  # ends labels that narrower trainings have too
_FIRST = FRESH[:1]


def _own(label: str, n: int, k: int, *, maps: bool = True, **changes: Any) -> ShownDecoder:
    usual = {
        "width": OWN_WIDTH,
        "mlp_width": 3072,
        "learning_rate": 1e-4,
        "batch": 512,
        "steps": _STEPS,
        "held_out": 2048,
        "evaluate_every": 10 if changes.get("chain_of_thought", True) else 100,
        "rounded": True,
    }
    return ShownDecoder.of(label, n, k, maps=maps, **{**usual, **changes})


def _without(label: str, n: int, k: int, **changes: Any) -> ShownDecoder:
    return _own(label, n, k, chain_of_thought=False, **changes)


def _pool(heads: int, seeds: Iterable[int], pool: int | None = _POOL, **changes: Any) -> list[ShownDecoder]:
    """Return W's trainings without CoT on a pool of (20, 6), one layer."""
    label = changes.pop("label", f"1 × {heads}")
    return [_without(label, 20, 6, heads=heads, pool=pool, seed=seed, **changes) for seed in seeds]


# Where W names no shape, four heads: a chain with one may stay on the plateau of short chains for its whole budget.
def _chain_on_pool(k: int, seeds: Iterable[int], label: str = CHAIN, **changes: Any) -> list[ShownDecoder]:
    return [_own(label, 20, k, pool=_POOL, seed=seed, **changes) for seed in seeds]


def _growth(ks: Iterable[int], seeds: Iterable[int], chain: bool) -> list[ShownDecoder]:
    label = (CHAIN if chain else ANSWER) + AT_OWN_SIZE
    return [(_own if chain else _without)(label, 20, k, heads=4, seed=seed) for seed in seeds for k in ks]


def _shapes(layers: Iterable[int], chain: bool) -> list[ShownDecoder]:
    return [
        (_own if chain else _without)(
            f"{depth} × {heads}{AT_OWN_SIZE}", 30, k, layers=depth, heads=heads, seed=FRESH[0]
        )
        for depth in layers
        for heads in range(1, 5)
        for k in range(1, 5)
    ]


def _map(seeds: Iterable[int]) -> list[ShownDecoder]:
    return [_own(f"attention map{AT_OWN_SIZE}", 40, 20, extra_steps=100, seed=seed) for seed in seeds]


def _two_by_two(seeds: Iterable[int]) -> list[ShownDecoder]:
    return [_own("2 × 2", 20, 6, layers=2, heads=2, extra_steps=100, seed=seed) for seed in seeds]


_FROM_POOLS = ("W-figure-4", "W-figure-11")
# In the order of what they tell per hour: the figures that they are of, and the trainings.
_IN_ORDER: tuple[tuple[tuple[str, ...], list[ShownDecoder]], ...] = (
    (_FROM_POOLS, _pool(4, _FIRST)),
    (("W-figure-4",), _chain_on_pool(6, FRESH, heads=4)),
    (("W-figure-4",), _chain_on_pool(6, _FIRST, BESIDE + "float32", heads=4, rounded=False)),
    (("W-figure-8",), _two_by_two(FRESH)),
    (_FROM_POOLS, [*_pool(3, _FIRST), *_pool(2, _FIRST)]),
    ((*_FROM_POOLS, "W-figure-10"), _pool(1, _FIRST)),
    (("W-figure-1",), _growth((6, 12, 4, 8, 1, 2, 5, 3, 10, 7, 9, 11), _FIRST, chain=True)),
    (_FROM_POOLS, _pool(4, FRESH[1:])),
    (("W-figure-1",), _growth((1, 2, 3), _FIRST, chain=False)),
    (("W-figure-9",), _chain_on_pool(12, _FIRST, heads=4)),
    (("W-figure-4",), _pool(4, _FIRST, None)),
    (("W-figure-3",), _map(_FIRST)),
    (("W-figure-3",), [_own(f"samples{AT_OWN_SIZE}", 100, k, maps=False, seed=FRESH[0]) for k in (20, 40)]),
    (("W-figure-9",), _chain_on_pool(12, FRESH[1:], heads=4)),
    (
        ("W-figure-9",),
        [
            _without(ANSWER, 20, 12, heads=heads, pool=pool, seed=FRESH[0])
            for pool in (_POOL, 1_000_000)
            for heads in (4, 1)
        ],
    ),
    (("W-figure-10",), [one for pool in (5000, 50_000, 100_000, 1_000_000) for one in _pool(1, _FIRST, pool)]),
    (("W-figure-3",), [_own(f"samples{AT_OWN_SIZE}", 100, k, maps=False, seed=FRESH[0]) for k in (60, 80, 100)]),
    (("W-figure-1",), _growth(range(1, 13), FRESH[1:], chain=True)),
    (("W-figure-1",), _growth((4,), _FIRST, chain=False)),
    (("W-figure-3",), _map(FRESH[1:])),
    (("W-figure-2",), [*_shapes((1,), chain=True), *_shapes((1,), chain=False)]),
    (("W-figure-3",), [_without(ANSWER, 100, 4, seed=FRESH[0])]),
    (_FROM_POOLS, [*_pool(3, FRESH[1:]), *_pool(2, FRESH[1:]), *_pool(1, FRESH[1:])]),
    (("W-figure-1",), _growth(range(1, 5), FRESH[1:], chain=False)),
    (("W-figure-4",), _pool(4, FRESH[1:], None)),
    (("W-figure-4",), _chain_on_pool(6, FRESH, BESIDE + "one head with CoT")),
    (("W-figure-4",), _pool(4, _FIRST, label=BESIDE + "float32", rounded=False)),
    (("W-figure-2",), _shapes((2, 3, 4), chain=True)),
)
# W's code drops a tenth of everything, its text nothing; cheap enough to stand beside is the chain.
_DROPOUT = _chain_on_pool(6, _FIRST, BESIDE + "dropout 0.1", heads=4, dropout=0.1)


def planned() -> list[ShownDecoder]:
    """Return every training, the most telling first.

    >>> first = planned()[0].training
    >>> first.n, first.k, first.heads, first.pool, first.width
    (20, 6, 4, 10000, 720)
    """
    return [*(training for _, trainings in _IN_ORDER for training in trainings), *_DROPOUT]


def planned_for(figure: str) -> tuple[ShownDecoder, ...]:
    """Return the trainings of a figure.

    >>> len(planned_for("W-figure-8")), planned_for("W-figure-5")
    (5, ())
    """
    beside = _DROPOUT if figure == "W-figure-4" else []
    return (*_trainings_of(figure), *beside)


def _trainings_of(figure: str) -> Iterator[ShownDecoder]:
    return (training for figures, trainings in _IN_ORDER if figure in figures for training in trainings)


def found_at_own_size(said: str) -> Callable[[Sequence[DecoderRow]], list[Finding]]:
    """Return findings that set a figure's words beside its trainings of W's own size, as far as they are there.

    Minutes are those of one core by the steps taken: the clock would count what else the machine did, and a training
    that was stopped in between from its last checkpoint on only.

    >>> findings = found_at_own_size("It is learned.")
    >>> findings([])
    []
    """

    def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
        own = [row for row in rows if of_own_size(row)]
        cells: dict[str, list[DecoderRow]] = {}
        for row in own:
            cells.setdefault(_cell_name(row.config), []).append(row)
        here = "; ".join(f"{name}: {_outcome(DecoderCell(tuple(found)))}" for name, found in cells.items())
        return [Finding(said, f"At W's own size: {here}.")] if own else []

    return findings


def _cell_name(shown: ShownDecoder) -> str:
    training = shown.training
    beside = f"{shown.label} " if shown.label.startswith(BESIDE) else ""
    data = "fresh samples" if training.pool is None else f"pool of {training.pool:,}"
    chain = CHAIN if training.chain_of_thought else ANSWER
    return f"{beside}({training.n}, {training.k}) {chain}, {training.layers} × {training.heads}, {data}"


def _outcome(cell: DecoderCell) -> str:
    """Say which seeds learned, after how many samples and epochs, or how far they came; and the minutes it took."""
    count, pool = len(cell.rows), cell.rows[0].config.training.pool
    said = f"{cell.reached} of {count} {'seed learns' if count == 1 else 'seeds learn'}"
    if cell.needed:
        said += f" after {_span(cell.needed, ',')} samples"
        said += "" if pool is None else f" ({_span([needed / pool for needed in cell.needed], '.1f')} epochs)"
    unlearned = [row for row in cell.rows if samples(row) is None]
    if unlearned:
        said += f", {len(unlearned)} reach accuracy {_span(list(map(best_accuracy, unlearned)), '.2f')}"
        said += f" and end with training loss {_span([float(row.arrays['loss'][-1]) for row in unlearned], '.2f')}"
    minutes = sum(row.numbers.steps * step_seconds(row.config) for row in cell.rows) / 60
    return f"{said}, {minutes:.0f} min"


def _span(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


# Processor seconds on an EPYC core with AVX-512: of a predicted token of 512 sequences in the last layer, and of a
# position in an earlier one, of which a batch shares a part.
_LAST, _EARLIER = 0.1, 0.11
_FLOAT32 = 2.0  # times as long as bfloat16


def step_seconds(shown: ShownDecoder) -> float:
    """Return about how long a step takes on one core.

    >>> answer, chain, *_ = planned()
    >>> round(step_seconds(answer), 2), round(step_seconds(chain), 2)
    (0.1, 0.6)
    """
    training = shown.training
    tokens = training.n + (training.k if training.chain_of_thought else 1)
    predicted = training.k if training.chain_of_thought else 1
    if training.dropout:  # takes the plain path through every position
        predicted = tokens
    seconds = _LAST * predicted + _EARLIER * tokens * (training.layers - 1)
    return seconds * (1.0 if training.rounded else _FLOAT32)
