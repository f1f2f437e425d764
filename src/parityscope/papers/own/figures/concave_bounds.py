"""−log C along training, against what is proved of it: mirror flow and steps, gradient ascent, Newton."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.models import is_face
from parityscope.models.positions import floating
from parityscope.papers.figure import Finding, Scale, TableColumn, fresh, table_of
from parityscope.papers.own.flow import mirror_flow
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import law_of
from parityscope.runs import training
from parityscope.runs.training import Training
from parityscope.theory.own import ascent_bound
from parityscope.training.build import build_model
from parityscope.training.steps.ascent import ArmijoAscent
from parityscope.training.steps.log_attention import log_value
from parityscope.training.steps.mirror import AttentionGradient
from parityscope.training.steps.newton import DampedNewton

ID = "P-concave-bounds"
TITLE = "−log C against its bounds"
TEXT = (
    "What −log C is (solid and dotted) and what is proved of it (black and dashed). First: the mirror flow with one "
    "number per position, from uniform attention (solid) and from random starts (dotted): −log C ≤ 2k/t², without n, "
    "and from uniform attention also k log(n/k)/(2t); all divided by k. Second: mirror descent with the steps η of its "
    "theorem; the certificate k log(n/k)/(2Ση) can be printed by every run. Third: gradient ascent on one concave "
    "head with ⌈2k log n⌉ random signs, steps by Armijo's test with constant ½; the bound (dashed, of every run its "
    "own) is [1.4 + (|q*|² + 1) log²(nT)/(8m²)]/T with T = Ση and a certificate q* of margin m. Last: Newton's steps "
    "on the same head, and on 2k harmonics; what is proved of them, O(1/T), is far above. Seeds from 1000 on; "
    "population gradients."
)
COST: dict[Scale, float] = {"smoke": 0.5, "demo": 2, "reference": 40}
Rule = Literal["flow", "mirror", "armijo", "newton"]


class CurveNumbers(Numbers):
    """How far below its bound a run stayed, one entry per seed."""

    largest_share: tuple[float, ...]  # of the bound, over all records where it applies; 0 where nothing is proved
    largest_rise: float  # of −log C between two records
    final_loss: tuple[float, ...]
    steps: int


class Curve(Config):
    """One rule at one size: −log C (records, seeds) against t, Ση or steps, and its bound."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = CurveNumbers

    rule: Rule
    training: Training
    records: int

    def run(self) -> Result:
        """Follow the rule."""
        follow: dict[Rule, Callable[[Curve], _Traced]] = {
            "flow": _flow,
            "mirror": _mirror,
            "armijo": _armijo,
            "newton": _newton,
        }
        at, loss, bound = (torch.stack(list(column)) for column in zip(*follow[self.rule](self), strict=True))
        share = (loss / bound).nan_to_num(0.0)
        numbers = CurveNumbers(
            largest_share=tuple(share.amax(0).tolist()),
            largest_rise=float(loss.diff(dim=0).max()),
            final_loss=tuple(loss[-1].tolist()),
            steps=len(at) - 1,
        )
        kept = _shown(len(at))
        arrays = {"at": at, "loss": loss, "bound": bound}
        return Result(numbers, {name: array[kept].float() for name, array in arrays.items()})


def _shown(records: int, most: int = 150) -> list[int]:
    """Return the records that a logarithmic axis shows; the numbers are taken over all of them."""
    return (
        list(range(records)) if records <= most else sorted({round(one) - 1 for one in np.geomspace(1, records, most)})
    )


_Traced = Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]  # where, −log C, its bound; each (seeds,)
_Row = Row[Curve, CurveNumbers]


def _flow(curve: Curve) -> _Traced:
    """Follow the mirror flow; the first seed starts at uniform attention, the others at random."""
    n, k = curve.training.n, curve.training.k
    times = np.geomspace(0.05, 100, curve.records)
    losses = []
    for index, problem in enumerate(curve.training.problems()):
        hidden = np.isin(np.arange(n), problem.support)
        draw = np.random.default_rng(curve.training.seeds[index])
        start = np.zeros(n) if index == 0 else draw.normal(size=n)
        losses.append(mirror_flow(start, hidden, times))
    loss = torch.from_numpy(np.stack(losses, axis=1))
    at = torch.from_numpy(times)[:, None].expand_as(loss)
    return list(zip(at, loss, 2 * k / at**2, strict=True))


def _stepped(
    curve: Curve, make: Callable[..., AttentionGradient | ArmijoAscent | DampedNewton]
) -> tuple[AttentionGradient | ArmijoAscent | DampedNewton, Callable[[], torch.Tensor]]:
    """Return an optimiser on a fresh model, and a function that takes a step and returns −log C before it."""
    asked = curve.training
    law = law_of(asked.problems())
    model = build_model(asked.recipe, asked.n, asked.k, asked.seeds)
    optimiser = make(model, law)

    def step() -> torch.Tensor:
        optimiser.zero_grad()
        loss = -log_value(model.score_weights(), law.mask)
        loss.sum().backward()
        optimiser.step()
        return loss.detach()

    return optimiser, step


def _mirror(curve: Curve) -> _Traced:
    """Take mirror steps; the certificate tells Ση, which is k log(n/k) divided by twice it."""
    n, k = curve.training.n, curve.training.k
    optimiser, step = _stepped(curve, AttentionGradient)
    step()
    traced = []
    for _ in range(curve.records):
        bound = optimiser.certificate().at_most
        traced.append((k * math.log(n / k) / (2 * bound), step(), bound))
    return traced


def _armijo(curve: Curve) -> _Traced:
    """Take gradient steps; the bound comes from the certificate of every run's own face, found by geometry."""
    n = curve.training.n
    optimiser, step = _stepped(curve, ArmijoAscent)
    model = optimiser.model
    certificates = []
    for problem, code in zip(curve.training.problems(), floating(model.positions), strict=True):
        scores, inside = code @ is_face(code, problem.support).q, list(problem.support)
        level = float(scores[inside].mean())
        scores[inside] = -torch.inf
        certificates.append((1 / level, (level - float(scores.max())) / level))  # scaled to level 1: |q*|, m
    total, traced = torch.zeros(len(certificates), dtype=torch.float64), []
    step()
    for _ in range(curve.records):
        total = total + optimiser.state_dict()["state"][0]["length"]
        bounds = [ascent_bound(n, float(t), *own) for t, own in zip(total, certificates, strict=True)]
        traced.append((total, step(), torch.tensor(bounds, dtype=torch.float64)))
    return traced


def _newton(curve: Curve) -> _Traced:
    """Take Newton's steps, for which no bound is drawn: what is proved of them is far above."""
    _, step = _stepped(curve, DampedNewton)
    unbounded = torch.full((len(curve.training.seeds),), torch.inf, dtype=torch.float64)
    return [(torch.zeros_like(unbounded) + index, step(), unbounded) for index in range(curve.records)]


def _curve(rule: Rule, n: int, k: int, seeds: int, records: int, positions: str = "random-signs") -> Curve:
    recipe, code = ("mirror", "orthogonal") if rule in ("flow", "mirror") else ("concave", positions)
    trained = training(recipe, n, k, seeds=fresh(seeds), positions=code)
    return Curve(rule=rule, training=trained, records=records)


def _curves(sizes: Sequence[tuple[int, int]], seeds: int, records: int, harmonic: tuple[int, int]) -> list[Curve]:
    """Return the four rules at some sizes; gradient ascent at the first two, where it gets anywhere."""
    return [
        *(_curve("flow", n, k, min(seeds, 3), 60) for n, k in sizes),
        *(_curve("mirror", n, k, 1, min(records, 150)) for n, k in sizes),
        *(_curve("armijo", n, k, seeds, records) for n, k in sizes[:2]),
        *(_curve("newton", n, k, seeds, 11) for n, k in sizes),
        _curve("newton", *harmonic, seeds, 21, "harmonics"),
    ]


CONFIGS: dict[Scale, list[Curve]] = {
    "smoke": _curves([(12, 2)], 2, 20, (8, 2)),
    "demo": _curves([(20, 3), (100, 5)], 3, 150, (20, 3)),
    "reference": _curves([(20, 3), (100, 5), (1000, 10)], 8, 3000, (40, 3)),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw one panel per rule."""
    figure, panels = new_figure(14.5, 4.6, 1, 4)
    sizes = list(dict.fromkeys((row.config.training.n, row.config.training.k) for row in rows))
    drawing: dict[Rule, tuple[str, str, str]] = {
        "flow": ("mirror flow", "time t", "−log C / k"),
        "mirror": ("mirror descent", "Ση", "−log C / k"),
        "armijo": ("gradient ascent, 2k log n signs", "T = Ση", "−log C"),
        "newton": ("Newton", "step", "−log C"),
    }
    for axes, (rule, (title, where, what)) in zip(panels, drawing.items(), strict=True):
        for row in (row for row in rows if row.config.rule == rule):
            _draw_curve(axes, row, colour(sizes.index((row.config.training.n, row.config.training.k))))
        axes.set(yscale="log", xscale="linear" if rule == "newton" else "log", title=title, xlabel=where, ylabel=what)
        axes.grid(True, which="major", linewidth=0.5)
        axes.legend(fontsize=8, loc="upper right" if rule == "newton" else "lower left")
        if rule == "newton":  # room for the legend
            axes.set_ylim(top=axes.get_ylim()[1] * 1e3)
    _draw_limits(panels[0], panels[1], rows)
    return figure


def _draw_curve(axes: Axes, row: _Row, hue: str) -> None:
    rule, (n, k) = row.config.rule, (row.config.training.n, row.config.training.k)
    at, loss, bound = (row.arrays[name] for name in ("at", "loss", "bound"))
    scale = k if rule in ("flow", "mirror") else 1
    harmonic = row.config.training.recipe.positions == "harmonics"
    for run in range(loss.shape[1]):
        style = ":" if (rule == "flow" and run > 0) or harmonic else "-"
        name = f"n = {n}, k = {k}" + (", harmonics" if harmonic else "") if run == 0 else None
        seen = (loss[:, run] > 1e-10) & (loss[:, run].diff(prepend=loss[:1, run] + 1) != 0)
        axes.plot(at[seen, run], loss[seen, run] / scale, style, color=hue, linewidth=1.3, label=name)
        if rule == "armijo":
            axes.plot(at[:, run], bound[:, run], "--", color=hue, linewidth=0.8, alpha=0.6)
        if rule == "mirror":
            axes.plot(at[:, run], bound[:, run] / scale, "--", color=hue, linewidth=1.1)


def _draw_limits(flow: Axes, steps: Axes, rows: Sequence[_Row]) -> None:
    """Draw what is proved of every size at once, and of the flow from uniform attention."""
    for row in (row for row in rows if row.config.rule == "flow"):
        last, n, k = row.arrays["at"][:, 0], row.config.training.n, row.config.training.k
        flow.plot(last, math.log(n / k) / (2 * last), color="#888888", linewidth=0.8, linestyle="--")
    ink = flow.xaxis.label.get_color()
    flow.plot(last, 2 / last**2, color=ink, linewidth=1.6)
    flow.annotate("2/t²", (0.2, 50), (4, 4), textcoords="offset points", color=ink)
    flow.annotate("log(n/k)/(2t)", (0.97, 0.62), xycoords="axes fraction", ha="right", color="#888888")
    steps.annotate("log(n/k)/(2Ση)", (0.97, 0.85), xycoords="axes fraction", ha="right", color="#888888")
    flow.set_ylim(bottom=1e-7)


table = table_of(
    TableColumn("rule", lambda row: row.config.rule),
    TableColumn("positions", lambda row: row.config.training.recipe.positions),
    TableColumn("n", lambda row: row.config.training.n),
    TableColumn("k", lambda row: row.config.training.k),
    TableColumn("seeds", lambda row: len(row.config.training.seeds)),
    TableColumn(
        "largest share of the bound",
        lambda row: None if row.config.rule == "newton" else max(row.numbers.largest_share),
        ".3f",
    ),
    TableColumn("largest −log C at the end", lambda row: max(row.numbers.final_loss), ".1e"),
    TableColumn("records", lambda row: row.config.records),
    TableColumn("largest rise", lambda row: max(0.0, row.numbers.largest_rise), ".0e"),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Say how close every bound came."""
    said = {"flow": "2k/t²", "mirror": "k log(n/k)/(2Ση)", "armijo": "the bound of gradient ascent"}
    most = {
        text: max((max(row.numbers.largest_share) for row in rows if row.config.rule == rule), default=0.0)
        for rule, text in said.items()
    }
    newton = [
        f"{steps} (n = {row.config.training.n}, k = {row.config.training.k}, {row.config.training.recipe.positions})"
        for row in rows
        if row.config.rule == "newton"
        for steps in [int((row.arrays["loss"].amax(1) > 0.004).sum())]
    ]
    return [
        Finding(
            "(Ours: −log C is at most each of these, in every run.)",
            "Of its bound −log C uses at most "
            + ", ".join(f"{share:.3f} ({text})" for text, share in most.items())
            + f". Newton's steps bring every run below 0.004 in {', '.join(newton)} steps.",
        )
    ]
