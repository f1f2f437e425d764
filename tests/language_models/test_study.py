"""From a model folder and a file of problems to stored rows, figures, JSON and verdicts."""

import json

import pytest
import torch

from parityscope import InvalidInput, attention_entropy
from parityscope.apps.reproduce import reproduce
from parityscope.core.drawing import themed
from parityscope.language_models import study as entropy_study
from parityscope.language_models.loading import load_language_model
from parityscope.language_models.measures import MATCHED, MEASURES, PAPER, measure_problems
from parityscope.language_models.study import EntropyStudy, ProblemReading, run_study, study_json
from parityscope.language_models.word_problems import OWN_PROBLEMS, VARIANTS, WordProblem, read_word_problems
from parityscope.papers.claim import check
from parityscope.papers.registry import named_claims
from parityscope.papers.results import claims_context
from parityscope.papers.w.figures.language_models import FIGURES, draw_study
from parityscope.records import Store
from tiny_language_models import save_tiny

FIGURE_IDS = [figure.ID for figure in FIGURES]
PROBLEMS = list(read_word_problems(OWN_PROBLEMS))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    return [str(save_tiny(root / name, "qwen2", seed)) for seed, name in enumerate(("first", "second"))]


@pytest.fixture(scope="module")
def model(folders):
    return load_language_model(folders[0])


def test_the_papers_measure_is_attention_entropy_of_the_whole_text(model):
    found = measure_problems(model, PROBLEMS[:2])
    for row, problem in enumerate(PROBLEMS[:2]):
        for place, variant in enumerate(VARIANTS):
            ids = torch.tensor([model.encode(problem.text(variant))])
            with torch.no_grad():
                weights = torch.stack(model.network(ids, output_attentions=True).attentions)[:, 0]
            assert found[row, place, 0] == pytest.approx(attention_entropy(weights), abs=3e-6)


def test_suffix_measures_look_only_at_what_follows_the_question(model):
    problem = PROBLEMS[0]
    start = len(model.encode(problem.prompt))
    found = dict(zip(map(str, MEASURES), measure_problems(model, [problem])[0, 1], strict=True))
    ids = torch.tensor([model.encode(problem.text("CoT"))])
    with torch.no_grad():
        weights = torch.stack(model.network(ids, output_attentions=True).attentions)[:, 0]
    i = torch.arange(1, ids.shape[1] + 1)
    entropies = torch.special.entr(weights).sum(-1)[..., start:] / i[start:].log()
    # Two routes in single precision, which is up to 4e-6 away from double in these networks, on either side.
    assert found["suffix min"] == pytest.approx(entropies.amin(-1), abs=2e-5)
    assert found["suffix mean"] == pytest.approx(entropies.mean(-1), abs=2e-5)
    # Drawing as many positions as the bare answer has, often, gives the exact expectation.
    count = len(model.encode(problem.text("no CoT"))) - start
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack(
        [entropies[..., torch.randperm(entropies.shape[-1], generator=generator)[:count]].amin(-1) for _ in range(4000)]
    )
    error = 5 * drawn.std(0) / 4000**0.5 + 2e-5
    assert ((found[MATCHED] - drawn.mean(0)).abs() < error).all()


def test_a_batch_gives_each_problem_its_own_numbers(model):
    together = measure_problems(model, PROBLEMS[:4])
    alone = torch.cat([measure_problems(model, [problem]) for problem in PROBLEMS[:4]])
    assert torch.allclose(together, alone, atol=2e-5)  # as above


def test_an_interrupted_study_goes_on_to_the_same_numbers(folders, tmp_path, monkeypatch):
    straight = run_study(folders[:1], PROBLEMS[:5], load_language_model, data="own")
    real, calls = measure_problems, []

    def stops_at_the_third(model, problems, seed):
        calls.append(problems[0].key)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(model, problems, seed)

    monkeypatch.setattr(entropy_study, "measure_problems", stops_at_the_third)
    store = Store(tmp_path / "store")
    with pytest.raises(KeyboardInterrupt):
        run_study(folders[:1], PROBLEMS[:5], load_language_model, data="own", store=store)
    assert len(store.rows_of(ProblemReading)) == 2
    assert EntropyStudy.ROWS not in {row.experiment for row in store.rows()}
    resumed = run_study(folders[:1], PROBLEMS[:5], load_language_model, data="own", store=store)
    assert len(set(calls)) == 5
    assert len(calls) == 6  # the third was begun twice, nothing else
    assert resumed.numbers == straight.numbers == store.row(resumed.config).numbers
    assert torch.equal(resumed.arrays["0.mean"], straight.arrays["0.mean"])


def test_a_problem_too_long_for_the_model_is_left_out_and_counted(folders):
    long = WordProblem("word " * 500, "so\n#### 1", "1")
    study = run_study(folders[:1], [PROBLEMS[0], long], load_language_model, data="own")
    assert (study.numbers.problems, study.numbers.too_long) == (1, 1)
    with pytest.raises(InvalidInput, match="none of the 1 problems fits"):
        run_study(folders[:1], [long], load_language_model, data="own")


def test_two_models_are_compared_head_by_head(folders, tmp_path):
    store = Store(tmp_path / "store")
    row = run_study(folders, PROBLEMS[:3], load_language_model, data="own", store=store)
    first, second = (run_study([name], PROBLEMS[:3], load_language_model, data="own") for name in folders)
    difference = (second.arrays["0.mean"] - first.arrays["0.mean"])[1, 0]
    found = row.numbers.second_against_first[0]
    assert found.difference.value == pytest.approx(difference.mean().item(), abs=1e-6)
    assert found.heads_lower.value == pytest.approx((difference < 0).double().mean().item())
    rows = store.rows_of(EntropyStudy)
    assert [model.name for one in rows for model in one.numbers.models] == ["first", "second"]
    for shown in FIGURES:
        figure = themed(shown.plot, rows)
        labels = {text.get_text() for part in figure.subfigs for axes in part.axes for text in _legend(axes)}
        assert {"no CoT", "CoT", "shuffled CoT", "CoT, second"} <= labels


def _legend(axes):
    return axes.get_legend().get_texts() if axes.get_legend() else ()


def test_json_holds_every_measure_with_intervals(folders):
    study = json.loads(json.dumps(study_json(run_study(folders[:1], PROBLEMS[:3], load_language_model, data="own"))))
    (found,) = study["models"]
    assert found["weights"] == "float32"
    assert [(one["measure"], one["sink"]) for one in found["measures"]] == [tuple(measure) for measure in MEASURES]
    for one in found["measures"]:
        assert [len(layer) for layer in one["CoT"]["heads"]] == [4, 4, 4]
        assert [len(layer) for layer in one["CoT"]["half_width"]] == [4, 4, 4]
        assert 0 <= one["CoT against"]["no CoT"]["heads_lower"]["value"] <= 1


@pytest.mark.slow
def test_the_report_draws_stored_studies_and_says_how_to_make_them(folders, tmp_path):
    reproduce(FIGURE_IDS, "smoke", tmp_path, claims=named_claims(["W-figure-6"]))
    empty = (tmp_path / "report.html").read_text()
    assert "parityscope entropy --model" in empty
    assert "open: no study" in empty
    assert "<td>first</td>" not in empty
    run_study(folders[:1], PROBLEMS[:2], load_language_model, data="own", store=Store(tmp_path / "store"))
    before = {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()}
    assert {path.name for path in draw_study(tmp_path)} == {f"{name}.png" for name in FIGURE_IDS}
    assert all((tmp_path / "figures" / name).read_bytes() != content for name, content in before.items())
    reproduce(FIGURE_IDS, "smoke", tmp_path, claims=named_claims(["W-figure-6"]))
    page = (tmp_path / "report.html").read_text()
    assert page.count("parityscope entropy --model FOLDER_OR_NAME") >= len(FIGURE_IDS)
    assert "<td>first</td>\n<td>float32</td>\n<td>2</td>" in page


EVERYWHERE = (-0.1, -0.1, -0.1)
# How much CoT lowers the minimum, at equal counts, and against shuffled words; what Figures 6 and 7 show of it in a
# model that is not the paper's, and how many of six controls are lower too.
EFFECTS = [
    (EVERYWHERE, ["seen", "seen"], ["seen"], 1),
    ((-0.1, 0.0, -0.1), ["seen", "seen"], ["seen"], 0),  # a minimum over more positions, and nothing else
    ((torch.tensor([-0.1, -0.1, 0.02])[:, None], -0.1, -0.1), ["seen", "seen"], ["seen"], 1),
    ((0.1, 0.0, 0.0), ["not seen", "not seen"], ["not seen"], 0),
    ((0.0, 0.0, 0.0), ["open", "open"], ["open"], 0),
]


def planted(effects, problems=40):
    """Return numbers in which CoT differs from the other texts by known amounts, and noise."""
    minimum, matched, shuffled = effects
    values = 0.5 + 0.02 * torch.randn(problems, 3, len(MEASURES), 3, 4, generator=torch.Generator().manual_seed(1))
    names = [measure.name for measure in MEASURES]
    values[:, 0, names.index(PAPER)] -= minimum
    values[:, 0, names.index(MATCHED)] -= matched
    values[:, 2, names.index(MATCHED)] -= shuffled
    return values


@pytest.mark.parametrize(("effects", "figure_6", "figure_7", "controls"), EFFECTS)
def test_clauses_follow_the_numbers(effects, figure_6, figure_7, controls, folders, tmp_path, monkeypatch):
    values = iter(planted(effects))
    monkeypatch.setattr(entropy_study, "measure_problems", lambda *_: next(values)[None])
    problems = [WordProblem(f"{index}?", "so\n#### 1", "1") for index in range(40)]
    run_study(folders[:1], problems, load_language_model, data="planted", store=Store(tmp_path / "store"))
    context = claims_context("smoke", tmp_path)
    found = {claim.id: check(claim, context) for claim in named_claims(["W-figure-6", "W-figure-7"])}
    assert {name: [clause.verdict for clause in outcome.clauses] for name, outcome in found.items()} == {
        "W-figure-6": figure_6,
        "W-figure-7": figure_7,
    }
    assert all(outcome.verdict == "open" and "(first)" in outcome.qualifier for outcome in found.values())
    assert f"; {controls} of 6 controls lower on average: mean " in found["W-figure-6"].number


def test_a_clause_is_seen_only_if_it_is_in_every_model(folders, tmp_path, monkeypatch):
    problems = [WordProblem(f"{index}?", "so\n#### 1", "1") for index in range(40)]
    for name, effects in zip(folders, (EVERYWHERE, (0.1, 0.1, -0.1)), strict=True):
        values = iter(planted(effects))
        monkeypatch.setattr(entropy_study, "measure_problems", lambda *_, values=values: next(values)[None])
        run_study([name], problems, load_language_model, data="planted", store=Store(tmp_path / "store"))
    (claim,) = named_claims(["W-figure-6"])
    found = check(claim, claims_context("smoke", tmp_path))
    assert [clause.verdict for clause in found.clauses] == ["not seen", "not seen"]
    assert all(f"{name}: lower in" in found.number for name in ("first", "second"))


def test_fine_tuning_is_judged_on_two_models(folders, tmp_path, monkeypatch):
    first, second = planted(EVERYWHERE), planted(EVERYWHERE)
    second[:, 1] -= 0.05
    values = iter([*first, *second])
    monkeypatch.setattr(entropy_study, "measure_problems", lambda *_: next(values)[None])
    problems = [WordProblem(f"{index}?", "so\n#### 1", "1") for index in range(40)]
    (claim,) = named_claims(["W-figure-6-fine-tuning"])
    assert check(claim, claims_context("smoke", tmp_path)).verdict == "open"
    run_study(folders, problems, load_language_model, data="planted", store=Store(tmp_path / "store"))
    assert {clause.verdict for clause in check(claim, claims_context("smoke", tmp_path)).clauses} == {"seen"}


def test_few_problems_decide_nothing(folders, tmp_path):
    run_study(folders[:1], PROBLEMS[:2], load_language_model, data="own", store=Store(tmp_path / "store"))
    for claim in named_claims(["W-figure-6", "W-figure-6-fine-tuning", "W-figure-7"]):
        outcome = check(claim, claims_context("smoke", tmp_path))
        assert outcome.verdict == "open"
        assert "parityscope entropy --model" in outcome.how


@pytest.mark.slow
def test_the_command_prints_a_table_and_stores_rows(folders, tmp_path, said):
    code, lines, _ = said("entropy", "--model", folders[0], "--limit", 2, "--out", tmp_path)
    assert code == 0
    assert any("first (float32) on 2 problems of word_problems.jsonl" in line for line in lines)
    assert any("min (Eq. 1)" in line for line in lines)
    assert len(Store(tmp_path / "store").rows_of(ProblemReading)) == 2
    assert (tmp_path / "figures" / "W-figure-7.svg").exists()
    _, lines, _ = said("entropy", "--model", folders[0], "--limit", 3, "--out", tmp_path, "--json")
    assert json.loads("".join(lines))["problems"] == 3
    assert len(Store(tmp_path / "store").rows_of(ProblemReading)) == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--model", "{tmp}"), "holds no model: neither config.json nor a .gguf file in it"),
        (("--model", "{model}", "--data", "{tmp}/none.jsonl"), "there is no file"),
        (("--model", "{model}", "--data", "{empty}"), "holds no problems: it is empty"),
        (("--model", "{model}", "--question", "frage"), "has no column 'frage': it has question, answer"),
        (("--model", "{model}", "--limit", "0"), "--limit"),
        (("--model", "{model}", "--dtype", "int3"), "unknown dtype 'int3'"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, folders, tmp_path, said):
    empty = tmp_path / "empty.csv"
    empty.touch()
    (tmp_path / "folder").mkdir()
    filled = [part.format(tmp=tmp_path / "folder", model=folders[0], empty=empty) for part in arguments]
    code, lines, errors = said("entropy", *filled)
    assert (code, lines) == (2, [])
    assert sentence in errors
    assert "Traceback" not in errors
