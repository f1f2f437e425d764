"""W, Section 4.3: chain of thought and the attention of pretrained language models, from stored studies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

from parityscope.language_models.measures import MATCHED, MEASURES, PAPER
from parityscope.language_models.summary import Interval
from parityscope.papers.claim import Claim, Context, Measurement, untested
from parityscope.papers.criterion import Between, Clause, above, below
from parityscope.papers.w.measured_studies import (
    COMMAND,
    PANELS,
    ModelNumbers,
    StudyNumbers,
    by_how_much,
    lower_share,
    shown_studies,
)

_FEWEST_PROBLEMS = 30  # below, an interval over problems says little


def _studies(context: Context, figure: str) -> list[StudyNumbers]:
    return [row.numbers for row in shown_studies(context.rows(figure))]


def _largest(context: Context, figure: str, models: int = 1) -> StudyNumbers | None:
    """Return the stored study with the most problems that has enough problems and models."""
    studies = [study for study in _studies(context, figure) if len(study.models) >= models]
    studies = [study for study in studies if study.problems >= _FEWEST_PROBLEMS]
    return max(studies, key=lambda study: study.problems, default=None)


def _missing(clauses: Sequence[Clause], context: Context, figure: str, missing: str) -> Measurement:
    """Say which study is missing, and how to make it."""
    stored = [study.title for study in _studies(context, figure)]
    found = untested(
        clauses, f"no study {missing}", f"It needs a study {missing}, in the folder of this report: {COMMAND}."
    )
    return found._replace(evidence={"stored_studies": stored, "fewest_problems": _FEWEST_PROBLEMS, "command": COMMAND})


def _evidence(study: StudyNumbers, model: ModelNumbers) -> dict[str, Any]:
    """Return what was measured, every measure against both controls."""
    return {
        "model": model.name,
        "weights": model.weights,
        "fingerprint": model.fingerprint,
        "data": study.data,
        "problems": study.problems,
        **{
            f"CoT against {other}": {
                str(measure): f"lower in {lower_share(found)} of heads, difference {by_how_much(found)}"
                for measure, found in zip(MEASURES, comparisons, strict=True)
            }
            for other, comparisons in model.comparisons.items()
        },
    }


_PROBLEMS = "a 95 % interval over resampled problems"


def _between(interval: Interval) -> Between:
    return Between(interval.low, interval.high)


def _lower(says: str, quantity: str) -> Clause:
    """Return the clause of a mean difference over heads that must be negative."""
    return Clause(says, quantity, below(0), _PROBLEMS)


_HEADS, _DIFFERENCE = "share of heads lower with CoT", "mean difference over heads, CoT minus no CoT"
_MATCHED_DIFFERENCE = "the same at equal counts of positions"
_SHUFFLED_DIFFERENCE = "CoT minus its words shuffled, at equal counts"
_FIGURE_6 = (
    Clause("most heads are lower with CoT", _HEADS, above(0.5), _PROBLEMS),
    _lower("heads are lower on average", _DIFFERENCE),
    _lower("because of the CoT: also where as many positions are looked at", _MATCHED_DIFFERENCE),
    _lower("because of its structure: also against the same words in random order", _SHUFFLED_DIFFERENCE),
)
_AVERAGED = "Eq. (1) was averaged over problems for every head, and compared on the same problems."


def _figure_6(context: Context) -> Measurement:
    """Compare with and without CoT over all heads."""
    study = _largest(context, "W-figure-6")
    if study is None:
        wanted = f"of a pretrained model on {_FEWEST_PROBLEMS} problems or more"
        return _missing(_FIGURE_6, context, "W-figure-6", wanted)
    model = study.models[0]
    stated, matched = (model.against("no CoT", reduction) for reduction in (PAPER, MATCHED))
    shuffled = model.against("shuffled CoT", MATCHED)
    return Measurement(
        {
            _HEADS: _between(stated.heads_lower),
            _DIFFERENCE: _between(stated.difference),
            _MATCHED_DIFFERENCE: _between(matched.difference),
            _SHUFFLED_DIFFERENCE: _between(shuffled.difference),
        },
        f"lower in {lower_share(stated)} of heads; {lower_share(matched)} at equal counts, "
        f"{lower_share(shuffled)} against shuffled ({model.label})",
        f"{study.problems} problems, {math.prod(model.layers_by_heads)} heads",
        _evidence(study, model),
        f"{_AVERAGED} That it comes from the CoT and not from its length must survive equal counts of positions, and "
        "hold against the same words in random order.",
    )


def _together(intervals: Sequence[Interval]) -> list[Between]:
    """Widen 95 % intervals until all of them together are right as often (Bonferroni): layers are many."""
    normal = NormalDist()
    wider = normal.inv_cdf(1 - 0.025 / len(intervals)) / normal.inv_cdf(0.975)
    return [
        Between(one.value - wider * (one.value - one.low), one.value + wider * (one.high - one.value))
        for one in intervals
    ]


_EVERY_LAYER = "largest mean difference of a layer, CoT minus no CoT"
_FIGURE_7 = (
    _lower("heads are lower with CoT on average", _DIFFERENCE),
    Clause("in every layer", _EVERY_LAYER, below(0), f"{_PROBLEMS}, for all layers together (Bonferroni)"),
)


def _figure_7(context: Context) -> Measurement:
    """Compare layer by layer."""
    study = _largest(context, "W-figure-7")
    if study is None:
        wanted = f"of a pretrained model on {_FEWEST_PROBLEMS} problems or more"
        return _missing(_FIGURE_7, context, "W-figure-7", wanted)
    model = study.models[0]
    counts, total = {}, model.layers_by_heads[0]
    for title, reduction, (other, _) in PANELS:
        layers = model.against_by_layer(other, reduction)
        counts[title] = {
            "lower": [index + 1 for index, layer in enumerate(layers) if layer.difference.high < 0],
            "higher": [index + 1 for index, layer in enumerate(layers) if layer.difference.low > 0],
        }
    stated = _together([layer.difference for layer in model.against_by_layer("no CoT", PAPER)])
    number = "; ".join(f"{len(found['lower'])} of {total} by {title}" for title, found in counts.items())
    return Measurement(
        {
            _DIFFERENCE: _between(model.against("no CoT", PAPER).difference),
            # All layers are lower when the highest upper end is; one is higher when the highest lower end is.
            _EVERY_LAYER: Between(max(one.low for one in stated), max(one.high for one in stated)),
        },
        f"layers lower: {number} ({model.label})",
        f"{study.problems} problems, {math.prod(model.layers_by_heads)} heads",
        {**_evidence(study, model), "layers": counts, "smallest_margin": -max(one.high for one in stated)},
        "The mean over the heads of each layer was compared with and without CoT. The verdict is about Eq. (1); the "
        "controls stand beside it.",
    )


_TUNED_HEADS, _TUNED = "share of heads lower after fine-tuning", "mean difference over heads, second minus first model"
_FINE_TUNING = (
    Clause("most heads are lower", _TUNED_HEADS, above(0.5), _PROBLEMS),
    _lower("heads are lower on average", _TUNED),
)


def _fine_tuning(context: Context) -> Measurement:
    """Compare the second model with the first, head by head, on the same CoT texts."""
    study = _largest(context, "W-figure-6", models=2)
    if study is None or study.second_against_first is None:
        wanted = f"of a model and its fine-tuned descendant on {_FEWEST_PROBLEMS} problems or more"
        return _missing(_FINE_TUNING, context, "W-figure-6", wanted)
    first, second = study.models[:2]
    found = dict(zip(map(str, MEASURES), study.second_against_first, strict=True))
    stated = found[PAPER]
    return Measurement(
        {_TUNED_HEADS: _between(stated.heads_lower), _TUNED: _between(stated.difference)},
        f"lower in {lower_share(stated)} of heads ({second.label} against {first.label})",
        f"{study.problems} problems, {stated.heads} heads",
        {
            "first": _evidence(study, first),
            "second": _evidence(study, second),
            "second against first on CoT": {
                name: f"lower in {lower_share(one)} of heads, difference {by_how_much(one)}"
                for name, one in found.items()
            },
        },
        f"{_AVERAGED} Both models read the same texts, so counts of positions are equal.",
    )


CLAIMS = (
    Claim(
        "W-figure-6",
        "Pretrained models attend more sparsely (Eq. 1) to real problems with a chain of thought than without one, "
        "because real CoT data has a sparser structure.",
        _FIGURE_6,
        _figure_6,
        "Section 4.3, Figure 6",
        seconds=0.1,
        figure="W-figure-6",
        reads_figure=True,
    ),
    Claim(
        "W-figure-6-fine-tuning",
        "On the same CoT data a model fine-tuned on CoT data has lower attention entropy than the model it came from.",
        _FINE_TUNING,
        _fine_tuning,
        "Section 4.3, Figure 6",
        seconds=0.1,
        figure="W-figure-6",
        reads_figure=True,
    ),
    Claim(
        "W-figure-7",
        "The attention entropy (Eq. 1) of pretrained models is lower with CoT than without across all layers.",
        _FIGURE_7,
        _figure_7,
        "Section 4.3 and Appendix C.1, Figure 7",
        seconds=0.1,
        figure="W-figure-7",
        reads_figure=True,
    ),
)
