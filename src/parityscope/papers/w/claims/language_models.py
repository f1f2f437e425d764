"""W, Section 4.3: chain of thought and the attention of pretrained language models, from stored studies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from parityscope.language_models.measures import MATCHED, MEASURES, PAPER
from parityscope.language_models.summary import Comparison
from parityscope.papers.claim import Check, Claim, Context, Verdict
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


def _untested(context: Context, figure: str, missing: str) -> Check:
    stored = [study.title for study in _studies(context, figure)]
    return Check(
        "not testable here",
        f"no study {missing}",
        {"stored_studies": stored, "fewest_problems": _FEWEST_PROBLEMS, "command": COMMAND},
        f"It needs a study {missing}, in the folder of this report: {COMMAND}.",
    )


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


def _verdict(stated: Comparison, controls: Sequence[Comparison] = ()) -> Verdict:
    """Judge a difference by its own measure, and what is inferred from it by the controls.

    A contrary result needs two routes: heads averaged over problems, and problems averaged over heads.
    """
    if stated.is_higher and stated.problems_lower.high < 0.5:
        return "fails"
    if not stated.is_lower:
        return "not testable here"
    return "holds" if all(control.is_lower for control in controls) else "holds in part"


_JUDGED = (
    "Eq. (1) was averaged over problems for every head. A difference counts when most heads and their mean are lower "
    "beyond 95 % intervals over resampled problems; a contrary one only if most single problems say so too."
)


def _figure_6(context: Context) -> Check:
    """Compare with and without CoT over all heads."""
    study = _largest(context, "W-figure-6")
    if study is None:
        return _untested(context, "W-figure-6", f"of a pretrained model on {_FEWEST_PROBLEMS} problems or more")
    model = study.models[0]
    stated, matched = (model.against("no CoT", reduction) for reduction in (PAPER, MATCHED))
    shuffled = model.against("shuffled CoT", MATCHED)
    return Check(
        _verdict(stated, (matched, shuffled)),
        f"lower in {lower_share(stated)} of heads; {lower_share(matched)} at equal counts, "
        f"{lower_share(shuffled)} against shuffled ({model.label})",
        _evidence(study, model),
        f"{_JUDGED} That it comes from the CoT and not from its length must survive equal counts of positions, and "
        "hold against the same words in random order.",
    )


def _figure_7(context: Context) -> Check:
    """Compare layer by layer."""
    study = _largest(context, "W-figure-7")
    if study is None:
        return _untested(context, "W-figure-7", f"of a pretrained model on {_FEWEST_PROBLEMS} problems or more")
    model = study.models[0]
    counts, total = {}, model.layers_by_heads[0]
    for title, reduction, (other, _) in PANELS:
        layers = model.against_by_layer(other, reduction)
        counts[title] = {
            "lower": [index + 1 for index, layer in enumerate(layers) if layer.difference.high < 0],
            "higher": [index + 1 for index, layer in enumerate(layers) if layer.difference.low > 0],
        }
    stated = model.against_by_layer("no CoT", PAPER)
    # The statement is about Eq. (1) alone. Unless every layer agrees, the whole model decides: layers are many.
    whole = _verdict(model.against("no CoT", PAPER))
    verdict: Verdict = "holds in part" if whole == "holds" else whole
    if all(layer.difference.high < 0 for layer in stated):
        verdict = "holds"
    number = "; ".join(f"{len(found['lower'])} of {total} by {title}" for title, found in counts.items())
    return Check(
        verdict,
        f"layers lower: {number} ({model.label})",
        {
            **_evidence(study, model),
            "layers": counts,
            "smallest_margin": -max(layer.difference.high for layer in stated),
            "evaluations": study.problems * math.prod(model.layers_by_heads),
        },
        "The mean over the heads of each layer was compared with and without CoT; a layer is lower or higher when the "
        "95 % interval over resampled problems says so. The verdict is about Eq. (1); the controls stand beside it.",
    )


def _fine_tuning(context: Context) -> Check:
    """Compare the second model with the first, head by head, on the same CoT texts."""
    study = _largest(context, "W-figure-6", models=2)
    if study is None or study.second_against_first is None:
        missing = f"of a model and its fine-tuned descendant on {_FEWEST_PROBLEMS} problems or more"
        return _untested(context, "W-figure-6", missing)
    first, second = study.models[:2]
    found = dict(zip(map(str, MEASURES), study.second_against_first, strict=True))
    return Check(
        _verdict(found[PAPER]),
        f"lower in {lower_share(found[PAPER])} of heads ({second.label} against {first.label})",
        {
            "first": _evidence(study, first),
            "second": _evidence(study, second),
            "second against first on CoT": {
                name: f"lower in {lower_share(one)} of heads, difference {by_how_much(one)}"
                for name, one in found.items()
            },
        },
        f"{_JUDGED} Both models read the same texts, so counts of positions are equal.",
    )


CLAIMS = (
    Claim(
        "W-figure-6",
        "Pretrained models attend more sparsely (Eq. 1) to real problems with a chain of thought than without one, "
        "because real CoT data has a sparser structure.",
        _figure_6,
        seconds=1,
        figure="W-figure-6",
        reads_figure=True,
    ),
    Claim(
        "W-figure-6-fine-tuning",
        "On the same CoT data a model fine-tuned on CoT data has lower attention entropy than the model it came from.",
        _fine_tuning,
        seconds=1,
        figure="W-figure-6",
        reads_figure=True,
    ),
    Claim(
        "W-figure-7",
        "The attention entropy (Eq. 1) of pretrained models is lower with CoT than without across all layers.",
        _figure_7,
        seconds=1,
        figure="W-figure-7",
        reads_figure=True,
    ),
)
