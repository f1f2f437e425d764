"""The named numbers of the later sections: engines, one step, chain of thought, verdicts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from evidence import Evidence, Named
from spelling import NONE, counted, decimal, plain, power, share, total, typeset, whole

from parityscope.core.statistics import median
from parityscope.papers.claim import Context
from parityscope.papers.criterion import VERDICTS
from parityscope.papers.registry import named_claims
from parityscope.papers.rendering import tallies, whose
from parityscope.papers.w.figures.plateau import BASE, LINKS
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    DecoderCell,
    FittedSlope,
    cells_by,
    exponential,
    line,
    reached_pairs,
    samples,
)
from parityscope.records import Row
from parityscope.risk.cards import AUTO
from parityscope.theory import polylog_numbers

_ANSWERED = {"even": "even", "log-normal": "log-normal", "half-trained": "half on $B$"}


def engines(evidence: Evidence) -> Named:
    """What an exact or certified risk costs, and how much less is known of a gradient."""
    asked = [row for row in evidence.rows("engine-cost") if row.config.engine == AUTO]
    sizes = sorted({row.config.n for row in asked})
    table = []
    for kind, name in _ANSWERED.items():
        mine = {row.config.n: row.numbers for row in asked if row.config.attention == kind}
        for what in ("engine", "error", "seconds"):
            line = {
                "engine": [mine[n].engine if n in mine else NONE for n in sizes],
                "error": [power(mine[n].error_bound) if n in mine else NONE for n in sizes],
                "seconds": [decimal(mine[n].seconds, 1) if n in mine else NONE for n in sizes],
            }[what]
            table.append([name if what == "engine" else "", what, *line])
    return Named({}, {"engines": table, "engines.sizes": [[whole(n) for n in sizes]]})


def lattice(evidence: Evidence) -> Named:
    """What lattice and series prove of a value and of a gradient, how wrong it is, and how quick the exact engine."""
    stored, split = evidence.certified(), evidence.benchmark("risk", "split n=24")
    table = [
        [
            name,
            str(one["n"]),
            *(power(one[error]) if error in one else NONE for error in ("proved", "error")),
            *(power(one[error]) if error in one else NONE for error in ("proved_gradient", "gradient_error")),
        ]
        for name, one in (("lattice", stored["beside"]), ("lattice", stored["large"]), ("spectral", stored["series"]))
    ]
    return Named({"split.ratio": decimal(split["ratio"], 1), "split.n": str(split["setting"]["n"])}, {"lattice": table})


def one_step(evidence: Evidence) -> Named:
    """One step for a pair: loss on the worst of all inputs, and the fewest parameters."""
    varied = [row for row in evidence.rows("H2-error") if row.config.label == "size" and row.config.variance == 1]
    fewest = evidence.rows("H2-parameters")
    few = max(fewest, key=lambda row: row.config.n)
    table = [
        [
            power(row.config.training.n) if row.config.training.n >= 10_000 else whole(row.config.training.n),
            whole(2 * int(row.config.training.recipe.numbers_per_head)),
            counted(sum(row.numbers.recovered), len(row.numbers.recovered)),
            share(*total([[loss < 0.1 for loss in row.numbers.worst_loss]])),
            decimal(median(row.numbers.worst_loss), 1),
        ]
        for row in varied
    ]

    kinds = ("softmax", "linear attention", "a sigmoid that starts uniform", "a sigmoid that starts anywhere")
    isolated = [
        [
            kind.removeprefix("a ").replace("anywhere", "anywhere (its shift is tuned by us)"),
            _spelled(evidence.measured("H2-softmax", f"share of seeds isolated by {kind}")),
        ]
        for kind in kinds
    ]
    learns = "share of trials that lose less than 0.1 on every input from 2000 times as many"
    return Named(
        {
            "step.fewest.d": power(few.config.n),
            "step.fewest": f"{few.numbers.median:g}",
            "step.fewest.polylog": str(polylog_numbers(few.config.n)),
            "step.fewest.threshold": whole(2 * math.log2(few.config.n)),
            "step.learns": _spelled(evidence.measured("H2-samples", learns)),
        },
        {"step": table, "substitutes": isolated},
    )


def chain(evidence: Evidence) -> Named:
    """Samples with and without a chain of thought, and where trained decoders look."""
    rows = evidence.rows("W-figure-1")
    maps = [row for row in evidence.rows("W-figure-3") if row.config.label == "attention map"]
    first, looking = rows[0].config.training, maps[0].config.training
    looks = sorted({decimal(row.numbers.secret_attention, 2) for row in maps})
    easy, hard = _hardest(rows, CHAIN), _hardest(rows, ANSWER)
    three = named_claims(["W-theorem-3"])[0].needs(Context(evidence.scale))[0].settings
    return Named(
        {
            "chain.n": str(first.n),
            "chain.width": str(first.width),
            "chain.seeds": str(len({row.config.training.seed for row in rows})),
            **{f"chain.with.{name}": easy[name] for name in ("k", "samples", "fewest")},
            **{f"chain.without.{name}": hard[name] for name in ("k", "samples", "tried", "next")},
            "chain.line": _law(line, rows, with_chain=True),
            "chain.factor": _law(exponential, rows, with_chain=False),
            "chain.look.n": str(looking.n),
            "chain.look.k": str(looking.k),
            "chain.look": looks[0] if len(looks) == 1 else f"{looks[0]} to {looks[-1]}",
            "chain.three.n": str(three.n),
            "chain.three.k": str(three.k),
            "chain.three": _spelled(evidence.measured("W-theorem-3", "share of fresh seeds with every token correct")),
        }
    )


def _hardest(rows: list[Row[Any, Any]], label: str) -> dict[str, str]:
    """Return the largest k that most seeds learn, the samples they need, the largest k tried, and who learned."""
    cells = cells_by([row for row in rows if row.config.label == label], lambda training: training.k)
    learned = [k for k, cell in cells.items() if cell.median is not None]
    if not learned:
        return {"k": "none", "samples": NONE, "tried": str(max(cells)), "fewest": NONE, "next": NONE}
    beyond = [f"$k = {k}$ by {counted(cell.reached, len(cell.rows))}" for k, cell in cells.items() if k > max(learned)]
    fewest = min((cells[k] for k in cells if k <= max(learned)), key=lambda cell: cell.reached)
    return {
        "k": str(max(learned)),
        "samples": _needed(cells[max(learned)]),
        "tried": str(max(cells)),
        "fewest": counted(fewest.reached, len(fewest.rows)),
        "next": beyond[0] if beyond else NONE,
    }


def _law(law: Callable[..., FittedSlope | None], rows: list[Row[Any, Any]], *, with_chain: bool) -> str:
    """Return a law fitted to every seed that got everything right, with its 95 % interval."""
    mine = [row for row in rows if row.config.label == (CHAIN if with_chain else ANSWER)]
    found = law(reached_pairs(cells_by(mine, lambda training: training.k)))
    return NONE if found is None else str(found).replace(",", "")


def plateau(evidence: Evidence) -> Named:
    """Where short chains get stuck with one head, and what ends it."""
    rows = evidence.rows("W-plateau")

    def learned(label: str, k: int | None = None) -> str:
        own = [row for row in rows if row.config.label == label and k in (None, row.config.training.k)]
        return counted(sum(samples(row) is not None for row in own), len(own))

    short, long = rows[0].config.training.k, max(row.config.training.k for row in rows)
    table = [
        [f"one head, $k = {short}$", learned(BASE)],
        *([f"the same with {name}", learned(label)] for label, name in _CURES.items()),
        [f"one head, $k = {long}$", learned(LINKS, long)],
    ]
    return Named({"plateau.k": str(short)}, {"plateau": table})


_CURES = {
    "four heads": "four heads",
    "W's width 720": "W’s own width",
    "no loss on the first link": "no loss on the first link",
    "wider start": "a wider initialisation",
}


def language_models(evidence: Evidence) -> Named:
    """How many heads are sparser with a chain of thought, by W's measure and by every control for length."""
    studies = [one.split(": ", 1) for one in evidence.claim("W-figure-6").number.split("; ")]
    columns: dict[str, dict[str, str]] = {}
    for first, second in zip(studies[::2], studies[1::2], strict=True):
        (share_of_w,) = re.findall(r"lower in (\d+%)", first[1])
        controls = re.findall(r"(?:^|, )([a-z, -]+?) (\d+%) \(([+-][\d.]+)\)", second[1])
        columns[first[0]] = {"minimum over all positions (W)": share_of_w} | {
            _CONTROLS[name]: f"{lower} ({by.replace('-', '−')})" for name, lower, by in controls
        }
    names = list(next(iter(columns.values())))
    header = ["measure", *(plain(model.split("-")[0]) for model in columns)]
    return Named({}, {"lm": [header, *([name, *(one[name] for one in columns.values())] for name in names)]})


_CONTROLS = {
    f"{control}{sink}": f"{name}{sink}"
    for sink in ("", ", sink removed")
    for control, name in {
        "mean": "mean over all positions",
        "suffix min, count-matched": "minimum over equally many positions of the answer",
        "suffix mean": "mean over the answer",
    }.items()
}


def where_one_step_begins(evidence: Evidence) -> Named:
    """The examples that K's one step needs, over d²."""
    begins = evidence.rows("K-where-it-begins")
    sizes = sorted({row.config.d for row in begins})
    needed = {(row.config.k, row.config.d): row.config.enough(row.numbers) for row in begins}

    def over_square(k: int, d: int) -> str:
        found = needed.get((k, d), 0)
        return "" if found == 0 else NONE if found is None else decimal(found / d**2, 2)

    table = [["$k$", *(f"$d = {d}$" for d in sizes)]]
    table += [[str(k), *(over_square(k, d) for d in sizes)] for k in sorted({k for k, _ in needed})]
    return Named({"begins.seeds": str(len(begins[0].config.seeds))}, {"begins": table})


def methods_for_trees(evidence: Evidence) -> Named:
    """The examples that K's steps and ours need."""
    rows = evidence.rows("K-examples")
    of = {(row.config.method, row.config.k, row.config.d): row.config.enough(row.numbers) for row in rows}
    small, large = sorted({k for _, k, _ in of})
    across = sorted({d for *_, d in of})

    def both(method: str, d: int) -> str:
        first, second = (of.get((method, k, d)) for k in (small, large))
        return f"{NONE if first is None else whole(first)} ({NONE if second is None else whole(second)})"

    table = [["method", *(f"$d = {d}$" for d in across)]]
    table += [[name, *(both(method, d) for d in across)] for method, name in _OF_K.items()]
    return Named({}, {"k-methods": table})


_OF_K = {
    "one step": "K’s one step",
    "one step, −cos πt": "one step with the link $-cos pi t$",
    "teacher forcing, 350 steps": "K’s teacher forcing in small steps",
    "log₂ k rounded steps, end to end": "K’s rounded steps, end to end",
    "log-correlation, −cos πt": "log-correlation, true values below",
    "log-correlation, −cos πt, end to end": "log-correlation, end to end",
}


def _needed(cell: DecoderCell) -> str:
    """Return the samples needed: the median over seeds and their range, and how many seeds got there if not all."""
    assert cell.median is not None
    some = "" if cell.reached == len(cell.rows) else f", {counted(cell.reached, len(cell.rows))}"
    return f"{whole(cell.median)} ({whole(cell.needed[0])}–{whole(cell.needed[-1])}{some})"


def _spelled(measured: str) -> str:
    """Return shares as stored, in the texts' spelling."""
    return re.sub(r"(\d+)/(\d+) \((\d+)%–", r"\1 of \2 (\3–", measured)


def verdicts(evidence: Evidence) -> Named:
    """How many statements got which verdict."""
    claims = evidence.all_claims()
    papers, *_ = whose(claims)

    def statements(paper: str, *verdicts: str) -> list[list[str]]:
        chosen = [claim for claim in claims if claim.paper == paper and claim.verdict in verdicts]
        return [
            [
                _name(claim.id),
                claim.verdict,
                typeset(_spelled(claim.statement)),
                _IN_THE_TEXT.get(claim.id) or typeset(_spelled(claim.number)),
            ]
            for claim in chosen
        ]

    refuted = ("fails", "in part", "misprint")
    table = [[tally.name, *tally.cells()] for tally in tallies(claims) if "machine-written" not in tally.name]
    _, stated, proved, holds, misprints, *_ = next(line for line in table if line[0] == "the papers")
    return Named(
        {
            "claims.papers": str(papers),
            "claims.sound": counted(int(proved) + int(holds), int(stated)),
            "claims.misprints": misprints,
        },
        {
            "claims": table,
            **{f"claims.{paper}": statements(paper, *refuted) for paper in ("H1", "W")},
            "claims.K": statements("K", *VERDICTS),
        },
    )


# Whose numbers are a whole section.
_IN_THE_TEXT = {"H1-theorem-5": "descents proved to end in strict local minima: @outcomes, @ends and the text"}


def _name(claim_id: str) -> str:
    """Return a statement's name without its paper: Lemma 14, derivative."""
    kind, *rest = claim_id.split("-")[1:]
    name = " ".join([kind.capitalize(), *(one.upper() if len(one) == 1 else one for one in rest[:1])])
    return ", ".join([name, " ".join(rest[1:])]) if rest[1:] else name
