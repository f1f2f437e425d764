"""W's own size: what is planned, that its rows alone judge, that figures draw them, and that the command goes on."""

import re
from dataclasses import replace

import pytest

from papers.w.planted_rows import own_size, training
from parityscope.apps import own_size as command
from parityscope.papers.claim import Context, check
from parityscope.papers.figure import own_size_of
from parityscope.papers.registry import load_figure, named_claims
from parityscope.papers.results import stored_rows
from parityscope.papers.w.claims.figures import unlike_the_paper
from parityscope.papers.w.own_size import BESIDE, planned, planned_for
from parityscope.papers.w.settings import FRESH, smoke
from parityscope.records import Outcome, Result, Store
from parityscope.runs import InProcess
from parityscope.training.decoders import train_decoder

FIGURES = [f"W-figure-{number}" for number in (1, 2, 3, 4, 8, 9, 10, 11)]
CHAIN, ANSWER = 50_000, 2_000_000


def rows_of(figure, chain=CHAIN, answer=ANSWER, fresh=None, seeds=FRESH, left_out=lambda shown: False):
    """Return rows of all trainings that are planned for a figure, each having needed so many samples."""

    def needed(settings):
        if settings.chain_of_thought:
            return chain
        return fresh if settings.pool is None else answer

    kept = [shown for shown in planned_for(figure) if shown.training.seed in seeds and not left_out(shown)]
    return [own_size(shown, needed(shown.training)) for shown in kept]


def outcome(claim_id, rows):
    (claim,) = named_claims([claim_id])
    return check(claim, Context("reference", rows=lambda name: rows))


def test_every_training_has_the_settings_of_w_and_a_row_of_its_own():
    keys = {shown.row_config().key for shown in planned()}
    assert len(keys) == len(planned())
    for figure in FIGURES:
        rows = rows_of(figure)
        assert {row.config.row_config().key for row in rows} <= keys
        assert unlike_the_paper(rows, {}) == ""
    assert {key for figure in FIGURES for key in map(_key, planned_for(figure))} == keys


def _key(shown):
    return shown.row_config().key


def test_figures_ask_for_them_apart_from_the_reference_run():
    for name in FIGURES:
        figure = load_figure(name)
        assert tuple(own_size_of(figure)) == planned_for(name)
        assert not {*figure.CONFIGS["reference"]} & {*own_size_of(figure)}
    assert own_size_of(load_figure("W-figure-5")) == ()


def test_figure_1_joins_its_points_from_the_smallest_k_on():
    narrow = [training(CHAIN, chain_of_thought=True, k=k) for k in (1, 2)]
    rows = [*narrow, *rows_of("W-figure-1", seeds=FRESH[:1])]
    assert [row.config.training.k for row in rows[2:5]] == [6, 12, 4]
    left, _ = load_figure("W-figure-1").plot(rows).axes
    for line in left.containers:
        places = line.lines[0].get_xdata().tolist()
        assert places == sorted(places)
    assert any(len(line.lines[0].get_xdata()) == 12 for line in left.containers)


@pytest.mark.parametrize("claim_id", ["W-figure-8", "W-figure-11"])
def test_their_rows_decide_and_narrow_ones_do_not(claim_id):
    narrow = [training(None, pool=24, heads=heads, seed=seed) for heads in (1, 4) for seed in FRESH]
    good = outcome(claim_id, [*narrow, *rows_of(claim_id)])
    assert good.verdict == "holds"
    planned_here = sum(not shown.label.startswith(BESIDE) for shown in planned_for(claim_id))
    assert f"{planned_here} of {planned_here} trainings of W's own size" in good.tried


def test_without_a_second_route_their_rows_refute_nothing():
    found = outcome("W-figure-1", rows_of("W-figure-1", fresh=ANSWER))  # without a chain every k needs as many
    assert [clause.verdict for clause in found.clauses] == ["unconfirmed", "holds", "holds"]
    assert found.verdict == "open"


@pytest.mark.parametrize(
    ("needed", "verdicts"),
    [
        ({}, ["seen", "seen", "seen", "open"]),
        ({"answer": None, "fresh": 9_000_000}, ["not seen", "not seen", "seen", "open"]),
        ({"chain": 3_000_000}, ["seen", "seen", "not seen", "open"]),
    ],
)
def test_shapes_of_one_layer_alone_do_not_decide_what_is_said_of_all_shapes(needed, verdicts):
    found = outcome("W-figure-4", rows_of("W-figure-4", **needed))
    assert [clause.verdict for clause in found.clauses] == verdicts
    assert found.verdict == "open"
    assert found.qualifier.startswith("at these sizes (layers only 1): of 4 clauses ")


def test_a_seed_counts_once_it_has_all_that_a_part_reads():
    one_head = next(shown for shown in planned_for("W-figure-4") if shown.label == "1 × 1")
    rows = rows_of("W-figure-4", left_out=lambda shown: shown == one_head)
    shares = {clause.says: clause.measured for clause in outcome("W-figure-4", rows).clauses}
    assert shares["the pool teaches three quarters of the shapes that were run, or more"] == "4/4, fewer than 5 seeds"
    assert shares["as many fresh samples do not"].startswith("5/5")


def test_few_rows_leave_it_open_and_say_how_many_there_are():
    (first,) = rows_of("W-figure-8", seeds=FRESH[:1])
    found = outcome("W-figure-8", [first])
    assert found.verdict == "open"
    assert found.tried == "1 seeds, 1 of 5 trainings of W's own size (`make w-own-size`)"
    narrow = [training(500, layers=2, heads=2, seed=seed) for seed in FRESH]
    assert "0 of 5 trainings of W's own size" in outcome("W-figure-8", narrow).tried


def test_as_long_as_no_seed_has_all_of_a_part_the_others_are_shown():
    narrow = [training(500, pool=24, chain_of_thought=False, heads=heads, seed=0) for heads in (1, 4)]
    chains = rows_of("W-figure-4", left_out=lambda shown: not shown.training.chain_of_thought)
    found = outcome("W-figure-4", [*narrow, *chains])
    assert "2 trainings of other sizes, 5 of 30 trainings of W's own size" in found.tried
    assert found.qualifier.startswith("at these sizes (n 4 for 20")


def test_a_figure_hangs_on_its_first_statement():
    """Chains alone say that samples grow slowly with CoT, and nothing of how they grow without."""
    chains = rows_of("W-figure-1", left_out=lambda shown: not shown.training.chain_of_thought)
    found = outcome("W-figure-1", chains)
    assert [clause.verdict for clause in found.clauses] == ["open", "holds", "open"]
    assert found.verdict == "open"
    (claim,) = named_claims(["W-figure-1"])
    hanging_on_nothing = replace(claim, hangs_on=None)
    assert check(hanging_on_nothing, Context("reference", rows=lambda name: chains)).verdict == "holds"


def test_what_stands_beside_judges_nothing():
    beside = [own_size(shown, None) for shown in planned_for("W-figure-4") if shown.label.startswith(BESIDE)]
    assert len(beside) > 2
    usual = [row for row in rows_of("W-figure-4") if not row.config.label.startswith(BESIDE)]
    with_them, without = outcome("W-figure-4", [*usual, *beside]), outcome("W-figure-4", usual)
    assert with_them.clauses == without.clauses
    assert "seen" in {clause.verdict for clause in with_them.clauses}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("seeds", [FRESH[:1], FRESH], ids=["one seed", "all seeds"])
def test_figures_draw_them_beside_narrow_ones(name, seeds):
    figure = load_figure(name)
    narrow = [own_size(shown, 5000) for shown in figure.CONFIGS["smoke"]]
    rows = [*narrow, *rows_of(name, seeds=seeds)]
    picture = figure.plot(rows)
    assert _drawn(picture) != _drawn(figure.plot(narrow))
    assert len(figure.table(rows).rows) == len(rows)
    figure.findings(rows)
    picture.draw_without_rendering()


def _drawn(picture):
    return [(axes.get_title(), axes.get_xlim(), axes.get_ylim(), len(axes.lines)) for axes in picture.axes]


@pytest.fixture
def small_plan(monkeypatch):
    """Two trainings of a moment in the place of the plan."""
    plan = [smoke("small", seed=seed) for seed in (2000, 2001)]
    monkeypatch.setattr(command, "planned", lambda: plan)
    return plan


def test_the_command_trains_what_is_missing_and_leaves_no_checkpoint(small_plan, tmp_path, capsys):
    store = Store(tmp_path / "store")
    config = small_plan[0].row_config()
    result = config.run()
    store.add_all([(config, Outcome.of(Result(result.numbers, result.arrays), 90.0))])
    assert "not yet, about" in command.listed(store)[1]
    begun = tmp_path / "store" / "checkpoints"
    begun.mkdir()
    with command.checkpoints_in(begun):
        train_decoder(small_plan[1].training, checkpoint_seconds=0)
    assert len(list(begun.iterdir())) == 1
    command.train_own_sizes(tmp_path, InProcess())
    said = capsys.readouterr().out
    assert said.startswith("1 of 2 rows are there")
    assert re.findall("small: .* seed (20..): .*learned", said) == ["2001"]
    assert list(begun.iterdir()) == []
    assert all("learned" in line for line in command.listed(store))
    command.train_own_sizes(tmp_path, InProcess())
    assert capsys.readouterr().out.startswith("2 of 2 rows are there")


def test_what_a_killed_command_was_at_comes_first(small_plan, tmp_path, capsys):
    store = Store(tmp_path / "store")
    store.hint([small_plan[0].row_config().key], "killed")
    command.train_own_sizes(tmp_path, InProcess())
    assert re.findall(r"seed (20..): ", capsys.readouterr().out) == ["2000", "2001"]


def test_stored_rows_of_their_size_come_after_the_others(tmp_path):
    figure, store = load_figure("W-figure-8"), Store(tmp_path)
    assert stored_rows(figure, "smoke", store) == []
    row = rows_of("W-figure-8")[1]
    store.add(row.config.row_config(), Result(row.numbers, row.arrays), seconds=1.0)
    (found,) = stored_rows(figure, "smoke", store)
    assert found.config == row.config
