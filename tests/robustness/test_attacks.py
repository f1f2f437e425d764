"""The release is attacked by itself: a quick sample in every test run, everything in the longest.

An attack succeeds where something ends in a traceback, does not end, is accepted although it is damaged, or leaves
something behind although it was refused.
"""

import json
import shutil

import pytest

from attacks import checkpoints, command_lines, counted, ended, ended_here, sample, saved_models, tables

LONG = pytest.mark.long
FIT = ("--target", tables.TARGET, "--budget", "1s", "--save", "model.json", "--quiet")


def assert_nothing_wrong(count, least):
    print(count)  # which `pytest -rP` shows
    assert count.attacks >= least
    assert count.wrong == [], f"{count}\n" + "\n".join(count.wrong)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workshop")
    command_lines.prepare(folder)
    (folder / "latin.py").write_bytes(b"# caf\xe9\nCONFIGS = []\n")
    (folder / "exits.py").write_text("import sys; sys.exit(0)\n")
    (folder / "unnamed.py").write_text("solve = lambda x, y, task: None\n")
    (folder / "numbered.py").write_bytes(command_lines.CONFIG % (b"3", b"int", b"1"))
    return folder


# Command lines: those that ask for too much memory in processes of their own, the others here


def attack(command, folder):
    sizes = (word.rpartition("=")[2] for word in command)
    much = any(size.isdecimal() and 7 < len(size) < 20 for size in sizes)  # beyond, nothing can even begin
    run = ended if much or "explore" in command or "reproduce" in command else ended_here
    return lambda: run(command, folder).wrong()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("share", "least"), [(197, 4), pytest.param(1, 600, marks=LONG)])
def test_bad_commands(workshop, tmp_path, share, least):
    shutil.copytree(workshop, tmp_path, dirs_exist_ok=True)
    commands = [one for one in command_lines.bad_commands() if share == 1 or one[:1] != ("entropy",)]
    found = counted((command, attack(command, tmp_path)) for command in sample(commands, share, 5))
    assert_nothing_wrong(found, least)


REFUSED = [
    ("fit", "faults.csv", "--target", "fault", "--seed", "4294967296"),
    ("fit", "faults.csv", "--target", "fault", "--save", ""),
    ("sweep", "latin.py", "--out", "new"),
    ("sweep", "exits.py", "--out", "new"),
    pytest.param(("sweep", "spec.py", "--out", "new", "--scheduler", "tcp://127.0.0.1:9"), marks=pytest.mark.slow),
    ("rows", "stored", "--where", f"n={10**400}"),
    ("rows", "stored", "--where", "n=\udcff"),
    ("rows", "stored", "--where", '"[=1'),
    ("rows", "stored", "--export", "\udcff\udcfe"),
    ("sweep", "numbered.py", "--out", "new"),
    pytest.param(("entropy", "--model", "", "--limit", "1"), marks=pytest.mark.slow),
    pytest.param(("entropy", "--model", "broken.gguf", "--limit", "1"), marks=pytest.mark.slow),
    ("explore", "--host", "a..b"),
    ("explore", "--host", ""),
    ("learn", "--n", "2000000000", "--out", "new"),
    ("learn", "--batch", "2000000000", "--out", "new"),
    ("learn", "--set", "heads=4000000000", "--out", "new"),
    ("learn", "--set", "numbers_per_head=4000000000", "--out", "new"),
    ("learn", "--set", f"heads={10**400}", "--out", "new"),
    ("learn", "--set", "numbers_per_head=400000000", "--steps", "3", "--out", "new"),
    ("learn", "--set", "heads=30000000", "--steps", "3", "--out", "new"),
    ("learn", "--set", "numbers_per_head=20000000", "--steps", "100000", "--out", "new"),
    ("learn", "--recipe", "concave", "--k-at-most", "4000000000", "--out", "new"),
    ("learn", "--engine", "nope", "--out", "new"),
    ("learn", "--out", ""),
    ("learn", "--set", "steps=-1", "--out", "new"),
    ("learn", "--set", "learning_rate=-0.1", "--out", "new"),
    ("learn", "--engine", "enumerate", "--n", "40", "--recipe", "as-coded", "--out", "new/deeper"),
    ("chain", "--learning-rate", "inf"),
    ("compare", "--out", ""),
    ("compare", "--own", ""),
    ("compare", "--own", "latin.py", "--out", "new"),
    ("compare", "--own", "exits.py", "--out", "new"),
    ("compare", "--own", "unnamed.py", "MLP, SGD", "--scale", "smoke", "--out", "new"),
    ("chain", "--width", "2000", "--steps", "100000"),
    ("chain", "--runs", "2147483647"),
]


@pytest.mark.parametrize("command", REFUSED, ids=lambda command: ascii(" ".join(command))[:60])
def test_one_sentence_exit_code_2_and_no_folder(workshop, command):
    done = ended_here(command, workshop)
    assert (done.code, done.made, done.printed) == (2, (), "")
    said = [line for line in done.errors.splitlines() if line and not line.startswith(("Usage:", "Try "))]
    assert len(said) == 1, done.errors


def test_what_fits_into_memory_and_takes_days_is_refused(workshop, monkeypatch):
    monkeypatch.setattr("parityscope.apps.cli.application._free_memory", lambda: float("inf"))
    done = ended_here(("learn", "--set", "numbers_per_head=200000000", "--out", "new"), workshop)
    assert (done.code, done.made) == (2, ())
    assert "may take about 30 hours, and at most 24 are begun" in done.errors


def test_hundreds_of_heads_are_neither_printed_nor_drawn_one_by_one(tmp_path):
    done = ended_here(("learn", "--n", "8", "--k", "2", "--steps", "1", "--set", "heads=300", "--out", "run"), tmp_path)
    assert done.code == 0
    assert "\n260 more\n" in done.printed
    drawn = (tmp_path / "run" / "attention.png").read_bytes()
    assert int.from_bytes(drawn[20:24]) < 5000  # its height in dots


# Tables


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("share", "least"), [(47, 10), pytest.param(1, 300, marks=LONG)])
def test_odd_tables(tmp_path, share, least):
    def fit(name, content, number):
        tables.put(tmp_path, name, content)
        drawn = ("--out", "out") if number % 5 == 0 or b"\x1b" in content else ()
        done = ended_here(("fit", name, *FIT, *drawn), tmp_path)
        wrong = done.wrong((0, 2)) or ("an escape is printed" if "\x1b" in done.printed + done.errors else None)
        if wrong is None and done.code == 0:
            wrong = ended_here(("predict", "model.json", name), tmp_path).wrong((0, 2))
        page = tmp_path / "out" / "report.html"
        if page.exists() and "\x1b" in page.read_text():
            wrong = "an escape is in the report"
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        (tmp_path / "model.json").unlink(missing_ok=True)
        return wrong

    odd = list(enumerate(tables.odd_tables()))
    found = counted(
        (
            f"{number} {name} {content[:40]!r}",
            lambda name=name, content=content, number=number: fit(name, content, number),
        )
        for number, (name, content) in sample(odd, share, 3)
    )
    assert_nothing_wrong(found, least)


# Saved models


@pytest.mark.parametrize(("share", "least"), [(29, 15), pytest.param(1, 70, marks=LONG)])
def test_damaged_models(workshop, tmp_path, share, least):
    shutil.copy(workshop / "faults.csv", tmp_path)
    content = (workshop / "model.json").read_bytes()
    (tmp_path / "model.json").write_bytes(content)
    assert ended_here(("predict", "model.json", "faults.csv"), tmp_path).code == 0

    def predict(damaged):
        (tmp_path / "model.json").write_bytes(damaged)
        return ended_here(("predict", "model.json", "faults.csv"), tmp_path).wrong((2,))

    models = [one for one in saved_models.damaged(content) if one[1] != content]
    found = counted((name, lambda damaged=damaged: predict(damaged)) for name, damaged in sample(models, share))
    assert_nothing_wrong(found, least)


@pytest.mark.parametrize(("share", "least"), [(47, 8), pytest.param(1, 300, marks=LONG)])
def test_edited_models(workshop, tmp_path, share, least):
    """Checksums are no protection against forgery: every value that a forger could write is looked at."""
    shutil.copy(workshop / "faults.csv", tmp_path)

    def predict(edited):
        (tmp_path / "model.json").write_bytes(edited)
        return ended_here(("predict", "model.json", "faults.csv"), tmp_path).wrong((0, 2))

    models = saved_models.edited((workshop / "model.json").read_bytes())
    found = counted((name, lambda edited=edited: predict(edited)) for name, edited in sample(models, share))
    assert_nothing_wrong(found, least)


# Checkpoints


@pytest.mark.parametrize(("share", "least"), [(17, 5), pytest.param(1, 60, marks=LONG)])
def test_damaged_checkpoints(tmp_path, share, least):
    assert ended_here(checkpoints.LEARN, tmp_path).code == 0
    weights, content = tmp_path / "run" / "weights.safetensors", (tmp_path / "run" / "weights.safetensors").read_bytes()

    def resume(damaged):
        weights.write_bytes(damaged)
        wrong = ended_here((*checkpoints.LEARN, "--resume"), tmp_path).wrong((2,))
        return wrong or (None if weights.read_bytes() == damaged else "refused, and changed the file")

    found = counted(
        (name, lambda damaged=damaged: resume(damaged))
        for name, damaged in sample(checkpoints.damaged(content), share, 2)
    )
    assert_nothing_wrong(found, least)
    weights.write_bytes(content)
    before = json.loads((tmp_path / "run" / "run.json").read_text())["runs"]
    assert ended_here((*checkpoints.LEARN, "--resume"), tmp_path).code == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["runs"] == before


# Requests


@pytest.mark.parametrize(("share", "least"), [(23, 20), pytest.param(1, 500, marks=LONG)])
def test_bad_requests(share, least):
    pytest.importorskip("fastapi", reason="the explorer's web server is not installed")
    from attacks.requests import answered, bad_requests
    from explorer_server import running_explorer

    with running_explorer() as server:
        found = counted(
            (content[:80], lambda content=content: answered(server.port, content))
            for content in sample(bad_requests(), share, 1)
        )
        assert_nothing_wrong(found, least)
        assert server.json("/api/snippet", {"n": 16})[0] == 200
        assert server.wait_for_health(questions=0, searches=0)["searches"] == 0
