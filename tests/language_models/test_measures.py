import math
from itertools import combinations
from statistics import mean

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parityscope import InvalidInput, attention_entropy
from parityscope.language_models import measures
from parityscope.language_models.measures import MEASURES, REDUCTIONS, expected_minimum, read_attention, reduced
from tiny_language_models import CONFIGS, tiny_network

NAN = float("nan")


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=8), st.integers(1, 9))
def test_the_expected_minimum_is_the_mean_over_all_subsets(values, draws):
    found = expected_minimum(torch.tensor(values, dtype=torch.float64), draws).item()
    brute = mean(min(subset) for subset in combinations(values, min(draws, len(values))))
    assert found == pytest.approx(brute, abs=1e-12)


def test_nan_positions_are_never_drawn():
    values = torch.tensor([[0.3, NAN, 0.1, 0.2], [NAN, NAN, NAN, 0.7], [NAN] * 4], dtype=torch.float64)
    found = expected_minimum(values, 2)
    assert found[:2].tolist() == pytest.approx([(0.1 + 0.1 + 0.2) / 3, 0.7])
    assert found[2].isnan()


def test_many_positions_do_not_overflow():
    values = torch.linspace(0, 1, 5001, dtype=torch.float64)
    # The smallest of m uniform values among 0/N … N/N has mean (N + 2)/(m + 1) − 1 over N.
    assert expected_minimum(values, 9).item() == pytest.approx((5002 / 10 - 1) / 5000, rel=1e-9)


def test_reductions_by_hand():
    entropies = torch.tensor([[[NAN, 0.5, 0.1, 0.9, 0.4, 0.8]]], dtype=torch.float64)
    found = dict(zip(REDUCTIONS, reduced(entropies, prompt=3, count=2).flatten().tolist(), strict=True))
    assert found == pytest.approx(
        {
            "min (Eq. 1)": 0.1,
            "mean": (0.5 + 0.1 + 0.9 + 0.4 + 0.8) / 5,
            "suffix min": 0.4,
            "suffix min, count-matched": (0.4 + 0.4 + 0.8) / 3,
            "suffix mean": (0.9 + 0.4 + 0.8) / 3,
        }
    )


def test_measures_have_names_of_their_own():
    assert len({str(measure) for measure in MEASURES}) == len(MEASURES) == 2 * len(REDUCTIONS)


LENGTH = 40
# Networks compute in double precision here, so that two routes differ by mistakes and not by how single precision
# rounds scores of size 10 in three layers; entropies of size 1 are handed out in single precision, 6e-8 each.
ROUNDING = 5e-7


def double_network(kind):
    return tiny_network(kind).double()


def tokens(length=LENGTH, seed=0, batch=1):
    return torch.randint(256, (batch, length), generator=torch.Generator().manual_seed(seed))


def all_real(ids):
    return torch.ones_like(ids, dtype=torch.bool)


def plain_weights(network, ids):
    """Return (layers, heads, T, T) of one sequence from one forward pass of the whole model."""
    with torch.no_grad():
        return torch.stack(network(ids, output_attentions=True).attentions)[:, 0]


def by_loops(weights, i, *, without_first=False):
    """Return H/log i of row i (from 1) of one head, number by number."""
    row = [float(w) for w in weights[i - 1][:i]]
    row = row[1:] if without_first else row
    total = sum(row)
    return -sum(w / total * math.log(w / total) for w in row if w > 0) / math.log(len(row))


@pytest.mark.parametrize("kind", ["qwen2", "llama", "gpt2"])
def test_entropies_are_those_of_the_plain_weights(kind):
    network, ids = double_network(kind), tokens()
    reading = read_attention(network, ids, all_real(ids))
    weights = plain_weights(network, ids)
    assert reading.kept[0, ..., 1:].amin(-1) == pytest.approx(attention_entropy(weights), abs=ROUNDING)
    assert reading.kept[0, ..., 0].isnan().all()
    assert reading.removed[0, ..., :2].isnan().all()
    for layer, head, i in ((0, 0, 2), (1, 3, 3), (2, 1, 17), (2, 2, LENGTH)):
        expected = by_loops(weights[layer, head], i)
        assert reading.kept[0, layer, head, i - 1].item() == pytest.approx(expected, abs=ROUNDING)
    for layer, head, i in ((0, 0, 3), (1, 3, 4), (2, 1, 17), (2, 2, LENGTH)):
        expected = by_loops(weights[layer, head], i, without_first=True)
        assert reading.removed[0, layer, head, i - 1].item() == pytest.approx(expected, abs=ROUNDING)
    # The weights are uneven enough for all this to mean something.
    assert reading.kept[0, ..., 1:].min() < 0.5


@pytest.mark.parametrize("kind", list(CONFIGS))
def test_pieces_and_a_cache_change_nothing(kind):
    network, ids = double_network(kind), tokens()
    whole = read_attention(network, ids, all_real(ids))
    pieces = read_attention(network, ids, all_real(ids), numbers_at_once=12 * LENGTH * 7)  # seven queries at a time
    assert torch.allclose(whole.kept, pieces.kept, atol=ROUNDING, equal_nan=True)
    first = read_attention(network, ids[:, :25], all_real(ids[:, :25]))
    for _ in range(2):  # what was read first can be continued more than once
        rest = read_attention(network, ids[:, 25:], all_real(ids[:, 25:]), first)
        assert torch.allclose(whole.kept[..., 25:], rest.kept, atol=ROUNDING, equal_nan=True)
        assert torch.allclose(whole.removed[..., 25:], rest.removed, atol=ROUNDING, equal_nan=True)


def test_no_more_weights_than_allowed_exist_at_a_time(monkeypatch):
    held, plain = [], measures._weights

    def counted(output, network):
        layers = plain(output, network)
        held.append(sum(weights.numel() for weights in layers))
        return layers

    monkeypatch.setattr(measures, "_weights", counted)
    ids = tokens()
    read_attention(tiny_network("llama"), ids, all_real(ids), numbers_at_once=12 * LENGTH * 7)
    assert len(held) == 6  # 40 queries, seven at a time
    assert max(held) <= 12 * LENGTH * 7


@pytest.mark.parametrize("kind", ["qwen2", "llama", "gpt2"])
def test_left_padding_and_batches_change_nothing(kind):
    network = tiny_network(kind)
    texts = [tokens(length, seed=length)[0] for length in (12, 40, 31)]
    ids = torch.full((3, 40), 7)
    real = torch.zeros(3, 40, dtype=torch.bool)
    for row, text in enumerate(texts):
        ids[row, 40 - len(text) :] = text
        real[row, 40 - len(text) :] = True
    together = read_attention(network, ids, real)
    for row, text in enumerate(texts):
        alone = read_attention(network, text[None], torch.ones(1, len(text), dtype=torch.bool))
        for name in ("kept", "removed"):
            found = getattr(together, name)[row][..., real[row]]
            # Single precision is up to 4e-6 away from double in these networks, on either side: 2e-5 is twice both.
            assert torch.allclose(found, getattr(alone, name)[0], atol=2e-5, equal_nan=True)
    assert together.kept[0][..., ~real[0]].isnan().all()


@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # said by the switch below
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.bfloat16, 0.03)])
def test_other_precisions_give_the_same_numbers(dtype, tolerance):
    """Same weights, rounded to bfloat16 first, so that only the arithmetic differs."""
    network = tiny_network("qwen2").to(torch.bfloat16).float()
    ids = tokens()
    single = read_attention(network, ids, all_real(ids)).kept
    # Some virtual machines lack an instruction that oneDNN's bfloat16 kernels use; torch's own kernels will do.
    with torch.backends.mkldnn.flags(enabled=False):
        other = read_attention(network.to(dtype), ids, all_real(ids)).kept
    usable = ~single.isnan()
    assert (single - other)[usable].abs().mean() < tolerance


def test_uniform_attention_has_entropy_one():
    network, ids = tiny_network("llama"), tokens()
    with torch.no_grad():
        for layer in network.model.layers:
            layer.self_attn.q_proj.weight.zero_()
    reading = read_attention(network, ids, all_real(ids))
    assert torch.allclose(reading.kept[..., 1:], torch.ones(()), atol=1e-5)
    assert torch.allclose(reading.removed[..., 2:], torch.ones(()), atol=1e-5)


def test_a_model_without_attention_weights_is_an_error():
    network, ids = tiny_network("llama"), tokens()
    network.set_attn_implementation("sdpa")  # fused: no weights are formed
    with pytest.raises(InvalidInput, match="LlamaForCausalLM returns no attention weights"):
        read_attention(network, ids, all_real(ids))
