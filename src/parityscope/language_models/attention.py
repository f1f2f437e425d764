"""Entropy of a language model's attention at every position, in bounded memory, with what texts share read once."""

from __future__ import annotations

import copy
import inspect
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from parityscope.core.errors import InvalidInput

_NUMBERS_AT_ONCE = 2**25  # attention weights held at any time over all layers: 128 MB in float32


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

    >>> from transformers import AutoModelForCausalLM, GPT2Config
    >>> config = GPT2Config(vocab_size=8, n_positions=8, n_embd=4, n_layer=1, n_head=2, initializer_range=0.0)
    >>> network = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    >>> ids = torch.tensor([[3, 1, 4, 1]])
    >>> read_attention(network, ids, ids > 0).kept[0, 0, 0].round(decimals=4).tolist()  # no weights: even attention
    [nan, 1.0, 1.0, 1.0]
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
