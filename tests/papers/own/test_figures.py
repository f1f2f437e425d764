"""What the project's own figures count, and what they show of a method that did not run."""

from dataclasses import replace

from parityscope.papers.cells import ShownTraining, by_label
from parityscope.papers.own.figures import concave_bounds, faces, phase, three_heads
from parityscope.papers.own.figures.estimator_benchmark import BenchmarkNumbers, Comparison, findings, table
from parityscope.papers.own.figures.numbers import CostNumbers
from parityscope.papers.own.fit_benchmark.comparison import MethodScore
from parityscope.papers.own.fit_benchmark.planted import TableKind
from parityscope.papers.registry import load_figure
from parityscope.records import Row
from parityscope.runs import training

RATE = phase.Axis("learning rate", lambda row: float(row.config.training.recipe.learning_rate))
BITS = phase.Axis("n", lambda row: row.config.training.n)
DIAGRAM = replace(phase.FIGURES[0], x=RATE, y=BITS, columns=2)


def trained(*points):
    shown = [
        ShownTraining(label=panel, training=training("bounded", n, 2, seeds=range(seeds), learning_rate=rate, steps=60))
        for panel, n, seeds, rate in points
    ]
    return [Row(one, one.training.run().numbers) for one in shown]


def test_every_point_of_a_diagram_counts_its_own_seeds():
    rows = trained(("one", 8, 3, 0.05), ("one", 8, 5, 1e-6), ("other", 9, 2, 0.05))
    assert phase.counted(by_label(rows)["one"]) == "3/8 (14%–69%) seeds; all of them in 1 of 2 cells, none in 1"
    header, lines = DIAGRAM.table(rows)
    assert header == ["panel", "n ╲ learning rate", "1e-06", "0.05"]
    assert lines == [
        ["one", "8", "0/5 (0%–43%)", "3/3 (44%–100%)"],
        ["other", "9", "–", "2/2 (34%–100%)"],
    ]
    titles = [axes.get_title() for axes in DIAGRAM.plot(rows).axes[:2]]
    assert titles == ["one (3–5 seeds)", "other (2 seeds)"]


def score(found, tables=2, seconds=0.1, **setting):
    return MethodScore(found=found, silent=0, tables=tables, seconds=seconds, setting=setting, chosen_on=1)


def test_a_method_that_refused_is_a_dash_with_its_reason():
    methods = ("auto", "L1 on products", "MDR")
    scores = {"auto": score(2), "MDR": score(0, seconds=1.0, folds=5)}
    kind = Comparison(table=TableKind(n=300, k=3), tables=2, methods=methods)
    row = Row(kind, BenchmarkNumbers(scores=scores, refused={"L1 on products": "too many products"}))
    lines = {line[1]: line[2:] for line in table([row]).rows}
    assert lines["L1 on products"] == ["–", "too many products", "–", "–"]
    assert lines["auto"] == ["2 of 2", "0.34 to 1.00", "0.1", "default"]
    assert lines["MDR"][-2:] == ["1", "folds 5"]
    assert findings([row])[-1].here.endswith("without main effects: none of them.")


def test_who_finds_more_than_ours_is_said():
    methods = ("auto", "MDR", "random forest")
    pair = Row(
        Comparison(tables=2, methods=methods),
        BenchmarkNumbers(scores={"auto": score(1), "MDR": score(2), "random forest": score(0)}, refused={}),
    )
    single = Row(
        Comparison(table=TableKind(k=1), tables=2, methods=methods),
        BenchmarkNumbers(scores={"auto": score(1), "MDR": score(1), "random forest": score(2)}, refused={}),
    )
    _, alone, more, equal = (finding.here for finding in findings([pair, single]))
    assert more == (
        "More answers than auto: MDR on k=2 of n=20, N=500, 10% noise; random forest on k=1 of n=20, N=500, 10% noise."
    )
    assert equal.endswith("without main effects: MDR.")
    assert "random forest 2/2" in alone
    assert "auto 1/2" in alone


def test_pairs_are_trained_as_every_other_k():
    recipes = {shown.training.k: shown.training.recipe for shown in load_figure("P-every-k").CONFIGS["smoke"]}
    assert {k: (recipe.optimiser, recipe.heads) for k, recipe in recipes.items()} == dict.fromkeys(
        (2, 5), ("gauss-newton", 1)
    )


def test_geometry_and_training_agree_in_every_run():
    rows = [Row(cell, cell.run().numbers) for cell in faces.CONFIGS["smoke"]]
    assert {flag for row in rows for flag in row.numbers.face} == {True, False}
    for row in rows:
        assert row.numbers.disagreements == 0
        proved = zip(row.numbers.face, row.numbers.correlation, row.numbers.at_most, strict=True)
        assert all(reached <= bound + 1e-9 and (bound == 1) == face for face, reached, bound in proved)
    # One run of the other kind is counted, said and tabled.
    told = rows[0].numbers
    wrong = Row(rows[0].config, told.model_copy(update={"learned": (not told.learned[0], *told.learned[1:])}))
    assert "disagrees with geometry in 1 of them" in faces.findings([wrong, *rows[1:]])[0].here
    assert faces.table([wrong]).rows[0][6] == "1"


def test_a_curve_stays_below_its_bound():
    for curve in concave_bounds.CONFIGS["smoke"]:
        numbers = curve.run().numbers
        assert max(numbers.largest_share) < 1
        assert numbers.largest_rise <= 1e-12
        assert (max(numbers.largest_share) > 0) == (curve.rule != "newton")


def test_a_flow_rests_beside_its_face_and_leaves_it_after_a_time_of_order_one_over_epsilon():
    times = []
    for elsewhere in (1e-2, 1e-3):
        flow = three_heads.HeadsFlow(start="one head astray", elsewhere=elsewhere, until=1e4, records=40)
        numbers = flow.run().numbers
        assert numbers.final_loss < 1e-3 * numbers.resting_loss
        assert numbers.largest_rise <= 0
        times.append(numbers.left_at)
    assert 5 < times[1] / times[0] < 20


def test_the_cost_of_a_method_that_never_learns_is_shown():
    cost = load_figure("P-numbers").CONFIGS["smoke"][0]
    numbers = CostNumbers(learned=(False, False), steps=(7, 9), parameters=5, cpu_seconds=1.0)
    assert numbers.median_steps == 8
    assert load_figure("P-numbers").table([Row(cost, numbers)]).rows[0][4:] == ["0/2 (0%–66%)", "8", "9", "0.5"]
