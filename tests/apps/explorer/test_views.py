"""One step, chain of thought and results: what the page shows is what the library computes."""

import io
import json
import re
from contextlib import redirect_stdout

import pytest
import torch

from parityscope.apps.explorer.chain import ChainSettings, Decoders
from parityscope.apps.explorer.learn import LiveSettings, frame, rounded
from parityscope.apps.explorer.one_step import OneStepSettings, one_step
from parityscope.apps.explorer.results import Results, replay
from parityscope.apps.explorer.tree import TreeSettings, learned_tree
from parityscope.core.errors import InvalidInput
from parityscope.papers.registry import load_figure, named_claims
from parityscope.papers.results import stored_rows
from parityscope.records import Store, StoredRow
from parityscope.runs import training
from parityscope.training.decoders import train_decoder
from parityscope.training.learning import learn
from parityscope.training.recipes import named_recipe


def computed_by(snippet):
    """Run the Python of a panel as a reader would; return its names."""
    names: dict = {}
    with redirect_stdout(io.StringIO()) as printed:
        exec(snippet, names)
    assert printed.getvalue()
    return names


@pytest.mark.parametrize(("n", "k"), [(10_000, 2), (500, 4)])
def test_one_step_finds_the_hidden_bits(n, k):
    answer = one_step(OneStepSettings(n=n, k=k))
    assert answer["found"] == answer["support"]
    assert answer["learned"]
    hidden = [answer["positions"].index(j) for j in answer["support"]]
    assert min(answer["after"]["weights"][j] for j in hidden) > 0.5 > max(answer["before"]["weights"])
    heads = len(answer["after"]["hidden"])
    for moment in ("before", "after"):
        assert sum(answer[moment]["others"]) == heads * (n - k)
    names = computed_by(answer["snippet"])
    assert names["run"].found[0].tolist() == answer["found"]
    assert float(names["run"].risk[0]) == answer["risk"]
    for moment, run in (("before", names["start"]), ("after", names["run"])):
        weights = run.model.score_weights()[0, answer["positions"]]
        assert answer[moment]["weights"] == pytest.approx(weights.tolist(), abs=1e-6)
        scores = run.model.scores()[0]
        reach = (scores.min().item(), scores.max().item())
        assert (answer[moment]["low"], answer[moment]["high"]) == pytest.approx(reach, abs=1e-8)


@pytest.fixture(scope="module")
def decoders():
    return Decoders()


def test_the_chain_is_written_on_any_bits_and_attention_is_on_the_secret(decoders):
    first = decoders.look(ChainSettings(n=12, k=4))
    flipped = tuple(1 - bit for bit in first["bits"])
    second = decoders.look(ChainSettings(n=12, k=4, bits=flipped))
    assert first["seconds"] == second["seconds"]  # trained once
    assert first["free_running"] == 1.0
    for answer in (first, second):
        assert answer["tokens"] == answer["truth"]
        parity = sum(answer["bits"][j] for j in answer["secret"]) % 2
        assert answer["tokens"][-1] == parity
    attention = torch.tensor(first["attention"])
    torch.testing.assert_close(attention.sum(-1), torch.ones(4), atol=1e-3, rtol=0)
    assert len(first["attended"]) == len(attention)
    assert attention[:, :12].argmax(-1).tolist() == first["secret"]


@pytest.mark.parametrize("chain", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_python_of_the_chain_computes_what_its_panels_show(decoders, chain):
    bits = (1, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1)
    answer = decoders.look(ChainSettings(n=12, k=4, chain=chain, bits=bits))
    names = computed_by(answer["snippet"])
    assert names["tokens"][0].tolist() == answer["tokens"]
    assert tuple(names["tokens"][0, :12].tolist()) == bits
    shown = torch.tensor(answer["attention"])
    torch.testing.assert_close(names["attention"].detach(), shown, atol=1e-4, rtol=0)
    run = names["run"]
    assert (list(run.task.secret), run.free_running) == (answer["secret"], answer["free_running"])
    assert {"step": run.history.step, "accuracy": run.history.accuracy} == answer["history"]
    assert names["entropy"] == answer["entropy"]


def half_way(answer):
    """Return the step at which each level first gives half of its attention to the true children."""
    return [
        next((step for step, share in zip(answer["steps"], level, strict=True) if share > 0.5), None)
        for level in answer["levels"]
    ]


@pytest.mark.parametrize("link", ["piecewise quadratic", "−cos πt"])
def test_end_to_end_a_tree_is_learned_level_by_level(link):
    answer = learned_tree(TreeSettings(training="CoT + self-consistency", link=link))
    first, second, third = half_way(answer)
    assert 0 < first < second < third
    assert answer["certified"]
    assert answer["accuracy"][-1] == 1 > answer["accuracy"][0]
    shown, names = torch.tensor(answer["attention"][-1]), computed_by(answer["snippet"])
    assert names["tree"].children == tuple(answer["children"])
    torch.testing.assert_close(names["attention"], shown, atol=1e-3, rtol=0)
    assert names["answers"].accuracy == answer["accuracy"][-1]


def test_teacher_forcing_needs_no_level_below_and_enough_examples():
    forced = learned_tree(TreeSettings())
    assert max(half_way(forced)) < min(half_way(learned_tree(TreeSettings(training="CoT + self-consistency")))[1:])
    assert forced["accuracy"][-1] == 1
    few = learned_tree(TreeSettings(examples=64))
    assert (few["certified"], few["accuracy"][-1] < 0.6) == (False, True)


def test_the_python_of_a_live_training_computes_what_its_panels_show():
    settings = LiveSettings(n=12, support=(1, 5), recipe="repaired", seed=3)
    shown = []

    def remember(step, model):
        if step == 20:
            shown.append(frame(model, settings.problem(), step, 0.0))

    learn(settings.problem(), settings.recipe, [3], steps=40, record_every=20, on_record=remember)
    run = computed_by(settings.snippet(20))["run"]
    (moment,) = shown
    assert rounded(run.attention[0]) == moment["attention"]
    assert rounded(run.model.directions[0]) == moment["directions"]
    assert rounded(run.model.score_weights()[0]) == moment["weights"]
    assert (run.found[0].tolist(), float(run.accuracy[0])) == (moment["found"], moment["accuracy"])


def test_kept_decoders_are_bounded(monkeypatch):
    from parityscope.apps.explorer import chain

    monkeypatch.setattr(chain, "MOST_KEPT", 2)
    trained = []

    def short(training):
        trained.append(training.seed)
        return train_decoder(training.model_copy(update={"steps": 1, "width": 16}))

    monkeypatch.setattr(chain, "train_decoder", short)
    few = Decoders()
    for seed in (0, 1, 0, 2, 0, 1):
        few.look(ChainSettings(n=6, k=2, seed=seed))
    assert trained == [0, 1, 2, 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from parityscope.apps.reproduce import reproduce

    out = tmp_path_factory.mktemp("reproduced")
    reproduce(["H1-success"], "smoke", out, claims=named_claims(["H1-lemma-14-derivative", "H1-lemma-15"]))
    return out


def test_results_show_what_is_stored(folder):
    results = Results(folder)
    summary = results.summary()
    first, *_, others = summary["papers"]
    assert first["title"] == "H1: Attention heads that learn a hidden k-parity"
    assert {"id": "H1-success", "title": "Which recipe learns, where", "rows": 7} in first["experiments"]
    assert others["title"] == "Other rows"
    counts = {one["id"]: one["rows"] for paper in (first, others) for one in paper["experiments"]}
    assert (counts["H1-success"], counts["training"]) == (7, 7)  # another figure may share one of them
    shown = results.experiment("H1-success")
    assert shown["scale"] == "smoke"
    assert shown["html"].count("<tr>") == 1 + 3 + 1 + 7  # findings and numbers, each with a header
    learned = {row["config"]["label"]: row["numbers"]["learned"] for row in shown["rows"]}
    assert learned["bounded"] == 1.0  # of the seeds
    assert {row["config"]["recipe.name"] for row in shown["rows"]} >= {"bounded", "as-written"}
    assert results.figure("H1-success", "dark").startswith(b"<?xml")
    assert Results(folder / "store").summary() == summary


def test_claims_come_with_their_criterion_and_counts(folder):
    summary = Results(folder).summary()
    shown = summary["claims_html"]
    refuted, true = re.findall(r'<article class="claim" id="[^"]+".*?</article>', shown, flags=re.S)
    assert summary["claims"] == 2
    assert '<span class="verdict fails">fails</span> · what is true instead (ours): holds' in refuted
    assert "true instead" not in true
    assert all("<p>Printed: “" in one for one in (refuted, true))
    assert "refuted if largest distance of the printed derivative from autograd: &gt; 1e-\u206006" in refuted
    assert re.search(r"counterexample</strong></p>\n<pre><code>largest distance [^\n]*\n +n +5\n", refuted)
    assert "counterexample" not in true
    counts = re.findall(r"<td[^>]*>([^<]*)</td>", shown.partition("</table>")[0])
    assert counts == ["H1", "2", "0", "1", "0", "0", "1", "0", "0"]
    json.dumps(summary, allow_nan=False)  # what a browser reads


def test_a_cell_is_replayed_as_it_was_trained(folder):
    rows = {row["config"]["label"]: row["replay"] for row in Results(folder).experiment("H1-success")["rows"]}
    assert rows["bounded, N examples"] is None  # examples are not trained on live
    assert rows["repaired, sharp start"] == {
        "n": 8,
        "k": 2,
        "recipe": "repaired",
        "seed": 1000,
        "start_radius": 8.0,
        "steps": 300,
    }
    for row in stored_rows(load_figure("H1-success"), "smoke", Store(folder / "store")):
        if rows[row.config.label] is not None:
            live = LiveSettings.model_validate(rows[row.config.label])
            assert live.resolved().model_dump(exclude=TEXTS) == row.config.training.recipe.model_dump(exclude=TEXTS)
            assert live.problem() == row.config.training.problems()[0]
    assert sum(settings is not None for settings in rows.values()) == 6


TEXTS = {"summary", "beyond_pairs", "on_samples"}


def test_what_cannot_be_trained_live_is_not_replayed():
    changed = training("bounded", 12, 2, seeds=[7], support=(1, 4), learning_rate=0.1)
    assert replay(changed) == {"n": 12, "k": 2, "recipe": "bounded", "seed": 7, "support": [1, 4], "learning_rate": 0.1}
    for settings in ({"beta1": 0.5}, {"noise": 0.1}, {"bias": 0.3}, {"batch": 64}, {"samples": 100}):
        assert replay(training("bounded", 12, 2, **settings)) is None
    assert replay(training("bounded", 5000, 2)) is None
    own = named_recipe("bounded").model_copy(update={"name": "my own"})
    assert replay(training(own, 12, 2)) is None


def test_a_sweep_of_trainings_is_replayed_too(tmp_path):
    config = training("bounded", 8, 2, seeds=[5])
    store = Store(tmp_path)
    store.add(config, config.run(), seconds=0.1)
    store.add_rows([StoredRow("training", {"n": 8, "seed": 5}, {"learned": True})])  # of other fields, long ago
    cells = Results(tmp_path).experiment("training")["rows"]
    assert sorted((cell["replay"] or {}).get("seed", -1) for cell in cells) == [-1, 5]
    assert {cell["config"].get("seeds") for cell in cells} == {"5", None}


def test_a_folder_without_a_store_is_refused_and_left_alone(tmp_path):
    with pytest.raises(InvalidInput, match="there is no store in"):
        Results(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../store", "nothing", "/etc/passwd", "H1-figure-1"])
def test_only_what_has_rows_is_opened(folder, name):
    for look in (Results(folder).experiment, lambda name: Results(folder).figure(name, "light")):
        with pytest.raises(InvalidInput, match="has no rows of"):
            look(name)
