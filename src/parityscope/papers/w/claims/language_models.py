"""W, Section 4.3: chain of thought and the attention of pretrained language models, from stored studies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from parityscope.language_models.measures import MATCHED, MEASURES, PAPER
from parityscope.language_models.study import (
    COMMAND,
    PANELS,
    ModelNumbers,
    StudyNumbers,
    by_how_much,
    lower_share,
    shown_studies,
)
from parityscope.language_models.summary import Interval
from parityscope.papers.claim import Claim, Context, Measurement, PaperSizes, untested
from parityscope.papers.criterion import Between, Clause, above, below

_FEWEST_PROBLEMS = 30  # below, an interval over problems says little


def _studies(context: Context, figure: str) -> list[StudyNumbers]:
    return [row.numbers for row in shown_studies(context.rows(figure))]


def _large(context: Context, figure: str) -> list[StudyNumbers]:
    """Return the stored studies that have enough problems, one for each set of models and data file."""
    return [study for study in _studies(context, figure) if study.problems >= _FEWEST_PROBLEMS]


def _largest_pair(context: Context, figure: str) -> StudyNumbers | None:
    """Return the study of two models with the most problems, if one has enough of them."""
    pairs = [study for study in _large(context, figure) if len(study.models) > 1]
    return max(pairs, key=lambda study: study.problems, default=None)


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


def _highest(intervals: Sequence[Interval]) -> Between:
    """Return what a limit from above must hold for, so that it holds for all: it is broken where one breaks it."""
    return Between(max(one.low for one in intervals), max(one.high for one in intervals))


def _lowest(intervals: Sequence[Interval]) -> Between:
    """Return the same for a limit from below."""
    return Between(min(one.low for one in intervals), min(one.high for one in intervals))


def _tried(studies: Sequence[StudyNumbers]) -> str:
    return "; ".join(
        f"{study.models[0].name}: {study.problems} problems, {math.prod(study.models[0].layers_by_heads)} heads"
        for study in studies
    )


def _lower(says: str, quantity: str) -> Clause:
    """Return the clause of a mean difference over heads that must be negative."""
    return Clause(says, quantity, below(0), _PROBLEMS)


_HEADS, _DIFFERENCE = "share of heads lower with CoT", "mean difference over heads, CoT minus no CoT"
_FIGURE_6 = (
    Clause("most heads are lower with CoT", _HEADS, above(0.5), _PROBLEMS),
    _lower("heads are lower on average", _DIFFERENCE),
)
# Eq. (1) is a minimum over positions, and a text with CoT has more of them. Six measures of ours control for that; a
# minimum over a longer suffix does not.
_CONTROLS = [place for place, one in enumerate(MEASURES) if one.name in ("mean", MATCHED, "suffix mean")]
_AVERAGED = "Eq. (1) was averaged over problems for every head, and compared on the same problems."


def _figure_6(context: Context) -> Measurement:
    """Compare with and without CoT over all heads of every model that was measured."""
    studies = _large(context, "W-figure-6")
    if not studies:
        wanted = f"of a pretrained model on {_FEWEST_PROBLEMS} problems or more"
        return _missing(_FIGURE_6, context, "W-figure-6", wanted)
    models = [study.models[0] for study in studies]
    stated = [model.against("no CoT", PAPER) for model in models]
    return Measurement(
        {
            _HEADS: _lowest([one.heads_lower for one in stated]),
            _DIFFERENCE: _highest([one.difference for one in stated]),
        },
        "; ".join(f"{model.name}: {_with_controls(model)}" for model in models),
        _tried(studies),
        {"studies": [_evidence(study, study.models[0]) for study in studies]},
        f"{_AVERAGED} Six controls of ours, for the number of positions and with and without the first token, stand "
        "beside it, and all measures against the same words in random order. A clause holds if it does for every "
        "model.",
    )


def _with_controls(model: ModelNumbers) -> str:
    """Return in which share of heads CoT is lower: by Eq. (1), and by each of the controls with its sign on average."""
    against = model.comparisons["no CoT"]
    controls = [
        f"{MEASURES[place]} {against[place].heads_lower.value:.0%} ({against[place].difference.value:+.3f})"
        for place in _CONTROLS
    ]
    lower = sum(against[place].difference.high < 0 for place in _CONTROLS)
    stated = f"lower in {lower_share(model.against('no CoT', PAPER))} of heads by Eq. (1)"
    return f"{stated}; {lower} of {len(controls)} controls lower on average: {', '.join(controls)}"


_FIGURE_7 = (_lower("heads are lower with CoT on average over all layers", _DIFFERENCE),)


def _figure_7(context: Context) -> Measurement:
    """Compare layer by layer in every model that was measured."""
    studies = _large(context, "W-figure-7")
    if not studies:
        wanted = f"of a pretrained model on {_FEWEST_PROBLEMS} problems or more"
        return _missing(_FIGURE_7, context, "W-figure-7", wanted)
    models = [study.models[0] for study in studies]
    counts = [_counts(model) for model in models]
    number = "; ".join(
        ", ".join(f"{len(found['lower'])} of {model.layers_by_heads[0]} by {title}" for title, found in count.items())
        + f" ({model.name})"
        for model, count in zip(models, counts, strict=True)
    )
    return Measurement(
        {_DIFFERENCE: _highest([model.against("no CoT", PAPER).difference for model in models])},
        f"layers lower: {number}",
        _tried(studies),
        {
            "studies": [
                {**_evidence(study, model), "layers": count}
                for study, model, count in zip(studies, models, counts, strict=True)
            ]
        },
        "The mean over the heads of each layer was compared with and without CoT. The verdict is about Eq. (1); the "
        "controls stand beside it. A clause holds if it does for every model that was measured.",
    )


def _counts(model: ModelNumbers) -> dict[str, dict[str, list[int]]]:
    """Return in which layers, from 1, CoT is lower and higher beyond the sampling of problems, panel by panel."""
    counts = {}
    for title, reduction, (other, _) in PANELS:
        layers = list(enumerate(model.against_by_layer(other, reduction), start=1))
        counts[title] = {
            "lower": [index for index, layer in layers if layer.difference.high < 0],
            "higher": [index for index, layer in layers if layer.difference.low > 0],
        }
    return counts


_TUNED_HEADS, _TUNED = "share of heads lower after fine-tuning", "mean difference over heads, second minus first model"
_FINE_TUNING = (
    Clause("most heads are lower", _TUNED_HEADS, above(0.5), _PROBLEMS),
    _lower("heads are lower on average", _TUNED),
)


def _fine_tuning(context: Context) -> Measurement:
    """Compare the second model with the first, head by head, on the same CoT texts."""
    study = _largest_pair(context, "W-figure-6")
    if study is None or study.second_against_first is None:
        wanted = f"of a model and its fine-tuned descendant on {_FEWEST_PROBLEMS} problems or more"
        return _missing(_FINE_TUNING, context, "W-figure-6", wanted)
    first, second = study.models[:2]
    found = dict(zip(map(str, MEASURES), study.second_against_first, strict=True))
    stated = found[PAPER]
    return Measurement(
        {_TUNED_HEADS: _between(stated.heads_lower), _TUNED: _between(stated.difference)},
        f"lower in {lower_share(stated)} of heads ({second.name} against {first.name})",
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


_SIZES = "Qwen2-7B and Qwen2-Math-7B on the GSM8K test set"
_MODELS = "Only a study of these models would decide it; studies of others are shown."


def _sizes(figure: str, pairs: bool = False) -> PaperSizes:
    return PaperSizes(_SIZES, partial(_other_models, figure, pairs))


def _other_models(figure: str, pairs: bool, context: Context) -> str:
    """Name the models that were measured, or measured as a pair, where one is not the paper's."""
    studies = [study for study in _large(context, figure) if len(study.models) > 1 or not pairs]
    names = dict.fromkeys(model.name for study in studies for model in study.models)
    return ", ".join(names) if any("qwen2" not in name.lower() or "7b" not in name.lower() for name in names) else ""


CLAIMS = (
    Claim(
        "W-figure-6",
        "The normalised attention entropy (Eq. 1) of a pretrained model is lower on problems with a chain of thought "
        "than without one.",
        _FIGURE_6,
        _figure_6,
        "Section 4.3, Figure 6",
        reads_figure=True,
        printed="the entropy is lower for With CoT data compared to No CoT data, indicating that real-world CoT data "
        "indeed exhibits a sparser structure",
        hypotheses="the same pre-trained model Qwen2-7B, GSM8K",
        ours=f"{_MODELS} What the entropy indicates is not judged; six controls of ours for the length of the text are "
        "listed with each study, all of them.",
        sizes=_sizes("W-figure-6"),
    ),
    Claim(
        "W-figure-6-fine-tuning",
        "On the same CoT data a model fine-tuned on CoT data has lower attention entropy than the model it came from.",
        _FINE_TUNING,
        _fine_tuning,
        "Section 4.3, Figure 6",
        reads_figure=True,
        printed="on the same With CoT data, Qwen2-Math-7B model demonstrates lower attention entropy compared to "
        "Qwen2-7B model",
        hypotheses="GSM8K",
        ours=_MODELS,
        sizes=_sizes("W-figure-6", pairs=True),
    ),
    Claim(
        "W-figure-7",
        "Over all layers the attention entropy (Eq. 1) of a pretrained model is lower with CoT than without.",
        _FIGURE_7,
        _figure_7,
        "Appendix C.1, Figure 7",
        reads_figure=True,
        printed="The normalized attention entropy of the pre-trained Qwen2-7B and math-specialized Qwen2-Math-7B "
        "models on the GSM8K dataset with and without CoT prompting (Section 4.3). Each bar represents the entropy of "
        "an attention head.",
        hypotheses="28 layers of 28 heads, averaged over the GSM8K test set",
        ours="The caption asserts nothing; what is tested is what Section 4.3 says of Figure 6, over all layers. How "
        f"many layers are lower is our count. {_MODELS}",
        sizes=_sizes("W-figure-7"),
    ),
)
