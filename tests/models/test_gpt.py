import pytest
import torch
from torch.nn import functional

from parityscope import InvalidInput
from parityscope.models import GPT
from parityscope.models.gpt import _Dropout, _SharedRows
from parityscope.problems import seeded_generator
from parityscope.problems.sequences import ParitySequences

SHAPES = [(1, 1), (1, 3), (2, 1), (3, 2)]


def example(layers, heads, chain=True, dtype=torch.float64, dropout=0.0):
    """A decoder with weights far from their start, where nothing is small by accident."""
    task = ParitySequences(7, (1, 3, 4, 6), chain)
    model = GPT(task.length, layers, heads, 24, 40, dropout, generator=seeded_generator(0, "start"))
    model = model.to(dtype)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=dtype), alpha=0.3)
    tokens = task.tokens(torch.randint(2, (33, 7), generator=generator))
    return task, model, tokens


def gradients(model, logits, targets):
    model.zero_grad()
    functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def test_equal_sequences_are_one():
    _, model, tokens = example(2, 2)
    same = tokens[:1].repeat(5, 1)
    expected = model.plain_logits(tokens)[:1].repeat(5, 1, 1)
    assert (model(same) - expected).abs().max() < 1e-12
    assert len(_SharedRows(same).row) == 1


def test_sequences_that_begin_alike_share_rows():
    tokens = torch.tensor([[0, 1, 1], [0, 1, 0], [1, 1, 0], [0, 1, 1]])
    shared = _SharedRows(tokens)
    rows = shared.row[shared.sequence_of]
    prefixes = {}
    for sequence, numbers in zip(tokens.tolist(), rows.tolist(), strict=True):
        for t, number in enumerate(numbers):
            assert prefixes.setdefault(number, sequence[: t + 1]) == sequence[: t + 1]
    assert sorted(prefixes) == list(range(7))  # 0, 1; 01, 11; 010, 011, 110
    assert len({tuple(prefix) for prefix in prefixes.values()}) == 7
    assert shared.select(shared.row[..., None]).flatten().tolist() == list(range(7))


@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize(("layers", "heads"), SHAPES)
def test_the_savings_change_neither_logits_nor_gradients(layers, heads, chain):
    task, model, tokens = example(layers, heads, chain)
    positions, targets = task.label_positions, task.targets(tokens)
    fast, plain = model(tokens, positions), model.plain_logits(tokens)[:, positions]
    assert (fast - plain).abs().max() < 1e-12
    ours, theirs = gradients(model, fast, targets), gradients(model, plain, targets)
    for name, gradient in theirs.items():
        assert (ours[name] - gradient).abs().max() < 1e-12, name
    assert (model(tokens) - model.plain_logits(tokens)).abs().max() < 1e-12


def test_the_savings_are_within_rounding_in_single_precision():
    task, model, tokens = example(2, 2, dtype=torch.float32)
    assert (
        model(tokens, task.label_positions) - model.plain_logits(tokens)[:, task.label_positions]
    ).abs().max() < 5e-5


@pytest.mark.parametrize(("layers", "heads"), SHAPES)
def test_hugging_face_computes_the_same_logits(layers, heads):
    transformers = pytest.importorskip("transformers", reason="needs the extra lm: pip install parityscope[lm]")
    task, model, tokens = example(layers, heads)
    config = transformers.GPT2Config(
        vocab_size=2,
        n_positions=task.length,
        n_embd=24,
        n_layer=layers,
        n_head=heads,
        n_inner=40,
        bos_token_id=None,
        eos_token_id=None,
    )
    theirs = transformers.GPT2LMHeadModel(config).double().eval()
    missing, unexpected = theirs.load_state_dict(model.hugging_face_weights(), strict=False)
    assert not unexpected
    assert not missing
    assert (theirs(tokens).logits - model(tokens)).abs().max() < 1e-10


@pytest.mark.parametrize(("layers", "heads"), SHAPES)
def test_a_position_never_sees_what_comes_later(layers, heads):
    _, model, tokens = example(layers, heads)
    changed = tokens.clone()
    changed[:, 6:] = 1 - changed[:, 6:]
    # Other tokens share other rows, so that products have other shapes and round differently; logits have size 1.
    assert (model(tokens)[:, :6] - model(changed)[:, :6]).abs().max() < 1e-12
    assert not torch.allclose(model(tokens)[:, 6:], model(changed)[:, 6:])


def test_attention_maps_are_distributions_over_the_past():
    _, model, tokens = example(3, 2)
    maps = model.attention(tokens)
    assert maps.shape == (33, 3, 2, tokens.shape[1], tokens.shape[1])
    assert torch.allclose(maps.sum(-1), torch.ones(()).double())
    assert not maps.triu(1).any()


def test_attention_maps_are_those_the_fast_path_uses():
    """The logits written out by hand from the reported map are those of the fast path."""
    task, model, tokens = example(1, 1)
    block = model.h[0]
    attention = model.attention(tokens)[:, 0, 0]
    rows = model.wte[tokens] + model.wpe[: tokens.shape[1]]
    value = functional.linear(block.ln_1(rows), block.attn_in.weight[48:], block.attn_in.bias[48:])
    x = rows + block.attn_out(attention @ value)
    x = x + block.mlp_out(functional.gelu(block.mlp_in(block.ln_2(x)), approximate="tanh"))
    logits = model.ln_f(x) @ model.wte.T
    assert (logits[:, task.label_positions] - model(tokens, task.label_positions)).abs().max() < 1e-12


def test_generation_feeds_each_token_back():
    task, model, tokens = example(2, 2)
    prompt = tokens[:, : task.prompt_length]
    generated = model.generate(prompt, task.k)
    whole = torch.cat((prompt, generated), 1)
    # Greedy decoding is a fixed point of teacher forcing.
    assert torch.equal(model(whole).argmax(-1)[:, task.prompt_length - 1 : -1], generated)


def test_dropout_acts_only_with_a_generator_and_repeats_with_it():
    _, model, tokens = example(2, 2, dropout=0.3)
    clean = model(tokens)
    assert torch.equal(clean, model(tokens))
    a, b = (model(tokens, generator=torch.Generator().manual_seed(4)) for _ in range(2))
    assert torch.equal(a, b)
    assert not torch.allclose(a, clean)


def test_dropout_keeps_the_mean():
    model = GPT(4, 1, 1, 8, dropout=0.25, generator=seeded_generator(0, "start"))
    dropped = _Dropout(model.dropout, torch.Generator().manual_seed(0))(torch.ones(200_000))
    assert abs(dropped.mean() - 1) < 0.01
    assert abs((dropped == 0).float().mean() - 0.25) < 0.01


def test_the_start_belongs_to_its_generator():
    a, b = (GPT(9, 2, 2, 16, generator=seeded_generator(3, "start")) for _ in range(2))
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    spreads = {name: p.std().item() for name, p in a.named_parameters() if p.ndim == 2}
    assert abs(spreads["h.0.mlp_in.weight"] - 0.02) < 0.003
    assert abs(spreads["h.0.mlp_out.weight"] - 0.01) < 0.002  # 0.02 / √(2 · 2 layers)


def test_impossible_shapes_are_refused():
    with pytest.raises(InvalidInput, match="multiple of the heads"):
        GPT(9, 1, 3, 16, generator=seeded_generator(0, "start"))
    with pytest.raises(InvalidInput, match="dropout"):
        GPT(9, 1, 1, 16, dropout=1.0, generator=seeded_generator(0, "start"))
