import torch

from parityscope.runs.decoder import DecoderTraining
from parityscope.training.decoders import DecoderSettings, train_decoder

SMALL = {"n": 8, "k": 3, "width": 16, "heads": 2, "batch": 32, "held_out": 32, "steps": 8, "evaluate_every": 4}


def test_a_row_says_what_the_training_measured():
    settings = DecoderSettings(**SMALL)
    run = train_decoder(settings)
    result = DecoderTraining(training=settings, maps=True).run()
    assert result.numbers.accuracy == run.accuracy
    right, attention = run.history.by_token[-1].tolist()
    assert list(result.numbers.right_by_token) == right
    assert list(result.numbers.attention_by_token) == attention
    # Maps start where the first answer is predicted, and are rounded to four digits.
    assert result.arrays["attention"].shape == (1, 2, 3, 11)
    assert (result.arrays["attention"] - run.attention[:, :, 8:]).abs().max() <= 5.1e-5
    on_secret = torch.stack([run.attention[0, :, 8 + i, bit].amax() for i, bit in enumerate(run.task.secret)])
    assert (result.arrays["on_secret"][0] - on_secret).abs().max() <= 5.1e-5


def test_maps_are_kept_when_asked_for_only():
    without = DecoderTraining(training=DecoderSettings(**SMALL)).run()
    assert not {"attention", "one_attention"} & set(without.arrays)
    assert set(without.arrays) == {"step", "loss", "accuracy", "entropy", "by_token", "on_secret"}


def test_an_answer_without_a_chain_has_no_links():
    found = DecoderTraining(training=DecoderSettings(**SMALL, chain_of_thought=False)).run()
    assert found.numbers.right_by_token is None
    assert found.numbers.secret_attention is None
    assert "by_token" not in found.arrays
