"""The server as a browser meets it: live commands, questions, what it refuses, what it leaves behind."""

import json
import socket
import time
from contextlib import suppress

import pytest

pytest.importorskip("fastapi", reason="the explorer's web server is not installed")
websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")

from explorer_server import running_explorer  # noqa: E402


@pytest.fixture(scope="module")
def server():
    with running_explorer() as running:
        yield running


class Live:
    """A browser's end of the socket."""

    def __init__(self, server, **options):
        settings = {"origin": server.url, "max_size": 2**23, "ping_interval": None, **options}
        # Tests close it themselves, some of them rudely.
        self.socket = websockets.connect(f"ws://127.0.0.1:{server.port}/live", **settings).__enter__()

    def do(self, command, **fields):
        self.socket.send(json.dumps({"do": command, **fields}))

    def next(self, kind=None):
        while True:
            message = json.loads(self.socket.recv(timeout=60))
            if message["type"] == "frame":
                self.do("taken")
            if kind in (None, message["type"]):
                return message

    def until_rest(self):
        frames = []
        while (message := self.next())["type"] != "resting":
            frames.append(message)
        return [message for message in frames if message["type"] == "frame"]


def test_train_pause_step_and_reset(server):
    live = Live(server)
    live.do("start", settings={"n": 20, "support": [7, 10, 17], "seed": 1})
    assert live.next("ready")["support"] == [7, 10, 17]
    assert live.until_rest()[-1]["step"] == 0
    live.do("train", pace=1, until=1)
    assert live.until_rest()[-1]["step"] == 1
    live.do("train", pace=3)
    paused_after = [live.next("frame")["step"] for _ in range(3)][-1]
    live.do("pause")
    stopped = ([frame["step"] for frame in live.until_rest()] or [paused_after])[-1]
    assert stopped <= paused_after + 6  # what was under way when the pause arrived
    live.do("train", pace=500)
    last = live.until_rest()[-1]
    assert last["done"]
    assert last["learned"]
    assert last["found"] == [7, 10, 17]
    live.do("start", settings={"n": 20, "support": [7, 10, 17], "seed": 1})
    assert live.until_rest()[-1]["step"] == 0
    live.socket.close()


def test_commands_sent_while_a_training_is_being_made_are_kept(server):
    live = Live(server)
    for seed in range(5):
        live.do("start", settings={"n": 16, "seed": seed})
        time.sleep(0.002 * seed)
        live.do("train", pace=500)
        while (message := live.next())["type"] != "frame" or not message["done"]:
            assert message["type"] != "error"
    live.socket.close()


def test_a_shared_state_is_reached_again_with_the_step_that_was_looked_at(server):
    live = Live(server)
    frames = []
    for _ in range(2):
        live.do("start", settings={"n": 16, "k": 3, "recipe": "repaired"}, until=23, stops=[11])
        frames.append({frame["step"]: frame for frame in live.until_rest()})
    live.socket.close()
    assert frames[0][11] == frames[1][11]
    assert frames[0][23] == frames[1][23]
    assert max(frames[0]) == 23


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ('{"do": "start", "settings": {"n": 5, "k": 9}}', "k must lie between 1 and n = 5, got 9"),
        ('{"do": "train"}', "there is no training yet"),
        ('{"do": "train", "pace": 0}', "pace = 0"),
        ('{"do": "dance"}', "unknown command 'dance'"),
        ('{"do": "start", "path": "/etc/passwd"}', "there is no setting 'path'"),
        ("[1]", "a command is an object"),
        ("{", "a command is a JSON object"),
    ],
)
def test_a_bad_command_is_answered_and_the_connection_goes_on(server, message, sentence):
    live = Live(server)
    live.socket.send(message)
    assert sentence in live.next("error")["message"]
    live.do("start", settings={"n": 8, "k": 2})
    assert live.until_rest()[-1]["step"] == 0
    live.socket.close()


def test_a_client_that_vanishes_in_the_middle_leaves_nothing(server):
    before = server.wait_for_health(clients=0, trainings=0)
    lives = [Live(server) for _ in range(4)]
    for seed, live in enumerate(lives):
        live.do("start", settings={"n": 16, "recipe": "as-coded", "seed": seed})
        live.do("train", pace=1)
        live.next("frame")
    assert server.json("/api/health")[1]["clients"] == 4
    for live in lives:
        # No closing handshake: the cable is pulled.
        live.socket.socket.shutdown(socket.SHUT_RDWR)
    assert server.wait_for_health(clients=0, trainings=0, tasks=before["tasks"]) == before


def test_a_client_that_takes_no_frames_holds_up_nobody(server):
    stuck, quick = Live(server), Live(server)
    stuck.do("start", settings={"n": 16, "recipe": "as-coded"})
    stuck.do("train", pace=1)  # and never says that a frame was taken
    quick.do("start", settings={"n": 16})
    quick.do("train", pace=50)
    while not quick.next("frame")["done"]:
        pass
    steps = []
    stuck.socket.recv(timeout=20)
    with suppress(TimeoutError):
        for _ in range(10):
            steps.append(json.loads(stuck.socket.recv(timeout=1)).get("step", 0))
    assert max(steps, default=0) <= 1
    stuck.socket.close()
    quick.socket.close()


def test_a_training_that_breaks_is_told_and_the_connection_goes_on(server, monkeypatch):
    from parityscope.apps.explorer import live as live_module

    def broken(*_, **__):
        raise RuntimeError("a cable was pulled")

    live = Live(server)
    with monkeypatch.context() as patch:
        patch.setattr(live_module, "frame", broken)
        live.do("start", settings={"n": 8, "k": 2})
        assert live.next("error")["message"] == "the training broke: RuntimeError: a cable was pulled"
        live.next("resting")
    live.do("start", settings={"n": 8, "k": 2})
    assert live.until_rest()[-1]["step"] == 0
    live.socket.close()


@pytest.mark.parametrize("origin", ["http://example.com", "http://127.0.0.1:1", "null"])
def test_pages_of_other_origins_get_no_socket_and_no_answer(server, origin):
    with pytest.raises(Exception, match="403"):
        Live(server, origin=origin)
    assert server.ask("/api/about", headers={"Origin": origin})[0] == 403


def test_other_names_for_this_address_are_not_answered(server):
    for name in ("localhost", f"localhost:{server.port}", "[::1]:8321"):
        assert server.ask("/api/about", headers={"Host": name})[0] == 200
    assert server.ask("/", headers={"Host": "rebound.example.com"})[0] == 400
    rebound = {"Host": f"rebound.example.com:{server.port}", "Origin": f"http://rebound.example.com:{server.port}"}
    assert server.ask("/api/snippet", {"n": 16}, headers=rebound)[0] == 400


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/api/results/..%2f..%2fstore.sqlite",
        "/api/results/%2fetc%2fpasswd/figure.svg",
    ],
)
def test_no_path_leads_out(server, path):
    status, content, _ = server.ask(path)
    assert status in (404, 405, 422)
    assert b"import" not in content
    assert b"root:" not in content


def test_the_page_and_its_parts_come_from_here_only(server):
    status, page, headers = server.ask("/")
    assert status == 200
    assert b"//" not in page.replace(b"<!doctype", b"").replace(b"http://www.w3.org", b"")
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    status, script, _ = server.ask("/plotly.js")
    assert status == 200
    assert len(script) > 1e6


def test_questions_are_answered_or_refused_in_a_sentence(server):
    status, answer = server.json("/api/one-step", {"n": 300, "k": 2})
    assert status == 200
    assert answer["found"] == answer["support"]
    for path, body, sentence in [
        ("/api/one-step", {"n": 10_001}, "n = 10001"),
        ("/api/landscape", {"n": 15}, "drawn up to n = 14, got 15"),
        ("/api/landscape", {"recipe": "bounded"}, "on the circle only"),
        ("/api/landscape", {"first": 1, "second": 1}, "choose two different heads"),
        ("/api/polytope", {"n": 61}, "n = 61"),
        ("/api/chain", {"n": 6, "bits": [0, 1]}, "bits must be 6 zeros and ones"),
        ("/api/chain", {"n": 4, "k": 5}, "k must lie between 1 and n = 4"),
        ("/api/tree", {"k": 6}, "k = 2, 4, 8, …, got k = 6"),
        ("/api/tree", {"d": 4, "k": 8}, "k must lie between 1 and n = 4"),
        ("/api/tree", {"examples": 8193}, "examples = 8193"),
        ("/api/snippet", {"n": 4, "k": 5}, "k must lie between 1 and n = 4"),
        ("/api/snippet", {"step": -1}, "step must be 0 or more"),
        ("/api/one-step", [1], "a request is a JSON object"),
    ]:
        status, answer = server.json(path, body)
        assert status == 422, path
        assert sentence in answer["message"], path
    assert server.ask("/api/chain", {"bits": [0] * 30_000})[0] == 413


@pytest.mark.slow
def test_without_a_store_results_are_the_shipped_ones(server):
    status, answer = server.json("/api/results/H1-success")
    assert status == 200
    assert answer["scale"] == "reference"
    assert server.json("/api/results/of-nobody")[0] == 422


def test_the_server_stops_with_a_client_connected():
    with running_explorer() as other:
        live = Live(other)
        live.do("start", settings={"n": 16, "recipe": "as-coded"})
        live.do("train", pace=1)
        live.next("frame")
        started = time.monotonic()
    assert time.monotonic() - started < 20
    live.socket.close()
