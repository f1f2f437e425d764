"""A GPT-2 decoder over bits, in one file, with three exact savings.

1. In the last layer only the loss positions need a query, a projection and an MLP; the others give keys and values.
2. In the first layer an input row is one of two (token, position) pairs, so layer norm, queries, keys, values and
   scores exist once per pair, not once per sequence; a sequence picks its own by its bits.
3. Between them, sequences of a batch that begin alike share the rows of their common prefix: of 512 sequences, only
   2^j begin differently in their first j bits.

They give the logits and gradients of the plain path (`plain_logits`) up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from parityscope.core.errors import InvalidInput

_TOKENS = 2
_START_SPREAD = 0.02  # GPT-2's


class _Block(nn.Module):
    """One layer: attention and MLP, each behind a layer norm and beside a residual path."""

    def __init__(self, width: int, heads: int, mlp_width: int, rounded: bool) -> None:
        super().__init__()
        self.heads, self.rounded = heads, rounded
        self.ln_1 = nn.LayerNorm(width)
        self.attn_in = nn.utils.skip_init(nn.Linear, width, 3 * width)
        self.attn_out = nn.utils.skip_init(nn.Linear, width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp_in = nn.utils.skip_init(nn.Linear, width, mlp_width)
        self.mlp_out = nn.utils.skip_init(nn.Linear, mlp_width, width)

    def project(self, normed: Tensor, part: slice, row: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return some of query, key and value (0, 1, 2), each (…, heads, positions, width / heads).

        With `row`, every sequence's position takes the projection of the shared row named there.
        """
        width = normed.shape[-1]
        rows = slice(part.start * width, part.stop * width)
        mixed = functional.linear(normed, self.attn_in.weight[rows], self.attn_in.bias[rows])
        mixed = mixed if row is None else _rows(mixed, row)
        split = mixed.unflatten(-1, (part.stop - part.start, self.heads, -1))
        return tuple(split.movedim(-3, 0).transpose(-2, -3))  # each (…, heads, positions, width / heads)

    def finish(self, x: Tensor, mixed: Tensor, drop: _Dropout) -> Tensor:
        """Add attention's output, heads side by side, and the MLP's to the residual path.

        Nine tenths of a wide decoder's step are these three products; in bfloat16 they take less than half the time.
        """
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.rounded):
            x = x + drop(self.attn_out(mixed))
            return x + drop(self.mlp_out(functional.gelu(self.mlp_in(self.ln_2(x)), approximate="tanh")))

    def forward(self, x: Tensor, shared: _SharedRows, positions: Tensor | None = None) -> Tensor:
        """Return the output on the shared rows (rows, width), or at `positions` (sequences, positions, width)."""
        normed = self.ln_1(x)
        key, value = self.project(normed, slice(1, 3), shared.row)
        if positions is None:
            (query,) = self.project(normed, slice(0, 1), shared.row)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            return self.finish(x, shared.select(_joined(mixed)), _keep)
        wanted = shared.row.index_select(1, positions)
        (query,) = self.project(normed, slice(0, 1), wanted)
        visible = _visible(positions, shared.row.shape[1])
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=visible)
        return self.finish(_rows(x, wanted), _joined(mixed), _keep)

    def attend(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attention (batch, heads, T, T) and the values it weighs, as a textbook does."""
        query, key, value = self.project(self.ln_1(x), slice(0, 3))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        hidden = ~_visible(torch.arange(x.shape[1], device=x.device), x.shape[1])
        return scores.masked_fill(hidden, -math.inf).softmax(-1), value

    def plain(self, x: Tensor, attention: Tensor, value: Tensor, drop: _Dropout) -> Tensor:
        """Return the layer's output everywhere."""
        return self.finish(x, _joined(drop(attention) @ value), drop)

    def on_pairs(self, pairs: Tensor, bits: Tensor, positions: Tensor, shared: _SharedRows | None = None) -> Tensor:
        """Return the first layer's output at `positions` from the 2 × T embedded (token, position) pairs."""
        normed = self.ln_1(pairs)  # (2, T, width)
        key, value = self.project(normed, slice(1, 3))  # (2, heads, T, width / heads)
        (query,) = self.project(normed.index_select(1, positions), slice(0, 1))
        # Scores of every pair of pairs, then the polynomial in the two bits that picks the right one.
        table = torch.einsum("ahpd,bhjd->abhpj", query, key)[:, :, :, None] / math.sqrt(query.shape[-1])
        by_key = table[:, 1] - table[:, 0]
        here = bits.index_select(1, positions)[..., None]  # (batch, positions, 1)
        there = bits[:, None]  # (batch, 1, T)
        by_query = torch.addcmul(table[1, 0] - table[0, 0], there, by_key[1] - by_key[0])
        scores = torch.addcmul(torch.addcmul(table[0, 0], there, by_key[0]), here, by_query)
        hidden = ~_visible(positions, pairs.shape[1])
        attention = scores.masked_fill(hidden, -math.inf).softmax(-1)  # (heads, batch, positions, T)
        # Σ_j γ_j v_j as one product with the values of all pairs.
        ones = attention * there
        mixed = torch.cat((attention - ones, ones), -1).flatten(1, 2) @ torch.cat((value[0], value[1]), 1)
        mixed = _joined(mixed.unflatten(1, (len(bits), -1)).transpose(0, 1))
        start = pairs.index_select(1, positions)
        x = torch.lerp(start[0], start[1], here)
        if shared is not None:
            x, mixed = shared.select(x), shared.select(mixed)
        return self.finish(x, mixed, _keep)


class _SharedRows:
    """The distinct prefixes of a batch: one row each, whatever the number of sequences that begin with it."""

    def __init__(self, tokens: Tensor) -> None:
        self.sequences, self.sequence_of = torch.unique(tokens, dim=0, return_inverse=True)  # in dictionary order
        differs = self.sequences[1:] != self.sequences[:-1]
        begins = differs.new_ones(1, tokens.shape[1])
        new = torch.cat((begins, differs.long().cummax(1).values.bool()))
        count = new.sum(0)
        self.row = new.cumsum(0) - 1 + count.cumsum(0) - count  # (sequences, T): rows are numbered position by position
        place = new.T.nonzero()
        self._first = place[:, 1] * tokens.shape[1] + place[:, 0]

    def select(self, x: Tensor) -> Tensor:
        """Return the rows (rows, width) of x (sequences, T, width), taken from the first sequence that has each."""
        return x.flatten(0, 1).index_select(0, self._first)


class GPT(nn.Module):
    """A decoder of GPT-2's shape over the tokens 0 and 1, output weights tied to the token embedding.

    Dropout (embedding, attention, residual, as in GPT-2) acts when a call is given a generator.

    Parameters
    ----------
    length : int
        The longest sequence, in tokens.
    layers, heads : int
        Layers, and attention heads in each.
    width : int
        Numbers per token, a multiple of the heads.
    mlp_width : int or None
        Neurons of each layer's MLP; None: four times the width.
    dropout : float
        The probability that a number is dropped.
    start_gain : float
        How much wider than GPT-2's the matrices inside the layers start; √(720 / width) keeps what they give at a
        width on the scale it has at W's 720.
    rounded : bool
        Whether the factors of the products behind attention are rounded to bfloat16; everything else is float32.
    generator : torch.Generator
        Where the start comes from.

    >>> model = GPT(length=9, layers=2, heads=2, width=16, generator=torch.Generator().manual_seed(0))
    >>> tokens = torch.tensor([[0, 1, 1, 0, 1, 0, 0, 1, 1]])
    >>> fast, plain = model(tokens, torch.tensor([5, 6, 7])), model.plain_logits(tokens)[:, 5:8]
    >>> tuple(fast.shape), bool(torch.allclose(fast, plain, atol=1e-6))
    ((1, 3, 2), True)
    """

    def __init__(
        self,
        length: int,
        layers: int = 1,
        heads: int = 1,
        width: int = 128,
        mlp_width: int | None = None,
        dropout: float = 0.0,
        *,
        start_gain: float = 1.0,
        rounded: bool = False,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        if layers < 1 or heads < 1 or width % heads:
            raise InvalidInput(f"width must be a multiple of the heads, layers at least 1: got {width}, {heads}")
        if not 0 <= dropout < 1:
            raise InvalidInput(f"dropout must be at least 0 and below 1, got {dropout}")
        self.dropout = dropout
        self.wte = nn.Parameter(torch.empty(_TOKENS, width))
        self.wpe = nn.Parameter(torch.empty(length, width))
        self.h = _Blocks(_Block(width, heads, mlp_width or 4 * width, rounded) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self._start(generator, start_gain)

    def forward(
        self,
        tokens: Int64[Tensor, "batch T"],
        positions: Int64[Tensor, " positions"] | None = None,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch positions 2"]:
        """Return the logits of the next token at `positions`, everywhere by default."""
        if generator is not None and self.dropout > 0:
            logits = self.plain_logits(tokens, generator)
            return logits if positions is None else logits[:, positions]
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)
        tokens = tokens[:, : int(positions.max()) + 1]
        pairs = self.wte[:, None] + self.wpe[: tokens.shape[1]]  # (2, T, width)
        first, *later = self.h
        if not later:
            return self.ln_f(first.on_pairs(pairs, tokens.to(pairs.dtype), positions)) @ self.wte.T
        shared = _SharedRows(tokens)
        everywhere = torch.arange(tokens.shape[1], device=tokens.device)
        x = first.on_pairs(pairs, shared.sequences.to(pairs.dtype), everywhere, shared)
        for block in later[:-1]:
            x = block(x, shared)
        x = later[-1](x, shared, positions)
        return (self.ln_f(x) @ self.wte.T)[shared.sequence_of]

    def plain_logits(
        self, tokens: Int64[Tensor, "batch T"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "batch T 2"]:
        """Return the logits everywhere without the savings; dropout acts here."""
        drop = _keep if generator is None else _Dropout(self.dropout, generator)
        x = drop(self.wte[tokens] + self.wpe[: tokens.shape[1]])
        for block in self.h:
            x = block.plain(x, *block.attend(x), drop)
        return self.ln_f(x) @ self.wte.T

    def attention(self, tokens: Int64[Tensor, "batch T"]) -> Float[Tensor, "batch layers heads T T"]:
        """Return every attention map; row i says where position i looks."""
        x = self.wte[tokens] + self.wpe[: tokens.shape[1]]
        maps = []
        for layer, block in enumerate(self.h):
            attention, value = block.attend(x)
            maps.append(attention)
            if layer < len(self.h) - 1:
                x = block.plain(x, attention, value, _keep)
        return torch.stack(maps, 1)

    @torch.no_grad()
    def generate(self, prompt: Int64[Tensor, "batch T"], count: int) -> Int64[Tensor, "batch count"]:
        """Return the `count` likeliest next tokens, each fed back before the next."""
        tokens = prompt
        for _ in range(count):
            last = torch.tensor([tokens.shape[1] - 1], device=tokens.device)
            tokens = torch.cat((tokens, self(tokens, last).argmax(-1)), 1)
        return tokens[:, prompt.shape[1] :]

    def hugging_face_weights(self) -> dict[str, Tensor]:
        """Return the weights under the names and in the layout of Hugging Face's GPT2LMHeadModel."""
        names = {"attn_in": "attn.c_attn", "attn_out": "attn.c_proj", "mlp_in": "mlp.c_fc", "mlp_out": "mlp.c_proj"}
        weights = {}
        for name, value in self.state_dict().items():
            part = name.split(".")
            if part[0] in ("wte", "wpe"):
                weights[f"transformer.{name}.weight"] = value
            elif part[0] == "h" and part[2] in names:
                # Hugging Face keeps these as (in, out).
                weights[f"transformer.h.{part[1]}.{names[part[2]]}.{part[3]}"] = value.T if value.ndim == 2 else value
            else:
                weights[f"transformer.{name}"] = value
        return {**weights, "lm_head.weight": self.wte.detach()}

    @torch.no_grad()
    def _start(self, generator: torch.Generator, gain: float) -> None:
        """Draw GPT-2's initial weights: normal, residual projections narrower with depth, biases zero."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif ".ln_" not in f".{name}":
                residual = name.endswith(("attn_out.weight", "mlp_out.weight"))
                spread = _START_SPREAD / math.sqrt(2 * len(self.h)) if residual else _START_SPREAD
                inside = name.startswith("h.")
                parameter.normal_(0, spread * gain if inside else spread, generator=generator)


class _Blocks(nn.ModuleList):
    """A list whose members are known to be blocks."""

    def __iter__(self) -> Iterator[_Block]:
        return (block for block in super().__iter__() if isinstance(block, _Block))

    def __getitem__(self, index: int) -> _Block:  # type: ignore[override]
        return list(self)[index]


class _Dropout:
    """Dropout whose randomness is a generator of the caller's."""

    def __init__(self, share: float, generator: torch.Generator | None) -> None:
        self.share, self.generator = share, generator

    def __call__(self, x: Tensor) -> Tensor:
        if self.share == 0 or self.generator is None:
            return x
        kept = torch.rand(x.shape, generator=self.generator, device=x.device, dtype=x.dtype) >= self.share
        return x * kept / (1 - self.share)


_keep = _Dropout(0.0, None)


def _rows(x: Tensor, row: Tensor) -> Tensor:
    return x.index_select(0, row.flatten()).unflatten(0, row.shape)


def _joined(mixed: Tensor) -> Tensor:
    """Put the heads of (…, heads, positions, width / heads) side by side again."""
    return mixed.transpose(-2, -3).flatten(-2)


def _visible(positions: Tensor, length: int) -> Tensor:
    """Return which of `length` tokens each position may see: those up to itself."""
    return torch.arange(length, device=positions.device) <= positions[:, None]
