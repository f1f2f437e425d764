"""What the project's own figures count, and what they show of a method that did not run."""

from parityscope.papers.cells import ShownTraining
from parityscope.papers.own.figures import phase
from parityscope.papers.own.figures.estimator_benchmark import BenchmarkNumbers, MethodScore, TableKind, findings, table
from parityscope.papers.registry import load_figure
from parityscope.records import Row
from parityscope.runs import training

RATE = phase.Axis("learning rate", lambda row: float(row.config.training.recipe.learning_rate))
BITS = phase.Axis("n", lambda row: row.config.training.n)


def trained(*points):
    shown = [
        ShownTraining(label=panel, training=training("bounded", n, 2, seeds=range(seeds), learning_rate=rate, steps=60))
        for panel, n, seeds, rate in points
    ]
    return [Row(one, one.training.run().numbers) for one in shown]


def test_every_point_of_a_diagram_counts_its_own_seeds():
    rows = trained(("one", 8, 3, 0.05), ("one", 8, 5, 1e-6), ("other", 9, 2, 0.05))
    panels = phase.panels_of(rows)
    assert phase.counted(panels["one"]) == "3/8 (14%–69%) seeds; all of them in 1 of 2 cells, none in 1"
    header, lines = phase.phase_table(rows, RATE, BITS)
    assert header == ["panel", "n ╲ learning rate", "1e-06", "0.05"]
    assert lines == [
        ["one", "8", "0/5 (0%–43%)", "3/3 (44%–100%)"],
        ["other", "9", "–", "2/2 (34%–100%)"],
    ]
    titles = [axes.get_title() for axes in phase.draw_phases(rows, RATE, BITS, columns=2).axes[:2]]
    assert titles == ["one (3–5 seeds)", "other (2 seeds)"]


def test_a_method_that_refused_is_a_dash_with_its_reason():
    methods = ("auto", "L1 on products", "mutual information")
    kind = TableKind(n=300, k=3, tables=2, methods=methods)
    scores = {
        "auto": MethodScore(found=2, tables=2, seconds=0.1),
        methods[2]: MethodScore(found=0, tables=2, seconds=1),
    }
    row = Row(kind, BenchmarkNumbers(scores=scores, refused={"L1 on products": "too many products"}))
    lines = {line[5]: line[6:] for line in table([row]).rows}
    assert lines["L1 on products"] == ["–", "too many products", "–"]
    assert lines["auto"] == ["2 of 2", "0.34 to 1.00", "0.1"]
    easy = Row(
        TableKind(tables=1, methods=methods),
        BenchmarkNumbers(scores=dict.fromkeys(methods, scores["auto"]), refused={}),
    )
    assert findings([row, easy])[-1].here.endswith("as many answers as auto: L1 on products.")


def test_pairs_are_trained_as_every_other_k():
    recipes = {shown.training.k: shown.training.recipe for shown in load_figure("P-every-k").CONFIGS["smoke"]}
    assert {k: (recipe.optimiser, recipe.heads) for k, recipe in recipes.items()} == dict.fromkeys(
        (2, 5), ("gauss-newton", 1)
    )
