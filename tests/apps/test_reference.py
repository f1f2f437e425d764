"""The shipped evidence: complete, current, small, and loaded by the store's own code."""

from parityscope.apps.reference import _shipped, reference_picture, stale_rows, unpack_reference
from parityscope.papers.registry import CLAIM_IDS, FIGURE_IDS, all_claims, load_figure
from parityscope.papers.results import needs_of, stored_claims, stored_rows, work_of
from parityscope.records import Store, rows_in

ROWS = _shipped("reference", "rows")


def test_every_config_of_the_reference_run_has_its_row():
    assert stale_rows() == {}, "run `make reference`: it computes only what is missing"


def test_no_row_is_left_over():
    works = [work_of(load_figure(name), "reference") for name in FIGURE_IDS]
    works.append(needs_of(all_claims(), "reference"))
    wanted = {config.key for work in works for config in work.configs}
    # Rows of public files and of language models are computed where those are.
    given = {"claims", "estimator-benchmark", *(load_figure(name).STORED.ROWS for name in ("W-figure-6", "W-figure-7"))}
    left_over = [row for row in rows_in(ROWS) if row.experiment not in given and row.key not in wanted]
    assert [(row.experiment, row.config) for row in left_over] == []


def test_the_shipped_rows_are_small():
    assert sum(path.stat().st_size for path in ROWS.iterdir()) < 10e6


def test_the_store_has_every_row_and_every_verdict(tmp_path):
    count = unpack_reference(tmp_path)
    store = Store(tmp_path / "store")
    assert len(store.rows()) == count
    assert store.damaged() == {}
    assert [claim.id for claim in stored_claims("reference", store)] == list(CLAIM_IDS)
    for name in FIGURE_IDS:
        figure = load_figure(name)
        assert len(stored_rows(figure, "reference", store)) >= len(
            figure.CONFIGS["reference"]
        )  # more: measured elsewhere


def test_a_demo_shows_the_reference_figure_only_where_its_own_shows_less():
    same = [name for name in FIGURE_IDS if reference_picture(load_figure(name), "demo") is None]
    assert "H1-figure-1" in same
    assert "H1-success" not in same
    assert all(reference_picture(load_figure(name), "reference") is None for name in FIGURE_IDS)
