"""From the entropy at every position to one number per head: the paper's minimum, and fairer ways to compare."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.language_models.word_problems import VARIANTS, Variant


class Measure(NamedTuple):
    """How the positions of a text become one number, with the attention sink kept or removed.

    >>> print(Measure(PAPER, "kept"), "|", Measure("mean", "removed"))
    min (Eq. 1) | mean, sink removed
    """

    name: str
    sink: str

    def __str__(self) -> str:
        return self.name if self.sink == "kept" else f"{self.name}, sink removed"


PAPER, MATCHED = "min (Eq. 1)", "suffix min, count-matched"
REDUCTIONS = (PAPER, "mean", "suffix min", MATCHED, "suffix mean")
MEASURES = tuple(Measure(name, sink) for sink in ("kept", "removed") for name in REDUCTIONS)
NO_COT, COT, SHUFFLED = range(len(VARIANTS))
COMPARISONS: dict[Variant, int] = {"no CoT": NO_COT, "shuffled CoT": SHUFFLED}  # what CoT is compared with


def expected_minimum(values: Float[Tensor, "*batch N"], draws: int) -> Float[Tensor, "*batch"]:
    """Return the exact mean of the smallest of `draws` values drawn without replacement; NaNs are not drawn.

    The j-th smallest of N values is the smallest of m drawn ones with probability C(N − j, m − 1)/C(N, m). At most as
    many are drawn as there are.

    >>> expected_minimum(torch.tensor([3.0, 1.0, 2.0]), 2).item()  # (1 + 1 + 2)/3
    1.3333333730697632
    """
    usable = ~values.isnan()
    N = usable.sum(-1, keepdim=True).double()
    m = N.clamp(max=draws)
    ascending = values.masked_fill(~usable, float("inf")).sort(-1).values
    j = torch.arange(1, values.shape[-1] + 1, dtype=torch.float64)
    drawable = j <= N - m + 1
    top = torch.where(drawable, N - j, m - 1)  # where not drawable, any value that keeps the logarithms finite
    log_chance = _log_binomial(top, m - 1) - _log_binomial(N, m)
    chance = torch.where(drawable, log_chance.exp(), 0.0)
    found = (chance * ascending.masked_fill(~drawable, 0.0)).sum(-1)
    return found.masked_fill(N[..., 0] == 0, float("nan")).to(values.dtype)


def _log_binomial(n: Tensor, k: Tensor) -> Tensor:
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)


def reduced(
    entropies: Float[Tensor, "layers heads T"], prompt: int, count: int
) -> Float[Tensor, "reductions layers heads"]:
    """Return every reduction of the entropies of one text, in the order of REDUCTIONS.

    The first `prompt` positions are the question, the rest is the suffix; `count` positions are drawn where counts are
    matched. Positions that are NaN are left out.

    >>> entropies = torch.tensor([[[float("nan"), 0.8, 0.4, 0.6]]])
    >>> values = reduced(entropies, prompt=2, count=1).flatten().tolist()
    >>> {name: round(value, 4) for name, value in zip(REDUCTIONS, values)}
    {'min (Eq. 1)': 0.4, 'mean': 0.6, 'suffix min': 0.4, 'suffix min, count-matched': 0.5, 'suffix mean': 0.5}
    """
    suffix = entropies[..., prompt:]
    return torch.stack(
        [
            _smallest(entropies),  # W, Eq. (1)
            entropies.nanmean(-1),
            _smallest(suffix),
            expected_minimum(suffix, count),
            suffix.nanmean(-1),
        ]
    )


def _smallest(values: Tensor) -> Tensor:
    return values.nan_to_num(nan=float("inf")).amin(-1)
