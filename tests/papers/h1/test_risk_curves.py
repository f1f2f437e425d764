from dataclasses import replace

import pytest
import torch

from parityscope.papers.claim import computed
from parityscope.papers.registry import load_figure
from parityscope.theory import theorem_5_decrement

FIGURE = load_figure("H1-risk-curves")


@pytest.fixture(scope="module")
def rows():
    """Return both trainings as written, with curves that are easy to read."""
    written = [config for config in FIGURE.CONFIGS["smoke"] if config.label.startswith("as written")]
    risk = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.5, 1.0, 2.0, 3.0]])
    curves = {"steps": torch.tensor([0, 100]), "risk": risk}
    trained = computed(FIGURE.CONFIGS["smoke"][-1].training)
    return [replace(trained, config=config, arrays=curves) for config in written]


def test_only_the_proofs_own_rate_has_the_proofs_bound(rows):
    proved, faster = FIGURE.plot(rows).axes
    assert len(proved.lines) == len(faster.lines) + 1
    bound = proved.lines[-1].get_ydata()
    assert bound == pytest.approx([2.5, 2.5])  # the mean first risk, flat
    assert [line[-1] for line in FIGURE.table(rows).rows] == [f"{theorem_5_decrement(8, 2, 1 / 8, 0.01):.1e}", "–"]


def test_first_and_last_risk_are_a_mean_and_a_median_over_seeds(rows):
    line = FIGURE.table(rows).rows[0]
    assert line[1:2] + line[3:5] == ["squared-hinge", "2.5000", "1.5000"]
    start, rate = FIGURE.findings(rows)
    assert "2.50" in start.here
    assert "1.50" in rate.here
