"""Three heads near a wrong face: plain gradient flow rests there, leaves, and ends on the hidden bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.papers.own.flow import Floats, attention_of, heads_flow, loss_of
from parityscope.records import Config, Numbers, Result, Row

ID = "P-three-heads"
TITLE = "Three heads leave every wrong face"
TEXT = (
    "Three softmax heads with a free logit per position, n = 8, hidden bits 0, 1 and 2, plain gradient flow on log C, "
    "started beside faces of attention on which the flow rests: the heads share the bits out wrongly, or some look at "
    "other positions. Top: the attention of every head (colour) on hidden bits (solid) and on other positions "
    "(dashed), from the start that is furthest from the face; where heads agree, thin lines lie on thick ones. "
    "Bottom: −log C; a start that puts a share ε of attention elsewhere leaves the face (dotted) at a time of order "
    "1/ε, and then learns. Our theorem: from every start in the domain, all heads end on the hidden bits; it gives no "
    "rate, and these starts show why. The flow is on the population: this is about optimisation, not about examples."
)
COST: dict[Scale, float] = {"smoke": 0.3, "demo": 2, "reference": 8}
_N, _K = 8, 3
Start = Literal["two heads on one bit", "one head astray", "two heads astray", "one bit with company"]
# Attention of the three heads; hidden bits 0, 1, 2. In all of them g is the same wherever a head looks.
_FACES: dict[Start, list[dict[int, float]]] = {
    # c = ½, ½, 3/2 on the bits and ½ on position 3.
    "two heads on one bit": [{0: 0.5, 1: 0.5}, {2: 0.75, 3: 0.25}, {2: 0.75, 3: 0.25}],
    # c = ½, ½, 1 on the bits and ½ on positions 3 and 4.
    "one head astray": [{0: 0.5, 1: 0.5}, {2: 1.0}, {3: 0.5, 4: 0.5}],
    # c = ⅓ on all three bits and ½ on positions 3 to 6.
    "two heads astray": [{0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, {3: 0.5, 4: 0.5}, {5: 0.5, 6: 0.5}],
    # c = ½, ½, 4/3 on the bits and ⅓ on positions 3 and 4.
    "one bit with company": [{0: 0.5, 1: 0.5}, {2: 2 / 3, 3: 1 / 3}, {2: 2 / 3, 4: 1 / 3}],
}
_TITLES: dict[Start, str] = {
    "two heads on one bit": "two heads on one bit\nand a wrong position",
    "one head astray": "one head on two bits,\none on wrong positions",
    "two heads astray": "one head on all bits,\ntwo on wrong positions",
    "one bit with company": "two heads on one bit,\neach with a wrong position",
}


class FlowNumbers(Numbers):
    """Where a flow rested, when it left, and where it ended."""

    resting_loss: float  # −log C of the face itself
    left_at: float | None  # the first recorded time with half of that
    final_loss: float
    largest_rise: float  # of −log C between two records; not above rounding


class HeadsFlow(Config):
    """The flow from one start."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = FlowNumbers

    start: Start
    elsewhere: float  # ε: the share of every head's attention that is not on the face
    until: float
    records: int
    seed: int = 1000

    def run(self) -> Result:
        """Integrate the flow."""
        hidden = np.arange(_N) < _K
        face = face_of(self.start)
        # A share ε everywhere, at random: equal shares would keep symmetries that no start has.
        noise = np.random.default_rng(self.seed).exponential(size=face.shape)
        logits = np.log((1 - self.elsewhere) * face + self.elsewhere * noise / noise.sum(-1, keepdims=True))
        times = np.concatenate([[0.0], np.geomspace(1e-2, self.until, self.records)])
        path = heads_flow(logits, hidden, times)
        attention = attention_of(path)
        losses = np.array([loss_of(one, hidden) for one in _K * attention.mean(1)])
        resting = loss_of(_K * face.mean(0), hidden)
        below = np.flatnonzero(losses < resting / 2)
        numbers = FlowNumbers(
            resting_loss=resting,
            left_at=float(times[below[0]]) if len(below) else None,
            final_loss=float(losses[-1]),
            largest_rise=float(np.diff(losses).max()),
        )
        arrays = {"times": times, "attention": attention.round(4), "loss": losses}  # attention as it is drawn
        return Result(numbers, {name: torch.from_numpy(array).float() for name, array in arrays.items()})


def face_of(start: Start) -> Floats:
    """Return the attention of three heads on a face where the flow rests, (3, 8)."""
    face = np.zeros((len(_FACES[start]), _N))
    for head, places in enumerate(_FACES[start]):
        for position, share in places.items():
            face[head, position] = share
    return face


_Row = Row[HeadsFlow, FlowNumbers]


def _flows(
    distances: Sequence[float], until: float, starts: Sequence[Start] = get_args(Start), records: int = 120
) -> list[HeadsFlow]:
    return [
        HeadsFlow(start=start, elsewhere=one, until=until, records=records) for start in starts for one in distances
    ]


CONFIGS: dict[Scale, list[HeadsFlow]] = {
    "smoke": _flows((1e-1,), 1e3, get_args(Start)[:2], 40),
    "demo": _flows((1e-2, 1e-4), 1e7, records=100),
    "reference": _flows((1e-2, 1e-4, 1e-6), 1e9),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw one column per start: attention above, −log C below."""
    starts = list(dict.fromkeys(row.config.start for row in rows))
    figure, panels = new_figure(1.2 + 3.1 * len(starts), 5.6, 2, len(starts), sharex=True, sharey="row", squeeze=False)
    for column, start in enumerate(starts):
        mine = sorted((row for row in rows if row.config.start == start), key=lambda row: -row.config.elsewhere)
        _draw_attention(panels[0, column], mine[0])
        panels[0, column].set_title(_TITLES[start], fontsize=10)
        _draw_losses(panels[1, column], mine)
        panels[1, column].set_xlabel("time")
    panels[0, 0].set_ylabel("attention")
    panels[1, 0].set_ylabel("−log C")
    ink = matplotlib.rcParams["text.color"]
    handles = [
        Line2D([], [], color=colour(head), linewidth=3.6 - 1.2 * head, label=f"head {head + 1}") for head in range(_K)
    ]
    handles += [Line2D([], [], color=ink, label="on a hidden bit")]
    handles += [Line2D([], [], color=ink, linestyle=(0, (4, 2)), label="on another position")]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=9)
    return figure


def _draw_attention(axes: Axes, row: _Row) -> None:
    times, attention = row.arrays["times"][1:], row.arrays["attention"][1:]
    for head in range(attention.shape[1]):
        for position in range(_N):
            if float(attention[:, head, position].max()) > 0.02:
                style = "-" if position < _K else (0, (4, 2))
                axes.plot(
                    times, attention[:, head, position], color=colour(head), linestyle=style, linewidth=3.6 - 1.2 * head
                )
    axes.text(0.97, 0.5, f"ε = {_power(row.config.elsewhere)}", transform=axes.transAxes, fontsize=9, ha="right")
    axes.set(xscale="log", ylim=(-0.03, 1.06))


def _draw_losses(axes: Axes, rows: Sequence[_Row]) -> None:
    for index, row in enumerate(rows):
        axes.plot(
            row.arrays["times"][1:],
            row.arrays["loss"][1:],
            color=colour(index + 3 if len(rows) <= 3 else index),
            linewidth=1.8,
            label=f"ε = {_power(row.config.elsewhere)}",
        )
    axes.axhline(rows[0].numbers.resting_loss, color="#888888", linewidth=1, linestyle=":")
    axes.set(xscale="log", yscale="log")
    axes.grid(True, which="major", linewidth=0.5)
    axes.legend(fontsize=8, loc="lower left")


def _power(value: float) -> str:
    return f"$10^{{{round(math.log10(value))}}}$"


table = table_of(
    TableColumn("start", lambda row: row.config.start),
    TableColumn("ε", lambda row: row.config.elsewhere, "g"),
    TableColumn("−log C of the face", lambda row: row.numbers.resting_loss, ".3f"),
    TableColumn("left it at", lambda row: row.numbers.left_at, ".3g"),
    TableColumn("−log C at the end", lambda row: row.numbers.final_loss, ".1e"),
    TableColumn("time of the end", lambda row: row.config.until, ".0e"),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Count the flows that left their face."""
    left = [row for row in rows if row.numbers.left_at is not None]
    times = [f"{row.numbers.left_at:.2g} (ε = {row.config.elsewhere:g})" for row in left if row.numbers.left_at]
    return [
        Finding(
            "(Ours, after H1's Theorem 5: k heads converge from every start in the domain.)",
            f"{len(left)} of {len(rows)} flows leave their face, after times of {', '.join(times)}. −log C never rises "
            f"by more than {max(max(row.numbers.largest_rise, 0.0) for row in rows):.0e}; it ends between "
            f"{min(row.numbers.final_loss for row in rows):.0e} and {max(row.numbers.final_loss for row in rows):.0e}.",
        )
    ]
