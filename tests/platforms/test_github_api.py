"""What is written to the hosting service: one comment, found again; one check run; and nothing without the right."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from manyheads.platforms.github_api import Api, ServiceError
from manyheads.platforms.pull_request_files import PullRequest
from manyheads.platforms.pull_request_texts import MARK, Annotation, Conclusion
from manyheads.platforms.report_pull_request import PullRequestReport, write_check_run, write_comment
from tests.workflows.hosted.service import BOT, Service

RIGHTS = {"pull-requests": "write", "checks": "write"}


class Client:
    """Writes to the service at this address, with a token."""

    def __init__(self, address: str, asked: PullRequest) -> None:
        self._api, self._asked = Api(address, "t", asked.repository), asked

    def comment(self, text: str) -> None:
        write_comment(self._api, self._asked, PullRequestReport(Conclusion("neutral", text), text))

    def check_run(self, verdict: Conclusion, text: str, *found: Annotation) -> None:
        write_check_run(self._api, self._asked, PullRequestReport(verdict, text, found))


@pytest.fixture
def client(service: Service, asked: PullRequest) -> Client:
    """A client with the rights of job `report`."""
    service.tokens["t"] = RIGHTS
    service.heads[asked.number] = asked.head
    return Client(f"{service.address}/api/", asked)


def test_the_second_report_takes_the_place_of_the_first(service: Service, client: Client) -> None:
    client.comment("3 / 4")
    client.comment("4 / 4")
    assert service.comments_on(7) == [f"{MARK}\n4 / 4"]


def test_it_is_found_among_hundreds_and_nobody_elses_is_touched(service: Service, client: Client) -> None:
    service.say(7, f"{MARK}\nmine, and forged", "mallory")
    service.say(7, f"quoted: {MARK}", BOT)
    service.say(8, f"{MARK}\nof another pull request", BOT)
    service.say(7, f"{MARK}\nof a deleted account", "")
    for i in range(230):
        service.say(7, f"comment {i}", "ben")
    client.comment("3 / 4")
    for i in range(100):
        service.say(7, f"later comment {i}", "ben")
    client.comment("4 / 4")
    assert service.comments_on(7) == [f"quoted: {MARK}", f"{MARK}\n4 / 4"]
    assert service.comments_on(7, "mallory") == [f"{MARK}\nmine, and forged"]
    assert service.comments_on(8) == [f"{MARK}\nof another pull request"]


def test_a_check_run_stands_on_the_commit_with_its_annotations(service: Service, client: Client) -> None:
    client.check_run(Conclusion("failure", "3 / 4"), "## 3 / 4", Annotation("a.py", 9, "a: 3 / 4", "raised x"))
    (run,) = service.check_runs
    assert (run["name"], run["head_sha"], run["status"]) == ("grade", "a" * 40, "completed")
    assert run["conclusion"] == "failure"
    assert run["output"]["title"] == "3 / 4"
    assert run["output"]["summary"] == "## 3 / 4"
    (annotation,) = run["output"]["annotations"]
    told = {"path": "a.py", "title": "a: 3 / 4", "message": "raised x", "annotation_level": "warning"}
    assert annotation == {**told, "start_line": 9, "end_line": 9}


@pytest.mark.parametrize("rights", [None, {}, {"contents": "read"}, {"pull-requests": "read", "checks": "read"}])
def test_without_the_right_to_write_it_says_what_is_missing(service, client, rights):
    service.tokens.clear()
    service.tokens.update({} if rights is None else {"t": rights})
    for write in (lambda: client.comment("x"), lambda: client.check_run(Conclusion("success", "x"), "x")):
        with pytest.raises(ServiceError, match=r"was refused \(40[13]\)\. Next: look at this job's permissions"):
            write()
    assert (service.comments, service.check_runs) == ([], [])


class _Elsewhere(BaseHTTPRequestHandler):
    """Sends whoever asks to the service, where the token would be read."""

    target = ""

    def do_GET(self) -> None:
        self.send_response(307)
        self.send_header("Location", self.target + self.path)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def elsewhere(service: Service) -> Iterator[str]:
    """The address of a server that sends everybody to another one."""
    handler = type("Handler", (_Elsewhere,), {"target": service.address})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_token_follows_no_redirect(service: Service, elsewhere: str, asked: PullRequest) -> None:
    with pytest.raises(ServiceError, match=r"was refused \(307\)"):
        Client(f"{elsewhere}/api", asked).comment("x")
    assert service.requests == []


def test_a_service_that_does_not_answer_is_an_error(service: Service, asked: PullRequest) -> None:
    nobody = "http://127.0.0.1:9/api"
    with pytest.raises(ServiceError, match="had no answer"):
        Client(nobody, asked).comment("x")
