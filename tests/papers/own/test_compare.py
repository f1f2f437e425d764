"""The table of methods: what a method is shown, how the number of examples is found, and that methods can fail."""

import json
import math

import pytest
import torch
from typer.testing import CliRunner

from parityscope.apps.cli import app
from parityscope.core.errors import InvalidInput
from parityscope.papers.own.compare.method import (
    SUPERVISIONS,
    Answer,
    Budget,
    Method,
    Unsuitable,
    examples_of,
    fewest_examples,
    tried,
)
from parityscope.papers.own.compare.methods import METHODS, fourier_gap, named_method
from parityscope.papers.own.figures import compare
from parityscope.papers.own.figures.compare import CONFIGS, Cell, CellNumbers, cells
from parityscope.papers.results import is_stale
from parityscope.problems import Parity, bits_of, draw_problems
from parityscope.records import Row, Store, StoredRow
from parityscope.training.parts import OwnPart


def knowing(x, y, task):
    """Solve by looking: of few examples, answer nothing."""
    support = draw_problems(task.n, task.k, [task.seed])[0].support
    found = len(x) >= 128
    return Answer(lambda fresh: Parity(task.n, support).label(fresh) * (1 if found else 0), multiply_adds=float(len(x)))


def problem_of(seed):
    return draw_problems(10, 4, [seed])[0]


@pytest.mark.parametrize("supervision", SUPERVISIONS)
def test_steps_are_true_without_noise_and_end_with_the_label(supervision):
    problem = problem_of(3)
    x, y, task = examples_of(problem, 50, 0, supervision)
    assert torch.equal(problem.label(x), y)
    if supervision == "labels":
        assert task.steps is None
        return
    signs, (a, b, c, d) = 1 - 2 * x, problem.support
    first, second = signs[:, a] * signs[:, b], signs[:, c] * signs[:, d]
    chain = torch.stack([signs[:, a], first, first * signs[:, c], y], 1)
    tree = torch.stack([first, second, y], 1)
    assert torch.equal(task.steps.long(), chain.long() if supervision == "labels and a chain" else tree.long())


def test_noise_flips_labels_and_steps_alike():
    problem = Parity(8, (0, 1, 2, 3), noise=0.1)
    x, y, task = examples_of(problem, 20_000, 0, "labels and a tree")
    clean = examples_of(Parity(8, (0, 1, 2, 3)), 20_000, 0, "labels and a tree")[2].steps
    assert (clean[:, 0] == (1 - 2 * x[:, 0]) * (1 - 2 * x[:, 1])).all()
    for step in range(3):
        share = (task.steps[:, step] != clean[:, step]).double().mean()
        assert abs(share - 0.1) < 5 * math.sqrt(0.09 / 20_000)
    assert torch.equal(task.steps[:, -1], y)


def test_a_tree_needs_a_power_of_two():
    with pytest.raises(Unsuitable, match="2, 4, 8"):
        examples_of(Parity(8, (0, 1, 2)), 4, 0, "labels and a tree")


def test_the_fewest_examples_are_found_and_the_budget_is_kept():
    method = Method(knowing)
    assert fewest_examples(method, problem_of, Budget()).examples == 128
    assert fewest_examples(method, problem_of, Budget(examples=64))[:2] == (None, 64)
    assert fewest_examples(method, problem_of, Budget(multiply_adds=100.0))[:2] == (None, 64)
    assert fewest_examples(method, problem_of, Budget(seconds=-1.0))[:2] == (None, 32)


def test_an_answer_that_guesses_is_not_counted():
    guess = Method(lambda x, y, task: Answer(lambda fresh: torch.ones(len(fresh))))
    assert 0.4 < tried(guess, problem_of(0), 32, 0).accuracy < 0.6


QUICK = {"GF(2) elimination": 64, "fit": 64, "concave, n paths": 64, "bounded": 512, "H2, one gradient": 1024}


@pytest.mark.parametrize(("name", "count"), QUICK.items())
def test_a_method_learns_from_enough_examples_and_not_from_four(name, count):
    problem = draw_problems(12, 2, [5])[0]
    assert tried(named_method(name), problem, count, 5).accuracy == 1
    assert tried(named_method(name), problem, 4, 5).accuracy < 0.99


SHOWN = {
    "pairs by search, chain": 64,
    "pairs by search, tree": 64,
    "K, one step": 2**14,
    "K, log₂ k rounded steps": 2**15,
    "log-correlation chain": 2**11,
}


@pytest.mark.parametrize(("name", "count"), SHOWN.items())
def test_a_chain_learns_from_steps_and_not_from_wrong_ones(name, count):
    problem, method = draw_problems(16, 4, [1])[0], named_method(name)
    assert tried(method, problem, count, 1).accuracy == 1
    x, y, task = examples_of(problem, count, 1, method.supervision)
    shuffled = task._replace(steps=task.steps[torch.randperm(count, generator=torch.Generator().manual_seed(0))])
    answer = method.solve(x, y, shuffled)
    assert (answer.predict(x).sign() == y).double().mean() < 0.9


def test_elimination_fails_with_noise():
    assert tried(METHODS["GF(2) elimination"], draw_problems(12, 2, [0], noise=0.1)[0], 400, 0).accuracy < 0.9


def test_the_fourier_gap_is_that_of_the_enumerated_gradient():
    n, k = 7, 3
    signs = 1 - 2 * bits_of(torch.arange(2**n), n).double()
    label = signs[:, :k].prod(1)
    gaps = []
    for threshold in range(-n, n + 1):
        gradient = ((signs.sum(1) > threshold) * label)[:, None] * signs
        gaps.append(float(gradient.mean(0)[0].abs() - gradient.mean(0)[-1].abs()))
    assert fourier_gap(n, k) == pytest.approx(max(gaps), abs=1e-12)


def test_every_cell_of_the_table_has_its_method_and_another_method_another_row():
    assert {cell.method for cell in CONFIGS["reference"]} == set(METHODS)
    names = ("GF(2) elimination", "sign-SGD, z^k")
    (one, _), (other, _) = (cells("smoke", name, "labels") for name in names)
    assert one.code() != other.code()
    own = cells("smoke", "mine", "labels", OwnPart.of(knowing))[0]
    assert Cell.model_validate_json(own.model_dump_json()).code() == own.code()


def row_of(method, noise, *, supervision="labels", steps=1, **numbers):
    config = Cell(
        method=method,
        supervision=supervision,
        n=20,
        k=3,
        noise=noise,
        seeds=(1000, 1001, 1002),
        most_examples=1,
        most_multiply_adds=1.0,
        most_seconds=1.0,
    )
    return Row(config, CellNumbers(gradient_steps=steps, **numbers))


def test_the_fewest_examples_are_those_with_which_most_fresh_seeds_learn():
    rows = [
        row_of("GF(2) elimination", 0.0, steps=0, examples=32, accuracy=(1, 1, 1), multiply_adds=2e4),
        row_of("lucky", 0.0, examples=64, accuracy=(0.5, 0.5, 1)),
        row_of("MLP, SGD", 0.0, examples=32768, accuracy=(1, 1, 0.98), multiply_adds=3e5),
        row_of("slow", 0.0, examples=65536, accuracy=(1, 1, 1)),
        row_of("MLP, SGD", 0.1, largest=2**18),
        row_of("shown", 0.0, supervision="labels and a tree", unsuitable="k = 2, 4, 8, … only"),
    ]
    said = {one.paper: one.here for one in compare.findings(rows)}
    by_gradients = "(Our question.) Fewest examples from labels alone, by gradients"
    assert said[f"{by_gradients}, 0% noise"] == "(20, 3) MLP, SGD 32,768"
    assert said[f"{by_gradients}, 10% noise"] == "(20, 3) none"
    assert said["(Our question.) Fewest examples from labels alone, without gradients, 0% noise"].endswith(" 32")
    assert said["(Our question.) Fewest examples where steps are shown, by gradients, 0% noise"] == "(20, 3) none"
    assert list(said.values())[-1] == "(20, 3) 7.7e+03, needed 32,768"
    operations = said["(Our question.) Multiply–adds of one training with that many examples, (20, 3), 0% noise"]
    assert operations == "GF(2) elimination 2.0e+04; MLP, SGD 3.0e+05; slow not counted"


METHOD = """
from parityscope.papers.own.compare.method import Answer

def solve(x, y, task):
    best = max(range(task.n), key=lambda j: abs(((1 - 2 * x[:, j]) * y).float().mean()))
    return Answer(lambda fresh: 1 - 2 * fresh[:, best], 0, 1, float(x.numel()))
"""


def test_a_method_of_ones_own_is_put_on_the_table(tmp_path):
    (tmp_path / "mine.py").write_text(METHOD)
    arguments = ["compare", "GF(2) elimination", "--own", str(tmp_path / "mine.py"), "--scale", "smoke", "--quiet"]
    arguments += ["--out", str(tmp_path)]
    listed = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert [(one["method"], one["examples"] is None) for one in listed] == [
        ("GF(2) elimination", False),
        ("GF(2) elimination", True),  # with noise
        ("mine", True),
        ("mine", True),
    ]
    assert (tmp_path / "figures" / "compare.png").is_file()
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0
    assert "> 512" in shown.stdout
    assert "…" not in shown.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("solve = 3", "needs a function solve"),
        ("1 / 0", "cannot be run: ZeroDivisionError"),
        ("import sys; sys.exit(0)", "cannot be run: SystemExit: 0"),
        ("SUPERVISION = 'all'\ndef solve(x, y, task): ...", "choose one of labels"),
    ],
)
def test_a_file_without_a_method_is_refused_in_a_sentence(text, said, tmp_path):
    (tmp_path / "mine.py").write_text(text)
    result = CliRunner().invoke(app, ["compare", "--own", str(tmp_path / "mine.py")])
    assert isinstance(result.exception, InvalidInput)
    assert said in str(result.exception)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("3.0", "solve returned a float: return an Answer"),
        ("Answer(lambda fresh: fresh[:5, 0])", "returned 5 numbers"),
        ("exit(0)", "SystemExit: 0"),
    ],
)
def test_a_method_that_answers_wrongly_fails_in_a_sentence(returned, said, tmp_path):
    text = f"from parityscope.papers.own.compare.method import Answer\ndef solve(x, y, task):\n    return {returned}\n"
    (tmp_path / "mine.py").write_text(text)
    arguments = ["--own", str(tmp_path / "mine.py"), "--scale", "smoke", "--quiet", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, ["compare", "GF(2) elimination", *arguments])
    assert result.exit_code == 1
    assert said in result.stderr
    assert "--failed" in result.stderr


def test_a_method_that_raises_is_named_with_the_line_of_its_file(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def solve(x, y, task):\n    return inner(x)\n\ndef inner(x):\n    return x / 'two'\n"
    )
    arguments = ["--own", str(tmp_path / "mine.py"), "--scale", "smoke", "--quiet", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, ["compare", "GF(2) elimination", *arguments])
    assert result.exit_code == 1
    assert f"parityscope: a method failed in line 5 of {tmp_path / 'mine.py'}, TypeError: " in result.stderr


def test_an_unknown_method_is_refused():
    with pytest.raises(InvalidInput, match="unknown method 'magic'"):
        named_method("magic")


def test_a_name_of_the_table_and_a_second_file_are_refused(tmp_path):
    for name in ("fit", "mine"):
        (tmp_path / f"{name}.py").write_text(METHOD)
    fit, mine = (["--own", str(tmp_path / f"{name}.py")] for name in ("fit", "mine"))
    result = CliRunner().invoke(app, ["compare", *fit])
    assert isinstance(result.exception, InvalidInput)
    assert "fit is a method of the table already" in str(result.exception)
    result = CliRunner().invoke(app, ["compare", *mine, *fit])
    assert isinstance(result.exception, InvalidInput)
    assert "--own takes one file at a time" in str(result.exception)


def test_a_row_of_a_method_that_is_not_at_hand_is_neither_stale_nor_an_error():
    own = {"part": "parityscope_spec:solve", "source": "0" * 16}
    config = {**CONFIGS["smoke"][0].model_dump(mode="json"), "method": "mine", "own": own}
    stored = StoredRow(Cell.ROWS, config, {})
    assert is_stale(stored, Store.__new__(Store)) is None
