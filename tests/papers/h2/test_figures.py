"""What H2's figures read off their rows."""

import math

from parityscope.papers.figure import fresh
from parityscope.papers.h2.figures.what_it_takes import SmallestCodeNumbers
from parityscope.papers.registry import load_figure
from parityscope.runs import training


def test_the_median_code_is_infinite_where_most_seeds_need_more_than_was_tried():
    assert SmallestCodeNumbers(smallest=(11, None, 20), most=80).median == 20
    assert SmallestCodeNumbers(smallest=(11, None, None), most=80).median == math.inf


def test_the_error_figure_starts_where_the_recipe_does():
    """At variance 1/log d it shows the recipe as it is, so that others who train it share its rows."""
    shown = next(one for one in load_figure("H2-error").CONFIGS["smoke"] if one.variance == 1.0)
    assert shown.training.key == training("one-step", shown.training.n, 2, seeds=fresh(4)).key
