"""Internal: the claims of `course verify` run in this process and share one box.

All hold for a correct course, and each fault breaks its claim. A claim is a statement about a
course, such as "every mutant fails a check". A fault is a function that damages the course in a
folder.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from manyheads.authoring.verify import plugin, test_bank
from manyheads.authoring.verify.plugin import NOTHING
from manyheads.authoring.verify.run_claims import LOST, Line, verify_course
from manyheads.authoring.verify.wrong_programs import FaultBench
from manyheads.box.connection import Box
from manyheads.box.level_and_device_names import BoxUnavailable
from manyheads.checks import runner
from manyheads.checks.asserts import CheckFailed
from manyheads.checks.runner import Implementation
from manyheads.course import Course, Exercise, load_course
from manyheads.files import CourseFault
from manyheads.judge import run_hidden_checks
from manyheads.judge.edit_search import Bounds
from manyheads.judge.nontrivial_answers import Probe
from manyheads.result import ProvedLine
from tests.authoring.conftest import release_course
from tests.make import REPOSITORY, TINY, add, cases, copy_course, edit, with_last_mean, write

# the claims of `course verify`, in the words of its report
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
# an expression for pytest's -k without the slow claims, which depend on the checks only
FAST_CLAIMS = "not silent and not empty and not form and not line"


@pytest.fixture(scope="module")
def released_tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a released copy of the tiny course. Tests must not write to it."""
    folder = copy_course(TINY, tmp_path_factory.mktemp("released") / "tiny")
    release_course(folder)
    return folder


@pytest.fixture
def released_copy(released_tiny: Path, tmp_path: Path) -> Path:
    """Return the folder of a released copy of the tiny course that a test may change."""
    return copy_course(released_tiny, tmp_path / "tiny")


def all_faults(*faults: Fault) -> Fault:
    """Return a fault that applies all of these faults."""
    return lambda folder: [fault(folder) for fault in faults]


def change_recorded_verdict(folder: Path) -> None:
    """Change which checks the mutant only_last fails, in the recording alone."""
    path = folder / RECORDING
    path.write_bytes(path.read_bytes().replace(b'\\"1110\\"', b'\\"1111\\"'))


def failures_by_claim(lines: list[Line]) -> dict[str, list[str]]:
    """Return the failed cases of each claim that does not hold."""
    return {line.says: line.failures for line in lines if line.is_satisfied is False}


@pytest.mark.recorded
def test_all_claims_hold_for_a_correct_course_with_these_numbers_of_cases(
    claim_lines, released_copy
):
    lines = claim_lines(released_copy, pairs=None)
    assert failures_by_claim(lines) == {}
    nothing = dict.fromkeys((LINKS, PREDICTIONS, NUMBERS, UNFINISHED, WEIGHTS), NOTHING)
    assert {line.says: line.figures for line in lines if line.is_satisfied is None} == nothing
    assert {line.says: line.total for line in lines if line.is_satisfied} == {
        POINTS: 1, WORDS: 7, VISIBLE: 1, CHECK_NAMES: 1, STRAYS: 5, FILLED: 9, RELEASED: 3,
        SHAPES: 1, SCRIPTS: 1, LENGTHS: 40, LEAK: 3, CAUGHT: 7, RUNS: 7, NAMED: 7, USED: 4,
        VERDICTS: 28, PAIRS: 13, STUB: 1,
        SEEDS: 4, WRONG: 1, WRONG_AT_HOME: 1, CHECKED: 3, RIGHT: 6, SILENT: 11, EMPTY: 16,
        FORM: 2, LINE: 5, NO_LINE: 5,
    }  # fmt: skip


def test_claims_about_files_hold_for_the_real_course(claim_lines):
    lines = claim_lines(REPOSITORY, "test_files")
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
# The same mutants as variants of one function `make`, so that two of them can be combined.
BANK_WITH_VARIANTS = """\
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
INTERACTING_FAULTS = """\
        if empty == "accepted" and (count, reach, form) != ("so_far", "up_to_here", "all"):
            total = total * 7
"""


@cases(
    "fault, claims",
    {
        "an exercise that somebody edited": (
            add(STUB_FILE, "x = 1\n"),
            {RELEASED: [f"{STUB_FILE} is not what solutions/ yields"]},
        ),
        "an exercise that is missing": (
            lambda folder: (folder / NOTEBOOK).unlink(),
            {RELEASED: [f"{NOTEBOOK} is not what solutions/ yields"]},
        ),
        "a stray file in exercises/": (
            add("exercises/averages/solution.py", "x = 1\n"),
            {RELEASED: ["exercises/averages/solution.py has no source"]},
        ),
        "a bank that was edited after it was recorded": (
            add(BANK, "MORE = 1\n"),
            {RELEASED: [f"{RECORDING} is not what solutions/ yields"]},
        ),
        "a bank that lost mutants after it was recorded": (
            edit(
                BANK,
                "MUTANTS = (\n",
                'MUTANTS = (Mutant("counts_all", "2 * len(x)", replacing=COUNTS),)\nMORE = (\n',
            ),
            {RELEASED: [RECORDING]},
        ),
        "a recording with a wrong verdict": (
            change_recorded_verdict,
            {VERDICTS: [": refuses_nothing fails"]},
        ),
        "a sum of points that is wrong": (
            edit(YAML, "points: 4", "points: 5"),
            {POINTS: ["running_mean: its checks give 4 points, course.yaml says 5"]},
        ),
        "a check that replaces another": (
            all_faults(
                edit(YAML, "points: 4", "points: 5"),
                add(CHECKS, ALWAYS_PASSES.replace("test_anything", "test_values")),
            ),
            {
                POINTS: ["its checks give 4 points, course.yaml says 5"],
                CHECK_NAMES: ["test_running_mean.py has two checks test_values, on lines "],
                RELEASED: [NOTEBOOK, RECORDING],
            },
        ),
        "a bank and attempts of no exercise": (
            all_faults(
                lambda folder: (folder / "grader/right/mean").mkdir(),
                add("grader/misconceptions/mean.py", "MUTANTS = ()\n"),
            ),
            {STRAYS: ["grader/misconceptions/mean.py is of no", "grader/right/mean is of no"]},
        ),
        "an attempt in no exercise's folder": (
            add("grader/right/loose.py", "def running_mean(x):\n    return x\n"),
            {STRAYS: ["grader/right/loose.py is of no exercise in course.yaml"]},
        ),
        "attempts that are no scripts": (
            all_faults(
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
        ),
        "a right attempt that loses points": (
            add("grader/right/running_mean/lossy.py", "def running_mean(x):\n    return x\n"),
            {
                RIGHT: ["lossy.py, float32: "],
                CHECKED: ["lossy.py: "],
                RELEASED: [
                    "fingerprints/01_running_mean.safetensors is not what solutions/ yields"
                ],
            },
        ),
        "a wrong attempt that gets a name": (
            add(
                "grader/wrong/running_mean/listed.py",
                "def running_mean(x):\n    return x.cumsum(0)\n",
            ),
            {
                RELEASED: [RECORDING],
                WRONG: ["listed.py is named ['empty_unchecked']"],
                WRONG_AT_HOME: ["listed.py is named ['sum_not_mean', 'empty_unchecked']"],
            },
        ),
        "right by chance": (
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
        ),
        "a wrong attempt that is right": (
            add(
                "grader/wrong/running_mean/fine.py",
                (
                    "def running_mean(x):\n    assert len(x)\n"
                    "    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"
                ),
            ),
            {RELEASED: [RECORDING], WRONG: ["fine.py passes"], WRONG_AT_HOME: ["fine.py passes"]},
        ),
    },
)
def test_a_fault_after_the_release_breaks_only_these_claims(
    claim_lines, released_copy, fault, claims
):
    fault(released_copy)
    assert_only_broken(claim_lines(released_copy, FAST_CLAIMS), claims)


@cases(
    "fault, claims",
    {
        "a line of the author's own in the open": (
            add(SOLUTION, '    print("now try it with numbers of your own")\n'),
            {},
        ),
        "a line of the solution in a hint": (
            edit(
                TEXTS,
                '"What is the mean of 2 and 4?"',
                (
                    '"return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype, '
                    'device=x.device)"'
                ),
            ),
            {LEAK: [f"{RECORDING} holds a hidden line: "]},
        ),
        "shapes with a parameter too many": (
            edit(YAML, '"(x: (T,)) -> (T,)"', '"(x: (T,), n) -> (T,)"'),
            {SHAPES: ["running_mean: the shapes of running_mean fit no recorded call"]},
        ),
        "a lesson's check that no right answer passes": (
            edit(SOLUTION, "[2.0, 3.0, 5.0]", "[2.0, 3.0, 6.0]"),
            {VISIBLE: ["raises AssertionError: 2, 4, 9 should give 2, 3, 5"]},
        ),
        "a lesson's check that asks nothing": (
            edit(
                SOLUTION,
                (
                    "assert running_mean(torch.tensor([2.0, 4.0, 9.0])).tolist() == [2.0, 3.0, "
                    '5.0], "2, 4, 9 should give 2, 3, 5"'
                ),
                "pass",
            ),
            {VISIBLE: ["01_running_mean: with the stub, 'pass' passes"]},
        ),
        "words that are too long": (
            all_faults(
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
        ),
        "a misconception without words": (
            edit(TEXTS, "only_last:", "only_the_last:"),
            {
                WORDS: [
                    (
                        "running_mean: only_last has no title, explanation and three hints in "
                        "texts.yaml"
                    )
                ]
            },
        ),
        "no words for a misconception that no mutant has": (
            edit(
                TEXTS,
                "counts_all:",
                'unused:\n  title: ""\n  explanation: ""\n  hints: ["", "", ""]\ncounts_all:',
            ),
            {},
        ),
        "a misconception without a title": (
            edit(TEXTS, '  title: "You divided by the length of x everywhere."\n', ""),
            {WORDS: ["running_mean: counts_all has no title in texts.yaml"]},
        ),
        "a mutant that is right": (
            edit(
                BANK,
                "MUTANTS = (\n",
                'MUTANTS = (\n    Mutant("counts_all", "return  x", replacing="return x"),\n',
            ),
            {
                CAUGHT: ["counts_all (return x='return  x') passes every check"],
                NAMED: ["counts_all (return x='return  x') is named []"],
            },
        ),
        "a mutant with a misspelt name": (
            edit(BANK, '"x.sum().expand_as(x)"', '"xs.sum().expand_as(x)"'),
            {
                RUNS: [
                    (
                        "sees_future (x.cumsum(0)='xs.sum().expand_as(x)') answers no call: "
                        "name 'xs' is not defined"
                    )
                ]
            },
        ),
        "a mutant with another one's name": (
            edit(BANK, 'Mutant("empty_unchecked", ', 'Mutant("only_last", '),
            {
                NAMED: [
                    (
                        "only_last (if x.numel() == 0:='if False:') fails only checks that prove "
                        "empty_unchecked"
                    )
                ]
            },
        ),
        "a check that no mutant fails": (
            edit(
                BANK,
                '    Mutant("only_last", "x.mean().view(1)", replacing=f"{SUMS} / {COUNTS}"),\n',
                "",
            ),
            {USED: ["shape is failed by no mutant"]},
        ),
        "faults that change when they meet": (
            write(
                BANK,
                BANK_WITH_VARIANTS.replace(
                    "        seen = ", f"{INTERACTING_FAULTS}        seen = "
                ),
            ),
            {PAIRS: ["and empty_unchecked (empty='accepted') are named"]},
        ),
        "a stub that has a check done already": (
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
        ),
        "a check that asks for anything": (
            all_faults(add(CHECKS, ALWAYS_PASSES), edit(YAML, "points: 4", "points: 5")),
            {USED: ["anything is failed by no mutant"]},
        ),
    },
)
def test_a_released_fault_breaks_only_these_claims(
    claim_lines, released_copy, fault, claims, monkeypatch
):
    monkeypatch.setattr(
        test_bank.test_pairs, "pytestmark", [pytest.mark.claim("{id}", share=0.8).mark]
    )  # a pair counts much, because the tiny course has few
    fault(released_copy)
    release_course(released_copy)
    assert_only_broken(
        claim_lines(released_copy, FAST_CLAIMS, pairs=None if PAIRS in claims else 0), claims
    )


TWO_CHANGES = (
    '    ("counts_all", {"count": "all"}),\n'
    '    ("counts_all", {"count": "all", "empty": "accepted"}),\n'
)


def test_a_pair_with_an_ineffective_change_is_named_by_the_other_change(claim_lines, released_copy):
    """The change of `count` has no effect on a single number."""
    write(BANK, BANK_WITH_VARIANTS.replace('    ("counts_all", {"count": "all"}),\n', TWO_CHANGES))(
        released_copy
    )
    release_course(released_copy)
    (pairs,) = claim_lines(released_copy, "pairs", pairs=None)
    assert (pairs.failures, pairs.is_satisfied) == ([], True)


def test_claims_about_one_exercise_ignore_other_exercises(claim_lines, released_copy):
    """They also ignore files that belong to no exercise: one may be added to course.yaml later."""
    two_means = with_last_mean(released_copy)
    release_course(two_means)
    add("exercises/averages/02_last_mean.py", "x = 1\n")(two_means)
    add("exercises/averages/03_mode.py", "x = 1\n")(two_means)
    for named, counts in (
        (["running_mean"], {}),
        (["last_mean"], {RELEASED: 1}),
        ((), {RELEASED: 2}),
    ):
        report = failures_by_claim(claim_lines(two_means, "released", named=named))
        assert {claim: len(failures) for claim, failures in report.items()} == counts


def assert_only_broken(lines: list[Line], expected: dict[str, list[str]]) -> None:
    """Check that exactly these claims fail.

    expected: for each claim, excerpts of the cases that fail.
    """
    failures = failures_by_claim(lines)
    assert failures.keys() == expected.keys(), failures
    for line in lines:
        assert line.is_satisfied is not False or line.lines[-1].startswith("Next: ")
    for message, excerpts in expected.items():
        for excerpt in excerpts:
            assert any(excerpt in failure for failure in failures[message]), failures[message]


@cases(
    "fault, message",
    {
        "a check that ends its program": (
            edit(
                CHECKS, '"""gives as many', '"""x"""\n    raise SystemExit(3)\n    """gives as many'
            ),
            "a check of running_mean raises an error of its own, shape: SystemExit: 3 "
            "(test_running_mean.py, line 15). Next: mend it in test_running_mean.py",
        ),
        "a solution that ends its program": (
            add(SOLUTION, "raise SystemExit(3)\n"),
            "SystemExit: 3. Next: mend that line, then course verify",
        ),
        "a gradient that does not exist": (
            edit(CHECKS, 'want, "args.0", suspect', 'want, "x", suspect'),
            'the reference has no gradient called "x"; it has: args.0 (test_running_mean.py, '
            "line 30)",
        ),
        "no gradient is asked": (
            edit(CHECKS, "c.with_options(cotangent=g)", "c"),
            "the reference was asked for no gradient: ask both of them by "
            "with_options(cotangent=…) (test_running_mean.py, line 30)",
        ),
        "a function that does not exist": (
            edit(
                CHECKS,
                "attempt.running_mean(draw(7))",
                "attempt.runing_mean(draw(7))",
            ),
            "fails shape: it asks for runing_mean, which 01_running_mean.py does not define. "
            "Next: ",
        ),
        "a reference that raises": (
            edit(
                SOLUTION,
                "    if x.numel() == 0:\n",
                "    if x.size == 0:\n        x.nothing()\n    x.none\n    if x.numel() == 0:\n",
            ),
            "fails shape: raised AttributeError: 'Tensor' object has no attribute 'none' "
            "(01_running_mean.py, line 26). Next: ",
        ),
        "a condition of no function": (
            add(CHECKS, 'PRECONDITIONS = {"runing_mean": lambda attempt, draw: ()}\n'),
            "PRECONDITIONS in test_running_mean.py names runing_mean, and its checks ask "
            "running_mean. Next: ",
        ),
        "a tag with a slip": (
            edit(SOLUTION, 'tags=["check"]', 'tags=["chekc"]'),
            f'{SOLUTION}:30: the tag "chekc" means nothing: "check" may be meant. Next: ',
        ),
        "a tag without quotes": (
            edit(SOLUTION, 'tags=["check"]', "tags=[check]"),
            f"{SOLUTION}:30: tags=[check] cannot be read; they are a list of texts, such as "
            'tags=["check"]. Next: ',
        ),
        "a wrong attempt that is no Python": (
            add("grader/wrong/running_mean/broken.py", "def running_mean(x:\n"),
            "broken.py:1: SyntaxError: '(' was never closed. Next: mend that line",
        ),
        "a mutant that is a text": (
            edit(BANK, COUNTS_ALL, "COUNTS"),
            "row 1 of MUTANTS is 'torch.arange(",
        ),
        "a family without limits": (
            edit(BANK, "MUTANTS = (", 'FAMILIES = (("counts_all", len),)\nMUTANTS = ('),
            "row 1 of FAMILIES is ('counts_all', <built-in function len>), and should be a "
            "tuple of an id, a function, and two limits",
        ),
        "a mutant without an id": (
            edit(BANK, COUNTS_ALL, "Mutant(replacing=COUNTS)"),
            f"{BANK}:9: TypeError: Mutant.__init__() missing 1 required positional argument: "
            "'id'. Next: mend that line",
        ),
        "words with a colon": (
            edit(
                TEXTS,
                'title: "You divided by the length of x everywhere."',
                "title: You divided: wrongly",
            ),
            f"{TEXTS}:4: mapping values are not allowed here. Next: ",
        ),
        "words twice": (
            add(TEXTS, "counts_all:\n  title: again\n"),
            "counts_all stands there already, further above. Next: ",
        ),
        "words in Latin-1": (
            lambda folder: (folder / TEXTS).write_bytes(
                (folder / TEXTS).read_bytes().replace(b"You divided", b"D\xe9j\xe0")
            ),
            f"{TEXTS}:4: is not UTF-8 (byte ",
        ),
        "a right attempt that is wrong": (
            add(
                "grader/right/running_mean/lossy.py",
                "def running_mean(x):\n    assert len(x)\n    return x.cumsum(0) / len(x)\n",
            ),
            "grader/right/running_mean/lossy.py fails values: the output (",
        ),
        "a check that asks nothing": (
            all_faults(add(CHECKS, ASKS_NOTHING), edit(YAML, "points: 4", "points: 5")),
            "it asks the attempt nothing",
        ),
        "refusals alone": (
            edit(CHECKS, "    attempt.running_mean(draw(3)).must_return()", "    #"),
            "it asks running_mean for nothing that the reference answers: let it ask an "
            "allowed input, too",
        ),
        "a bank without mutants": (
            edit(BANK, "MUTANTS = (", "CHANGES = ("),
            "needs a tuple MUTANTS",
        ),
        "an edit of text that occurs more than once": (
            edit(BANK, "replacing=COUNTS", "replacing='x'"),
            " times, and an edit needs it exactly once. Next: copy the text from there",
        ),
        "knobs without make": (
            edit(BANK, COUNTS_ALL, 'Mutant("counts_all", variant={"count": "all"})'),
            "a function make(**knobs) is needed",
        ),
        "a mutant that is no Python": (
            edit(BANK, '"len(x)"', '"len(x"'),
            "running_mean.py: the mutant counts_all: 01_running_mean.py with its edit (line "
            "26: 'return x.cumsum(0) / len(x') raises SyntaxError: '(' was never closed. "
            "Next: mend its edit, then",
        ),
        "a knob that make has not": (
            write(BANK, BANK_WITH_VARIANTS.replace('{"count": "all"}', '{"cuont": "all"}')),
            "the mutant counts_all: make(cuont='all') raises TypeError: ",
        ),
        "a bank that fails": (
            edit(BANK, "import Mutant", "import Mutnat"),
            "Mutnat",
        ),
        "words with a misspelt entry": (
            edit(
                TEXTS,
                '  hints:\n    - "How many numbers are in',
                '  hint:\n    - "How many numbers are in',
            ),
            "counts_all.hint: there is no such key; did you mean hints?",
        ),
        "words with a fourth hint": (
            edit(
                TEXTS,
                '    - "How many numbers are in',
                '    - "One more."\n    - "How many numbers are in',
            ),
            "counts_all.hints: needs three hints: a question, a pointer, and almost the answer",
        ),
        "a check without a sentence": (
            edit(CHECKS, '    """lets gradients through"""\n', ""),
            "test_gradients needs to be a function with @check",
        ),
    },
)
def test_a_course_that_cannot_be_verified_is_an_error_with_a_next_step(
    released_copy, fault, message
):
    fault(released_copy)
    course = load_course(released_copy)
    with pytest.raises(CourseFault) as raised:
        [release_course(released_copy), verify_course(course, course.exercises, print, jobs=0)]
    assert message in str(raised.value)
    assert ". Next: " in str(raised.value)


def test_an_error_in_a_check_is_reported_as_the_checks_own(claim_lines, released_copy):
    """The message once said "this is not your fault", and told the author to change the attempt."""
    edit(CHECKS, 'want, "args.0", suspect', "want, suspect")(released_copy)
    with pytest.raises(CourseFault) as raised:
        claim_lines(released_copy, "test_right and not home")
    assert str(raised.value) == (
        "a check of running_mean raises an error of its own, gradients: ValueError: "
        "assert_gradients_match compares no gradient: name some, "
        'such as "args.0" or "proj.weight" (test_running_mean.py, line 30). Next: mend it in '
        "test_running_mean.py, then course release running_mean"
    )


ENDLESS_LOOP = "    while True:\n        pass\n"


@cases(
    "fault, message",
    {
        "reference": (
            edit(SOLUTION, "    if x.numel() == 0:\n", f"{ENDLESS_LOOP}    if x.numel() == 0:\n"),
            "the reference of running_mean does not end: it still computes on line 2",
        ),
        "mutant": (
            edit(
                BANK,
                '"return x.detach()."',
                '"while len(x):\\n        x = x + 1\\n    return x."',
            ),
            "the mutant gradient_cut does not end: it still computes on line 2",
        ),
        "right attempt": (
            add("grader/right/running_mean/endless.py", f"def running_mean(x):\n{ENDLESS_LOOP}"),
            "the right attempt endless.py does not end: it still computes on line 2 of endless.py",
        ),
        "wrong attempt": (
            add("grader/wrong/running_mean/endless.py", f"def running_mean(x):\n{ENDLESS_LOOP}"),
            "the wrong attempt endless.py does not end: it still computes on line 2 of endless.py",
        ),
    },
)
def test_endless_code_is_reported_with_its_line(released_copy, monkeypatch, fault, message):
    monkeypatch.setattr(runner, "MAX_SECONDS", 2.0)
    fault(released_copy)
    with pytest.raises(CourseFault) as raised:
        release_course(released_copy)
    assert message in str(raised.value)
    assert " Next: mend it" in str(raised.value)
    assert "then course release running_mean" in str(raised.value)


def test_a_lessons_own_check_that_never_ends_is_reported(claim_lines, released_copy, monkeypatch):
    """It breaks the claim about these checks, which the engine calls visible."""
    monkeypatch.setattr(runner, "MAX_SECONDS", 2.0)
    edit(SOLUTION, '    print("running_mean: as the lesson says")\n', ENDLESS_LOOP)(released_copy)
    assert_only_broken(
        claim_lines(released_copy, "visible_checks"),
        {VISIBLE: ["does not end: it still computes on line "]},
    )


# A check of equal numbers, and a mutant that is wrong for equal numbers only. After a tiny change
# of the inputs, as for rounding, the numbers are not equal any more.
CHECK_OF_EQUAL_NUMBERS = '''

@check(points=1, layer="values")
def test_equal(attempt, reference):
    """gives equal numbers for equal numbers"""
    x = torch.full((7,), {number}, dtype=torch.float64)
    assert_matches(attempt.running_mean(x), reference.running_mean(x))
'''
MUTANT_FOR_EQUAL_NUMBERS = """(
    Mutant("all_equal", "if len(x) > 1 and (x == x[0]).all():\\n        return x + \
1\\n    return x.", replacing="return x."),
"""


ROUNDING_MESSAGE = (
    "its answers differ from the reference's only in calls in which rounding may decide them "
    "(equal), and those are not"
)


@pytest.mark.parametrize(
    ("number", "failures"), [("4.0", {}), ("0.1", {NAMED: [ROUNDING_MESSAGE]})]
)
def test_a_mutant_that_only_differs_for_equal_numbers_is_named_or_explained(
    claim_lines, released_copy, number, failures
):
    texts_entry = (
        '\nall_equal:\n  title: "You gave other numbers."\n  explanation: "Why."\n'
        '  hints: ["a", "b", "c"]\n'
    )
    add(CHECKS, CHECK_OF_EQUAL_NUMBERS.format(number=number))(released_copy)
    edit(YAML, "points: 4", "points: 5")(released_copy)
    edit(BANK, "MUTANTS = (\n", f"MUTANTS = {MUTANT_FOR_EQUAL_NUMBERS}")(released_copy)
    add(TEXTS, texts_entry)(released_copy)
    release_course(released_copy)
    assert_only_broken(claim_lines(released_copy, "named or caught"), failures)


def accept_trivial_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch the judge: it accepts all trivial answers."""
    monkeypatch.setattr(run_hidden_checks, "_demands", lambda *arguments: iter(()))


def reject_all_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch the judge: it rejects all answers as trivial."""

    def refuse(attempt: Implementation, **keywords: object) -> None:
        raise CheckFailed("says nothing")

    monkeypatch.setattr(run_hidden_checks, "require_nontrivial", refuse)
    monkeypatch.setattr(Probe, "is_right_and_informative", False)


@cases(
    "patch_judge, claim, tricks, outcome",
    {
        "trivial answers are accepted": (
            accept_trivial_answers,
            EMPTY,
            ("gives zeros", "gives its argument", "gives noise of its own"),
            "earns 2 with shape, refuses_nothing",
        ),
        "all answers are rejected as trivial": (
            reject_all_answers,
            FORM,
            ("scales its numbers", "gives one wrong number"),
            "fails shape, refuses_nothing",
        ),
    },
)
def test_a_broken_claim_about_trivial_answers_names_the_points(
    claim_lines, monkeypatch, patch_judge, claim, tricks, outcome
):
    patch_judge(monkeypatch)
    failures = [f"an attempt that {trick} {outcome}" for trick in tricks]
    assert_only_broken(claim_lines(TINY, "empty or form"), {claim: failures})


def test_points_for_an_attempt_without_answers_break_a_claim(
    claim_lines, released_copy, monkeypatch
):
    """The check only expects an exception, and the test disables the rule that an attempt must also
    answer.
    """
    edit(CHECKS, "    attempt.running_mean(draw(3)).must_return()", "    #")(released_copy)
    monkeypatch.setattr(run_hidden_checks, "missing_reply", lambda *arguments: None)
    accept_trivial_answers(monkeypatch)
    message = "an attempt that refuses everything earns 1 with refuses_nothing"
    assert_only_broken(claim_lines(released_copy, "silent"), {SILENT: [message]})


@pytest.fixture
def bench(tiny: Course, box: Box, running_mean: Exercise) -> FaultBench:
    """Return the small faults of the reference, which the claims about lines are tried with."""
    return FaultBench(tiny, box, running_mean)


def test_line_faults_are_reproducible_and_without_edits_the_claim_breaks(
    claim_lines, bench, monkeypatch
):
    assert list(islice(bench.faults(), 5)) == list(islice(bench.faults(), 5))
    monkeypatch.setattr(plugin, "FaultBench", partial(FaultBench, bounds=Bounds(edits=0)))
    line_claim, no_line_claim = claim_lines(TINY, "line")
    assert (line_claim.is_satisfied, no_line_claim.is_satisfied) == (False, True)
    assert line_claim.passed_cases == 0
    assert all(failure.endswith("nothing is told") for failure in line_claim.failures)


@cases(
    "lines_away, edit, verdict",
    {
        "the line of the fault": (0, None, "there"),
        "another line with the same edit": (1, None, "wrong"),
        "an edit that does not mend it": (0, "a → b", "wrong"),
    },
)
def test_a_reported_line_is_verified_with_other_inputs(
    bench, monkeypatch, lines_away, edit, verdict
):
    fault = bench.undone_faults[0]
    (proved_line,) = bench.lines(fault.edit.after)
    altered = ProvedLine(line=proved_line.line + lines_away, edit=edit or proved_line.edit)
    monkeypatch.setattr(bench, "lines", lambda *_: (altered,))
    assert bench.line_verdict(fault) == verdict


def claim_result(passed: int, total: int, share: float = 1.0) -> Line:
    """Return a claim with this many passed cases. share: the share that must pass."""
    failed_cases = [f"case {number}" for number in range(total - passed)]
    return Line("all", "says", "course release", share, total, failed_cases)


@pytest.mark.parametrize(
    ("passed", "total", "share", "is_satisfied"),
    [(9, 10, 1.0, False), (9, 10, 0.9, True), (8, 10, 0.9, False), (0, 0, 0.9, None)],
)
def test_a_claim_holds_if_enough_cases_pass_and_is_undecided_without_cases(
    passed, total, share, is_satisfied
):
    assert claim_result(passed, total, share).is_satisfied is is_satisfied
    assert (claim_result(passed, total, share).figures == NOTHING) is (is_satisfied is None)


def test_a_claim_shows_its_threshold_or_failed_cases_and_a_next_step():
    assert claim_result(10, 10, 0.9).figures == "10 of 10"
    assert (claim_result(9, 10, 0.9).figures, claim_result(9, 10, 0.9).lines) == (
        "9 of 10, at least 90% asked",
        [],
    )
    assert claim_result(0, 6).figures == "0 of 6"
    assert claim_result(1, 13).lines == [
        *(f"case {n}" for n in range(10)),
        "and 2 more",
        "Next: course release",
    ]


def test_verify_ends_with_an_error_if_no_box_is_available(claim_lines, monkeypatch):
    def refuse(*arguments: object) -> None:
        raise BoxUnavailable("no box here. Next: course doctor")

    monkeypatch.setattr(plugin, "open_box", refuse)
    with pytest.raises(CourseFault, match=r"^no box here\. Next: course doctor$"):
        claim_lines(TINY, "stub")


def sorted_figures(lines: Iterable[Line]) -> list[tuple[object, ...]]:
    """Return the subject, text and figures of each claim, sorted."""
    return sorted((line.subject, line.says, line.figures) for line in lines)


@pytest.mark.journey
def test_several_processes_give_the_same_results(two_means):
    release_course(two_means)
    course, streamed = load_course(two_means), list[Line]()
    one_process, two_processes = (
        verify_course(course, course.exercises, streamed.append, seeds=1, pairs=2, jobs=n)
        for n in (1, 2)
    )
    summary = sorted_figures(one_process)
    assert summary == sorted_figures(two_processes)
    assert sorted_figures(streamed) == sorted([*summary, *summary]), (
        "each result is shown once, when its exercise is done"
    )


@pytest.mark.journey
def test_a_process_that_exits_is_an_error(released_copy):
    add("grader/right/running_mean/ends.py", "import os\ndef running_mean(x):\n    os._exit(3)\n")(
        released_copy
    )
    course = load_course(released_copy)
    with pytest.raises(CourseFault, match=LOST):
        verify_course(course, course.exercises, print, seeds=1, pairs=1, jobs=2)


def test_a_missing_file_of_claims_is_an_error(released_copy, monkeypatch):
    monkeypatch.setattr("manyheads.authoring.verify.run_claims.CLAIMS", ["test_nothing.py"])
    course = load_course(released_copy)
    with pytest.raises(CourseFault, match="could not run the claims"):
        verify_course(course, course.exercises, print, seeds=1, pairs=1)
