"""The outcome of a hidden check comes from the attempt, or shows a fault of the check's author."""

import os
import re
import signal
import sys

import pytest
import torch

from manyheads.box.connection import AttemptEnded, End
from manyheads.checks.hidden_check import FAILED_ITSELF
from manyheads.checks.runner import LocalRecordingRunner, LocalRunner, namespace_of
from manyheads.course import load_course
from manyheads.judge.collect_checks import CheckRun, GraderFault, collect_checks
from manyheads.judge.run_hidden_checks import Catalogue, HiddenChecks
from tests.make import cases, read_table, run

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


def skips():
    pytest.skip("not here")


def is_wrong_itself():
    1 / 0


for function in (passes, fails, raises, skips, is_wrong_itself):
    globals()[f"test_{function.__name__}"] = marked(function)


@check(points=1, layer=Layer.VALUES)
@pytest.mark.parametrize("n", [3])
def test_has_parameters(attempt, n):
    """has parameters"""
    expect(n == 3 and attempt.call("f").output == 7, "not 7")
'''
EXPECTED_OUTCOMES = {
    "passes": ("passed", ""),
    "fails": ("failed", "seen"),
    "raises": ("error", "raised KeyError"),
    "skips": ("skipped", "not here"),
    "has_parameters[3]": ("passed", ""),
    "is_wrong_itself": ("skipped", "not your fault"),
}


def raise_key_error():
    raise KeyError


def test_the_outcome_of_a_check_depends_on_how_it_ends(tmp_path):
    file = tmp_path / "test_endings.py"
    file.write_text(CHECKS)
    reference = {"f": lambda: torch.tensor(7.0)}
    attempt = LocalRecordingRunner(reference | {"g": raise_key_error})
    checks = HiddenChecks([file])
    run = CheckRun(attempt, LocalRunner(reference), b"s", ("exercise",))
    results = checks.run(file, run)
    calls = [(exchange.check, exchange.call.subject) for exchange in attempt.transcript]
    assert calls == [("passes", "f"), ("raises", "g"), ("has_parameters[3]", "f")]
    outcomes = {result.id: result for result in results}
    assert outcomes.keys() == EXPECTED_OUTCOMES.keys()
    for id_, (outcome, evidence) in EXPECTED_OUTCOMES.items():
        assert outcomes[id_].outcome == outcome
        assert evidence in outcomes[id_].evidence
    assert outcomes["fails"].suspect == "suspect"
    assert "ZeroDivisionError" in outcomes["is_wrong_itself"].fault
    assert not outcomes["passes"].fault
    assert checks.run(file, run) == results, "a second run is equal"
    assert checks.run(file, run, only=["fails"]) == [outcomes["fails"]]


class EndedRunner(LocalRecordingRunner):
    """A runner whose process has ended."""

    def __init__(self, end):
        super().__init__({})
        self.end = end

    def execute_all(self, questions):
        return [AttemptEnded(self.end, "It ended.") for _ in questions]


@pytest.mark.parametrize(("end", "outcome"), [(End.TIMEOUT, "timeout"), (End.CRASHED, "crashed")])
def test_checks_that_call_an_ended_process_have_its_end_as_outcome(tmp_path, end, outcome):
    file = tmp_path / "test_endings.py"
    file.write_text(CHECKS)
    run = CheckRun(EndedRunner(end), LocalRunner({}), b"s", ("exercise",))
    passes, fails, *_ = HiddenChecks([file]).run(file, run)
    assert (passes.outcome, passes.evidence) == (outcome, "It ended.")
    assert (fails.outcome, fails.evidence) == ("failed", "seen")


def test_a_catalogue_runs_the_checks_of_a_course_on_trusted_code(tiny, running_mean):
    catalogue = Catalogue(tiny)
    assert catalogue.conditions(running_mean) == {}
    right = namespace_of(running_mean.solution)
    for reference in (
        catalogue.reference(running_mean),
        catalogue.remembering_reference(running_mean),
    ):
        attempt = LocalRecordingRunner(right)
        outcomes = catalogue.run(running_mean, attempt, reference, b"s", only=["values"])
        assert [(outcome.id, outcome.outcome) for outcome in outcomes] == [("values", "passed")]


REFUSED = read_table("judge/refused_checks.yaml")
HEAD = (
    "import time\nimport pytest\nfrom manyheads.checks import Layer, check\n\n"
    "marked = check(points=1, layer=Layer.SHAPE)\n"
)


@cases("row", REFUSED)
def test_a_file_of_checks_with_a_fault_is_refused(tmp_path, row):
    folder = tmp_path / "grader" / "checks"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "_shared.py").write_text("# shared\nPOINTS = PIONTS\n")
    (folder / "test_f.py").write_text(f"{HEAD}\n{row['text']}\n")
    with pytest.raises(GraderFault, match=re.escape(row["message"])) as caught:
        HiddenChecks([folder / "test_f.py"])
    assert "Next: mend it, then run the same command" in str(caught.value)


CHECKS_OF_DEVICES = '''
from manyheads.checks import Layer, check

@check(points=1, layer=Layer.SHAPE)
def test_anywhere(attempt):
    """is checked anywhere"""

@check(points=0, layer=Layer.HYGIENE, device="cuda")
def test_on_a_gpu(attempt):
    """is checked on a GPU"""
'''


@pytest.mark.parametrize(
    ("device", "ids"), [("cpu", ["anywhere"]), ("cuda", ["anywhere", "on_a_gpu"])]
)
def test_only_checks_for_the_device_are_collected(tmp_path, device, ids):
    file = tmp_path / "test_of_devices.py"
    file.write_text(CHECKS_OF_DEVICES)
    outcomes = HiddenChecks([file], device).initial_outcomes(file)
    assert [outcome.id for outcome in outcomes] == ids


def test_checks_import_the_shared_files_of_their_own_course(tmp_path):
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


def outcome_of_function(file, f, checks=UNFIT):
    """Return the outcome of the checks (their text) for a function f."""
    file.write_text(checks)
    reference = LocalRunner({"f": lambda x: x}, only_values=True)
    (outcome,) = HiddenChecks([file]).run(
        file, CheckRun(LocalRecordingRunner({"f": f}), reference, b"secret", ("f",))
    )
    return outcome


@cases(
    "f, evidence",
    {
        "a number": (lambda x: x.sum(), "the output should have shape (2, 3, 4); yours has ()"),
        "no tokens": (
            lambda x: x.mean(1),
            "the output should have shape (2, 3, 4); yours has (2, 4)",
        ),
        "bools": (lambda x: x > 0, "a tensor of float64 was expected; yours is of bool"),
    },
)
def test_a_check_that_crashes_on_an_answer_of_wrong_form_fails(tmp_path, f, evidence):
    result = outcome_of_function(tmp_path / "test_f.py", f)
    assert (result.outcome, result.evidence, result.fault) == ("failed", evidence, "")


def test_a_check_that_crashes_on_an_answer_of_right_form_is_at_fault(tmp_path):
    result = outcome_of_function(
        tmp_path / "test_f.py", lambda x: 2 * x, UNFIT.replace("out[:, 2]", "out[:, 2] / (1 // 0)")
    )
    assert (result.outcome, result.evidence) == ("skipped", FAILED_ITSELF)
    assert "ZeroDivisionError" in result.fault


HANGS = (
    f'{HEAD}\n@pytest.mark.timeout(1)\n@marked\ndef test_f(attempt):\n    "f"\n'
    "    while True: pass\n"
)
RUN_HANGING_CHECK = """
import torch
from pathlib import Path
from manyheads.checks.runner import LocalRecordingRunner, LocalRunner
from manyheads.judge import run_hidden_checks
from manyheads.judge.collect_checks import CheckRun
from manyheads.judge.run_hidden_checks import HiddenChecks

right = {"f": lambda: torch.tensor(7.0)}
file = Path("test_hangs.py").resolve()
run_hidden_checks.CPU_SECONDS = 0.5
checks = HiddenChecks([file])
checks.run(file, CheckRun(LocalRecordingRunner(right), LocalRunner(right), b"s", ()))
"""


def test_a_judge_with_an_endless_check_ends_and_prints_the_line(tmp_path):
    (tmp_path / "test_hangs.py").write_text(HANGS)
    judge = run(sys.executable, "-c", RUN_HANGING_CHECK, cwd=tmp_path)
    assert judge.returncode == -signal.SIGPROF
    assert 'test_hangs.py", line 11 in test_f' in judge.stderr


def test_pytest_timeout_ends_an_endless_check_that_is_run_by_hand(tiny_copy):
    checks = tiny_copy / "grader" / "checks" / "test_running_mean.py"
    checks.write_text(HANGS)
    attempt = (tiny_copy / "grader/right/running_mean/loop.py").rename(
        tiny_copy / "running_mean.py"
    )
    pytest_options = "-m pytest -c /dev/null --rootdir .".split()
    completed = run(sys.executable, *pytest_options, checks, "--attempt", attempt, cwd=tiny_copy)
    output = completed.stdout + completed.stderr
    assert (completed.returncode, "Timeout" in output) == (1, True), output


@pytest.mark.parametrize("variable", ["PYTEST_ADDOPTS", "PYTEST_PLUGINS"])
def test_pytest_variables_in_the_environment_do_not_reach_the_checks(tiny, monkeypatch, variable):
    options = {"PYTEST_ADDOPTS": "-rfE", "PYTEST_PLUGINS": "not_installed_here"}
    monkeypatch.setenv(variable, options[variable])
    (exercise,) = tiny.exercises
    assert collect_checks([exercise.checks])[exercise.checks]
    assert os.environ[variable] == options[variable]


def test_a_missing_file_of_checks_is_reported(tiny_copy, capfd):
    """pytest would report it in its own words, and find nothing wrong with the other files."""
    (exercise,) = load_course(tiny_copy).exercises
    exercise.checks.unlink()
    message = f"{exercise.checks} is missing, which course.yaml requires. Next: write it"
    with pytest.raises(GraderFault, match=message):
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


@cases(
    "f, outcome",
    {
        "a right answer": (lambda x: x, "passed"),
        "an answer of another dtype": (lambda x: x.float(), "failed"),
    },
)
def test_checks_get_fixtures_and_run_in_file_order_with_their_contract(tmp_path, f, outcome):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    file = tmp_path / "test_f.py"
    file.write_text(WITH_FIXTURES)
    attempt = LocalRecordingRunner({"f": f})
    run = CheckRun(attempt, LocalRunner({"f": lambda x: x}), b"s", ("f",))
    outcomes = HiddenChecks([file]).run(file, run)
    assert attempt.transcript[0].call.args[0].shape == (5, 7)
    assert [(o.id, o.title, o.points, o.outcome) for o in outcomes] == [
        ("shape", "keeps the shape", 1, "passed"),
        ("dtype", "keeps the dtype", 0.5, outcome),
        ("device", "works on the device of its arguments", 0.5, "passed"),
        ("last", "comes last", 1, "passed"),
    ]
    assert outcomes[1].hint == "Which dtype?"
