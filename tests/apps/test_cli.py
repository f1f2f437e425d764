"""The command line as a user meets it: exit code, output, files; mostly in a process of its own."""

import json
import subprocess
import sys

import pytest

from commands import COMMAND, ONE_THREAD
from parityscope import RECIPES, __version__
from warm_command import CLIENT, WARM


def parityscope(*arguments):
    """Run a command in a process of its own, forked from one that has its libraries."""
    code = CLIENT.format(address=WARM.address(ONE_THREAD)) + COMMAND[-1]
    return run_python(code, *arguments)


def parityscope_from_nothing(*arguments):
    return run_python(COMMAND[-1], *arguments)


def run_python(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=ONE_THREAD, timeout=120, check=False)


def test_help_teaches_and_lists_the_recipes():
    text = parityscope("learn", "--help").stdout
    for recipe in RECIPES.values():
        assert recipe.name in text
        assert recipe.summary in text


def test_version():
    assert parityscope("--version").stdout.strip() == __version__


def test_learn_shows_heads_and_runs():
    done = parityscope("learn", "--n", 20, "--support", "7,10,17", "--runs", 2)
    assert done.returncode == 0
    assert done.stdout.count("▼") == 3
    assert "head 2" in done.stdout
    assert done.stdout.count("7,10,17  7,10,17") == 2
    assert "2/2" in done.stdout


def test_learn_json_is_one_object_and_nothing_else():
    done = parityscope("learn", "--n", 30, "--k", 2, "--runs", 3, "--seed", 5, "--json")
    run = json.loads(done.stdout)
    assert [row["seed"] for row in run["runs"]] == [5, 6, 7]
    assert all(row["recovered"] for row in run["runs"])


def test_learn_writes_a_folder_and_refuses_to_overwrite_it(tmp_path):
    folder = tmp_path / "new" / "folder"
    arguments = ("learn", "--n", 12, "--k", 2, "--out", folder)
    assert parityscope(*arguments).returncode == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["attention.png", "risk.png", "run.json", "weights.safetensors"]
    before = (folder / "run.json").read_bytes()
    again = parityscope(*arguments)
    assert again.returncode == 2
    assert "already holds a run: add --resume" in again.stderr
    assert (folder / "run.json").read_bytes() == before
    assert parityscope(*arguments, "--resume").returncode == 0
    assert json.loads((folder / "run.json").read_text())["runs"] == json.loads(before)["runs"]


def test_every_hyperparameter_can_be_overridden():
    done = parityscope("learn", "--n", 12, "--k", 2, "--set", "heads=4", "--set", "start_radius=0.5", "--json")
    settings = json.loads(done.stdout)["settings"]
    assert (settings["heads"], settings["start_radius"]) == (4, 0.5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--n", 5, "--k", 6), "k must lie between 1 and n = 5, got 6"),
        (("--n", 5, "--k", 0), "k must lie between 1 and n = 5, got 0"),
        (("--n", 5, "--support", "1,1"), "support repeats a position: 1,1"),
        (("--n", 5, "--support", "1,9"), "support position 9 is out of range: 0 to 4"),
        (("--n", 5, "--support", "1,x"), "--support '1,x' is not a list of positions"),
        (("--n", 5, "--k", 3, "--support", "1,2"), "--k 3 disagrees with --support 1,2"),
        (("--recipe", "magic"), "unknown recipe 'magic': choose one of"),
        (("--engine", "magic"), "unknown engine 'magic': choose one of"),
        (
            ("--recipe", "as-coded", "--n", 60, "--engine", "split"),
            "needs about 258 GB at n = 60, k = 3 and stops at 8 GB",
        ),
        (("--recipe", "as-coded", "--n", 40, "--engine", "enumerate"), "visits 2^40 inputs and is limited to n ≤ 26"),
        (("--set", "heads"), "--set 'heads' is not of the form FIELD=VALUE"),
        (("--set", "colour=1"), "a recipe has no field 'colour'"),
        (("--resume",), "--resume needs --out"),
        (("--runs", 0), "--runs"),
        (("--seed", -1), "--seed"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, sentence, said):
    code, lines, errors = said("learn", *arguments)
    assert (code, lines) == (2, [])
    assert sentence in errors


@pytest.mark.slow
def test_bad_input_shows_no_traceback_in_a_real_process():
    done = parityscope_from_nothing("learn", "--n", 5, "--k", 6)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "parityscope: k must lie between 1 and n = 5, got 6\n"


def test_a_damaged_folder_is_named_and_nothing_is_lost(tmp_path):
    weights = tmp_path / "weights.safetensors"
    weights.write_bytes(b"half a file")
    done = parityscope("learn", "--n", 12, "--k", 2, "--out", tmp_path, "--resume")
    assert done.returncode == 2
    assert "is not a readable checkpoint" in done.stderr
    assert weights.read_bytes() == b"half a file"


def test_a_file_or_an_unwritable_place_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere"):
        done = parityscope("learn", "--n", 12, "--k", 2, "--out", place)
        assert done.returncode == 2
        assert str(place).split("/")[-1] in done.stderr
        assert "Traceback" not in done.stderr


def test_numbers_survive_a_missing_plotting_library(tmp_path, monkeypatch, said):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "parityscope.core.drawing", raising=False)
    code, _, errors = said("learn", "--n", 12, "--k", 2, "--out", tmp_path)
    assert code == 2
    assert "pip install 'parityscope[plots]'" in errors
    assert json.loads((tmp_path / "run.json").read_text())["runs"][0]["recovered"]


# Claims

PRINTED = "H1-lemma-14-derivative"  # refuted, and a form of ours is true
TRUE = "H1-lemma-15"


def test_several_claims_are_blocks_with_counts_below():
    shown = parityscope("claims", PRINTED, TRUE, "--scale", "smoke")
    assert shown.returncode == 0
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert f"{PRINTED} fails · what is true instead (ours): holds · Appendix A, proof of Lemma 14" in " ".join(lines)
    assert f"{TRUE} holds · Appendix A, Lemma 15" in lines
    assert sum("refuted if " in line for line in lines) == sum("tried: " in line for line in lines) == 2
    assert [line for line in lines if line][-1] == "H1 2 0 1 0 0 1 0 0"


def test_one_claim_is_a_page():
    shown = parityscope("claims", "lemma-14-derivative", "--scale", "smoke")
    assert shown.returncode == 0
    for heading in (
        "Verdict: fails",
        "What is true instead (ours): holds",
        "How it was computed: ",
        "Why: a counterexample",
        " • computed in",
    ):
        assert f"\n{heading}" in shown.stdout
    assert f"parityscope claims {PRINTED} --replay --scale smoke" in shown.stdout
    assert "{" not in shown.stdout.split("Why")[1]  # the counterexample is no JSON


def test_claims_json_is_what_was_promised():
    done = parityscope("claims", PRINTED, TRUE, "--scale", "smoke", "--json")
    first, second = json.loads(done.stdout)
    assert (first["id"], second["verdict"]) == (PRINTED, "holds")
    promised = {
        "id",
        "paper",
        "statement",
        "verdict",
        "printed",
        "criterion",
        "refutable",
        "corrected",
        "evidence",
        "how",
    }
    assert promised <= set(first)
    assert set(first["criterion"]) == {"refuted_if", "holds_if", "source"}
    assert first["corrected"]["verdict"] == "holds"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("H1-lemma-99", "unknown claim 'H1-lemma-99': the nearest are H1-lemma-19, "),
        ("lemma-7", "'lemma-7' may be H1-lemma-7 or W-lemma-7: say which"),
    ],
)
def test_a_name_that_fits_no_claim_or_several_is_one_sentence(name, sentence):
    for more in ((), ("--replay",), ("--json",)):
        done = parityscope("claims", name, *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"parityscope: {sentence}")
        assert done.stderr.count("\n") == 1
        assert len(done.stderr) < 200


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The --out folder of a reproduction with two verdicts."""
    from parityscope.apps.reproduce import reproduce
    from parityscope.papers.registry import named_claims

    out = tmp_path_factory.mktemp("reproduced")
    reproduce([], "smoke", out, claims=named_claims([PRINTED, TRUE]))
    return out


def test_replay_computes_stored_counterexamples_again(stored):
    done = parityscope("claims", "--replay", "--out", stored)
    assert done.returncode == 0
    assert f"{PRINTED}  counterexample at scale smoke (stored)" in done.stdout
    assert TRUE not in done.stdout
    (one,) = json.loads(parityscope("claims", "--replay", "--out", stored, "--json").stdout)
    assert (one["id"], one["stored"], one["scale"], one["missing"]) == (PRINTED, True, "smoke", None)
    (again,) = one["replays"]
    assert again["confirms"]
    assert again["again"] == pytest.approx(again["stored"], rel=1e-6)


def test_replay_without_a_store_checks_first_and_says_so(tmp_path):
    done = parityscope("claims", PRINTED, TRUE, "--replay", "--scale", "smoke", "--out", tmp_path)
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert f"{PRINTED} counterexample at scale smoke (nothing was stored, so it was computed first)" in said
    assert f"{TRUE} has no counterexample to replay: at scale smoke it is 'holds'" in said


def test_nothing_to_replay_is_one_sentence(stored, tmp_path):
    one = parityscope("claims", TRUE, "--replay", "--scale", "smoke", "--out", stored)
    assert (one.returncode, one.stdout) == (2, "")
    assert one.stderr == f"parityscope: {TRUE} has no counterexample to replay: at scale smoke it is 'holds'\n"
    none = parityscope("claims", "--replay", "--out", tmp_path)
    assert none.returncode == 2
    assert f"no counterexample is stored in {tmp_path}: " in none.stderr


def test_a_second_route_that_does_not_refute_is_exit_code_1(stored, monkeypatch, said):
    from parityscope.papers.claim import Replay, Replayed

    weaker = Replay("distance", 2.5, 1e-12, "another route", confirms=False)
    replayed = Replayed(PRINTED, "smoke", stored=True, replays=(weaker,))
    monkeypatch.setattr("parityscope.papers.claim.replay", lambda *_: replayed)
    code, lines, _ = said("claims", PRINTED, "--replay", "--out", stored)
    assert code == 1
    assert " ".join(lines).split()[-4:] == ["1e-12", "another", "route", "no"]
