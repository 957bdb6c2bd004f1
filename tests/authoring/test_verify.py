"""`course verify`: on a sound course every claim holds, and for every claim there is a fault that
breaks it alone.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from manyheads.authoring.release_exercises import write_release
from manyheads.authoring.verify import plugin, test_bank
from manyheads.authoring.verify.plugin import NOTHING
from manyheads.authoring.verify.run_claims import LOST, Line, verify_course
from manyheads.authoring.verify.wrong_programs import FaultBench
from manyheads.box.connection import Box
from manyheads.box.level_and_device_names import BoxUnavailable
from manyheads.checks import runner
from manyheads.checks.asserts import CheckFailed
from manyheads.checks.runner import BrokenReference, Implementation
from manyheads.course import Course, CourseError, Exercise, load_course
from manyheads.files import CourseFault
from manyheads.judge import run_hidden_checks
from manyheads.judge.collect_checks import GraderFault
from manyheads.judge.edit_search import Bounds
from manyheads.judge.nontrivial_answers import Probe
from manyheads.judge.run_hidden_checks import Catalogue
from manyheads.result import ProvedLine
from tests.authoring.conftest import LinesOf
from tests.make import REPOSITORY, TINY, add, copy_course, edit, write

POINTS = "the checks' points sum to course.yaml's"
WORDS = "every misconception has its words"
RELEASED = "exercises/ is exactly what solutions/ yields"
SHAPES = "the shapes of course.yaml fit the recorded calls"
LINKS = "what a lesson links to is released, and figures have words"
PREDICTIONS = "a prediction waits for its function, and then is answered"
VISIBLE = "a lesson's own checks pass with the solution, and fail with the stub"
CHECK_NAMES = "no check replaces another one of its name"
STRAYS = "every file of solutions/ and grader/ is of an exercise"
SCRIPTS = "every file of grader/right/ and grader/wrong/ is a script"
LENGTHS = "no title, explanation or hint is longer than there is room for"
FILLED = "nothing is left to fill"
LEAK = "no line of a solution is released"
CAUGHT = "every mutant fails a check"
NAMED = "every mutant that answers is named first"
RUNS = "every mutant uses only names that are defined"
USED = "every check is failed by a mutant"
VERDICTS = "every visible check gives the hidden check's verdict"
PAIRS = "both faults of a pair are named"
NUMBERS = "a mistake with a number is named at numbers that are not listed"
UNFINISHED = "a mistake keeps its name while later functions are stubs"
WEIGHTS = "every mutant has the same names if its layers begin with other weights"
STUB = "the untouched stub scores 0"
SEEDS = "a right or unlisted wrong attempt has the same points and names with every seed"
WRONG = "an unlisted wrong attempt fails and gets no diagnosis"
WRONG_AT_HOME = "an unlisted wrong attempt fails `course check` and gets no diagnosis there"
RIGHT = "every right attempt scores full in float32 and in float64"
CHECKED = "every right attempt passes `course check`"
SILENT = "an attempt that gives no answer passes no check"
EMPTY = "an attempt whose answers say nothing passes no check"
FORM = "an attempt with wrong numbers keeps its points of form"
LINE = "the line of a small fault is found"
NO_LINE = "no line is told where nothing is wrong"

YAML = "course.yaml"
SOLUTION = "solutions/averages/01_running_mean.py"
CHECKS = "grader/checks/test_running_mean.py"
BANK = "grader/misconceptions/running_mean.py"
COUNTS_ALL = 'Mutant("counts_all", "len(x)", replacing=COUNTS)'  # the first mutant of the bank
TEXTS = "grader/texts.yaml"
RECORDING = "exercises/averages/fingerprints/01_running_mean.safetensors"
STUB_FILE = "exercises/averages/01_running_mean.py"
NOTEBOOK = "exercises/averages/01_running_mean.ipynb"

Fault = Callable[[Path], object]
# about the checks: these claims hold if those stay
FEW = "not silent and not empty and not form and not line"


@pytest.fixture(scope="module")
def released_tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy_course(TINY, tmp_path_factory.mktemp("released") / "tiny")
    release(folder)
    return folder


@pytest.fixture
def tiny_copy(released_tiny: Path, tmp_path: Path) -> Path:
    """The folder of a copy of the tiny course, released by this engine, to write to."""
    return copy_course(released_tiny, tmp_path / "tiny")


def release(folder: Path) -> None:
    course = load_course(folder)
    write_release(course, Catalogue(course))


def both(*faults: Fault) -> Fault:
    return lambda folder: [fault(folder) for fault in faults]


def with_another_row(folder: Path) -> None:
    path = folder / RECORDING
    path.write_bytes(path.read_bytes().replace(b'\\"1110\\"', b'\\"1111\\"'))


def failures_by_line(lines: list[Line]) -> dict[str, list[str]]:
    return {line.says: line.failures for line in lines if line.is_satisfied is False}


@pytest.mark.recorded
def test_on_a_sound_course_every_claim_holds_with_its_figures(
    lines_of: LinesOf, tiny_copy: Path
) -> None:
    lines = lines_of(tiny_copy, pairs=None)
    assert failures_by_line(lines) == {}
    nothing = dict.fromkeys((LINKS, PREDICTIONS, NUMBERS, UNFINISHED, WEIGHTS), NOTHING)
    assert {line.says: line.figures for line in lines if line.is_satisfied is None} == nothing
    assert {line.says: line.total for line in lines if line.is_satisfied} == {
        POINTS: 1, WORDS: 7, VISIBLE: 1, CHECK_NAMES: 1, STRAYS: 5, FILLED: 9, RELEASED: 3,
        SHAPES: 1, SCRIPTS: 1, LENGTHS: 40, LEAK: 3, CAUGHT: 7, RUNS: 7, NAMED: 7, USED: 4,
        VERDICTS: 28, PAIRS: 13, STUB: 1,
        SEEDS: 4, WRONG: 1, WRONG_AT_HOME: 1, CHECKED: 3, RIGHT: 6, SILENT: 11, EMPTY: 16,
        FORM: 2, LINE: 5, NO_LINE: 5,
    }  # fmt: skip


@pytest.mark.recorded
def test_the_files_of_the_real_course_keep_every_claim(lines_of: LinesOf) -> None:
    lines = lines_of(REPOSITORY, "test_files")
    assert len(lines) == 13
    assert {line.says: line.lines for line in lines if not line.is_satisfied} == {}


ALWAYS_PASSES = '''

@check(points=1, layer="hygiene")
def test_anything(attempt, draw):
    """gives anything"""
    attempt.running_mean(draw(3)).must_return()
'''
ASKS_NOTHING = '''

@check(points=1, layer="hygiene")
def test_nothing():
    """asks nothing"""
'''
# The bank's mutants in the other form: faults that are knobs of one function, and can be combined.
KNOBS = """\
import torch


def make(*, count="so_far", reach="up_to_here", form="all", empty="refused", graph="kept"):
    def running_mean(x):
        if empty == "refused" and x.numel() == 0:
            raise ValueError("nothing to average")
        source = x.detach() if graph == "cut" else x
        total = source.cumsum(0)
        if reach == "before":
            total = total - source
        if reach == "all":
            total = source.sum().expand_as(source)
        seen = torch.arange(1, len(x) + 1, dtype=x.dtype)
        mean = total / (seen if count == "so_far" else max(len(x), 1) if count == "all" else 1)
        return mean[-1:] if form == "last" else mean

    return {"running_mean": running_mean}


MUTANTS = (
    ("counts_all", {"count": "all"}),
    ("sum_not_mean", {"count": "one"}),
    ("excludes_self", {"reach": "before"}),
    ("sees_future", {"reach": "all"}),
    ("only_last", {"form": "last"}),
    ("empty_unchecked", {"empty": "accepted"}),
    ("gradient_cut", {"graph": "cut"}),
)
"""
TANGLED = """\
        if empty == "accepted" and (count, reach, form) != ("so_far", "up_to_here", "all"):
            total = total * 7
"""


@pytest.mark.parametrize(
    ("fault", "claims"),
    [
        pytest.param(
            add(STUB_FILE, "x = 1\n"),
            {RELEASED: [f"{STUB_FILE} is not what solutions/ yields"]},
            id="an exercise that somebody edited",
        ),
        pytest.param(
            lambda folder: (folder / NOTEBOOK).unlink(),
            {RELEASED: [f"{NOTEBOOK} is not what solutions/ yields"]},
            id="an exercise that is missing",
        ),
        pytest.param(
            add("exercises/averages/solution.py", "x = 1\n"),
            {RELEASED: ["exercises/averages/solution.py has no source"]},
            id="a stray file in exercises/",
        ),
        pytest.param(
            add(BANK, "MORE = 1\n"),
            {RELEASED: [f"{RECORDING} is not what solutions/ yields"]},
            id="a bank that was edited after it was recorded",
        ),
        pytest.param(
            edit(
                BANK,
                "MUTANTS = (\n",
                'MUTANTS = (Mutant("counts_all", "2 * len(x)", replacing=COUNTS),)\nMORE = (\n',
            ),
            {RELEASED: [RECORDING]},
            id="a bank that lost mutants after it was recorded",
        ),
        pytest.param(
            edit(TEXTS, "How many numbers come back?", "How many numbers are there?"),
            {RELEASED: ["fingerprints/01_running_mean.safetensors is not what solutions/ yields"]},
            id="words that were edited after it was recorded",
        ),
        pytest.param(
            with_another_row,
            {VERDICTS: [": refuses_nothing fails"]},
            id="a record that is not true",
        ),
        pytest.param(
            edit(YAML, "points: 4", "points: 5"),
            {POINTS: ["running_mean: its checks give 4 points, course.yaml says 5"]},
            id="a sum of points that is wrong",
        ),
        pytest.param(
            both(
                edit(YAML, "points: 4", "points: 5"),
                add(CHECKS, ALWAYS_PASSES.replace("test_anything", "test_values")),
            ),
            {
                POINTS: ["its checks give 4 points, course.yaml says 5"],
                CHECK_NAMES: ["test_running_mean.py has two checks test_values, on lines "],
                RELEASED: [NOTEBOOK, RECORDING],
            },
            id="a check that replaces another",
        ),
        pytest.param(
            both(
                add(CHECKS, ALWAYS_PASSES),
                add(CHECKS, ALWAYS_PASSES),
                edit(YAML, "points: 4", "points: 5"),
            ),
            {CHECK_NAMES: ["two checks test_anything"], RELEASED: [NOTEBOOK, RECORDING]},
            id="a check twice, where points add up",
        ),
        pytest.param(
            add("grader/checks/test_runing_mean.py", "x = 1\n"),
            {STRAYS: ["grader/checks/test_runing_mean.py is of no exercise in course.yaml"]},
            id="checks of no exercise",
        ),
        pytest.param(
            both(
                lambda folder: (folder / "grader/right/mean").mkdir(),
                add("grader/misconceptions/mean.py", "MUTANTS = ()\n"),
            ),
            {STRAYS: ["grader/misconceptions/mean.py is of no", "grader/right/mean is of no"]},
            id="a bank and attempts of no exercise",
        ),
        pytest.param(
            add("grader/right/loose.py", "def running_mean(x):\n    return x\n"),
            {STRAYS: ["grader/right/loose.py is of no exercise in course.yaml"]},
            id="an attempt in no exercise's folder",
        ),
        pytest.param(
            both(
                add("grader/right/running_mean/mine.ipynb", "{}"),
                add("grader/wrong/running_mean/other.py.txt", "x"),
                add("grader/wrong/running_mean/.DS_Store", "x"),
            ),
            {
                SCRIPTS: [
                    (
                        "grader/right/running_mean/mine.ipynb is no .py file, and never run; "
                        "grader/wrong/running_mean/other.py.txt is no .py file, and never run"
                    )
                ]
            },
            id="attempts that are no scripts",
        ),
        pytest.param(
            add("grader/right/running_mean/lossy.py", "def running_mean(x):\n    return x\n"),
            {
                RIGHT: ["lossy.py, float32: "],
                CHECKED: ["lossy.py: "],
                RELEASED: [
                    "fingerprints/01_running_mean.safetensors is not what solutions/ yields"
                ],
            },
            id="a right attempt that loses points",
        ),
        pytest.param(
            add(
                "grader/wrong/running_mean/listed.py",
                "def running_mean(x):\n    return x.cumsum(0)\n",
            ),
            {
                RELEASED: [RECORDING],
                WRONG: ["listed.py is named ['empty_unchecked']"],
                WRONG_AT_HOME: ["listed.py is named ['sum_not_mean', 'empty_unchecked']"],
            },
            id="a wrong attempt that gets a name",
        ),
        pytest.param(
            add(
                "grader/wrong/running_mean/by_chance.py",
                (
                    "def running_mean(x):\n    assert len(x)\n"
                    "    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0) + (x[0] < 0) / 3\n"
                ),
            ),
            {
                RELEASED: [RECORDING],
                SEEDS: ["by_chance.py fails or is named values"],
                WRONG_AT_HOME: ["by_chance.py passes"],
            },
            id="right by chance",
        ),
        pytest.param(
            add(
                "grader/wrong/running_mean/fine.py",
                (
                    "def running_mean(x):\n    assert len(x)\n"
                    "    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"
                ),
            ),
            {RELEASED: [RECORDING], WRONG: ["fine.py passes"], WRONG_AT_HOME: ["fine.py passes"]},
            id="a wrong attempt that is right",
        ),
    ],
)
def test_a_fault_breaks_its_claim_and_no_other(lines_of, tiny_copy, fault, claims):
    fault(tiny_copy)
    assert_broken(lines_of(tiny_copy, FEW), claims)


@pytest.mark.parametrize(
    ("fault", "claims"),
    [
        pytest.param(
            add(SOLUTION, '    print("now try it with numbers of your own")\n'),
            {},
            id="a line of the author's own in the open",
        ),
        pytest.param(
            edit(
                TEXTS,
                '"What is the mean of 2 and 4?"',
                (
                    '"return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype, '
                    'device=x.device)"'
                ),
            ),
            {LEAK: [f"{RECORDING} holds a hidden line: "]},
            id="a line of the solution in a hint",
        ),
        pytest.param(
            edit(YAML, '"(x: (T,)) -> (T,)"', '"(x: (T,), n) -> (T,)"'),
            {SHAPES: ["running_mean: the shapes of running_mean fit no recorded call"]},
            id="shapes with a parameter too many",
        ),
        pytest.param(
            edit(SOLUTION, "[2.0, 3.0, 5.0]", "[2.0, 3.0, 6.0]"),
            {VISIBLE: ["raises AssertionError: 2, 4, 9 should give 2, 3, 5"]},
            id="a lesson's check that no right answer passes",
        ),
        pytest.param(
            edit(
                SOLUTION,
                (
                    "assert running_mean(torch.tensor([2.0, 4.0, 9.0])).tolist() == [2.0, 3.0, "
                    '5.0], "2, 4, 9 should give 2, 3, 5"'
                ),
                "pass",
            ),
            {VISIBLE: ["01_running_mean: with the stub, 'pass' passes"]},
            id="a lesson's check that asks nothing",
        ),
        pytest.param(
            both(
                edit(TEXTS, '"How many numbers come back?"', f'"{"How many? " * 24}"'),
                edit(TEXTS, '"You divided by the length of x everywhere."', f'"{"Two " * 40}"'),
                edit(YAML, "hint: How many", f"hint: {'How ' * 60}many"),
            ),
            {
                LENGTHS: [
                    "running_mean: its hint in course.yaml has 282 characters, and at most 230 fit",
                    "counts_all: its title has 160 characters, and at most 150 fit",
                    "only_last: its hint has 240 characters, and at most 230 fit",
                ]
            },
            id="words that are too long",
        ),
        pytest.param(
            edit(TEXTS, "only_last:", "only_the_last:"),
            {
                WORDS: [
                    (
                        "running_mean: only_last has no title, explanation and three hints in "
                        "texts.yaml"
                    )
                ]
            },
            id="a misconception without words",
        ),
        pytest.param(
            edit(
                TEXTS,
                "counts_all:",
                'unused:\n  title: ""\n  explanation: ""\n  hints: ["", "", ""]\ncounts_all:',
            ),
            {},
            id="no words for a misconception that no mutant has",
        ),
        pytest.param(
            edit(TEXTS, '  title: "You divided by the length of x everywhere."\n', ""),
            {WORDS: ["running_mean: counts_all has no title in texts.yaml"]},
            id="a misconception without a title",
        ),
        pytest.param(
            edit(TEXTS, '"How many numbers come back?"', '""'),
            {WORDS: ["running_mean: only_last has no three hints in texts.yaml"]},
            id="a misconception whose first hint is empty",
        ),
        pytest.param(
            edit(
                BANK,
                "MUTANTS = (\n",
                'MUTANTS = (\n    Mutant("counts_all", "return  x", replacing="return x"),\n',
            ),
            {
                CAUGHT: ["counts_all (return x='return  x') passes every check"],
                NAMED: ["counts_all (return x='return  x') is named []"],
            },
            id="a mutant that is right",
        ),
        pytest.param(
            edit(BANK, '"x.sum().expand_as(x)"', '"xs.sum().expand_as(x)"'),
            {
                RUNS: [
                    (
                        "sees_future (x.cumsum(0)='xs.sum().expand_as(x)') answers no call: "
                        "name 'xs' is not defined"
                    )
                ]
            },
            id="a mutant with a misspelt name",
        ),
        pytest.param(
            edit(BANK, 'Mutant("empty_unchecked", ', 'Mutant("only_last", '),
            {
                NAMED: [
                    (
                        "only_last (if x.numel() == 0:='if False:') fails only checks that prove "
                        "empty_unchecked"
                    )
                ]
            },
            id="a mutant with another one's name",
        ),
        pytest.param(
            edit(
                BANK,
                '    Mutant("only_last", "x.mean().view(1)", replacing=f"{SUMS} / {COUNTS}"),\n',
                "",
            ),
            {USED: ["shape is failed by no mutant"]},
            id="a check that no mutant fails",
        ),
        pytest.param(
            write(BANK, KNOBS.replace("        seen = ", f"{TANGLED}        seen = ")),
            {PAIRS: ["and empty_unchecked (empty='accepted') are named"]},
            id="faults that change when they meet",
        ),
        pytest.param(
            edit(
                SOLUTION,
                (
                    "    ### BEGIN SOLUTION\n    if x.numel() == 0:\n"
                    '        raise ValueError("x has 0 numbers; at least 1 is needed")\n'
                ),
                (
                    "    if len(x) == 7:\n        return torch.stack([x[: i + 1].sum() / (i + 1) "
                    "for i in range(7)])\n    ### BEGIN SOLUTION\n    if x.numel() == 0:\n"
                    "        raise ValueError(len(x))\n"
                ),
            ),
            {STUB: ["scores 2 / 4"], USED: ["shape is failed by no mutant"]},
            id="a stub that has a check done already",
        ),
        pytest.param(
            both(add(CHECKS, ALWAYS_PASSES), edit(YAML, "points: 4", "points: 5")),
            {USED: ["anything is failed by no mutant"]},
            id="a check that asks for anything",
        ),
    ],
)
def test_a_fault_that_is_released_breaks_its_claim_and_no_other(
    lines_of, tiny_copy, fault, claims, monkeypatch
):
    monkeypatch.setattr(
        test_bank.test_pairs, "pytestmark", [pytest.mark.claim("{id}", share=0.8).mark]
    )  # there are few
    fault(tiny_copy)
    release(tiny_copy)
    assert_broken(lines_of(tiny_copy, FEW, pairs=None if PAIRS in claims else 0), claims)


TWO_CHANGES = (
    '    ("counts_all", {"count": "all"}),\n'
    '    ("counts_all", {"count": "all", "empty": "accepted"}),\n'
)


def test_of_a_pair_in_which_a_change_does_nothing_the_names_are_those_of_the_rest(
    lines_of, tiny_copy
):
    """Of the last number alone the count is right."""
    write(BANK, KNOBS.replace('    ("counts_all", {"count": "all"}),\n', TWO_CHANGES))(tiny_copy)
    release(tiny_copy)
    (pairs,) = lines_of(tiny_copy, "pairs", pairs=None)
    assert (pairs.failures, pairs.is_satisfied) == ([], True)


def test_claims_about_one_exercise_say_nothing_of_the_others(
    lines_of: LinesOf, two_means: Path
) -> None:
    """Nor of stray files, which may be an exercise that is not in course.yaml yet."""
    release(two_means)
    add("exercises/averages/02_last_mean.py", "x = 1\n")(two_means)
    add("exercises/averages/03_mode.py", "x = 1\n")(two_means)
    for named, counts in (
        (["running_mean"], {}),
        (["last_mean"], {RELEASED: 1}),
        ((), {RELEASED: 2}),
    ):
        report = failures_by_line(lines_of(two_means, "released", named=named))
        assert {claim: len(failures) for claim, failures in report.items()} == counts


def assert_broken(lines: list[Line], expected: dict[str, list[str]]) -> None:
    failures = failures_by_line(lines)
    assert failures.keys() == expected.keys(), failures
    for line in lines:
        assert line.is_satisfied is not False or line.lines[-1].startswith("Next: ")
    for says, excerpts in expected.items():
        for excerpt in excerpts:
            assert any(excerpt in failure for failure in failures[says]), failures[says]


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        pytest.param(
            edit(SOLUTION, "    if x.numel() == 0:\n", "    x = x + 1\n    if x.numel() == 0:\n"),
            CourseError,
            "the reference of running_mean fails values: ",
            id="a reference that is wrong",
        ),
        pytest.param(
            edit(CHECKS, 'want, "args.0", suspect', "want, suspect"),
            CourseError,
            "a check of running_mean raises an error of its own, gradients: ValueError: "
            "assert_gradients_match compares no gradient: name some, "
            'such as "args.0" or "proj.weight" (test_running_mean.py, line 30). Next: mend it in '
            "test_running_mean.py, then course release",
            id="an assert without names",
        ),
        pytest.param(
            edit(
                CHECKS, '"""gives as many', '"""x"""\n    raise SystemExit(3)\n    """gives as many'
            ),
            CourseError,
            "a check of running_mean raises an error of its own, shape: SystemExit: 3 "
            "(test_running_mean.py, line 15). Next: mend it in test_running_mean.py",
            id="a check that ends its program",
        ),
        pytest.param(
            add(SOLUTION, "raise SystemExit(3)\n"),
            BrokenReference,
            "SystemExit: 3. Next: mend that line, then course verify",
            id="a solution that ends its program",
        ),
        pytest.param(
            edit(CHECKS, 'want, "args.0", suspect', 'want, "x", suspect'),
            CourseError,
            (
                'the reference has no gradient called "x"; it has: args.0 (test_running_mean.py, '
                "line 30)"
            ),
            id="a gradient that there is not",
        ),
        pytest.param(
            edit(CHECKS, "c.with_options(cotangent=g)", "c"),
            CourseError,
            (
                "the reference was asked for no gradient: ask both of them by "
                "with_options(cotangent=…) (test_running_mean.py, line 30)"
            ),
            id="no gradient is asked",
        ),
        pytest.param(
            edit(
                CHECKS,
                "attempt.running_mean(draw(7))",
                "attempt.runing_mean(draw(7))",
            ),
            CourseError,
            (
                "fails shape: it asks for runing_mean, which 01_running_mean.py does not define. "
                "Next: "
            ),
            id="a function that there is not",
        ),
        pytest.param(
            edit(
                SOLUTION,
                "    if x.numel() == 0:\n",
                "    if x.size == 0:\n        x.nothing()\n    x.none\n    if x.numel() == 0:\n",
            ),
            CourseError,
            (
                "fails shape: raised AttributeError: 'Tensor' object has no attribute 'none' "
                "(01_running_mean.py, line 26). Next: "
            ),
            id="a reference that raises",
        ),
        pytest.param(
            add(
                "grader/right/running_mean/raises.py",
                "def running_mean(x):\n    return x / {}[0]\n",
            ),
            CourseError,
            (
                "grader/right/running_mean/raises.py fails shape: raised KeyError: 0 (raises.py, "
                "line 2). Next: mend it, move it to"
            ),
            id="a right attempt that raises",
        ),
        pytest.param(
            add(CHECKS, 'PRECONDITIONS = {"runing_mean": lambda attempt, draw: ()}\n'),
            CourseError,
            (
                "PRECONDITIONS in test_running_mean.py names runing_mean, and its checks ask "
                "running_mean. Next: "
            ),
            id="a condition of no function",
        ),
        pytest.param(
            edit(SOLUTION, 'tags=["check"]', 'tags=["chekc"]'),
            CourseFault,
            f'{SOLUTION}:30: the tag "chekc" means nothing: "check" may be meant. Next: ',
            id="a tag with a slip",
        ),
        pytest.param(
            edit(SOLUTION, 'tags=["check"]', "tags=[check]"),
            CourseFault,
            (
                f"{SOLUTION}:30: tags=[check] cannot be read; they are a list of texts, such as "
                'tags=["check"]. Next: '
            ),
            id="a tag without quotes",
        ),
        pytest.param(
            add("grader/wrong/running_mean/broken.py", "def running_mean(x:\n"),
            BrokenReference,
            "broken.py:1: SyntaxError: '(' was never closed. Next: mend that line",
            id="a wrong attempt that is no Python",
        ),
        pytest.param(
            edit(BANK, COUNTS_ALL, "COUNTS"),
            CourseError,
            "row 1 of MUTANTS is 'torch.arange(",
            id="a mutant that is a text",
        ),
        pytest.param(
            edit(BANK, COUNTS_ALL, '("counts_all", COUNTS, "len(x)")'),
            CourseError,
            "should be a Mutant, or a tuple of an id and an edit. Next: mend that row",
            id="a mutant of three parts",
        ),
        pytest.param(
            edit(BANK, "MUTANTS = (", 'FAMILIES = (("counts_all", len),)\nMUTANTS = ('),
            CourseError,
            (
                "row 1 of FAMILIES is ('counts_all', <built-in function len>), and should be a "
                "tuple of an id, a function, and two limits"
            ),
            id="a family without limits",
        ),
        pytest.param(
            edit(BANK, COUNTS_ALL, "Mutant(replacing=COUNTS)"),
            BrokenReference,
            (
                f"{BANK}:9: TypeError: Mutant.__init__() missing 1 required positional argument: "
                "'id'. Next: mend that line"
            ),
            id="a mutant without an id",
        ),
        pytest.param(
            edit(
                TEXTS,
                'title: "You divided by the length of x everywhere."',
                "title: You divided: wrongly",
            ),
            CourseError,
            f"{TEXTS}:4: mapping values are not allowed here. Next: ",
            id="words with a colon",
        ),
        pytest.param(
            add(TEXTS, "counts_all:\n  title: again\n"),
            CourseError,
            "counts_all stands there already, further above. Next: ",
            id="words twice",
        ),
        pytest.param(
            lambda folder: (folder / TEXTS).write_bytes(
                (folder / TEXTS).read_bytes().replace(b"You divided", b"D\xe9j\xe0")
            ),
            CourseError,
            f"{TEXTS}:4: is not UTF-8 (byte ",
            id="words in Latin-1",
        ),
        pytest.param(
            add(
                "grader/right/running_mean/lossy.py",
                "def running_mean(x):\n    assert len(x)\n    return x.cumsum(0) / len(x)\n",
            ),
            CourseError,
            "grader/right/running_mean/lossy.py fails values: the output (",
            id="a right attempt that is wrong",
        ),
        pytest.param(
            both(add(CHECKS, ASKS_NOTHING), edit(YAML, "points: 4", "points: 5")),
            CourseError,
            "it asks the attempt nothing",
            id="a check that asks nothing",
        ),
        pytest.param(
            edit(CHECKS, "    attempt.running_mean(draw(3)).must_return()", "    #"),
            CourseError,
            (
                "it asks running_mean for nothing that the reference answers: let it ask an "
                "allowed input, too"
            ),
            id="refusals alone",
        ),
        pytest.param(
            edit(SOLUTION, "import torch\n", "import torhc\n"),
            BrokenReference,
            "torhc",
            id="one that fails",
        ),
        pytest.param(
            edit(BANK, "MUTANTS = (", "CHANGES = ("),
            CourseError,
            "needs a tuple MUTANTS",
            id="a bank without mutants",
        ),
        pytest.param(
            edit(BANK, "replacing=COUNTS", "replacing='x'"),
            CourseError,
            " times, and an edit needs it exactly once. Next: copy the text from there",
            id="an edit of what stands there more than once",
        ),
        pytest.param(
            edit(BANK, COUNTS_ALL, 'Mutant("counts_all", variant={"count": "all"})'),
            CourseError,
            "a function make(**knobs) is needed",
            id="knobs without make",
        ),
        pytest.param(
            edit(BANK, '"len(x)"', '"len(x"'),
            CourseError,
            (
                "running_mean.py: the mutant counts_all: 01_running_mean.py with its edit (line "
                "26: 'return x.cumsum(0) / len(x') raises SyntaxError: '(' was never closed. "
                "Next: mend its edit, then"
            ),
            id="a mutant that is no Python",
        ),
        pytest.param(
            edit(
                BANK,
                COUNTS_ALL,
                'Mutant("counts_all", "import torhc\\n", replacing="import torch\\n")',
            ),
            CourseError,
            (
                "the mutant counts_all: 01_running_mean.py with its edit (line 7: 'import torhc') "
                "raises ModuleNotFoundError"
            ),
            id="a mutant that is not imported",
        ),
        pytest.param(
            write(BANK, KNOBS.replace('{"count": "all"}', '{"cuont": "all"}')),
            CourseError,
            "the mutant counts_all: make(cuont='all') raises TypeError: ",
            id="a knob that make has not",
        ),
        pytest.param(
            edit(BANK, "import Mutant", "import Mutnat"),
            BrokenReference,
            "Mutnat",
            id="a bank that fails",
        ),
        pytest.param(
            edit(
                TEXTS,
                '  hints:\n    - "How many numbers are in',
                '  hint:\n    - "How many numbers are in',
            ),
            CourseError,
            "counts_all.hint: there is no such key; did you mean hints?",
            id="words with a misspelt entry",
        ),
        pytest.param(
            edit(
                TEXTS,
                '    - "How many numbers are in',
                '    - "One more."\n    - "How many numbers are in',
            ),
            CourseError,
            ("counts_all.hints: needs three hints: a question, a pointer, and almost the answer"),
            id="words with a fourth hint",
        ),
        pytest.param(
            edit(CHECKS, '    """lets gradients through"""\n', ""),
            GraderFault,
            "test_gradients needs to be a function with @check",
            id="a check without a sentence",
        ),
        pytest.param(
            edit(SOLUTION, "    ### END SOLUTION\n", ""),
            CourseFault,
            ":23: ",
            id="a part left open",
        ),
    ],
)
def test_a_course_that_cannot_be_verified_says_why_and_what_to_do(tiny_copy, fault, error, says):
    fault(tiny_copy)
    course = load_course(tiny_copy)
    with pytest.raises(error) as raised:
        [release(tiny_copy), verify_course(course, course.exercises, print, jobs=0)]
    assert says in str(raised.value)
    assert ". Next: " in str(raised.value)


def test_a_check_that_fails_by_itself_is_told_before_it_is_released(lines_of, tiny_copy):
    """The author once read "this is not your fault", and to mend the right attempt."""
    edit(CHECKS, 'want, "args.0", suspect', "want, suspect")(tiny_copy)
    with pytest.raises(CourseFault) as raised:
        lines_of(tiny_copy, "test_right and not home")
    assert str(raised.value) == (
        "a check of running_mean raises an error of its own, gradients: ValueError: "
        "assert_gradients_match compares no gradient: name some, "
        'such as "args.0" or "proj.weight" (test_running_mean.py, line 30). Next: mend it in '
        "test_running_mean.py, then course release running_mean"
    )


ENDLESS = "    while True:\n        pass\n"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        pytest.param(
            edit(SOLUTION, "    if x.numel() == 0:\n", f"{ENDLESS}    if x.numel() == 0:\n"),
            "the reference of running_mean does not end: it still computes on line 2",
            id="reference",
        ),
        pytest.param(
            edit(
                BANK,
                '"return x.detach()."',
                '"while len(x):\\n        x = x + 1\\n    return x."',
            ),
            "the mutant gradient_cut does not end: it still computes on line 2",
            id="mutant",
        ),
        pytest.param(
            add("grader/right/running_mean/endless.py", f"def running_mean(x):\n{ENDLESS}"),
            "the right attempt endless.py does not end: it still computes on line 2 of endless.py",
            id="right attempt",
        ),
        pytest.param(
            add("grader/wrong/running_mean/endless.py", f"def running_mean(x):\n{ENDLESS}"),
            "the wrong attempt endless.py does not end: it still computes on line 2 of endless.py",
            id="wrong attempt",
        ),
    ],
)
def test_what_does_not_end_is_named_with_its_line(tiny_copy, monkeypatch, fault, says):
    monkeypatch.setattr(runner, "MAX_SECONDS", 2.0)
    fault(tiny_copy)
    with pytest.raises(CourseFault) as raised:
        release(tiny_copy)
    assert says in str(raised.value)
    assert " Next: mend it" in str(raised.value)
    assert "then course release running_mean" in str(raised.value)


def test_a_cell_that_does_not_end_breaks_its_claim(lines_of, tiny_copy, monkeypatch):
    monkeypatch.setattr(runner, "MAX_SECONDS", 2.0)
    edit(SOLUTION, '    print("running_mean: as the lesson says")\n', ENDLESS)(tiny_copy)
    assert_broken(
        lines_of(tiny_copy, "visible_checks"),
        {VISIBLE: ["does not end: it still computes on line "]},
    )


# A check of equal numbers, and a mutant that differs there alone. Equal numbers that are nudged are
# equal no more.
OF_EQUAL_NUMBERS = '''

@check(points=1, layer="values")
def test_equal(attempt, reference):
    """gives equal numbers for equal numbers"""
    x = torch.full((7,), {number}, dtype=torch.float64)
    assert_matches(attempt.running_mean(x), reference.running_mean(x))
'''
FOR_EQUAL_NUMBERS = """(
    Mutant("all_equal", "if len(x) > 1 and (x == x[0]).all():\\n        return x + \
1\\n    return x.", replacing="return x."),
"""


@pytest.mark.parametrize(
    ("number", "failures"),
    [
        ("4.0", {}),
        (
            "0.1",
            {
                NAMED: [
                    (
                        "its answers differ from the reference's only in calls in which rounding "
                        "may decide them (equal), and those are not"
                    )
                ]
            },
        ),
    ],
)
def test_a_mutant_that_differs_at_equal_numbers_alone_is_named_or_its_author_is_told_why_not(
    lines_of, tiny_copy, number, failures
):
    words = (
        '\nall_equal:\n  title: "You gave other numbers."\n  explanation: "Why."\n'
        '  hints: ["a", "b", "c"]\n'
    )
    add(CHECKS, OF_EQUAL_NUMBERS.format(number=number))(tiny_copy)
    edit(YAML, "points: 4", "points: 5")(tiny_copy)
    edit(BANK, "MUTANTS = (\n", f"MUTANTS = {FOR_EQUAL_NUMBERS}")(tiny_copy)
    add(TEXTS, words)(tiny_copy)
    release(tiny_copy)
    assert_broken(lines_of(tiny_copy, "named or caught"), failures)


def say_something_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_hidden_checks, "_demands", lambda *arguments: iter(()))


def say_nothing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(attempt: Implementation, **keywords: object) -> None:
        raise CheckFailed("says nothing")

    monkeypatch.setattr(run_hidden_checks, "require_nontrivial", refuse)
    monkeypatch.setattr(Probe, "is_right_and_informative", False)


@pytest.mark.parametrize(
    ("break_it", "broken_claim", "failures"),
    [
        pytest.param(
            say_something_all,
            EMPTY,
            [
                f"an attempt that {behaviour} earns 2 with shape, refuses_nothing"
                for behaviour in ("gives zeros", "gives its argument", "gives noise of its own")
            ],
            id="nobody is seen to say nothing",
        ),
        pytest.param(
            say_nothing_all,
            FORM,
            [
                f"an attempt that {behaviour} fails shape, refuses_nothing"
                for behaviour in ("scales its numbers", "gives one wrong number")
            ],
            id="everybody is said to say nothing",
        ),
    ],
)
def test_a_claim_about_what_says_nothing_tells_what_it_earns(
    lines_of, monkeypatch, break_it, broken_claim, failures
):
    break_it(monkeypatch)
    assert_broken(lines_of(TINY, "empty or form"), {broken_claim: failures})


def test_an_attempt_that_is_given_points_for_silence_breaks_the_claim(
    lines_of, tiny_copy, monkeypatch
) -> None:
    """Its check expects an exception alone, and nothing sees to it that it asks for an answer."""
    edit(CHECKS, "    attempt.running_mean(draw(3)).must_return()", "    #")(tiny_copy)
    monkeypatch.setattr(run_hidden_checks, "missing_reply", lambda *arguments: None)
    say_something_all(monkeypatch)
    says = "an attempt that refuses everything earns 1 with refuses_nothing"
    assert_broken(lines_of(tiny_copy, "silent"), {SILENT: [says]})


@pytest.fixture
def bench(tiny: Course, box: Box, running_mean: Exercise) -> FaultBench:
    return FaultBench(tiny, box, running_mean)


def test_faults_of_lines_are_always_the_same_and_where_nothing_is_tried_the_claim_breaks(
    lines_of, bench, monkeypatch
):
    faults, again = (list(islice(bench.faults(), 5)) for _ in range(2))
    assert faults == again
    monkeypatch.setattr(plugin, "FaultBench", partial(FaultBench, bounds=Bounds(edits=0)))
    line_claim, no_line_claim = lines_of(TINY, "line")
    assert (line_claim.is_satisfied, line_claim.passed_cases, no_line_claim.is_satisfied) == (
        False,
        0,
        True,
    )
    assert all(failure.endswith("nothing is told") for failure in line_claim.failures)


@pytest.mark.parametrize(
    ("line", "edit", "said"),
    [
        pytest.param(0, None, "there", id="the line of the fault"),
        pytest.param(1, None, "wrong", id="another line with the same edit"),
        pytest.param(0, "a → b", "wrong", id="an edit that does not mend it"),
    ],
)
def test_a_line_that_is_told_is_tried_on_other_inputs(bench, monkeypatch, line, edit, said):
    fault = bench.undone_faults[0]
    (proved,) = bench.lines(fault.edit.after)
    altered = ProvedLine(line=proved.line + line, edit=proved.edit if edit is None else edit)
    monkeypatch.setattr(bench, "lines", lambda *_: (altered,))
    assert bench.line_verdict(fault) == said


def line(passed: int, total: int, share: float = 1.0) -> Line:
    return Line(
        "all",
        "says",
        "course release",
        share,
        total,
        [f"case {number}" for number in range(total - passed)],
    )


@pytest.mark.parametrize(
    ("held", "total", "share", "kept"),
    [
        (10, 10, 1.0, True),
        (9, 10, 1.0, False),
        (9, 10, 0.9, True),
        (8, 10, 0.9, False),
        (0, 0, 1.0, None),
        (0, 0, 0.9, None),
    ],
)
def test_a_claim_is_kept_if_enough_of_its_cases_hold_and_is_neither_where_it_asked_nothing(
    held, total, share, kept
):
    assert line(held, total, share).is_satisfied is kept
    assert (line(held, total, share).figures == NOTHING) is (kept is None)


def test_a_claim_shows_its_threshold_where_not_all_hold_and_what_to_do_where_too_few_do() -> None:
    assert line(10, 10, 0.9).figures == "10 of 10"
    assert (line(9, 10, 0.9).figures, line(9, 10, 0.9).lines) == ("9 of 10, at least 90% asked", [])
    assert line(0, 6).figures == "0 of 6"
    assert line(1, 13).lines == [
        *(f"case {n}" for n in range(10)),
        "and 2 more",
        "Next: course release",
    ]


def test_where_there_is_no_box_that_ends_it_and_is_told(
    lines_of: LinesOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise BoxUnavailable("no box here. Next: course doctor")

    monkeypatch.setattr(plugin, "open_box", refuse)
    with pytest.raises(CourseFault, match=r"^no box here\. Next: course doctor$"):
        lines_of(TINY, "stub")


def sorted_figures(lines: Iterable[Line]) -> list[tuple[object, ...]]:
    return sorted((line.subject, line.says, line.figures) for line in lines)


@pytest.mark.journey
def test_in_several_processes_the_claims_are_the_same(two_means: Path) -> None:
    release(two_means)
    course, streamed = load_course(two_means), list[Line]()
    alone, together = (
        verify_course(course, course.exercises, streamed.append, seeds=1, pairs=2, jobs=n)
        for n in (1, 2)
    )
    summary = sorted_figures(alone)
    assert summary == sorted_figures(together)
    assert sorted_figures(streamed) == sorted([*summary, *summary]), "each is shown when it is done"


@pytest.mark.journey
def test_a_process_that_is_lost_is_told(tiny_copy: Path) -> None:
    add("grader/right/running_mean/ends.py", "import os\ndef running_mean(x):\n    os._exit(3)\n")(
        tiny_copy
    )
    course = load_course(tiny_copy)
    with pytest.raises(CourseFault, match=LOST):
        verify_course(course, course.exercises, print, seeds=1, pairs=1, jobs=2)


def test_a_file_of_claims_that_is_not_there_is_told(
    tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyheads.authoring.verify.run_claims.CLAIMS", ["test_nothing.py"])
    course = load_course(tiny_copy)
    with pytest.raises(CourseFault, match="could not run the claims"):
        verify_course(course, course.exercises, print, seeds=1, pairs=1)
