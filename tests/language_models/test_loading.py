"""Models from folders, what is no model, and what is written comes back as it was."""

import pytest
import torch

from parityscope import InvalidInput
from parityscope.language_models.loading import fingerprint, load_language_model
from parityscope.language_models.measures import read_attention
from parityscope.language_models.packaged import PACKAGED, prepared_model
from tiny_language_models import save_tiny, tiny_network


def test_a_folder_is_loaded_with_open_attention(tmp_path):
    model = load_language_model(str(save_tiny(tmp_path / "tiny", "qwen2")))
    assert (model.name, model.weights, model.max_tokens) == ("tiny", "float32", 2048)
    assert model.encode("ab\n") == model.tokenizer("ab\n")["input_ids"]
    assert len(model.encode("ab\n")) == 3
    assert fingerprint(model.network) == fingerprint(tiny_network("qwen2"))
    ids = torch.tensor([model.encode("some text")])
    assert read_attention(model.network, ids, torch.ones_like(ids, dtype=torch.bool)).kept.shape == (1, 3, 4, 9)


def test_a_saved_model_comes_back_and_says_how_it_was_packed(tmp_path):
    first = load_language_model(str(save_tiny(tmp_path / "tiny", "llama")))
    first.network.config.parityscope_weights = "4-bit GGUF (Q4_1)"
    first.save(tmp_path / "copy")
    again = load_language_model(str(tmp_path / "copy"))
    assert again.weights == "4-bit GGUF (Q4_1), unpacked to float32"
    assert again.encode("2 + 3") == first.encode("2 + 3")
    before, after = first.network.state_dict(), again.network.state_dict()
    assert all(torch.equal(values, after[name]) for name, values in before.items())


def test_a_fingerprint_tells_models_apart():
    same, other = tiny_network("llama", seed=0), tiny_network("llama", seed=1)
    assert fingerprint(tiny_network("llama", seed=0)) == fingerprint(same) != fingerprint(other)
    assert fingerprint(same.double()) != fingerprint(other)


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda path: path.mkdir(), "holds no model: neither config.json nor a .gguf file in it"),
        (lambda path: path.write_text("x"), "is not a model: expected a folder, a .gguf file or a name on the hub"),
        (lambda path: None, "there is no model folder"),
        (
            lambda path: (path.mkdir(), (path / "a.gguf").touch(), (path / "b.gguf").touch()),
            "holds no model: 2 .gguf files in it",
        ),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("{}")), "cannot load a causal language model"),
    ],
)
def test_what_is_not_a_model_is_one_sentence(tmp_path, prepare, sentence):
    prepare(tmp_path / "thing")
    with pytest.raises(InvalidInput, match=sentence) as raised:
        load_language_model(str(tmp_path / "thing"))
    assert "\n" not in str(raised.value)
    assert "thing" in str(raised.value)


def test_unknown_precision_and_device_are_refused(tmp_path):
    folder = str(save_tiny(tmp_path / "tiny", "llama"))
    with pytest.raises(InvalidInput, match="unknown dtype 'int3': choose one of float32"):
        load_language_model(folder, dtype="int3")
    with pytest.raises(InvalidInput, match="device 'toaster' is not available"):
        load_language_model(folder, device="toaster")


# Most numbers of the second are its embeddings, which are packed to 8 bits.
KINDS = {
    name: f"GGUF (most numbers {kind}), unpacked to float32" for name, kind in (("smollm2", "Q4_1"), ("gemma3", "Q8_0"))
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", KINDS)
def test_the_weights_of_the_wheels_are_a_working_model(name, tmp_path):
    try:
        folder = prepared_model(PACKAGED[name], tmp_path)
    except InvalidInput as error:
        pytest.skip(str(error))
    model = load_language_model(str(folder))
    assert model.weights == KINDS[name]
    ids = torch.tensor([model.encode("The capital of France is")])
    with torch.no_grad():
        following = model.network(ids).logits[0, -1].topk(5).indices
    assert "Paris" in {model.tokenizer.decode([token]).strip() for token in following.tolist()}
    assert prepared_model(PACKAGED[name], tmp_path) == folder
