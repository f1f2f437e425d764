"""The plateau of short chains: what a decoder computes there, and what ends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, draw_shares, new_figure
from parityscope.core.statistics import Share, median, wilson_share
from parityscope.papers.cells import by_label
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.settings import (
    FRESH,
    DecoderRow,
    ShownDecoder,
    laptop,
    narrow,
    samples,
    smoke,
    training_table,
)

ID = "W-plateau"
TITLE = "W: where short chains get stuck"
TEXT = (
    "With one head, W's shape, chains of two and three links stop with every first link right and later links right "
    "three times in four. Left: such trainings (k = 2, width 128, one head, one line per seed): attention on the secret"
    " bit where the second link stands on a 0, so that it must copy the bit, and where it stands on a 1, so that it "
    "must negate it. Copying is learned first; for one who copies, the secret bit is misleading wherever the chain "
    "stands on a 1, so attention leaves it there, and no gradient brings it back. Middle: seeds that learn k = 2, with "
    "95 % intervals, when one thing is changed. Right: seeds that learn chains of k links. Only one link more than "
    "half asks for copying, 1/k of all: fewer links are harder. Everything on seeds that no setting was chosen on."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 8, "reference": 600}
BASE, LINKS, OURS = "one head, rate 5e-4", "one head", "eight heads, rate 1e-3, wider start"
_SHORT: dict[str, Any] = {"steps": 600, "held_out": 512, "evaluate_every": 20}
_BASE: dict[str, Any] = {"heads": 1, "start_gain": 1.0, "learning_rate": 5e-4, **_SHORT}
_DEMO: dict[str, Any] = {"heads": 1, "start_gain": 1.0, "steps": 300}
_W: dict[str, Any] = {"width": 720, "mlp_width": 3072, "learning_rate": 1e-4, "steps": 300, "evaluate_every": 30}
_SCALED = 2.3717  # √(720 / 128): keeps the scale that matrices have at W's width
# One thing changed at a time, then two.
_CHANGES: dict[str, dict[str, Any]] = {
    BASE: {},
    "no loss on the first link": {"skip_labels": 1},
    "two heads": {"heads": 2},
    "four heads": {"heads": 4},
    "eight heads": {"heads": 8},
    "rate 1e-3": {"learning_rate": 1e-3},
    "rate 2e-3": {"learning_rate": 2e-3},
    "decay": {"decay": True},
    "batch 64": {"batch": 64, "steps": 2400},
    "batch 1024": {"batch": 1024, "steps": 150},
    "width 256": {"width": 256},
    "MLP width 1024": {"mlp_width": 1024},
    "wider start": {"start_gain": _SCALED},
    "W's width 720": _W,
    "four heads, rate 1e-3": {"heads": 4, "learning_rate": 1e-3},
    OURS: {"heads": 8, "learning_rate": 1e-3, "start_gain": _SCALED},
}
_LINKS = (1, 2, 3, 4, 6, 12)

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke(label) for label in (BASE, OURS)] + [smoke(LINKS, k=3)],
    "demo": [
        narrow(BASE, 16, 2, **_DEMO),
        narrow("no loss on the first link", 16, 2, skip_labels=1, **_DEMO),
        narrow(OURS, 16, 2, steps=300),
        *(narrow(LINKS, 16, k, **_DEMO) for k in (1, 2)),
    ],
    "reference": [
        *(
            laptop(label, 20, 2, seed=seed, **{**_BASE, **change})
            for label, change in _CHANGES.items()
            for seed in FRESH
        ),
        *(laptop(LINKS, 20, k, seed=seed, **_BASE) for k in _LINKS for seed in FRESH),
    ],
}


def _learned(rows: Sequence[DecoderRow]) -> Share:
    return wilson_share(sum(samples(row) is not None for row in rows), len(rows))


def _changes(rows: Sequence[DecoderRow]) -> dict[str, Share]:
    return {label: _learned(found) for label, found in by_label(rows).items() if label != LINKS}


def _by_links(rows: Sequence[DecoderRow]) -> dict[int, Share]:
    found = by_label(rows)[LINKS]
    ks = sorted({row.config.training.k for row in found})
    return {k: _learned([row for row in found if row.config.training.k == k]) for k in ks}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw attention by the token stood on, the changes that end the plateau, and the number of links."""
    figure, (left, middle, right) = new_figure(15, 5, 1, 3, width_ratios=(1.1, 1, 0.8))
    _draw_attention(left, by_label(rows)[BASE])
    changes = _changes(rows)
    for place, share in enumerate(changes.values()):
        middle.plot([share.low, share.high], [place, place], color=colour(0), linewidth=1.2)
        middle.plot(share.value, place, "o", color=colour(0))
    middle.set(xlim=(-0.03, 1.03), xlabel="share of seeds that learn k = 2", yticks=range(len(changes)))
    middle.set_yticklabels(list(changes), fontsize=9)
    middle.invert_yaxis()
    links = _by_links(rows)
    draw_shares(right, list(links), list(links.values()), color=colour(0))
    right.set(xlabel="links k", ylabel="share of seeds that learn, one head", ylim=(-0.03, 1.03))
    return figure


def _draw_attention(axes: Axes, rows: Sequence[DecoderRow]) -> None:
    for place, row in enumerate(rows):
        for token in (0, 1):
            label = f"standing on a {token}: {('copy', 'negate')[token]}" if place == 0 else None
            attention = row.arrays["by_token"][:, 1, token].numpy()
            axes.plot(row.arrays["step"].numpy(), attention, color=colour(token), linewidth=1.2, label=label)
    axes.axhline(1 / (rows[0].config.training.n + 2), color="0.5", linewidth=0.9, linestyle=":")
    axes.set(xlabel="step", ylabel="attention on the secret bit", ylim=(-0.02, 1.02))
    axes.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Say what is computed on the plateau and what ends it."""
    stuck = [row for row in by_label(rows)[BASE] if samples(row) is None]
    ended = [f"{label} {share}" for label, share in _changes(rows).items()]
    links = [f"k = {k} {share}" for k, share in _by_links(rows).items()]
    return [
        Finding("W mentions no plateau; with one head its decoder learns every k with CoT.", f"{_on_plateau(stuck)}."),
        Finding("What ends it?", f"Seeds that learn k = 2: {'; '.join(ended)}."),
        Finding("Are longer chains harder?", f"Seeds that learn with one head: {'; '.join(links)}."),
    ]


def _on_plateau(rows: Sequence[DecoderRow]) -> str:
    """Return how later links fare on the plateau, by whether the token stood on was learned better or worse."""
    if not rows:
        return "No training of this run stopped on the plateau"
    measured = [
        (row.numbers.right_by_token or (0.0, 0.0), row.numbers.attention_by_token or (0.0, 0.0)) for row in rows
    ]
    better = [max(zip(*both, strict=True)) for both in measured]
    worse = [min(zip(*both, strict=True)) for both in measured]
    copies = sum(right[0] >= right[1] for right, _ in measured)
    return (
        f"{len(rows)} trainings stopped there, {copies} of them having learned to copy (standing on a 0), the others "
        f"to negate. Standing on the token they learned, later links are right in {median(r for r, _ in better):.2f} "
        f"with {median(a for _, a in better):.3f} of the attention on the secret bit, standing on the other in "
        f"{median(r for r, _ in worse):.2f} with {median(a for _, a in worse):.4f} (medians; even attention gives "
        f"{1 / (rows[0].config.training.n + 2):.3f}): a coin flip without looking, not an AND"
    )
