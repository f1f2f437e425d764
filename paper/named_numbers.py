"""Every number of the texts by its name, from stored rows. A name that no row supports is an error, not a blank."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import Any

from evidence import Evidence, Named, NoEvidence
from named_systems import (
    chain,
    engines,
    language_models,
    lattice,
    methods_for_trees,
    one_step,
    plateau,
    verdicts,
    where_one_step_begins,
)
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
    starts, proved = sum(len(row.config.seeds) for row in cells), evidence.claim("H1-theorem-5").number
    words = ("of them stop", "are proved from", "with attention as Appendix A")
    stopped, whole_way, assumed = (re.search(rf"(\d+) {one}", proved) for one in words)
    if stopped is None or whole_way is None or assumed is None:
        raise NoEvidence("H1-theorem-5 no longer says how many descents are proved to converge to their minimum")
    in_minima = total(row.numbers.in_strict_minimum for row in cells)
    outcomes = [
        ["all initialisations", whole(starts)],
        ["ends in a strict local minimum (double precision)", share(*in_minima)],
        ["— of these, stops in the proved basin of its minimum", counted(int(stopped[1]), in_minima[0])],
        ["— of these, proved from the initialisation on", counted(int(whole_way[1]), in_minima[0])],
        ["reaches a risk of 0.01", share(*total(row.numbers.learned for row in cells))],
        [
            "reaches a risk of 0.01 if all entries of the heads’ matrices are trained",
            share(*total(row.numbers.learned for row in full)),
        ],
    ]
    return Named(
        {
            "ends.minima": share(*in_minima),
            "ends.n": ranged(row.config.n for row in cells),
            "ends.rate": f"{cells[0].config.rate:g}",
            "ends.steps": ranged({row.config.steps for row in cells}),
            "ends.rise": power(max(row.numbers.largest_rise for row in cells)),
            "ends.certified": whole(len(minima)),
            "ends.appendix": assumed[1],
            "ends.proved": whole_way[1],
            "ends.risk.low": decimal(min(risks), 3),
            "ends.risk.high": decimal(max(risks), 3),
            "ends.curvature": decimal(min(one.eigenvalues[0] for one in minima), 1),
            "ends.box.low": power(min(one.radius for one in minima)),
            "ends.box.high": power(max(one.radius for one in minima)),
            "ends.shown.n": str(shown.n),
            "ends.shown.support": f"${{{', '.join(map(str, shown.support))}}}$",
            "ends.shown.risk": shown.risk[:11],
            "ends.shown.curvatures": listed([decimal(one, 3) for one in shown.eigenvalues]),
        },
        {"outcomes": outcomes},
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
        },
        {"predicts": [["less than half", learned(mostly=False)], ["at least half", learned(mostly=True)]]},
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

    table = [[f"{whole(n)}, {k}", *(cell(name, (n, k)) for name in _COLUMNS), examples_seen((n, k))] for n, k in sizes]
    return Named({}, {"success": table})


def large(evidence: Evidence) -> Named:
    """H1's recipes at sizes that only the lattice reaches."""
    rows = evidence.rows("H1-large-n")
    repaired = [row for row in rows if row.config.label == "repaired"]
    return Named(
        {
            "large.n": ranged(row.config.training.n for row in rows),
            "large.repaired": share(*total(row.numbers.learned for row in repaired)),
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
            "faces.gap": power(max((bound - reached for reached, bound in proved), default=0.0)),
        }
    )


_METHODS = {
    "bounded, k heads": "$k$ softmax heads, random signs, Adam",
    "concave, 2k log n signs, Newton": "exponential head, $2k log n$ signs, Newton",
    "concave, 2k log n signs, gradient ascent": "exponential head, $2k log n$ signs, gradient",
    "concave, 2k harmonics, Newton": "exponential head, $k$ harmonics, Newton",
    "mirror, one number per position": "softmax head, free logits, mirror rule",
}


def _cost(of: Any) -> tuple[str, str, str]:
    """Return three cells: parameters, median steps, and the seeds that learned."""
    return whole(of.parameters), f"{of.median_steps:g}", counted(of.share.successes, of.share.trials)


def costs(evidence: Evidence) -> Named:
    """What learning costs: parameters, seeds and steps of every method at every size."""
    rows = evidence.rows("P-numbers")
    sizes = sorted({(row.config.training.n, row.config.training.k) for row in rows})
    table = []
    for method, name in _METHODS.items():
        found = {(row.config.training.n, row.config.training.k): row for row in rows if row.config.method == method}
        cells = [_cost(found[size].numbers) if size in found else (NONE, NONE, NONE) for size in sizes]
        for what, line in zip(("parameters", "steps", "seeds"), zip(*cells, strict=True), strict=True):
            table.append([name if what == "parameters" else "", what, *line])
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
    unlearned = [
        margin
        for row in signs
        for margin, learned in zip(row.numbers.margin, row.numbers.learned, strict=True)
        if not learned
    ]
    return Named(
        {
            "margins.inside": counted(inside, len(told)),
            "margins.held": counted(sum(bool(row.numbers.worst_learned) for row in told), len(told)),
            "margins.signs": share(*total(row.numbers.learned for row in signs)),
            "margins.signs.lost": _not_learned(unlearned),
        }
    )


def _not_learned(margins: Sequence[float]) -> str:
    """Say how many of the sets that were not learned are faces.

    >>> _not_learned([0.0]), _not_learned([0.0, 0.1, 0.0])
    ('the one that is not is no face', 'of the 3 that are not, 1 is a face')
    """
    faces = sum(margin > 0 for margin in margins)
    if len(margins) == 1:
        return f"the one that is not is {'a' if faces else 'no'} face"
    return f"of the {len(margins)} that are not, {faces or 'none'} {'are faces' if faces > 1 else 'is a face'}"


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
            "heads.distance": power(min(row.config.elsewhere for row in flows)),
            "heads.left": counted(len(left), len(flows)),
            "heads.soonest": power(min(row.numbers.left_at for row in left)),
            "heads.latest": power(max(row.numbers.left_at for row in left)),
            "heads.end": power(max(row.numbers.final_loss for row in flows)),
        }
    )


def heads_rate(evidence: Evidence) -> Named:
    """Where t·(−log C) of many heads ends, over its proved limit."""
    rows = evidence.rows("P-heads-rate")

    def shares(start: str) -> str:
        found = [row.numbers.reached / row.numbers.bound for row in rows if row.config.start == start]
        return f"{decimal(min(found), 3)} and {decimal(max(found), 3)}"

    return Named(
        {
            "heads.rate.until": power(rows[0].config.until),
            "heads.rate.uniform": shares("uniform"),
            "heads.rate.random": shares("random"),
        }
    )


def concave_chain(evidence: Evidence) -> Named:
    """What was measured of chains beyond the proofs."""
    ratio = "smallest ⟨x, g⟩/(−log C) where no token has more weight than either of the pair"
    reached = "smallest C that the attention gradient reaches from uniform attention, any level"
    return Named(
        {
            "chain.least": decimal(float(evidence.measured("P-chain-above", ratio)), 5),
            "chain.ends": decimal(float(evidence.measured("P-chain-above", reached)), 4),
        }
    )


def proved(evidence: Evidence) -> Named:
    """Examples that are needed and examples that are proved enough, by rule."""
    rows = evidence.rows("P-proved-examples")
    sizes = sorted({(row.config.k, row.config.n) for row in rows})
    of = {(row.config.n, row.config.k, row.config.rule): row.numbers for row in rows}

    def cells(n: int, k: int, rule: str) -> list[str]:
        found = of[n, k, rule]
        enough = power(found.proved, 1) if found.proved >= 1e5 else whole(found.proved)
        return [NONE if found.samples is None else whole(found.samples), enough]

    table = [
        [f"{n}, {k}", *(cell for rule in ("n paths", "one gradient", "one step") for cell in cells(n, k, rule))]
        for k, n in sizes
    ]
    return Named({"proved.trials": str(rows[0].config.trials)}, {"proved": table})


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
    ends, why, success, large, faces, costs, margins, rates, heads_rate, concave_chain, proved, examples,
    engines, lattice, one_step, chain, plateau, language_models,
    where_one_step_begins, methods_for_trees, verdicts,
)  # fmt: skip
