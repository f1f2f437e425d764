"""What is measured of a decoder on parity sequences: how much it gets right, and where it looks while it stands."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from parityscope.models import GPT
from parityscope.problems.sequences import ParitySequences

_ROWS_AT_ONCE = 1024
_GLANCE_TOKENS = 2048  # as long as these are not nearly all right, the others are not looked at
_NEARLY = 0.97  # nine standard deviations of them below 0.99, the first crossing that is noted


@torch.no_grad()
def teacher_forced(model: GPT, positions: Int64[Tensor, " labels"], tokens: Int64[Tensor, "batch T"]) -> float:
    """Return the share of tokens after `positions` that are right, fed the true past.

    Of a decoder that is far from right only the first 2048 tokens are looked at; 1 means all of them, always.

    >>> task = ParitySequences(4, (0, 2))
    >>> model = GPT(task.length, width=8, generator=torch.Generator().manual_seed(0))
    >>> with torch.no_grad():
    ...     _ = model.wte.zero_()  # both tokens equally likely: it says 0
    >>> tokens = task.tokens(torch.tensor([[0, 0, 0, 0], [1, 0, 0, 0]]))  # chains 0 0 and 1 1
    >>> teacher_forced(model, task.label_positions, tokens)
    0.5
    """
    glance = max(1, _GLANCE_TOKENS // len(positions))
    right = _right(model, positions, tokens[:glance])
    share = right / (len(tokens[:glance]) * len(positions))
    if share < _NEARLY or len(tokens) <= glance:
        return share
    right += sum(_right(model, positions, rows) for rows in tokens[glance:].split(_ROWS_AT_ONCE))
    return right / (len(tokens) * len(positions))


def _right(model: GPT, positions: Tensor, tokens: Tensor) -> int:
    return int((model(tokens, positions).argmax(-1) == tokens[:, positions + 1]).sum())


def free_running(model: GPT, task: ParitySequences, tokens: Int64[Tensor, "batch T"]) -> float:
    """Return the share of answers that are right, fed the model's own chain.

    >>> task = ParitySequences(4, (0, 2))
    >>> model = GPT(task.length, width=8, generator=torch.Generator().manual_seed(0))
    >>> with torch.no_grad():
    ...     _ = model.wte.zero_()
    >>> free_running(model, task, task.tokens(torch.tensor([[0, 0, 0, 0], [1, 0, 0, 0]])))
    0.5
    """
    generated = model.generate(tokens[:, : task.prompt_length], task.length - task.prompt_length)
    return float((generated[:, -1] == tokens[:, -1]).double().mean())


@torch.no_grad()
def by_token_stood_on(
    model: GPT,
    task: ParitySequences,
    tokens: Int64[Tensor, "batch length"],
    maps: Float[Tensor, "batch layers heads T T"],
) -> Float[Tensor, "2 2"]:
    """Return the share right and the attention on the secret bit where the chain stands on a 0, and where on a 1.

    A link copies its secret bit where it stands on a 0 and negates it where it stands on a 1. The first link always
    stands on a 0 and is left out. Rows: right, attention (of the head that gives most); columns: on 0, on 1.

    >>> task = ParitySequences(4, (0, 2))
    >>> model = GPT(task.length, width=8, generator=torch.Generator().manual_seed(0))
    >>> tokens = task.tokens(torch.tensor([[0, 0, 0, 0], [1, 0, 0, 0]]))
    >>> found = by_token_stood_on(model, task, tokens, model.attention(tokens[:, :-1]))
    >>> [f"{share:.1f}" for share in found[1]]  # almost even attention on six tokens
    ['0.2', '0.2']
    """
    links = torch.arange(task.n + 1, task.length - 1, device=tokens.device)
    right = model(tokens, links).argmax(-1) == tokens[:, links + 1]
    secret = task.attended_secret()[1:].to(tokens.device)
    looks = maps[..., links, secret]  # (batch, layers, heads, links)
    found = []
    for token in (0, 1):
        here = (tokens[:, links] == token).to(looks.dtype)
        count = here.sum(0).clamp(min=1)
        shares = torch.einsum("blhi,bi->lhi", looks, here) / count
        found.append(torch.stack(((right * here).sum() / here.sum().clamp(min=1), shares.amax((0, 1)).mean())))
    return torch.stack(found, 1).cpu()
