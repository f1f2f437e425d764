import torch

from parityscope.papers.h1.figures.heads_lock_on import Heads, findings, plot, run
from parityscope.records import Row


def test_the_film_ends_where_the_heads_of_the_first_seed_stopped():
    config = Heads(recipe="bounded", n=12, support=(2, 5, 9), steps=400, seeds=4)
    numbers, arrays = run(config)
    assert numbers["learned"] == 4
    assert int(arrays["steps"][-1]) == numbers["steps_of_the_first"] < 400
    assert sorted(arrays["attention"][-1].argmax(-1).tolist()) == [2, 5, 9]
    # The start is nearly uniform, and every head's attention sums to 1 all along.
    assert float(arrays["attention"][0].max()) < 0.2
    assert torch.allclose(arrays["attention"].sum(-1), torch.ones(()), atol=1e-5)


def test_a_head_on_one_bit_paints_it_in_its_colour():
    attention = torch.eye(4)[:2].expand(3, 2, 4)  # head 0 on bit 0, head 1 on bit 1
    arrays = {"steps": torch.tensor([0, 1, 2]), "attention": attention}
    numbers = {"learned": 1, "median_steps_of_the_learned": 2}
    rows = [
        Row("heads-lock-on", {"recipe": name, "n": 4, "support": [0, 1], "seeds": 2, "steps": 2}, numbers, arrays)
        for name in ("as-written", "bounded")
    ]
    picture = plot(rows).axes[0].images[0].get_array()
    blue, orange = picture[0, 0], picture[1, 0]
    assert blue[2] > blue[0]
    assert orange[0] > orange[2]
    assert (picture[2:] == 1).all()
    assert "1/2" in findings(rows)[0].here
