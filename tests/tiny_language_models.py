"""Language models small enough to be made on the spot: random weights, one token per byte, nothing downloaded."""

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="language models need the extra 'lm'")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import (  # noqa: E402
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

# Wide initial weights make attention uneven, so that a wrong position or a wrong mask shows.
SHAPE = {
    "vocab_size": 256,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "initializer_range": 0.35,
}
CONFIGS = {
    "qwen2": lambda: Qwen2Config(**SHAPE),
    "llama": lambda: LlamaConfig(**SHAPE),
    "gpt2": lambda: GPT2Config(
        vocab_size=256, n_embd=32, n_layer=3, n_head=4, n_positions=2048, initializer_range=0.35
    ),
    "mistral, sliding window": lambda: MistralConfig(**SHAPE, sliding_window=16),
}


def byte_tokenizer():
    """Return a tokeniser with one token per byte, so that lengths are known."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={sign: place for place, sign in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def tiny_network(kind, seed=0):
    """Return a randomly initialised causal model with open attention."""
    torch.manual_seed(seed)
    config = CONFIGS[kind]()
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()


def save_tiny(folder, kind, seed=0):
    """Write a tiny model and its tokeniser as a folder that transformers can load."""
    tiny_network(kind, seed).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder
