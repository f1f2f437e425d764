import pytest
import torch

from parityscope.papers.h1.figures.large_n import CONFIGS, LargeNumbers, LargeTraining, findings, plot, table
from parityscope.problems import Parity
from parityscope.records import Row
from parityscope.risk import population_risk
from parityscope.runs import training
from parityscope.training.build import build_model
from parityscope.training.learning import learn


def test_repaired_starts_with_the_attention_of_h1():
    for factor in (0.3, 10.0):
        written, repaired = (
            next(one for one in CONFIGS["reference"] if (one.label, one.factor) == (label, factor)).training
            for label in ("as written", "repaired")
        )
        assert written.n == repaired.n
        first, second = (build_model(one.recipe, one.n, one.k, one.seeds).attention() for one in (written, repaired))
        assert torch.allclose(first, second, atol=1e-12)


def test_headline_seeds_chose_nothing():
    assert all(seed >= 1000 for configs in CONFIGS.values() for one in configs for seed in one.training.seeds)


def test_a_loose_training_follows_the_exact_one():
    """At n = 20 split knows every risk; the lattice of a loose tolerance must stay within it, step by step."""
    asked = {"seeds": (1000,), "steps": 6, "record_every": 1, "smoothing": 0.0, "temperature": 0.05}
    exact = learn(Parity(20, (1, 2, 9)), "as-written", engine="split", **asked)
    loose = learn(Parity(20, (1, 2, 9)), "as-written", engine="lattice", tolerance=1e-4, **asked)
    assert (exact.history_risk[0] - exact.history_risk[-1]).item() > 1e-2  # it moves
    assert (exact.history_risk - loose.history_risk).abs().max().item() < 1e-3  # 1e-4, and steps that differ by it


def test_the_last_risk_is_within_its_bound():
    asked = training("as-written", 50, 2, seeds=(1000,), steps=1, record_every=1, smoothing=0.0, temperature=0.2)
    config = LargeTraining(label="as written", factor=10.0, training=asked)
    found = config.run().numbers
    model = learn(asked.problems(), asked.recipe, asked.seeds, tolerance=config.tolerance).model
    closer = population_risk(model, asked.problems(), tolerance=1e-8)
    assert found.engine == "lattice"
    assert abs(found.risk[0] - closer.value.item()) <= found.error_bound[0] + closer.error_bound.item()
    assert found.error_bound[0] <= config.tolerance


def test_findings_are_those_of_the_rows():
    def row(label, learned, last):
        config = next(one for one in CONFIGS["smoke"] if one.label == label)
        numbers = LargeNumbers(
            learned=(learned,),
            recovered=(True,),
            first_risk=(2.0,),
            risk=(last,),
            error_bound=(1e-5,),
            engine="lattice",
            hidden_first=(5e-4,),
            hidden=(0.5,),
        )
        arrays = {"steps": torch.tensor([0, 2]), "risk": torch.tensor([[2.0], [last]])}
        return Row(config, numbers, arrays)

    rows = [row("as written", False, 1.5), row("as coded", False, 1.0), row("repaired", True, 0.0)]
    claim, blind, contrast = (finding.here for finding in findings(rows))
    assert "as written 0/1 (0%–79%) seeds, the risk lower by 25.0%" in claim
    assert "proved to 1e-05" in claim
    assert "in 2 of 2 starts less than 0.001" in blind
    assert "repaired 1/1" in contrast
    assert table(rows).rows[0][6:10] == ["0/1 (0%–79%)", "1", "2.000", "1.500"]
    written, *_, shares = plot(rows).axes
    assert written.lines[0].get_ydata().tolist() == pytest.approx([1, 0.75])
    assert [drawn[0].get_ydata().tolist() for drawn in shares.containers] == [[0.0], [0.0], [1.0]]
