from dataclasses import replace

from parityscope.papers.claim import computed
from parityscope.papers.registry import load_figure

FIGURE = load_figure("H1-success")


def test_a_sharp_start_is_the_papers_own():
    for scale, configs in FIGURE.CONFIGS.items():
        sharp = [config.training for config in configs if config.label.endswith("sharp start")]
        assert sharp, scale
        # Radius 1 at temperature 1/n, measured in units of the temperature.
        assert all(float(one.recipe.start_radius) / float(one.recipe.temperature) == one.n for one in sharp)


def test_shares_add_up_by_recipe():
    trained = computed(FIGURE.CONFIGS["smoke"][-1].training)
    numbers = trained.numbers.model_copy(update={"learned": (True, True, True, False), "recovered": (True,) * 4})
    rows = [replace(trained, config=config, numbers=numbers) for config in FIGURE.CONFIGS["smoke"]]
    theorem, few, examples = (finding.here for finding in FIGURE.findings(rows))
    assert "where the risk falls: 3/4 (30%–95%) over 1 sizes." in theorem
    assert "and 4 seeds recover the support" in theorem
    assert few.count("3/4") == 2
    assert "3/4" in examples
    assert [line[0] for line in FIGURE.table(rows).rows] == [config.label for config in FIGURE.CONFIGS["smoke"]]
    assert {text.get_text() for text in FIGURE.plot(rows).axes[0].texts} == {"3/4", "30%–95%"}
