"""Deeply nested code stops no analysis of the judge, and functions beside it get a diagnosis."""

from collections.abc import Callable
from functools import partial

import pytest

from manyheads.box.connection import Box
from manyheads.course import Course, Exercise
from manyheads.judge.edit_search import candidates
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.submission import Source
from manyheads.submission.source import DEEPEST
from tests.hostile.test_long_texts import ANALYSES

NAME = "01_running_mean.py"
USED_FRAMES = 300  # frames of the stack that a command, a test runner or Jupyter may use already
FATAL_DEPTH = 330  # it once ended the grading of an attempt with a RecursionError
UNREAD_DEPTHS = (FATAL_DEPTH, 900, 3000)  # deeper than the judge reads


def nest_expression(prefix: str, suffix: str = "", core: str = "x") -> Callable[[int], str]:
    """Return a function of a depth: it writes prefix and suffix that often around `core`."""
    return lambda depth: prefix * depth + core + suffix * depth


def nested_patterns(depth: int) -> str:
    return f"def g(x):\n match x:\n  case {'[' * depth}x{']' * depth}: return x\n"


def elif_chain(depth: int) -> str:
    return "def g(x):\n if x == 0: return x\n" + " elif x == 1: return x\n" * depth


def nested_statement(header: str) -> Callable[[int], str]:
    """Return a function that nests a statement with this header, up to Python's 100 levels."""

    def text(depth: int) -> str:
        depth = min(depth, 97)
        lines = [" " * (1 + indent) + header for indent in range(depth)]
        return "\n".join(["def g(x):", *lines, " " * (1 + depth) + "return x", ""])

    return text


EXPRESSIONS: dict[str, Callable[[int], str]] = {
    "a sum": nest_expression("", "+x"),
    "a power": nest_expression("x**"),
    "brackets": nest_expression("(", ")"),
    "signs": nest_expression("-"),
    "negations": nest_expression("not "),
    "calls of calls": nest_expression("", "()"),
    "calls in calls": nest_expression("g(", ")"),
    "attributes": nest_expression("", ".a"),
    "methods": nest_expression("", ".a()"),
    "indices of indices": nest_expression("", "[0]"),
    "indices in indices": nest_expression("x[", "]"),
    "slices": nest_expression("x[:", "]"),
    "lists": nest_expression("[", "]"),
    "tuples": nest_expression("(", ",)"),
    "dictionaries": nest_expression("{0:", "}"),
    "lambdas": nest_expression("lambda:"),
    "conditions": nest_expression("x if x else "),
    "`or` and `and`": nest_expression("(x or x and ", ")"),
    "comparisons": nest_expression("x<(", ")"),
    "comprehensions": nest_expression("[", " for x in x]"),
    "comprehensions over comprehensions": nest_expression("[x for x in ", "]"),
    "assignments in expressions": nest_expression("(x:=", ")"),
    "stars": nest_expression("g(*", ")"),
    "a string's fields": lambda depth: f"f'{{{nest_expression('(', '+x)')(depth)}}}'",
}
TEMPLATES = {
    "returned": "def g(x):\n return {}\n",
    "called": "def g(x):\n return ({})(7)\n",
    "asked before": "def g(x):\n if {}: raise ValueError\n return x\n",
    "an attribute": (
        "class g:\n def __init__(self):\n  self.a = ({})(7)\n def forward(self, x):\n"
        "  return self.a(x)\n"
    ),
    "a decorator": "@{}\ndef g(x): return x\n",
    "a default": "def g(x={}): return x\n",
}
STATEMENTS: dict[str, Callable[[int], str]] = {
    "patterns": nested_patterns,
    "a chain of `elif`": elif_chain,
    "loops": nested_statement("for x in x:"),
    "branches": nested_statement("if x:"),
    "functions": nested_statement("def g(x):"),
    "classes": nested_statement("class A:"),
    "decorators": lambda depth: "@g\n" * depth + "def g(x): return x\n",
}


def texts_of(construct: str, depth: int) -> list[str]:
    """Return programs with this construct at this depth, one for each place where it may occur."""
    if construct in STATEMENTS:
        return [STATEMENTS[construct](depth)]
    return [template.format(EXPRESSIONS[construct](depth)) for template in TEMPLATES.values()]


def deepest_that_is_read(construct: str) -> int:
    """Return the largest depth at which the judge still parses all programs with the construct."""
    low, high = 1, DEEPEST
    while low < high:
        middle = (low + high + 1) // 2
        is_read = all(Source("", text).tree for text in texts_of(construct, middle))
        low, high = (middle, high) if is_read else (low, middle - 1)
    return low


@pytest.fixture
def plain_judge(tiny: Course, box: Box) -> Judge:
    return Judge(tiny, box, Settings(secret=b"secret"))


def call_below(frames: int, analyse: Callable[[], object]) -> None:
    """Call the function with this many more frames on the stack."""
    if frames:
        call_below(frames - 1, analyse)
    else:
        analyse()


for_each_construct = pytest.mark.parametrize("construct", [*EXPRESSIONS, *STATEMENTS])


@for_each_construct
def test_no_analysis_fails_on_deeply_nested_code(construct):
    for depth in (deepest_that_is_read(construct), *UNREAD_DEPTHS):
        for text in texts_of(construct, depth):
            for _, analyse in ANALYSES.values():
                call_below(USED_FRAMES, partial(analyse, text))
            call_below(USED_FRAMES, partial(candidates, Source(NAME, text), ["g"], [1]))


WRONG = "def running_mean(x):\n    return x.cumsum(0) / 7\n\n\n"


def grade_text(judge: Judge, exercise: Exercise, text: str) -> ExerciseResult:
    """Return the result of an attempt, and check that the grader itself had no fault."""
    result = judge.grade_attempt("s", exercise, Source(NAME, text))
    assert judge.faults == []
    return result


@for_each_construct
def test_a_function_beside_deeply_nested_code_is_graded(plain_judge, running_mean, construct):
    """The nested code is never run, but once ended the diagnosis with a RecursionError."""
    for depth in (deepest_that_is_read(construct), UNREAD_DEPTHS[0], UNREAD_DEPTHS[-1]):
        text = texts_of(construct, depth)[construct in EXPRESSIONS]
        result = grade_text(plain_judge, running_mean, WRONG + text)
        assert result.score is not None
        assert not any(check.outcome == "skipped" for check in result.checks)


@pytest.mark.parametrize(
    "text",
    [
        "y = " + "x + " * 150 + "x",
        "y = x" + ".contiguous()" * 80,
        "y = " + "[" * 60 + "x" + "]" * 60,
        "if x.dim() == 0:\n        y = x\n" + "    elif x.dim() == 1:\n        y = x\n" * 150,
    ],
    ids=["a sum of 150", "80 calls of methods", "60 lists", "150 elif"],
)
def test_nesting_that_honest_students_write_is_still_read(plain_judge, running_mean, text):
    attempt = f"def running_mean(x):\n    {text}\n    return x.cumsum(0) / len(x)\n"
    assert Source(NAME, attempt).tree
    result = grade_text(plain_judge, running_mean, attempt)
    assert {misconception.id for misconception in result.diagnosis} == {
        "counts_all",
        "empty_unchecked",
    }


def test_grade_and_check_survive_deep_expressions(tiny_copy, tmp_path, run_course):
    for number, (construct, build_expression) in enumerate(EXPRESSIONS.items()):
        folder = tmp_path / "submitted" / f"{number:02}" / "averages"
        folder.mkdir(parents=True)
        (folder / NAME).write_text(
            WRONG + TEMPLATES["called"].format(build_expression(FATAL_DEPTH)) + f"# {construct}\n"
        )
    graded = run_course(
        "grade", tmp_path / "submitted", "--course", tiny_copy, "--out", tmp_path / "results"
    )
    assert graded.returncode == 0, graded.stdout + graded.stderr
    attempt = tiny_copy / "exercises" / "averages" / NAME
    attempt.write_text(WRONG + TEMPLATES["called"].format(EXPRESSIONS["a sum"](FATAL_DEPTH)))
    checked = run_course("check", cwd=tiny_copy)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "Traceback" not in checked.stdout + checked.stderr
