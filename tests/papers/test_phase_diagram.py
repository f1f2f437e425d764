import pandas
import pytest

from parityscope import InvalidInput, phase_diagram

ROWS = [
    {"n": n, "rate": rate, "learned": n * rate > 2 + seed} for n in (8, 16) for rate in (0.1, 0.5) for seed in (0, 1)
]


@pytest.mark.parametrize("rows", [ROWS, pandas.DataFrame(ROWS), iter(ROWS)], ids=["list", "table", "iterator"])
def test_runs_are_counted_by_their_settings(rows):
    diagram = phase_diagram(rows, x="n", y="rate")
    counted = {place: (share.successes, share.trials) for place, share in diagram.shares.items()}
    assert counted == {(8, 0.1): (0, 2), (16, 0.1): (0, 2), (8, 0.5): (2, 2), (16, 0.5): (2, 2)}
    axes = diagram.figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("n", "rate")
    assert sorted(text.get_text() for text in axes.texts) == ["0", "0", "2", "2"]


def test_a_row_may_hold_several_seeds_under_another_name():
    rows = [{"n": 8, "k": 2, "right": (True, False)}, {"n": 8, "k": 2, "right": (True,)}]
    share = phase_diagram(rows, x="n", y="k", learned="right").shares[8, 2]
    assert (share.successes, share.trials) == (2, 3)


@pytest.mark.parametrize(
    ("rows", "asked", "sentence"),
    [
        ([], {}, "there are no rows to draw"),
        (ROWS, {"x": "m"}, "a row has no column 'm': it has n, rate, learned"),
        ([{"n": "many", "rate": 1, "learned": True}], {}, "n and rate must be numbers, got 'many' and 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(rows, asked, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        phase_diagram(rows, **{"x": "n", "y": "rate", **asked})
