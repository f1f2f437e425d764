"""Reading problems with a language model: the entropy of its attention at every position, and measures of each head."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.language_models.word_problems import VARIANTS, Variant, WordProblem

if TYPE_CHECKING:
    from parityscope.language_models.loading import LanguageModel

_NUMBERS_AT_ONCE = 2**25  # attention weights held at any time over all layers: 128 MB in float32


class _Measure(NamedTuple):
    """How the positions of a text become one number, with the attention sink kept or removed.

    >>> print(_Measure(PAPER, "kept"), "|", _Measure("mean", "removed"))
    min (Eq. 1) | mean, sink removed
    """

    name: str
    sink: str

    def __str__(self) -> str:
        return self.name if self.sink == "kept" else f"{self.name}, sink removed"


PAPER, MATCHED = "min (Eq. 1)", "suffix min, count-matched"
REDUCTIONS = (PAPER, "mean", "suffix min", MATCHED, "suffix mean")
MEASURES = tuple(_Measure(name, sink) for sink in ("kept", "removed") for name in REDUCTIONS)
NO_COT, COT, SHUFFLED = range(len(VARIANTS))
COMPARISONS: dict[Variant, int] = {"no CoT": NO_COT, "shuffled CoT": SHUFFLED}  # what CoT is compared with


def expected_minimum(values: Float[Tensor, "*batch N"], draws: int) -> Float[Tensor, "*batch"]:
    """Return the exact mean of the smallest of `draws` values drawn without replacement; NaNs are not drawn.

    The j-th smallest of N values is the smallest of m drawn ones with probability C(N − j, m − 1)/C(N, m). At most as
    many are drawn as there are.
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


class Reading(NamedTuple):
    """H(attention at i)/log i for every head and position, and what the model needs to read on.

    `kept` is the quantity inside the minimum of W's Eq. (1); `removed` is the same with the weight on the first token
    (the attention sink) taken away and the rest normalised again, over log(i − 1). Entries without a meaning are NaN:
    padding, i = 1, and i = 2 without the sink.

    >>> from transformers import AutoModelForCausalLM, GPT2Config
    >>> config = GPT2Config(vocab_size=8, n_positions=8, n_embd=4, n_layer=1, n_head=2, initializer_range=0.0)
    >>> network = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    >>> ids = torch.tensor([[3, 1, 4, 1]])
    >>> reading = read_attention(network, ids, real=torch.tensor([[False, True, True, True]]))  # one token of padding
    >>> reading.removed[0, 0, 0].round(decimals=4).tolist()  # even attention, without the sink to the third alone
    [nan, nan, nan, 1.0]
    """

    kept: Float[Tensor, "batch layers heads T"]
    removed: Float[Tensor, "batch layers heads T"]
    real: Bool[Tensor, "batch seen"]
    cache: Any


def read_attention(
    network: Any,
    ids: Int64[Tensor, "batch T"],
    real: Bool[Tensor, "batch T"],
    before: Reading | None = None,
    *,
    numbers_at_once: int = _NUMBERS_AT_ONCE,
) -> Reading:
    """Let the model read tokens, after those of `before` if given, and return the entropy of its attention.

    `real` is False on padding, which may stand anywhere. Queries go through the model in pieces, so that at most about
    `numbers_at_once` attention weights exist at a time, whatever the length.
    """
    body = getattr(network, "base_model", network)  # without the head: nobody looks at the logits
    seen = real if before is None else torch.cat([before.real, real], dim=1)
    past, cache = seen.shape[1] - ids.shape[1], None if before is None else copy.deepcopy(before.cache)
    config = network.config.get_text_config()
    rows = ids.shape[0] * config.num_hidden_layers * config.num_attention_heads
    width = max(1, numbers_at_once // (rows * seen.shape[1]))
    takes_positions = "position_ids" in inspect.signature(body.forward).parameters
    order = seen.long().cumsum(1)  # the paper's i: real tokens up to and including this one
    pieces = []
    for start in range(0, ids.shape[1], width):
        chosen = slice(past + start, min(past + start + width, seen.shape[1]))
        positions = {"position_ids": (order[:, chosen] - 1).clamp(min=0)} if takes_positions else {}
        with torch.no_grad():
            output = body(
                input_ids=ids[:, start : start + width],
                attention_mask=seen[:, : chosen.stop].long(),
                past_key_values=cache,
                use_cache=True,
                output_attentions=True,
                return_dict=True,
                **positions,
            )
        cache = output.past_key_values
        pieces.append(_entropies(_weights(output, network), seen[:, : chosen.stop], chosen))
    kept, removed = (torch.cat(parts, dim=-1) for parts in zip(*pieces, strict=True))
    return Reading(kept, removed, seen, cache)


def _weights(output: Any, network: Any) -> list[Tensor]:
    found = [layer for layer in getattr(output, "attentions", None) or () if layer is not None]
    if not found:
        raise InvalidInput(
            f"{type(network).__name__} returns no attention weights, so there is nothing to measure: "
            "it needs softmax attention that can be computed in the open (attn_implementation='eager')"
        )
    return found


def _entropies(layers: list[Tensor], seen: Bool[Tensor, "batch seen"], chosen: slice) -> tuple[Tensor, Tensor]:
    """Return both entropies, (batch, layers, heads, queries), of the queries in `chosen`."""
    order = seen.long().cumsum(1)
    sink = seen & (order == 1)
    i = order[:, None, chosen].masked_fill(~seen[:, None, chosen], 0)  # (batch, 1, queries); 0 on padding
    kept, removed = [], []
    for weights in layers:  # (batch, heads, queries, keys)
        exact = weights.float()
        # A sliding window may have dropped the oldest keys.
        first = sink[:, None, None, -exact.shape[-1] :]
        kept.append(_normalised(exact, i))
        removed.append(_normalised(exact.masked_fill(first, 0.0), i - 1))
    return torch.stack(kept, dim=1).cpu(), torch.stack(removed, dim=1).cpu()


def _normalised(
    weights: Float[Tensor, "batch heads queries keys"], count: Int64[Tensor, "batch 1 queries"]
) -> Float[Tensor, "batch heads queries"]:
    """Return the entropy over the log of how many tokens could be attended to; NaN where that is one or none."""
    # Low precision leaves sums that are not quite 1; an empty rest (0/0) becomes NaN, as it should.
    weights = weights / weights.sum(-1, keepdim=True)
    entropy = torch.special.entr(weights).sum(-1) / count.clamp(min=2).log()
    return entropy.masked_fill(count < 2, float("nan"))


class _Tokens(NamedTuple):
    prompt: list[int]
    suffixes: tuple[list[int], ...]  # one per variant


def _tokens(model: LanguageModel, problem: WordProblem, seed: int) -> _Tokens:
    """Encode whole texts, and part them where they stop having the question's tokens."""
    texts = [model.encode(problem.text(variant, seed)) for variant in VARIANTS]
    shared = 0
    for column in zip(model.encode(problem.prompt), *texts, strict=False):
        if len(set(column)) > 1:
            break
        shared += 1
    return _Tokens(texts[0][:shared], tuple(text[shared:] for text in texts))


def fits(model: LanguageModel, problem: WordProblem, seed: int = 0) -> bool:
    """Say whether the model has positions for every variant of a problem."""
    prompt, suffixes = _tokens(model, problem, seed)
    return model.max_tokens is None or len(prompt) + max(map(len, suffixes)) <= model.max_tokens


def measure_problems(
    model: LanguageModel, problems: Sequence[WordProblem], seed: int = 0
) -> Float[Tensor, "problems variants measures layers heads"]:
    """Return every measure of every variant for each head, reading the question of each problem once.

    Several problems are padded on the left and read together; the numbers are those of each problem alone.
    """
    tokens = [_tokens(model, problem, seed) for problem in problems]
    prompts = _read(model, [problem.prompt for problem in tokens], None)
    readings = [
        _read(model, [problem.suffixes[place] for problem in tokens], prompts) for place in range(len(VARIANTS))
    ]
    return torch.stack([_measures(prompts, readings, row) for row in range(len(problems))])


def _read(model: LanguageModel, texts: Sequence[list[int]], before: Reading | None) -> Reading:
    """Read texts of different lengths together, padded on the left."""
    width = max(map(len, texts))
    padded = [[0] * (width - len(text)) + text for text in texts]  # what padding says is never looked at
    real = [[False] * (width - len(text)) + [True] * len(text) for text in texts]
    device = model.network.device
    return read_attention(model.network, torch.tensor(padded, device=device), torch.tensor(real, device=device), before)


def _measures(
    prompts: Reading, readings: Sequence[Reading], row: int
) -> Float[Tensor, "variants measures layers heads"]:
    """Return the measures of one problem: position by position the question, and then the suffix of each variant."""
    asked = prompts.real[row].cpu()
    suffixes = [reading.real[row, prompts.real.shape[1] :].cpu() for reading in readings]
    count = min(int(suffix.sum()) for suffix in suffixes)
    found = []
    for reading, suffix in zip(readings, suffixes, strict=True):
        whole = [
            torch.cat([before[row][..., asked], after[row][..., suffix]], dim=-1)
            for before, after in ((prompts.kept, reading.kept), (prompts.removed, reading.removed))
        ]
        found.append(torch.cat([reduced(entropies, int(asked.sum()), count) for entropies in whole]))
    return torch.stack(found)
