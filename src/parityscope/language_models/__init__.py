"""Attention sparsity of pretrained language models on real chain of thought (W, Section 4.3)."""
