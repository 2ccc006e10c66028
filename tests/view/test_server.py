"""The server: on this machine, for this machine, and nothing but its page."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.errors import LakeError, UsageError
from earshot.view.page import page
from earshot.view.runs import ReplayedRun, RunEntry, WorldEntry
from earshot.view.server import PageServer
from earshot.view.world import World


class Stub:
    """A catalogue with nothing on it but a title and an answer."""

    def worlds(self) -> list[WorldEntry]:
        return [WorldEntry("s", "a <b> & 'c'", [RunEntry("p", "p")])]

    def world(self, key: str) -> World:
        raise KeyError(key)

    def run(self, world: str, key: str) -> ReplayedRun:
        raise LakeError("the lake is gone")

    def why(self, world: str, run: str, event: str, node: str) -> Mapping[str, Any]:
        return {"asked": [world, run, event, node]}

    def updates(self) -> Mapping[str, Any] | None:
        return {"batch": 3, "figures": []}


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    with PageServer(Stub(), "t") as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(server: PageServer, path: str, **headers: str) -> tuple[int, bytes, Mapping[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, dict(answer.getheaders())


def test_it_listens_on_this_machine_only(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1", "127.0.0.1.evil.example:1"])
def test_it_answers_to_its_own_name_only(server: PageServer, host: str) -> None:
    assert get(server, "/", Host=host)[0] == 403
    assert get(server, "/why?world=s&run=p&event=e&node=n", Host=host)[0] == 403


def test_it_answers_its_own_page_only(server: PageServer) -> None:
    assert get(server, "/updates", **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert get(server, "/updates", **{"Sec-Fetch-Site": "same-origin"})[0] == 200


@pytest.mark.parametrize("path", ["/static/app.js", "/../../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/x"])
def test_no_file_can_be_asked_for(server: PageServer, path: str) -> None:
    assert get(server, path)[:2] == (404, b"no such address\n")


def test_the_page_comes_with_a_policy_that_lets_nothing_else_run(server: PageServer) -> None:
    status, body, headers = get(server, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert b"a <b>" not in body


def test_answers_and_errors_are_said_plainly(server: PageServer) -> None:
    status, body, _ = get(server, "/why?world=s&run=p&event=e%20%3C&node=%C3%A9")
    assert (status, json.loads(body)) == (200, {"asked": ["s", "p", "e <", "é"]})
    assert get(server, "/why?world=s")[:2] == (400, b"say which run\n")
    assert get(server, "/world?world=none")[:2] == (404, b"there is no 'none'\n")
    assert get(server, "/run?world=s&run=p")[:2] == (500, b"the lake is gone\n")
    assert json.loads(get(server, "/updates")[1]) == {
        "batch": 3,
        "figures": [],
        "worlds": [{"key": "s", "title": "a <b> & 'c'", "runs": [{"key": "p", "title": "p"}]}],
    }


def test_worlds_and_runs_come_packed_and_runs_with_their_world(
    monkeypatch: pytest.MonkeyPatch, server: PageServer
) -> None:
    world = SimpleNamespace(packed=lambda: b"a world")
    run = SimpleNamespace(packed=lambda given: b"a run" if given is world else b"")
    monkeypatch.setattr(server.catalogue, "world", {"w": world}.__getitem__, raising=False)
    monkeypatch.setattr(server.catalogue, "run", lambda *given: {("w", ""): run}[given], raising=False)
    for path, body in (("/world?world=w&world=x", b"a world"), ("/run?world=w&run=", b"a run")):
        status, found, headers = get(server, path)
        assert (status, found, headers["Content-Type"]) == (200, body, "application/octet-stream")
        assert headers["Content-Length"] == str(len(body))


def test_a_finished_run_has_no_updates(monkeypatch: pytest.MonkeyPatch, server: PageServer) -> None:
    monkeypatch.setattr(server.catalogue, "updates", lambda: None, raising=False)
    assert get(server, "/updates")[:2] == (200, b"null")


def test_every_answer_forbids_frames_caches_and_guesses(server: PageServer) -> None:
    for path in ("/", "/x"):
        headers = get(server, path)[2]
        assert {name: headers[name] for name in headers if name.startswith(("X-", "C")) and "Policy" not in name} == {
            "Content-Type": headers["Content-Type"], "Content-Length": headers["Content-Length"],
            "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
        }  # fmt: skip
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "connect-src 'self'" in headers["Content-Security-Policy"]
    assert server.daemon_threads, "an open connection does not hold up the end"


def test_a_port_in_use_is_said(server: PageServer) -> None:
    with pytest.raises(UsageError, match="choose another with --port"):
        PageServer(Stub(), "t", server.server_port)


def test_data_cannot_end_its_element() -> None:
    document = page("</script><b>", [{"key": "</script>"}], {"/world?world=</script>": b"</script>"}, served=False)
    assert document.count("</script>") == document.count("<script") == 3
    assert "connect-src 'none'" in document
