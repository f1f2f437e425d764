"""The named numbers of the later sections: engines, one step, chain of thought, tables, verdicts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from evidence import Evidence, Named
from spelling import NONE, counted, decimal, listed, plain, power, ranged, share, total, whole

from parityscope.core.statistics import median
from parityscope.papers.claim import Context
from parityscope.papers.own.figures.estimator_benchmark import together_in
from parityscope.papers.registry import load_figure, named_claims
from parityscope.papers.rendering import tallies, whose
from parityscope.papers.w.figures.plateau import BASE, LINKS
from parityscope.papers.w.settings import ANSWER, CHAIN, Cell, Law, cells_by, exponential, line, reached_pairs, samples
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
    """What the lattice proves of a value and of a gradient, how wrong it really is, and how quick the exact engine."""
    stored, split = evidence.certified(), evidence.benchmark("risk", "split n=24")
    large, beside = stored["large"], stored["beside"]
    return Named(
        {
            "lattice.n": str(large["n"]),
            "lattice.proved": power(large["proved"]),
            "lattice.gradient.proved": power(large["proved_gradient"]),
            "lattice.beside.n": str(beside["n"]),
            "lattice.beside.proved": power(beside["proved"]),
            "lattice.beside.gradient.proved": power(beside["proved_gradient"]),
            "lattice.beside.error": power(beside["error"]),
            "lattice.beside.gradient.error": power(beside["gradient_error"]),
            "split.ratio": decimal(split["ratio"], 1),
            "split.n": str(split["setting"]["n"]),
        }
    )


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

    def softmax(kind: str) -> str:
        return (
            evidence.measured("H2-softmax", f"share of seeds isolated by {kind}")
            .replace("%–", "–")
            .replace("/", " of ")
        )

    learns = "share of trials that lose less than 0.1 on every input from 2000 times as many"
    return Named(
        {
            "step.fewest.d": power(few.config.n),
            "step.fewest": f"{few.numbers.median:g}",
            "step.fewest.polylog": str(polylog_numbers(few.config.n)),
            "step.fewest.threshold": whole(2 * math.log2(few.config.n)),
            "step.softmax": softmax("softmax"),
            "step.linear": softmax("linear attention"),
            "step.sigmoid": softmax("a sigmoid that starts uniform"),
            "step.sigmoid.anywhere": softmax("a sigmoid that starts anywhere"),
            "step.learns": evidence.measured("H2-samples", learns).replace("%–", "–").replace("/", " of "),
        },
        {"step": table},
    )


def chain(evidence: Evidence) -> Named:
    """Samples with and without a chain of thought, and where trained decoders look."""
    rows = evidence.rows("W-figure-1")
    maps = [row for row in evidence.rows("W-figure-3") if row.config.label == "attention map"]
    first, looking = rows[0].config.training, maps[0].config.training
    looks = sorted({decimal(row.numbers.secret_attention, 2) for row in maps})
    entropy, easy, hard = evidence.claims["W-figure-6"].number, _hardest(rows, CHAIN), _hardest(rows, ANSWER)
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
            "chain.look.heads": ranged(row.config.training.heads for row in maps),
            "chain.look.trainings": str(len(maps)),
            "chain.lm.lower": listed(re.findall(r"lower in (\d+)%", entropy)),
            "chain.lm.controls": listed(re.findall(r"(\d+) of 6 controls lower", entropy)),
            "chain.three.n": str(three.n),
            "chain.three.k": str(three.k),
            "chain.three": _spelled(evidence.measured("W-theorem-3", "share of fresh seeds with every token correct")),
            "chain.failing": _lemmas(evidence, "fails"),
            "chain.misprints": _lemmas(evidence, "misprint"),
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


def _law(law: Callable[..., Law | None], rows: list[Row[Any, Any]], *, with_chain: bool) -> str:
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

    return Named(
        {
            "plateau.k": str(rows[0].config.training.k),
            "plateau.base": learned(BASE),
            "plateau.heads": learned("four heads"),
            "plateau.width": learned("W's width 720"),
            "plateau.skip": learned("no loss on the first link"),
            "plateau.start": learned("wider start"),
            "plateau.long": str(max(row.config.training.k for row in rows)),
            "plateau.long.learned": learned(LINKS, max(row.config.training.k for row in rows)),
        }
    )


def _needed(cell: Cell) -> str:
    """Return the samples needed: the median over seeds and their range, and how many seeds got there if not all."""
    assert cell.median is not None
    some = "" if cell.reached == len(cell.rows) else f", {counted(cell.reached, len(cell.rows))}"
    return f"{whole(cell.median)} ({whole(cell.needed[0])}–{whole(cell.needed[-1])}{some})"


def _spelled(measured: str) -> str:
    """Return a share as stored, in the paper's spelling."""
    return measured.replace("/", " of ").replace("%–", "–")


def _lemmas(evidence: Evidence, verdict: str) -> str:
    found = [claim.id.removeprefix("W-lemma-") for claim in evidence.claims.values() if claim.id.startswith("W-lemma-")]
    chosen = [number for number in found if evidence.claims[f"W-lemma-{number}"].verdict == verdict]
    return listed(chosen) if chosen else "none"


def tables(evidence: Evidence) -> Named:
    """Who finds hidden interactions in tables, in the words of the stored benchmark."""
    rows = evidence.rows("estimator-benchmark")
    together, alone = load_figure("estimator-benchmark").findings(rows)[:2]
    return Named(
        {"fit.finding": plain(together.here), "fit.alone": plain(alone.here), "fit.kinds": str(len(together_in(rows)))}
    )


def verdicts(evidence: Evidence) -> Named:
    """How many statements got which verdict."""
    claims = evidence.all_claims()
    papers, _, ours = whose(claims)
    return Named(
        {
            "claims.papers": str(papers),
            "claims.own": str(ours),
        },
        {"claims": [[tally.name, *tally.cells()] for tally in tallies(claims)]},
    )
