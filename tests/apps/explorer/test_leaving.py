"""Who leaves is not computed for, who dawdles is not waited for, and other sites' pages are not answered."""

import http.client
import json
import socket
import time

import pytest

pytest.importorskip("fastapi", reason="the explorer's web server is not installed")

from explorer_server import running_explorer
from parityscope.apps.explorer import app as app_module
from parityscope.apps.explorer import your_data


@pytest.fixture(scope="module")
def server():
    with running_explorer() as running:
        yield running


def post(server, path, body, **headers):
    """Send a request and return its connection; nobody has to wait for the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("POST", path, body, headers)
    return connection


def sent_table(server):
    lines = "\n".join(f"{i % 2},{i % 3},{i % 5},{i % 7 % 2}" for i in range(200))
    with post(server, "/api/table?name=t.csv", f"a,b,c,y\n{lines}\n").getresponse() as response:
        return json.loads(response.read())["table"]


def test_a_search_whose_page_was_closed_is_given_up(server, monkeypatch):
    heard = []

    def endless(known, question, seed, progress):
        while True:
            progress(0.5, "searching")
            heard.append(time.monotonic())
            time.sleep(0.01)

    monkeypatch.setattr(your_data, "answer_for", endless)
    asked = json.dumps({"table": sent_table(server), "target": "y"})
    connection = post(server, "/api/fit", asked)
    assert server.wait_for_health(searches=1)["searches"] == 1
    assert server.json("/api/landscape", {})[0] in (200, 422)  # questions have a thread of their own
    connection.close()
    assert server.wait_for_health(searches=0)["searches"] == 0
    time.sleep(0.2)
    count = len(heard)
    time.sleep(0.2)
    assert len(heard) == count, "the search goes on"


def test_more_searches_than_can_wait_are_refused(server, monkeypatch):
    monkeypatch.setitem(app_module._MOST_WAITING, "searches", 0)
    status, answer = server.json("/api/fit", {"table": "x", "target": "y"})
    assert (status, "searches are waiting already" in answer["message"]) == (503, True)


def test_headers_that_do_not_arrive_end_the_connection(server, monkeypatch):
    monkeypatch.setattr(app_module, "_HEADER_SECONDS", 0.3)
    for begun in (b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(begun)
            assert connection.recv(100) in (b"",)


def test_a_body_that_does_not_arrive_is_answered(server, monkeypatch):
    monkeypatch.setattr(app_module, "_BODY_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"POST /api/snippet HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
        assert connection.recv(100).split()[1] == b"408"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/about", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("/api/results", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ("/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ("/api/about", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("/api/about", {"Origin": "http://["}, 403),
        ("/api/about", {"Host": "["}, 400),
        ("/redoc", {}, 404),
        ("/openapi.json", {}, 404),
    ],
)
def test_what_other_sites_may_ask_for(server, path, headers, status):
    assert server.ask(path, headers=headers)[0] == status


def test_nested_json_is_a_sentence(server):
    with post(server, "/api/snippet", "[" * 19_000).getresponse() as response:
        assert (response.status, json.loads(response.read())["message"]) == (422, "a request is a JSON object")
