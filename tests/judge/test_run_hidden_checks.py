"""How a check ends is what the attempt did, or a fault of the check's author."""

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from manyheads.box.connection import AttemptEnded, End
from manyheads.box.worker.messages import Output, Raised, Reply
from manyheads.checks.hidden_check import FAILED_ITSELF, CheckOutcome
from manyheads.checks.runner import Exchange, LocalRecordingRunner, LocalRunner
from manyheads.course import load_course
from manyheads.judge.collect_checks import CheckRun, GraderFault, collect_checks
from manyheads.judge.run_hidden_checks import HiddenChecks
from tests.make import run

CHECKS = '''
import pytest
from manyheads.checks import Layer, check, expect


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
def test_has_parameters(attempt, n):
    """has parameters"""
    expect(n == 3 and attempt.call("f").output == 7, "not 7")
'''
ENDS = {
    "passes": ("passed", ""),
    "fails": ("failed", "seen"),
    "raises": ("error", "line 3"),
    "dies": ("timeout", "No answer."),
    "skips": ("skipped", "not here"),
    "has_parameters[3]": ("passed", ""),
    "is_wrong_itself": ("skipped", "not your fault"),
}


class Attempt:
    """An attempt that answers f, raises in g and dies in h."""

    device, check = "cpu", ""

    def __init__(self):
        self.asked = []
        self.transcript = []

    def execute_all(self, questions):
        return [self.answer(question.check, question.call) for question in questions]

    def answer(self, check, call):
        self.asked.append((check, call.subject))
        if call.subject == "g":
            return Reply(raised=Raised("KeyError", ("KeyError",), "", "call", 3))
        if call.subject == "h":
            return AttemptEnded(End.TIMEOUT, "No answer.")
        reply = Reply(outputs=(Output("tensor", torch.tensor(7.0), "float32", "cpu", ()),))
        self.transcript.append(Exchange(check, call, reply))
        return reply


@pytest.fixture(scope="module")
def outcomes_and_calls(tmp_path_factory):
    """The outcomes of two runs, by name, and what the first asked."""
    file = tmp_path_factory.mktemp("checks") / "test_endings.py"
    file.write_text(CHECKS)
    attempt, checks = Attempt(), HiddenChecks([file])
    run = CheckRun(attempt, LocalRunner({"f": lambda: torch.tensor(7.0)}), b"s", ("exercise",))
    outcomes = checks.run(file, run)
    calls = list(attempt.asked)
    assert checks.run(file, run) == outcomes
    return {o.id: o for o in outcomes}, calls


@pytest.mark.parametrize("check", ENDS)
def test_how_it_ends(outcomes_and_calls, check):
    outcome, evidence = ENDS[check]
    result = outcomes_and_calls[0][check]
    assert result.outcome == outcome
    assert evidence in result.evidence


def test_what_it_proves_and_what_is_a_fault_of_the_grader(outcomes_and_calls):
    outcomes, _ = outcomes_and_calls
    assert outcomes["fails"].suspect == "suspect"
    assert "ZeroDivisionError" in outcomes["is_wrong_itself"].fault
    assert not outcomes["passes"].fault


def test_the_attempt_knows_which_check_asks(outcomes_and_calls):
    _, calls = outcomes_and_calls
    assert calls == [("passes", "f"), ("raises", "g"), ("dies", "h"), ("has_parameters[3]", "f")]


HEAD = (
    "import time\nimport pytest\nfrom manyheads.checks import Layer, check\n\n"
    "marked = check(points=1, layer=Layer.SHAPE)\n"
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(
            "1 / 0",
            "grader/checks/test_f.py:7: ZeroDivisionError: division by zero. Next: ",
            id="a file that cannot be imported",
        ),
        pytest.param(
            "def test_f(attempt)\n    'f'",
            "grader/checks/test_f.py:7: SyntaxError: expected ':'. Next: ",
            id="a file that is no Python",
        ),
        pytest.param(
            "from manyheads.checks import chek",
            "grader/checks/test_f.py:7: ImportError: cannot import name 'chek'",
            id="a name that there is not",
        ),
        pytest.param(
            "from ._shared import POINTS",
            "grader/checks/_shared.py:2: NameError: name 'PIONTS'",
            id="a neighbour that fails",
        ),
        pytest.param(
            "PRECONDITIONS = ['f']\n@marked\ndef test_f(attempt):\n    'f'",
            "test_f.py: PRECONDITIONS needs to be a dict of generators, by functions' names",
            id="conditions as a list",
        ),
        pytest.param(
            "PRECONDITIONS = {'f': None}\n@marked\ndef test_f(attempt):\n    'f'",
            "PRECONDITIONS needs to be a dict of generators",
            id="a condition that is none",
        ),
        pytest.param(
            "check(layer=Layer.SHAPE)",
            ":7: TypeError: check() missing 1 required positional argument: 'points'",
            id="points that are missing",
        ),
        pytest.param(
            "check(points=-1, layer=Layer.SHAPE)",
            ":7: ValueError: points=-1: a check gives 0 points or more",
            id="negative points",
        ),
        pytest.param(
            "check(points='2', layer=Layer.SHAPE)",
            ":7: ValueError: points='2': a check gives",
            id="points as a text",
        ),
        pytest.param(
            "check(points=1, layer='value')",
            ":7: ValueError: layer='value': a check has one of shape, finite, causality, values",
            id="a layer that is none",
        ),
        pytest.param(
            'def test_f(attempt):\n    "f"', "needs to be a function with @check", id="no points"
        ),
        pytest.param(
            "@marked\ndef test_f(attempt):\n    pass",
            "and a docstring",
            id="no sentence for the student",
        ),
        pytest.param(
            '@marked\ndef test_f(attempt, tmp_path):\n    "f"',
            "asks for tmp_path: a check is given attempt, reference, draw and the fixtures of its",
            id="a fixture of pytest's",
        ),
        pytest.param(
            "@pytest.fixture\ndef x(tmp_path):\n    pass\n"
            '@marked\ndef test_f(attempt, x):\n    "f"',
            "asks for tmp_path: a check is given attempt, reference, draw and the fixtures of its",
            id="a fixture that needs one of pytest's",
        ),
        pytest.param(
            '@pytest.fixture\ndef x(draw):\n    yield draw(3)\n@marked\ndef test_f(x):\n    "f"',
            "test_f: its fixture x yields: let it return",
            id="a fixture that yields",
        ),
        pytest.param(
            "CONTRACT = [lambda attempt: 0]",
            "<lambda> needs to be a function with @check",
            id="a contract of no checks",
        ),
    ],
)
def test_what_is_no_check_is_refused_in_one_sentence(tmp_path, text, says):
    folder = tmp_path / "grader" / "checks"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "_shared.py").write_text("# shared\nPOINTS = PIONTS\n")
    (folder / "test_f.py").write_text(f"{HEAD}\n{text}\n")
    with pytest.raises(GraderFault, match=re.escape(says)) as caught:
        HiddenChecks([folder / "test_f.py"])
    assert "Next: mend it, then run the same command" in str(caught.value)


def test_checks_import_what_stands_beside_them_in_their_own_course(tmp_path):
    check = "@check(points=POINTS, layer=Layer.SHAPE)\ndef test_f(attempt):\n    'f'\n"
    for course, points in (("one", 1), ("two", 2)):
        folder = tmp_path / course / "checks"
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "_shared.py").write_text(f"POINTS = {points}\n")
        file = folder / "test_f.py"
        file.write_text(
            f"from manyheads.checks import Layer, check\n\nfrom ._shared import POINTS\n\n{check}"
        )
        assert [result.points for result in HiddenChecks([file]).initial_outcomes(file)] == [points]


UNFIT = '''
from manyheads.checks import Layer, check, expect

@check(points=1, layer=Layer.VALUES)
def test_looks_at_the_last_token(attempt, reference, draw):
    """looks at the last token"""
    x = draw(2, 3, 4)
    out = attempt.call("f", x).output
    expect((out[:, 2] - x[:, 2]).abs().max() == 0, "the last token differs")
'''


def unfit(file: Path, f: Callable[[torch.Tensor], object], checks: str = UNFIT) -> CheckOutcome:
    """What becomes of a check that stumbles over the answer of an attempt that does this."""
    file.write_text(checks)
    reference = LocalRunner({"f": lambda x: x}, only_values=True)
    (outcome,) = HiddenChecks([file]).run(
        file, CheckRun(LocalRecordingRunner({"f": f}), reference, b"secret", ("f",))
    )
    return outcome


@pytest.mark.parametrize(
    ("f", "says"),
    [
        pytest.param(
            lambda x: x.sum(), "the output should have shape (2, 3, 4); yours has ()", id="a number"
        ),
        pytest.param(
            lambda x: x.mean(1),
            "the output should have shape (2, 3, 4); yours has (2, 4)",
            id="no tokens",
        ),
        pytest.param(
            lambda x: x > 0, "a tensor of float64 was expected; yours is of bool", id="bools"
        ),
    ],
)
def test_an_answer_of_another_shape_or_kind_is_told_and_is_no_fault_of_the_grader(
    tmp_path, f, says
):
    result = unfit(tmp_path / "test_f.py", f)
    assert (result.outcome, result.evidence, result.fault) == ("failed", says, "")


def test_a_check_that_breaks_over_an_answer_like_the_references_is_broken_itself(tmp_path):
    result = unfit(
        tmp_path / "test_f.py", lambda x: 2 * x, UNFIT.replace("out[:, 2]", "out[:, 2] / (1 // 0)")
    )
    assert (result.outcome, result.evidence) == ("skipped", FAILED_ITSELF)
    assert "ZeroDivisionError" in result.fault


HANGS = (
    f'{HEAD}\n@pytest.mark.timeout(1)\n@marked\ndef test_f(attempt):\n    "f"\n'
    "    while True: pass\n"
)
HANGING = """
import torch
from pathlib import Path
from manyheads.checks.runner import LocalRunner
from manyheads.checks.runner import LocalRecordingRunner
from manyheads.judge import run_hidden_checks
from manyheads.judge.collect_checks import CheckRun
from manyheads.judge.run_hidden_checks import HiddenChecks

right = {"f": lambda: torch.tensor(7.0)}
file = Path("test_hangs.py").resolve()
run_hidden_checks.CPU_SECONDS = 0.5
checks = HiddenChecks([file])
checks.run(file, CheckRun(LocalRecordingRunner(right), LocalRunner(right), b"s", ()))
"""


def test_a_judge_whose_check_never_ends_ends_itself_and_says_where(tmp_path):
    (tmp_path / "test_hangs.py").write_text(HANGS)
    judge = run(sys.executable, "-c", HANGING, cwd=tmp_path)
    assert judge.returncode == -signal.SIGPROF
    assert 'test_hangs.py", line 11 in test_f' in judge.stderr


def test_by_hand_pytest_timeout_ends_a_check_that_hangs(tiny_copy):
    checks = tiny_copy / "grader" / "checks" / "test_running_mean.py"
    checks.write_text(HANGS)
    attempt = (tiny_copy / "grader/right/running_mean/loop.py").rename(
        tiny_copy / "running_mean.py"
    )
    alone = "-m pytest -c /dev/null --rootdir .".split()
    byhand = run(sys.executable, *alone, checks, "--attempt", attempt, cwd=tiny_copy)
    output = byhand.stdout + byhand.stderr
    assert (byhand.returncode, "Timeout" in output) == (1, True), output


def test_a_missing_file_of_checks_is_named_with_what_asks_for_it(tiny_copy: Path, capfd) -> None:
    """pytest would say it in words of its own, and find nothing wrong with the other files."""
    (exercise,) = load_course(tiny_copy).exercises
    exercise.checks.unlink()
    with pytest.raises(
        GraderFault,
        match=f"{exercise.checks} is missing, which course.yaml requires. Next: write it",
    ):
        collect_checks([exercise.checks])
    assert capfd.readouterr() == ("", "")


WITH_FIXTURES = '''
import pytest
from manyheads.checks import check, expect, function_contract

SIZES = {"T": [5], "C": [7]}


def arguments(draw):
    return {"f": {"x": draw(2, 3)}}


@check(points=1, layer="shape")
def test_shape(attempt, sizes, x):
    """keeps the shape"""
    expect(attempt.f(x).shape == (sizes.T, sizes.C), "another shape")


CONTRACT = function_contract(arguments, 0.5, dtype=("keeps the dtype", "Which dtype?"), device="")


@check(points=1, layer="values")
def test_last(attempt, x):
    """comes last"""
    expect((attempt.f(x) == x).all(), "other numbers")
'''
CONFTEST = """
import pytest


@pytest.fixture
def sizes(request, draw):
    return draw.sizes(**request.module.SIZES)


@pytest.fixture
def x(draw, sizes):
    return draw(sizes.T, sizes.C)
"""


def with_fixtures(folder, f):
    """The outcomes of checks with fixtures and a contract, for an attempt that does this."""
    (folder / "conftest.py").write_text(CONFTEST)
    file = folder / "test_f.py"
    file.write_text(WITH_FIXTURES)
    run = CheckRun(LocalRecordingRunner({"f": f}), LocalRunner({"f": lambda x: x}), b"s", ("f",))
    return HiddenChecks([file]).run(file, run), run


def test_a_check_gets_the_fixtures_that_its_file_and_the_conftest_declare(tmp_path):
    outcomes, run = with_fixtures(tmp_path, lambda x: x)
    assert {outcome.outcome for outcome in outcomes} == {"passed"}
    assert run.attempt.transcript[0].call.args[0].shape == (5, 7)


def test_a_contract_stands_among_the_checks_where_the_file_has_it(tmp_path):
    outcomes, _ = with_fixtures(tmp_path, lambda x: x.float())
    assert [(o.id, o.title, o.points, o.outcome) for o in outcomes] == [
        ("shape", "keeps the shape", 1, "passed"),
        ("dtype", "keeps the dtype", 0.5, "failed"),
        ("device", "works on the device of its arguments", 0.5, "passed"),
        ("last", "comes last", 1, "passed"),
    ]
    assert outcomes[1].hint == "Which dtype?"
