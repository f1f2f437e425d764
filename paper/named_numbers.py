"""Every number of the paper by its name, from stored rows. A name that no row supports is an error, not a blank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import Any

from evidence import Evidence, Named
from named_systems import chain, engines, lattice, one_step, plateau, tables, verdicts
from spelling import NONE, counted, decimal, listed, power, ranged, share, total, whole

from parityscope.papers.h1.descents import Ends, FullMatrix
from parityscope.papers.h1.figures.failure import StartGradient
from parityscope.records import Row
from parityscope.theory import harmonic_margins, path_samples


def shown_minimum(rows: Sequence[Row[Any, Any]]) -> Row[Any, Any]:
    """Return the row whose first minimum is drawn and quoted: of two heads, and the most strictly curved."""
    with_minima = [row for row in rows if row.numbers.minima]
    pairs = [row for row in with_minima if len(row.config.support) == 2] or with_minima
    return max(pairs, key=lambda row: row.numbers.minima[0].eigenvalues[0])


def ends(evidence: Evidence) -> Named:
    """Where H1's recipe ends: strict minima, and what training the whole matrix changes."""
    rows = evidence.rows("H1-where-it-ends")
    cells = [row for row in rows if isinstance(row.config, Ends)]
    full = [row for row in rows if isinstance(row.config, FullMatrix)]
    minima = [minimum for row in cells for minimum in row.numbers.minima]
    risks = [float(one.risk) for one in minima]
    shown = shown_minimum(cells).numbers.minima[0]
    learned = total(row.numbers.learned for row in full)
    steepest = max((row.numbers for row in full), key=lambda one: one.gradient_of_a11_a12 / one.gradient_of_a13_a14)
    return Named(
        {
            "ends.minima": share(*total(row.numbers.in_strict_minimum for row in cells)),
            "ends.learned": share(*total(row.numbers.learned for row in cells)),
            "ends.starts": whole(sum(len(row.config.seeds) for row in cells)),
            "ends.n": ranged(row.config.n for row in cells),
            "ends.rate": f"{cells[0].config.rate:g}",
            "ends.steps": ranged({row.config.steps for row in cells}),
            "ends.rise": power(max(row.numbers.largest_rise for row in cells)),
            "ends.certified": whole(len(minima)),
            "ends.risk.low": decimal(min(risks), 3),
            "ends.risk.high": decimal(max(risks), 3),
            "ends.gradient": power(max(one.gradient for one in minima)),
            "ends.curvature": decimal(min(one.eigenvalues[0] for one in minima), 1),
            "ends.box.low": power(min(one.radius for one in minima)),
            "ends.box.high": power(max(one.radius for one in minima)),
            "ends.shown.n": str(shown.n),
            "ends.shown.support": f"${{{', '.join(map(str, shown.support))}}}$",
            "ends.shown.risk": shown.risk[:11],
            "ends.shown.curvatures": listed([decimal(one, 3) for one in shown.eigenvalues]),
            "ends.full.learned": share(*learned),
            "ends.full.token": decimal(steepest.gradient_of_a11_a12, 2),
            "ends.full.position": decimal(steepest.gradient_of_a13_a14, 2),
        }
    )


def why(evidence: Evidence) -> Named:
    """What the first gradient knows of B, and what that says about learning."""
    rows = evidence.rows("H1-why-it-fails")
    starts = [row for row in rows if isinstance(row.config, StartGradient)]
    outcomes = [row for row in rows if not isinstance(row.config, StartGradient)]
    trained = [(one, other) for one in starts for other in outcomes if one.config.training == other.config.training]
    n = trained[0][0].config.training.n
    zigzag = [
        row
        for row in starts
        if row.config.training.n == n
        and (row.config.training.recipe.readout, row.config.training.recipe.loss) == ("zig-zag", "squared-hinge")
    ]
    sharp = max(zigzag, key=lambda row: row.config.training.recipe.start_radius)
    parts = zip(sharp.numbers.free, sharp.numbers.dependent, strict=True)
    low, middle, high = quantiles([free / max(dependent, 1e-300) for free, dependent in parts], n=4)

    def learned(*, mostly: bool) -> str:
        chosen = [outcome for start, outcome in trained if (start.numbers.share >= 0.5) == mostly]
        return share(*total(outcome.numbers.learned for outcome in chosen)) if chosen else NONE

    return Named(
        {
            "why.n": str(n),
            "why.seeds": str(len(sharp.config.training.seeds)),
            "why.ratio": power(middle),
            "why.ratio.low": power(low),
            "why.ratio.high": power(high),
            "why.learned.less": learned(mostly=False),
            "why.learned.more": learned(mostly=True),
        }
    )


_COLUMNS = {
    "written": "H1 as written",
    "coded": "H1 as coded",
    "sharp": "repaired, sharp start",
    "repaired": "repaired",
    "bounded": "bounded",
    "examples": "bounded, N examples",
}


def success(evidence: Evidence) -> Named:
    """Which recipe learns, where."""
    rows = evidence.rows("H1-success")
    by_label = {name: [row for row in rows if row.config.label == label] for name, label in _COLUMNS.items()}
    sizes = sorted({(row.config.training.n, row.config.training.k) for row in rows})

    def cell(name: str, size: tuple[int, int]) -> str:
        here = [row for row in by_label[name] if (row.config.training.n, row.config.training.k) == size]
        return counted(*total(row.numbers.learned for row in here)) if here else NONE

    def examples_seen(size: tuple[int, int]) -> str:
        seen = [row.config.training for row in by_label["examples"]]
        return "".join(whole(one.samples) for one in seen if (one.n, one.k) == size) or NONE

    quoted = ("coded", "sharp", "repaired")
    numbers = {f"success.{name}": share(*total(row.numbers.learned for row in by_label[name])) for name in quoted}
    table = [[f"{whole(n)}, {k}", *(cell(name, (n, k)) for name in _COLUMNS), examples_seen((n, k))] for n, k in sizes]
    return Named(numbers, {"success": table})


def large(evidence: Evidence) -> Named:
    """H1's recipes at sizes that only the lattice reaches."""
    rows = evidence.rows("H1-large-n")
    of_h1 = [row for row in rows if row.config.label != "repaired"]
    repaired = [row for row in rows if row.config.label == "repaired"]
    return Named(
        {
            "large.n": ranged(row.config.training.n for row in rows),
            "large.h1": share(*total(row.numbers.learned for row in of_h1)),
            "large.repaired": share(*total(row.numbers.learned for row in repaired)),
            "large.steps": ranged(int(row.arrays["steps"][-1]) for row in of_h1),
            "large.error": power(max(max(row.numbers.error_bound) for row in rows)),
        }
    )


def faces(evidence: Evidence) -> Named:
    """Learned against face, run by run."""
    rows = evidence.rows("P-faces")
    runs = [
        run
        for row in rows
        for run in zip(row.numbers.face, row.numbers.correlation, row.numbers.at_most, row.numbers.margin, strict=True)
    ]
    others = [(reached, bound) for face, reached, bound, _ in runs if not face]
    proved = [(reached, bound) for reached, bound in others if bound < 1]
    agreed = len(runs) - sum(row.numbers.disagreements for row in rows)
    return Named(
        {
            "faces.agree": counted(agreed, len(runs)),
            "faces.faces": whole(sum(face for face, *_ in runs)),
            "faces.others": whole(len(others)),
            "faces.n": ranged(row.config.training.n for row in rows),
            "faces.margin": power(min(margin for face, _, _, margin in runs if face)),
            "faces.proved": counted(len(proved), len(others)),
            "faces.bound": decimal(max((bound for _, bound in proved), default=1.0), 4),
            "faces.gap": power(max((bound - reached for reached, bound in proved), default=0.0)),
        }
    )


_METHODS = {
    "bounded, k heads": "$k$ heads, random signs, Adam",
    "repaired circle, k heads": "$k$ heads on H1’s circle, repaired",
    "concave, 2k log n signs, Newton": "one head, $2k log n$ signs, Newton",
    "concave, 2k log n signs, gradient ascent": "the same, gradient ascent",
    "concave, 2k harmonics, Newton": "one head, $k$ harmonics ($2k$ parameters), Newton",
    "mirror, one number per position": "mirror rule, a parameter per position",
    "one-step, 3k log n signs, Gauss–Newton": "one head, $3k log n$ signs, Gauss–Newton",
}


def _cost(of: Any) -> str:
    """Return a cell: parameters and median steps, and below them the seeds that learned."""
    seeds = counted(of.share.successes, of.share.trials)
    return f"{whole(of.parameters)} · {of.median_steps:g} \\\n{seeds}"


def costs(evidence: Evidence) -> Named:
    """What learning costs: parameters, seeds and steps of every method at every size."""
    rows = evidence.rows("P-numbers")
    sizes = sorted({(row.config.training.n, row.config.training.k) for row in rows})
    table = []
    for method, name in _METHODS.items():
        line = [name]
        for size in sizes:
            here = [
                row
                for row in rows
                if row.config.method == method and (row.config.training.n, row.config.training.k) == size
            ]
            line.append(_cost(here[0].numbers) if here else NONE)
        table.append(line)
    return Named({}, {"costs": table, "costs.sizes": [[f"{whole(n)}, {k}" for n, k in sizes]]})


def margins(evidence: Evidence) -> Named:
    """Margins of harmonics against their bounds, and of random signs."""
    rows = evidence.rows("P-margins")
    harmonic = [row for row in rows if row.config.training.recipe.positions == "harmonics"]
    signs = [row for row in rows if row.config.training.recipe.positions == "random-signs"]
    told = [row for row in harmonic if row.numbers.worst]

    def bounds(row: Row[Any, Any]) -> tuple[float, float]:
        return harmonic_margins(row.config.training.n, row.config.training.k)

    inside = sum(bounds(row)[0] <= row.numbers.worst <= bounds(row)[1] for row in told)
    missed = [row for row in harmonic if not all(row.numbers.learned)]
    unlearned = [
        margin
        for row in signs
        for margin, learned in zip(row.numbers.margin, row.numbers.learned, strict=True)
        if not learned
    ]
    where = [f"$({row.config.training.n}, {row.config.training.k})$" for row in missed]
    return Named(
        {
            "margins.inside": counted(inside, len(told)),
            "margins.held": counted(sum(bool(row.numbers.worst_learned) for row in told), len(told)),
            "margins.harmonics": share(*total(row.numbers.learned for row in harmonic)),
            "margins.missed": listed(where) if where else "none",
            "margins.signs": share(*total(row.numbers.learned for row in signs)),
            "margins.signs.others": counted(sum(margin == 0 for margin in unlearned), len(unlearned)),
            "margins.signs.lost": str(sum(margin > 0 for margin in unlearned)),
        }
    )


def rates(evidence: Evidence) -> Named:
    """How far below their bounds the flows and steps stayed, and heads that leave wrong faces."""
    rows, flows = evidence.rows("P-concave-bounds"), evidence.rows("P-three-heads")
    numbers = {
        f"rates.{rule}": decimal(max(max(row.numbers.largest_share) for row in rows if row.config.rule == rule), 2)
        for rule in ("flow", "mirror", "armijo")
    }
    left = [row for row in flows if row.numbers.left_at is not None]
    return Named(
        {
            **numbers,
            "heads.left": counted(len(left), len(flows)),
            "heads.soonest": power(min(row.numbers.left_at for row in left)),
            "heads.latest": power(max(row.numbers.left_at for row in left)),
            "heads.end": power(max(row.numbers.final_loss for row in flows)),
        }
    )


def every_k(evidence: Evidence) -> Named:
    """One head and second-order steps for every k."""
    rows = evidence.rows("P-every-k")
    labels = list(dict.fromkeys(row.config.label for row in rows))
    of = {label: [row for row in rows if row.config.label == label] for label in labels}
    at_once = [
        steps
        for row in of[labels[0]]
        for steps, learned in zip(row.numbers.steps, row.numbers.learned, strict=True)
        if learned
    ]
    return Named(
        {
            "every.full": share(*total(row.numbers.learned for row in of[labels[0]])),
            "every.once": whole(at_once.count(1)),
            "every.quarter": share(*total(row.numbers.learned for row in of[labels[-1]])),
        }
    )


def examples(evidence: Evidence) -> Named:
    """Examples for 90 % of the seeds, by method."""
    rows = [row for row in evidence.rows("P-examples-concave") if row.config.noise == 0]
    sizes = list(dict.fromkeys((row.config.n, row.config.k) for row in rows))
    needed = {(row.config.n, row.config.k, row.config.method): row.numbers.samples for row in rows}

    def cell(n: int, k: int, method: str) -> str:
        found = needed.get((n, k, method))
        return NONE if found is None else whole(found)

    methods = ("concave", "bounded", "one gradient")
    table = [
        [f"{whole(n)}, {k}", *(cell(n, k, method) for method in methods), whole(path_samples(n, k))] for n, k in sizes
    ]
    return Named({"examples.seeds": str(len(rows[0].config.seeds))}, {"examples": table})


SECTIONS: tuple[Callable[[Evidence], Any], ...] = (
    ends, why, success, large, faces, costs, margins, rates, every_k, examples,
    engines, lattice, one_step, chain, plateau, tables, verdicts,
)  # fmt: skip
