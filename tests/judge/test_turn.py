"""A check is called as a plain function where it is one, and by pytest's protocol where it is more: the same comes out."""

from __future__ import annotations

import pytest
import torch

from grader.box.connection import AttemptEnded, End
from grader.box.worker.answers import Output, Raised, Reply
from grader.judge.candidate import LocalPerformer
from grader.judge.session import CheckSession
from grader.judge.subject import Exchange
from grader.judge.turn import PlainCheck, Turn

CHECKS = '''
import pytest
from grader.judge import Layer, check, expect


def marked(function):
    function.__doc__ = function.__name__
    return check(points=1, layer=Layer.VALUES)(function)


def passes(attempt, reference, draw):
    assert draw(2).shape == (2,)
    expect(attempt.call("f").output == reference.call("f").output, "differs")


def fails(attempt):
    expect(False, "seen", "suspect")


def raises(attempt):
    attempt.call("g").must_return()


def dies(attempt):
    attempt.call("h")


def skips():
    pytest.skip("not here")


def is_wrong_itself():
    1 / 0


for function in (passes, fails, raises, dies, skips, is_wrong_itself):
    globals()[f"test_{function.__name__}"] = marked(function)


@check(points=1, layer=Layer.VALUES)
@pytest.mark.parametrize("n", [3])
def test_asks_for_more(attempt, n, tmp_path):
    """asks for more"""
    expect(n == 3 and tmp_path.is_dir() and attempt.call("f").output == 7, "not 7")
'''
ENDS = {
    "passes": ("passed", ""),
    "fails": ("failed", "seen"),
    "raises": ("error", "line 3"),
    "dies": ("timeout", "No answer."),
    "skips": ("skipped", "not here"),
    "is_wrong_itself": ("skipped", "not your fault"),
    "asks_for_more[3]": ("passed", ""),
}


class Subject:
    """An attempt that answers f, raises in g and dies in h."""

    device, check = "cpu", ""

    def __init__(self):
        self.asked = []
        self.transcript = []

    def perform_all(self, questions):
        return [self.answer(question) for question in questions]

    def answer(self, question):
        self.check = question.check
        try:
            return self.perform(question.call)
        except AttemptEnded as ended:
            return ended

    def perform(self, call):
        self.asked.append((self.check, call.subject))
        if call.subject == "g":
            return Reply(raised=Raised("KeyError", ("KeyError",), "", "call", 3))
        if call.subject == "h":
            raise AttemptEnded(End.TIMEOUT, "No answer.")
        reply = Reply(outputs=(Output("tensor", torch.tensor(7.0), "float32", "cpu", ()),))
        self.transcript.append(Exchange(self.check, call, reply))
        return reply


def run(file):
    """The outcomes of two turns in one session, by name, and what the first asked."""
    subject = Subject()
    with CheckSession([file]) as session:
        turn = Turn(file, subject, LocalPerformer({"f": lambda: torch.tensor(7.0)}), b"s", ("student",))
        first = session.run(turn)
        asked = list(subject.asked)
        assert session.run(turn) == first
    return {o.id: o for o in first}, asked


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    file = tmp_path_factory.mktemp("plain") / "test_endings.py"
    file.write_text(CHECKS)
    return run(file)


@pytest.fixture(scope="module")
def by_protocol(tmp_path_factory):
    file = tmp_path_factory.mktemp("protocol") / "test_endings_with_limits.py"
    file.write_text(CHECKS + "\npytestmark = pytest.mark.timeout(60)\n")
    return run(file)


@pytest.mark.parametrize("way", ["plain", "by_protocol"])
@pytest.mark.parametrize("check", ENDS)
def test_how_it_ends(request, way, check):
    outcome, evidence = ENDS[check]
    found = request.getfixturevalue(way)[0][check]
    assert found.outcome == outcome
    assert evidence in found.evidence


@pytest.mark.parametrize("way", ["plain", "by_protocol"])
def test_what_it_proves_and_what_is_a_fault_of_the_grader(request, way):
    outcomes, _ = request.getfixturevalue(way)
    assert outcomes["fails"].suspect == "suspect"
    assert "ZeroDivisionError" in outcomes["is_wrong_itself"].fault
    assert not outcomes["passes"].fault


@pytest.mark.parametrize("way", ["plain", "by_protocol"])
def test_the_attempt_knows_which_check_asks(request, way):
    _, asked = request.getfixturevalue(way)
    assert asked == [("passes", "f"), ("raises", "g"), ("dies", "h"), ("asks_for_more[3]", "f")]


def test_only_what_asks_for_more_goes_by_the_protocol(plain, by_protocol, tmp_path, monkeypatch):
    called = []
    real = PlainCheck.call
    monkeypatch.setattr(PlainCheck, "call", lambda self, *given: called.append(self.name) or real(self, *given))
    for name, text in (("test_one", CHECKS), ("test_two", CHECKS + "\npytestmark = pytest.mark.timeout(60)\n")):
        (tmp_path / f"{name}.py").write_text(text)
        run(tmp_path / f"{name}.py")
    assert called == [f"test_{name}" for name in list(ENDS)[:-1]] * 2
