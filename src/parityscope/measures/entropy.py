"""How focused attention is."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.errors import InvalidInput


def attention_entropy(weights: Float[Tensor, "*maps T T"]) -> Float[Tensor, "*maps"]:
    """Return the normalised attention entropy of every map: min over i ≥ 2 of H(attention at i) / log i (W, Eq. (1)).

    Row i of a map says where token i looks, and only the tokens up to itself may be there. 0 means that some token
    looks at a single one, 1 that every token looks everywhere. W averages the result over a validation set.

    Parameters
    ----------
    weights : Tensor (…, T, T)
        Attention maps; row i adds up to 1 over the tokens up to i.

    Returns
    -------
    Tensor (…)
        One number from 0 to 1 per map.

    >>> round(attention_entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]])).item(), 6)
    1.0
    >>> attention_entropy(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])).item()
    0.0
    """
    length = weights.shape[-1]
    if length < 2:
        raise InvalidInput(f"attention entropy needs at least 2 tokens, got {length}")
    # W, Eq. (1); 0·log 0 is 0.
    entropy = torch.special.entr(weights[..., 1:, :]).sum(-1)
    longest = torch.arange(2, length + 1, device=weights.device, dtype=weights.dtype).log()
    return (entropy / longest).amin(-1)
