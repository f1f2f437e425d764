"""Your data: a table is sent, searched and compared with shuffled classes; nothing of it is left on the disk."""

import json
import os
import tempfile
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the explorer's web server is not installed")

from explorer_server import running_explorer
from parityscope.apps.explorer.your_data import FitSettings, Tables


@pytest.fixture(scope="module")
def server():
    with running_explorer() as running:
        yield running


@pytest.fixture(scope="module")
def faults():
    random = np.random.RandomState(0)
    frame = pd.DataFrame(random.randint(2, size=(400, 5)), columns=list("abcde"))
    frame["shift"] = random.choice(["day", "night"], size=400)
    frame["fault"] = np.where((frame["b"] == 1) ^ (frame["shift"] == "night") ^ (random.rand(400) < 0.1), "yes", "no")
    return frame.to_csv(index=False).encode()


def send(server, content, name="faults.csv", **headers):
    request = urllib.request.Request(f"{server.url}/api/table?name={name}", content, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_table_is_sent_and_searched_and_nothing_is_left(server, faults, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    status, sent = send(server, faults)
    assert status == 200
    assert (sent["rows"], sent["features"], sent["target"], sent["missing"]) == (400, 7, "fault", {})
    assert os.listdir(tmp_path) == []
    question = {"table": sent["table"], "target": "fault", "max_k": 2, "seconds": 5}
    status, found = server.json("/api/fit", question)
    assert status == 200
    assert [one["columns"] for one in found["interactions"]] == [["b", "shift"]]
    assert found["interactions"][0]["p"].startswith("p = ")
    assert found["guarantee"].startswith("given the terms above, any further parity")
    assert found["command"] == "parityscope fit faults.csv --target fault --max-k 2 --budget 5s"
    assert server.json(f"/api/table/{sent['table']}/progress")[0] == 200
    assert server.json(f"/api/table/{sent['table']}")[1] == sent
    status, compared = server.json("/api/shuffled", {**question, "k": 2, "first": 10, "count": 4})
    assert status == 200
    assert len(compared["shuffled"]) == 4
    assert compared["observed"] > 2 * max(compared["shuffled"])


def test_the_code_that_is_shown_finds_the_same(server, faults, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faults.csv").write_bytes(faults)
    _, sent = send(server, faults)
    question = {
        "table": sent["table"],
        "target": "fault",
        "positive": "no",
        "missing": "median",
        "max_k": 2,
        "seconds": 5,
    }
    found = server.json("/api/fit", question)[1]
    namespace = {"print": lambda *_: None}
    exec(compile(found["snippet"], "snippet", "exec"), namespace)
    assert namespace["fitted"].bits == found["bits"]
    assert list(namespace["fitted"].classes) == found["classes"] == ["yes", "no"]
    compared = server.json("/api/shuffled", {**question, "k": 2, "count": 3})[1]
    exec(compile(compared["snippet"].replace("range(50)", "range(3)"), "snippet", "exec"), namespace)
    assert list(namespace["compared"].shuffled) == compared["shuffled"]


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (b"", "faults.csv", "faults.csv is empty"),
        (b"a,a\n1,2\n", "faults.csv", "faults.csv has several columns called 'a': give each a name of its own"),
        (b"a,b\n1,2\n", "faults.exe", "faults.exe is of an unknown format: drop a .csv, .tsv, .tab, .txt file"),
        (b"a,b\n1,2\n", "..%2F..%2Fetc%2Fpasswd", "passwd is of an unknown format: drop a .csv, .tsv, .tab, .txt file"),
        (b'a,b\n"1,2\n', "x.csv", "x.csv cannot be read as csv: "),
    ],
)
def test_files_that_cannot_be_read_are_a_sentence_with_their_own_name(server, content, name, sentence):
    status, answer = send(server, content, name)
    assert status == 422
    assert answer["message"].startswith(sentence)
    assert "/tmp" not in answer["message"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"target": "falt"}, "faults.csv has no column 'falt': did you mean 'fault'"),
        ({"seconds": 3600}, "seconds = 3600: "),
        ({"max_k": 0}, "max_k = 0: "),
        ({"table": "guessed"}, "this table is no longer kept: choose the file again"),
        ({"path": "/etc/passwd"}, "there is no setting 'path'"),
        ({"positive": "maybe"}, "fault has no class 'maybe': it has no and yes"),
    ],
)
def test_bad_questions_are_a_sentence(server, faults, change, sentence):
    _, sent = send(server, faults)
    status, answer = server.json("/api/fit", {"table": sent["table"], "target": "fault", **change})
    assert (status, answer["message"][: len(sentence)]) == (422, sentence)


def test_only_the_last_tables_are_kept():
    tables = Tables()
    keys = [tables.take("t.csv", b"a,b\n1,2\n2,1\n")["table"] for _ in range(2)]
    tables.about(keys[0])  # looked at, so the other one is older now
    third = tables.take("t.csv", b"a,b\n1,2\n2,1\n")["table"]
    assert list(tables.kept) == [keys[0], third]


def test_settings_are_those_of_the_command():
    shown = FitSettings(table="x", target="y", positive="a b", missing="drop", seed=3)
    assert shown.options() == ", missing='drop', positive='a b'"


def test_the_example_is_a_table_whose_three_switches_are_found(server):
    status, content, headers = server.ask("/example.csv")
    assert (status, headers.get_content_type()) == (200, "text/csv")
    sent = Tables().take("machines.csv", content)
    assert (sent["rows"], sent["target"], sent["missing"]) == (600, "fault", {})
    tables = Tables()
    key = tables.take("machines.csv", content)["table"]
    (found,) = tables.fit(FitSettings(table=key, target="fault"))["interactions"]
    assert set(found["columns"]) == {"valve", "pump", "shift"}


def test_a_search_that_breaks_is_a_sentence_too(server, faults, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("inside")

    key = send(server, faults)[1]["table"]
    monkeypatch.setattr("parityscope.apps.explorer.your_data.answer_for", broken)
    status, answer = server.json("/api/fit", {"table": key, "target": "fault"})
    assert status == 500
    assert answer["message"].startswith("this failed inside (ZeroDivisionError): the terminal")
