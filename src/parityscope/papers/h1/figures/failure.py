"""Why H1's recipe fails, by the gradient at its starts, and where it ends, by certified strict minima."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import quantiles
from typing import Any, ClassVar, Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, draw_shares, interval_lengths, new_figure
from parityscope.core.statistics import Share, median, share_of_true
from parityscope.papers.cells import ShownTraining, TrainingRow, share_of
from parityscope.papers.figure import FigureSpec, Finding, TableColumn, table_of
from parityscope.papers.h1.circle import SMOOTHING
from parityscope.papers.h1.descents import (
    DESCENTS,
    MOVING_RATE,
    OTHER_SETTINGS,
    Ends,
    EndsNumbers,
    FullMatrix,
    FullMatrixNumbers,
    distances,
)
from parityscope.papers.h1.gradient_parts import gradient_parts
from parityscope.papers.h1.minima import MinimumNumbers
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import Training, training
from parityscope.training.build import build_model

ID = "H1-why-it-fails"  # of the first figure, and of its rows


Readout = Literal["zig-zag", "cosine"]
Loss = Literal["hinge", "squared-hinge"]
_KINDS: tuple[tuple[Readout, Loss], ...] = (
    ("zig-zag", "squared-hinge"),
    ("zig-zag", "hinge"),
    ("cosine", "squared-hinge"),
    ("cosine", "hinge"),
)


class StartGradientNumbers(Numbers):
    """The lengths of the gradient's two parts, one entry per seed."""

    dependent: tuple[float, ...]
    free: tuple[float, ...]

    @property
    def share(self) -> float:
        """The median share of the length that depends on B; where there is no gradient at all, nothing does."""
        pairs = zip(self.dependent, self.free, strict=True)
        return median(dependent / (dependent + free) if dependent else 0.0 for dependent, free in pairs)


class StartGradient(Config):
    """The gradient at the start of a training; of the training only its start counts."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = StartGradientNumbers

    training: Training

    def run(self) -> Result:
        """Split the gradient of every seed."""
        of = self.training
        model = build_model(of.recipe, of.n, of.k, of.seeds)
        dependent, free = gradient_parts(model, of.problems(), of.recipe.loss)
        return Result(StartGradientNumbers(dependent=dependent.norm(dim=-1).tolist(), free=free.norm(dim=-1).tolist()))


_StartRow = Row[StartGradient, StartGradientNumbers]
_Row = Row[Any, Any]  # of a start, or of a training from one


def _starts(
    n: int, sharpness: Sequence[float], seeds: int, steps: int = 0, trained: Sequence[float] = ()
) -> list[StartGradient | ShownTraining]:
    """Return every kind from every sharpness, and the trainings from some of them."""
    configs: list[StartGradient | ShownTraining] = []
    for readout, loss in _KINDS:
        for rho in sharpness:
            one = _training(readout, loss, n, rho, seeds, steps if rho in trained else 0)
            configs.append(StartGradient(training=one))
            if rho in trained:
                configs.append(ShownTraining(label=_name(one), training=one))
    return configs


def _training(readout: Readout, loss: Loss, n: int, sharpness: float, seeds: int, steps: int) -> Training:
    """H1's model in score units, so that its radius is the sharpness; Adam, since plain descent learns nothing here."""
    return training(
        "as-coded",
        n,
        3,
        seeds=range(seeds),
        positions="circle",
        readout=readout,
        loss=loss,
        smoothing=SMOOTHING if readout == "zig-zag" else 0.0,  # as H1's text has it
        temperature=1.0,
        start_radius=sharpness,
        steps=steps,
    )


def _name(training: Training) -> str:
    return f"{training.recipe.readout}, {training.recipe.loss.replace('-', ' ')}"


def _start_rows(rows: Sequence[_Row]) -> list[_StartRow]:
    return [row for row in rows if isinstance(row.config, StartGradient)]


def _trained(rows: Sequence[_Row]) -> list[TrainingRow]:
    return [row for row in rows if isinstance(row.config, ShownTraining)]


def _outcomes(start: _StartRow, trained: Sequence[TrainingRow]) -> list[TrainingRow]:
    """Return the training from a start, if there is one."""
    return [row for row in trained if row.config.training == start.config.training]


def _by_kind(rows: Sequence[_StartRow]) -> dict[str, list[_StartRow]]:
    kinds: dict[str, list[_StartRow]] = {}
    for row in rows:
        kinds.setdefault(_name(row.config.training), []).append(row)
    return kinds


def _sharpness(row: _StartRow) -> float:
    return float(row.config.training.recipe.start_radius)


def _n(row: _StartRow) -> int:
    return row.config.training.n


def _plot_gradients(rows: Sequence[_Row]) -> Figure:
    """Draw lengths against sharpness, shares against n, and shares against what was learned."""
    figure, (left, middle, right) = new_figure(14.5, 4.6, 1, 3)
    n, trained = _trained_size(rows), _trained(rows)
    for index, (name, own) in enumerate(_by_kind(_start_rows(rows)).items()):
        _draw_lengths(left, own, index)
        _draw_sizes(middle, own, index, name)
        _draw_prediction(right, own, trained, index)
    left.set(xscale="log", yscale="log", xlabel="sharpness ρ of the start", ylabel="length of the gradient's part")
    left.set_title(f"n = {n}: depends on B (solid), does not (dashed)", fontsize=11)
    middle.set(yscale="log", xlabel="n", ylabel="share that depends on B")
    middle.set_title("near-uniform (○) and H1's sharp start (×)", fontsize=11)
    right.set(xlabel="share that depends on B", ylabel="seeds that learned", xlim=(-0.05, 1.05), ylim=(-0.05, 1.08))
    right.set_title(f"n = {n}: prediction and outcome", fontsize=11)
    figure.legend(*middle.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _trained_size(rows: Sequence[_Row]) -> int:
    """Return the n of the first training; of the first start where nothing was trained."""
    return int(next(iter(_trained(rows)), rows[0]).config.training.n)


def _draw_lengths(axes: Axes, rows: Sequence[_StartRow], index: int) -> None:
    own = sorted((row for row in rows if _n(row) == _n(rows[0])), key=_sharpness)
    rho = [_sharpness(row) for row in own]
    axes.plot(rho, [median(row.numbers.dependent) for row in own], "-o", color=colour(index), markersize=4)
    free = [median(row.numbers.free) for row in own]
    if max(free) > 0:  # the cosine with hinge loss has no such part
        axes.plot(rho, free, "--", color=colour(index))


def _draw_sizes(axes: Axes, rows: Sequence[_StartRow], index: int, name: str) -> None:
    uniform = sorted((row for row in rows if _sharpness(row) == 0.1), key=_n)
    sharp = sorted((row for row in rows if _sharpness(row) == _n(row)), key=_n)
    for own, style, label in ((uniform, "o-", name), (sharp, "x:", None)):
        axes.plot([_n(row) for row in own], [row.numbers.share for row in own], style, color=colour(index), label=label)


def _draw_prediction(axes: Axes, rows: Sequence[_StartRow], trained: Sequence[TrainingRow], index: int) -> None:
    for row in rows:
        for outcome in _outcomes(row, trained):
            share = share_of([outcome])
            axes.errorbar(
                row.numbers.share, share.value, yerr=interval_lengths([share]), fmt="o", color=colour(index), capsize=3
            )


def _with_outcomes(rows: Sequence[_Row]) -> list[tuple[_StartRow, str | None]]:
    """Return every start with what became of its training, if there is one."""
    trained = _trained(rows)
    outcomes = [(row, _outcomes(row, trained)) for row in _start_rows(rows)]
    shares = [(row, share_of(found) if found else None) for row, found in outcomes]
    return [(row, share and f"{share.successes} of {share.trials}") for row, share in shares]


def _findings_gradients(rows: Sequence[_Row]) -> list[Finding]:
    """Name the ratio at H1's start, and how well the share predicts."""
    n, trained, starts = _trained_size(rows), _trained(rows), _start_rows(rows)
    sharpest = max((row for row in _by_kind(starts)["zig-zag, squared hinge"] if _n(row) == n), key=_sharpness)
    parts = zip(sharpest.numbers.free, sharpest.numbers.dependent, strict=True)
    low, middle, high = quantiles([free / max(dependent, 1e-300) for free, dependent in parts], n=4)

    def learned(*, mostly_dependent: bool) -> str:
        chosen = [row for row in starts if (row.numbers.share >= 0.5) == mostly_dependent]
        found = [outcome for row in chosen for outcome in _outcomes(row, trained)]
        return str(share_of(found)) if found else "none tried"

    return [
        Finding(
            "Gradients of two examples never oppose each other (Lemma 17).",
            f"At the sharpest start with n = {n}, zig-zag and squared hinge, the part of the "
            f"gradient that is the same for every B is {middle:.0e} times longer than the part that is not, in the "
            f"median over seeds (quartiles {low:.0e} and {high:.0e}).",
        ),
        Finding(
            "Theorem 5 excepts no start.",
            f"Starts where less than half of the gradient depends on B: {learned(mostly_dependent=False)} seeds "
            f"learned; others: {learned(mostly_dependent=True)}.",
        ),
    ]


_EndsRow = Row[Ends, EndsNumbers]
_FullRow = Row[FullMatrix, FullMatrixNumbers]
_ENDS = ("end in a strict minimum", "learn", "learn, all of A trained")


def _set_name(support: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, support)) + "}"


def _trained_as_proved(rows: Sequence[Row[Any, Any]]) -> list[_EndsRow]:
    """Return the rows in which a13 and a14 are trained."""
    return [row for row in rows if isinstance(row.config, Ends)]


def _whole(rows: Sequence[Row[Any, Any]]) -> dict[tuple[int, tuple[int, ...]], _FullRow]:
    """Return the rows in which all of A is trained, by n and support."""
    return {(row.config.n, row.config.support): row for row in rows if isinstance(row.config, FullMatrix)}


def _shares(row: _EndsRow, whole: _FullRow | None) -> list[Share | None]:
    """Return the shares of a cell in the order of `_ENDS`."""
    of_parts = [share_of_true(row.numbers.in_strict_minimum), share_of_true(row.numbers.learned)]
    return [*of_parts, None if whole is None else share_of_true(whole.numbers.learned)]


def _plot_ends(rows: Sequence[Row[Any, Any]]) -> Figure:
    """Draw what becomes of the starts, and the risk through one minimum."""
    figure, (left, right) = new_figure(13.5, 5.2, 1, 2, width_ratios=(2.6, 1))
    _draw_shares(left, rows)
    _draw_valley(right, _trained_as_proved(rows))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=len(labels), fontsize=9)
    return figure


def _draw_shares(axes: Axes, rows: Sequence[Row[Any, Any]]) -> None:
    place, ticks, whole = 0.0, list[tuple[float, str]](), _whole(rows)
    bars: dict[str, list[tuple[float, Share]]] = {kind: [] for kind in _ENDS}
    for n, group in groupby(_trained_as_proved(rows), key=lambda row: row.config.n):
        first = place
        for row in group:
            support = row.config.support
            ticks.append((place, _set_name(support)))
            for index, (kind, share) in enumerate(zip(_ENDS, _shares(row, whole.get((n, support))), strict=True)):
                if share is not None:
                    bars[kind].append((place + 0.27 * (index - 1), share))
            place += 1
        axes.text((first + place - 1) / 2, 1.05, f"n = {n}", ha="center", fontsize=10)
        place += 0.7
    for hue, (kind, found) in zip((3, 2, 0), bars.items(), strict=True):
        at, shares = [one for one, _ in found], [share for _, share in found]
        values = [share.value for share in shares]
        axes.bar(at, values, 0.26, color=colour(hue), label=kind)
        axes.errorbar(at, values, yerr=interval_lengths(shares), fmt="none", ecolor="#777777", elinewidth=1)
    crowded = len(ticks) > 8
    axes.set_xticks([at for at, _ in ticks], [name for _, name in ticks], rotation=60 if crowded else 0, fontsize=8)
    axes.set(ylim=(0, 1.13), ylabel="share of H1's own starts", xlabel="hidden bits")
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])


def _draw_valley(axes: Axes, rows: Sequence[_EndsRow]) -> None:
    with_minima = [row for row in rows if row.numbers.minima]
    if not with_minima:
        axes.text(0.5, 0.5, "no strict minimum was found", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    pairs = [row for row in with_minima if len(row.config.support) == 2] or with_minima  # four lines can be read
    shown = max(pairs, key=lambda row: row.numbers.minima[0].eigenvalues[0])
    minimum = shown.numbers.minima[0]
    for index, (line, eigenvalue) in enumerate(zip(shown.arrays["valley"], minimum.eigenvalues, strict=True)):
        axes.plot(distances(), line, color=colour(index % 6), label=f"curvature {eigenvalue:.2f}")
    axes.axhline(float(minimum.risk), color="#888888", linewidth=0.8, linestyle="--")
    axes.set(xlabel="distance from the minimum", ylabel="risk")
    axes.set_title(f"n = {shown.config.n}, B = {_set_name(shown.config.support)}: risk {float(minimum.risk):.4f}")
    axes.legend(fontsize=8)


class _Ended(NamedTuple):
    row: _EndsRow
    shares: Sequence[Share | None]
    minimum: MinimumNumbers | None  # the first that is certified


def _certified(rows: Sequence[Row[Any, Any]]) -> list[_Ended]:
    whole = _whole(rows)
    return [
        _Ended(row, _shares(row, whole.get((row.config.n, row.config.support))), next(iter(row.numbers.minima), None))
        for row in _trained_as_proved(rows)
    ]


def _right(row: _EndsRow) -> Share:
    """Return the share of starts after which every input is classified right."""
    return share_of_true([share == 1 for share in row.numbers.accuracy])


def _sweeps(rows: Sequence[_EndsRow]) -> dict[tuple[int, tuple[int, ...]], list[_EndsRow]]:
    """Return the rows with the usual smoothing by n and support, sorted by temperature."""
    cells: dict[tuple[int, tuple[int, ...]], list[_EndsRow]] = {}
    for row in sorted(rows, key=lambda row: row.config.constant):
        if row.config.b == SMOOTHING:
            cells.setdefault((row.config.n, row.config.support), []).append(row)
    return cells


def _plot_constants(rows: Sequence[_EndsRow]) -> Figure:
    """Draw what becomes of the starts against the constant in τ = c/n, a panel for every n and support."""
    cells = _sweeps(rows)
    figure, panels = new_figure(3.1 * max(len(cells), 2) + 0.6, 4.3, 1, len(cells), sharey=True, squeeze=False)
    for axes, ((n, support), own) in zip(panels[0], cells.items(), strict=True):
        for index, usual in enumerate((True, False)):
            _draw_constants(axes, [row for row in own if (row.config.rate == MOVING_RATE) == usual], index)
        axes.set(xscale="log", xlabel="τ · n")
        constants = sorted({row.config.constant for row in own})
        axes.set_xticks(constants, [f"{constant:g}" for constant in constants])
        axes.minorticks_off()
        axes.set_title(f"n = {n}, B = {_set_name(support)}", fontsize=11)
    panels[0][0].set_ylabel("share of H1's own starts")
    columns = 4 if len(cells) > 2 else 2
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=9)
    return figure


def _draw_constants(axes: Axes, rows: Sequence[_EndsRow], index: int) -> None:
    """Draw both shares at the first or the second rate."""
    rate = f"rate {2 * MOVING_RATE} (τn)²" if index else f"rate {MOVING_RATE}"
    style: dict[str, Any] = {"marker": "os"[index], "linestyle": ("-", "--")[index], "markersize": 5, "elinewidth": 1}
    trapped = [share_of_true(row.numbers.in_strict_minimum) for row in rows]
    curves = ((2, "all right", [_right(row) for row in rows]), (3, "strict minimum", trapped))
    for place, (hue, name, shares) in enumerate(curves):
        # Set a little apart, so that intervals can be told from each other.
        at = [row.config.constant * 1.035 ** (2 * place + index - 1.5) for row in rows]
        face = "white" if place else colour(hue)
        draw_shares(axes, at, shares, color=colour(hue), label=f"{name}, {rate}", markerfacecolor=face, **style)


def _findings_constants(rows: Sequence[_EndsRow]) -> list[Finding]:
    """Count by n and support, at the rate that moves A/τ as far at every temperature."""

    def counts(own: Sequence[_EndsRow]) -> str:
        chosen = [row for row in own if row.config.rate != MOVING_RATE]
        shown = [
            f"{row.config.constant:g}/n {_right(row).successes} and {sum(row.numbers.in_strict_minimum)}"
            for row in chosen
        ]
        return f"{', '.join(shown)} of {len(own[0].config.seeds)}"

    cells = [f"n = {n}, B = {_set_name(support)}: {counts(own)}" for (n, support), own in _sweeps(rows).items()]
    certified = [(row.config.constant, row.config.b) for row in rows if row.numbers.minima]
    others = sorted({setting for setting in certified if setting != (1.0, SMOOTHING)})
    settings = ", ".join(f"τ = {constant:g}/n with b = {b:g}" for constant, b in others) or "no other setting"
    return [
        Finding(
            "The softmax attention requires a small temperature τ = O(1/n) (limitations of the analysis).",
            f"Starts after which every input is right, and that end in strict minima: {'; '.join(cells)}.",
        ),
        Finding(
            "The theorem leaves the constant in τ = O(1/n) and the smoothing b open.",
            f"Strict minima that H1's starts lead to are certified by interval arithmetic at {settings}.",
        ),
    ]


FIGURES = (
    FigureSpec(
        ID=ID,
        TITLE="Why it fails: the gradient that knows B against the gradient that does not",
        TEXT="Every loss of yŷ is an even part of ŷ plus y times an odd part. Averaged over inputs, the even part does "
        "not contain the hidden set B at all: its gradient is the same for every B. Left: the length of both parts at "
        "the start, median over seeds, against how sharp attention starts (score length ρ = radius/τ; H1 starts at ρ = "
        "n, uniform attention is ρ = 0). Middle: the share of the gradient that depends on B, against n. Right: that "
        "share against the share of seeds that learned from this start with Adam, with 95 % intervals.",
        COST={"smoke": 2, "demo": 6, "reference": 23},
        CONFIGS={
            "smoke": [*_starts(8, (0.1, 8.0), 4, 50, (0.1,)), *_starts(10, (0.1,), 4)],
            "demo": [
                *_starts(12, (0.01, 0.1, 1.0, 4.0, 12.0), 8, 250, (0.1, 1.0, 12.0)),
                *(start for n in (8, 16) for start in _starts(n, (0.1, float(n)), 8)),
            ],
            "reference": [
                *_starts(12, (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0), 16, 800, (0.1, 1.0, 12.0)),
                *(start for n in (8, 16, 20, 24) for start in _starts(n, (0.1, float(n)), 16)),
            ],
        },
        plot=_plot_gradients,
        table=table_of(
            TableColumn("readout, loss", lambda line: _name(line[0].config.training)),
            TableColumn("n", lambda line: _n(line[0])),
            TableColumn("sharpness ρ", lambda line: _sharpness(line[0]), "g"),
            TableColumn("depends on B", lambda line: median(line[0].numbers.dependent), ".1e"),
            TableColumn("does not", lambda line: median(line[0].numbers.free), ".1e"),
            TableColumn("share", lambda line: line[0].numbers.share, ".3f"),
            TableColumn("learned", lambda line: line[1]),
            lines=_with_outcomes,
        ),
        findings=_findings_gradients,
    ),
    FigureSpec(
        ID="H1-where-it-ends",
        TITLE="Where H1's recipe ends",
        TEXT="H1's own heads, starts, temperature τ = 1/n and smoothing b = 0.01, trained by plain gradient descent on "
        "the exact population risk. The rate is 0.01, 10⁴ to 10⁶ times the proof's: the heads move, and every step "
        "lowers the risk. Left: what becomes of the starts, for every distance of two hidden bits on the circle and "
        "for three hidden bits; lines are 95 % intervals; the third bar trains every entry of A, as the text says. A "
        "strict minimum is a point where Newton's steps end with a gradient of 0 and a positive definite Hessian; the "
        "first of each kind in every cell is refined to 40 digits, and interval arithmetic proves that in a box around "
        "it nothing lies lower and exact descent, at any rate up to a stated one, stays and converges to it. "
        "Right: the risk through one of them, along the eigenvectors of its Hessian. What is neither still falls, "
        "slowly: along valleys in which heads grow without end, past saddles, on plateaus.",
        COST={"smoke": 1, "demo": 8, "reference": 160},
        CONFIGS=DESCENTS,
        plot=_plot_ends,
        table=table_of(
            TableColumn("n", lambda line: line.row.config.n),
            TableColumn("hidden bits", lambda line: _set_name(line.row.config.support)),
            TableColumn(_ENDS[0], lambda line: line.shares[0]),
            TableColumn(_ENDS[1], lambda line: line.shares[1]),
            TableColumn(_ENDS[2], lambda line: line.shares[2]),
            TableColumn("its risk", lambda line: line.minimum and line.minimum.risk[:10]),
            TableColumn("gradient", lambda line: line.minimum and line.minimum.gradient, ".0e"),
            TableColumn("least eigenvalue", lambda line: line.minimum and line.minimum.eigenvalues[0], ".3f"),
            TableColumn("nothing lower within", lambda line: line.minimum and line.minimum.radius, ".1e"),
            TableColumn("stop in a proved basin", lambda line: sum(line.row.numbers.in_proved_basin)),
            TableColumn("proved from the start", lambda line: sum(line.row.numbers.proved_from_start)),
            TableColumn("largest rise on the way", lambda line: line.row.numbers.largest_rise, ".0e"),
            lines=_certified,
        ),
    ),
    FigureSpec(
        ID="H1-temperature-constant",
        TITLE="Where the constant in τ = O(1/n) begins to help",
        TEXT="H1's own heads, starts and smoothing, plain gradient descent on the exact population risk, at the "
        "temperatures τ = c/n; no two hidden bits are neighbours. All right: every one of the 2ⁿ inputs is classified "
        "right at the end. Strict minimum: Newton's steps end there with a gradient of 0 and a positive definite "
        "Hessian, at a risk above 0.01. Circles train at a rate of 0.01, at which descent is slow where τ is large. "
        "Squares train at 0.02 (τn)², for two fifths of the steps: the risk depends on A/τ alone, and with this rate "
        "A/τ moves as far in a step at every temperature, so that what differs is the length n/c of the first scores. "
        "For the same reason a strict minimum at one temperature is one at every other, with its heads scaled; the "
        "temperature decides how many starts lead to it. Lines through the points are 95 % intervals.",
        COST={"smoke": 2, "demo": 16, "reference": 240},
        CONFIGS=OTHER_SETTINGS,
        plot=_plot_constants,
        table=table_of(
            TableColumn("n", lambda row: row.config.n),
            TableColumn("hidden bits", lambda row: _set_name(row.config.support)),
            TableColumn("τ · n", lambda row: row.config.constant, "g"),
            TableColumn("b", lambda row: row.config.b, "g"),
            TableColumn("rate", lambda row: row.config.rate, "g"),
            TableColumn("every input right", _right),
            TableColumn("risk below 0.01", lambda row: sum(row.numbers.learned)),
            TableColumn("median risk", lambda row: median(row.numbers.risk), ".3f"),
            TableColumn("in a strict minimum", lambda row: sum(row.numbers.in_strict_minimum)),
            TableColumn("stop in a proved basin", lambda row: sum(row.numbers.in_proved_basin)),
            TableColumn(
                "risk of a certified one", lambda row: row.numbers.minima[0].risk[:8] if row.numbers.minima else None
            ),
            TableColumn("largest rise on the way", lambda row: row.numbers.largest_rise, ".0e"),
        ),
        findings=_findings_constants,
    ),
)
