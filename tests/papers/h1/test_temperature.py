import torch

from parityscope import draw_problems, learn


def test_temperature_is_a_unit_of_length():
    """Another τ is the same training when start and step are measured in units of τ."""
    problems = draw_problems(8, 2, range(3))
    one = learn(problems, "as-coded", range(3), steps=30, temperature=2.0, start_radius=1.0, learning_rate=0.1)
    other = learn(problems, "as-coded", range(3), steps=30, temperature=6.0, start_radius=3.0, learning_rate=0.3)
    assert torch.allclose(one.attention, other.attention, atol=1e-5)  # Adam's ε is not scaled along
    plain = {"optimiser": "gradient-descent", "steps": 30}
    one = learn(problems, "as-coded", range(3), temperature=2.0, start_radius=1.0, learning_rate=0.1, **plain)
    other = learn(problems, "as-coded", range(3), temperature=6.0, start_radius=3.0, learning_rate=0.9, **plain)
    assert torch.allclose(one.attention, other.attention, atol=1e-9)
