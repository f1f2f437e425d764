"""Reading word problems with a language model: every measure of every variant, for each head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.language_models.attention import Reading, read_attention
from parityscope.language_models.measures import reduced
from parityscope.language_models.word_problems import VARIANTS, WordProblem

if TYPE_CHECKING:
    from parityscope.language_models.loading import LanguageModel


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
    """Say whether the model has positions for every variant of a problem.

    >>> from transformers import AutoModelForCausalLM, GPT2Config
    >>> from parityscope.language_models.loading import LanguageModel
    >>> config = GPT2Config(vocab_size=256, n_positions=32, n_embd=4, n_layer=1, n_head=2, initializer_range=0.0)
    >>> network = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    >>> model = LanguageModel("tiny", network, lambda text: {"input_ids": list(text.encode())}, "float32")
    >>> [fits(model, WordProblem("1 + 1?", solution, "2")) for solution in ("2. #### 2", "1 + 1 = 2. " * 9)]
    [True, False]
    """
    prompt, suffixes = _tokens(model, problem, seed)
    return model.max_tokens is None or len(prompt) + max(map(len, suffixes)) <= model.max_tokens


def measure_problems(
    model: LanguageModel, problems: Sequence[WordProblem], seed: int = 0
) -> Float[Tensor, "problems variants measures layers heads"]:
    """Return every measure of every variant for each head, reading the question of each problem once.

    Several problems are padded on the left and read together; the numbers are those of each problem alone.

    >>> from transformers import AutoModelForCausalLM, GPT2Config
    >>> from parityscope.language_models.loading import LanguageModel
    >>> config = GPT2Config(vocab_size=256, n_positions=32, n_embd=4, n_layer=1, n_head=2, initializer_range=0.0)
    >>> network = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    >>> model = LanguageModel("tiny", network, lambda text: {"input_ids": list(text.encode())}, "float32")
    >>> values = measure_problems(model, [WordProblem("1 + 1?", "2. #### 2", "2")])
    >>> values.shape, values.round(decimals=4).unique().tolist()  # no weights: even attention, entropy 1 everywhere
    (torch.Size([1, 3, 10, 1, 2]), [1.0])
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
