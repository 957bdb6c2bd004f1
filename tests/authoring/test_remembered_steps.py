"""Internal: a release shows its memory only in the programs that it does not run again.

It repeats only changed steps, and writes the bytes of a release without memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from types import CodeType

import pytest
import torch

from manyheads.authoring import choose_recorded_calls, record_pairs_and_sweeps, release_exercises
from manyheads.authoring.release_exercises import write_release
from manyheads.authoring.remembered_steps import (
    RememberedSteps,
    read_steps,
    steps_file,
    write_steps,
)
from manyheads.box.worker.answer_call import execute
from manyheads.box.worker.messages import Call, Reply
from manyheads.checks import runner
from manyheads.checks.runner import namespace_of
from manyheads.course import Exercise, load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.bank import Bank, Namespace, Sweep
from manyheads.diagnosis.fingerprint import ReplyFingerprint, TensorFingerprint
from manyheads.judge.run_hidden_checks import Catalogue
from tests.make import add, cases, edit, replace

pytestmark = pytest.mark.journey

CHECKS = "grader/checks/test_running_mean.py"
BANK = "grader/misconceptions/running_mean.py"
RIGHT = "grader/right/running_mean/loop.py"
WRONG = "grader/wrong/running_mean/median.py"
TEXTS = "grader/texts.yaml"
# A mistake with a number, in a course that has none.
FAMILY = """
FAMILIES = (
    (
        "sum_not_mean",
        lambda number: Mutant("sum_not_mean", f" / {number}", replacing=f" / {COUNTS}"),
        (0.5, 4.0),
    ),
)
"""
LAST_MUTANT = '    Mutant("only_last", "x.mean().view(1)", replacing=f"{SUMS} / {COUNTS}"),\n'


def exercise_in(folder: Path) -> Exercise:
    return load_course(folder).exercises[0]


def bank_in(folder: Path) -> Bank:
    return load_bank(exercise_in(folder))


def forget_process() -> None:
    """Clear the caches that a new process does not have."""
    load_bank.cache_clear()
    namespace_of.cache_clear()


def release_anew(folder: Path) -> bytes:
    """Release like a new process, and return the bytes of the fault dictionary."""
    forget_process()
    course = load_course(folder)
    write_release(course, Catalogue(course))
    return course.exercises[0].fingerprints.read_bytes()


def release_without_memory(folder: Path) -> bytes:
    exercise = exercise_in(folder)
    steps_file(exercise).unlink(missing_ok=True)
    exercise.fingerprints.unlink()
    return release_anew(folder)


def code_object_of(program: Namespace) -> CodeType:
    return program["running_mean"].__code__


@contextmanager
def executions() -> Iterator[list[CodeType]]:
    """Collect the code of each program that answers a call."""
    executed = list[CodeType]()

    def noted(namespace: Namespace, call: Call, *args: str, **options: bool) -> Reply:
        executed.append(code_object_of(namespace))
        return execute(namespace, call, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        for module in (choose_recorded_calls, record_pairs_and_sweeps, runner):
            patch.setattr(module, "execute", noted)
        yield executed


@pytest.fixture
def released(tiny_copy: Path) -> Path:
    """The folder of a released course with a parametric mutant."""
    add(BANK, FAMILY)(tiny_copy)
    release_anew(tiny_copy)
    return tiny_copy


def attempts(folder: Path) -> dict[str, CodeType]:
    """The code of right and wrong attempts by their paths, and of mutants by their ids."""
    exercise = exercise_in(folder)
    paths = [*exercise.right_attempts(), *exercise.wrong_attempts()]
    codes = {str(path.relative_to(folder)): code_object_of(namespace_of(path)) for path in paths}
    return codes | {m.id: code_object_of(m.namespace) for m in load_bank(exercise).mutants}


def pairs_with(folder: Path, id_: str) -> set[CodeType]:
    """The code of each pair of a mutant with another one."""
    bank = bank_in(folder)
    pairs = [(a, b) for a, b in permutations(bank.mutants, 2) if id_ in (a.id, b.id)]
    combined = (bank.combine(*pair) for pair in pairs)
    return {code_object_of(program) for program in combined if program}


MUTANT_OF_ALL = edit(BANK, '"counts_all", "len(x)"', '"counts_all", "(len(x) + 0)"')


@cases(
    "edit_course, changed",
    {
        "one mutant": (MUTANT_OF_ALL, ["counts_all"]),
        "one mutant removed": (edit(BANK, LAST_MUTANT, ""), []),
        "a right attempt": (add(RIGHT, "A = 1\n"), [RIGHT]),
        "a wrong attempt": (add(WRONG, "A = 1\n"), [WRONG]),
        "the hint of the exercise": (edit("course.yaml", "How many numbers", "How many"), []),
    },
)
def test_a_second_release_runs_only_what_has_changed_and_writes_the_same_dictionary(
    released, edit_course, changed
):
    """The dictionary equals one that a release without memory has recorded.

    changed: the paths of the attempts and the ids of the mutants that the edit changes.
    """
    edit_course(released)
    with executions() as executed:
        dictionary = release_anew(released)
    codes = attempts(released)
    # the reference always runs: its calls in the checks are recorded
    reference = code_object_of(namespace_of(exercise_in(released).solution))
    allowed = {reference} | {codes[name] for name in changed}
    for name in changed:
        allowed |= pairs_with(released, name)  # a pair has the code of both mutants
    assert {*executed} <= allowed
    assert all(codes[name] in executed for name in changed)
    assert dictionary == release_without_memory(released)


def test_mutants_in_another_order_do_not_run_and_the_dictionary_is_the_same(released):
    add(BANK, "MUTANTS = MUTANTS[::-1]\n")(released)
    with executions() as executed:
        dictionary = release_anew(released)
    assert attempts(released).keys() >= {"counts_all", RIGHT}
    assert {*executed}.isdisjoint(attempts(released).values())
    assert dictionary == release_without_memory(released)


def test_a_mutant_that_was_like_another_one_runs_when_the_other_is_gone(released):
    """The first release gave it the outcomes of the other mutant, and did not run its checks."""
    alike = LAST_MUTANT.replace("view(1)", "view(-1)")
    replace(released / BANK, LAST_MUTANT, LAST_MUTANT + alike)
    release_anew(released)
    replace(released / BANK, LAST_MUTANT, "")
    assert release_anew(released) == release_without_memory(released)


def test_another_check_repeats_all(released):
    replace(released / CHECKS, "x = draw(draw.integer(5, 9))", "x = draw(draw.integer(5, 8))")
    with executions() as executed:
        dictionary = release_anew(released)
    assert {*executed} >= {*attempts(released).values()}
    assert dictionary == release_without_memory(released)


def test_other_words_make_no_call(released, monkeypatch):
    words = "How many numbers are in the mean", "How many are in the mean"
    replace(released / TEXTS, *words)
    with executions() as executed, monkeypatch.context() as patch:
        patch.setattr(release_exercises, "recorded_file", None)
        dictionary = release_anew(released)
    assert executed == []
    assert words[1].encode() in dictionary
    assert dictionary == release_without_memory(released)


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@cases(
    "harm",
    {
        "one bit": damage,
        "the end": lambda path: path.write_bytes(path.read_bytes()[:-9]),
        "nothing in it": lambda path: path.write_bytes(b""),
        "no such file": Path.unlink,
    },
)
def test_a_damaged_memory_is_no_memory(released, harm):
    exercise = exercise_in(released)
    path, recorded = steps_file(exercise), exercise.fingerprints.read_bytes()
    original = path.read_bytes()
    assert read_steps(path, exercise).of_mutant(bank_in(released).mutants[0]).row
    harm(path)
    assert not read_steps(path, exercise).of_mutant(bank_in(released).mutants[0]).row
    exercise.fingerprints.unlink()
    assert release_anew(released) == recorded
    assert path.read_bytes() == original


def test_what_was_not_used_is_dropped(released):
    path = steps_file(exercise_in(released))
    old_size = path.stat().st_size
    replace(released / BANK, LAST_MUTANT, "")
    release_anew(released)
    assert path.stat().st_size < old_size
    assert path.parents[1].stat().st_mode & 0o077 == 0


NUMBERS = (0.1, 1 / 3, 1e-300, 5e-324, -0.0, 123456789.123456789, float("inf"))


def test_every_number_is_read_as_it_was_written(tiny_copy, tmp_path):
    exercise, path = exercise_in(tiny_copy), tmp_path / "a" / "b" / "c.steps"
    (tmp_path / "a").mkdir()
    mutant, *_ = bank_in(tiny_copy).mutants
    tensor = TensorFingerprint("tensor", (2, 3), "", NUMBERS, float("nan"))
    reply = ReplyFingerprint(
        outputs=(tensor, TensorFingerprint("int")),
        gradients={"b": tensor, "a": None},
        dtype=("float64", None),
        mutated=("args.0",),
        parameters={"w": (3, 4)},
        attributes={"its mode": "training=True"},
    )
    raised = ReplyFingerprint(raised="kind 3 (4, 5)")
    rows = torch.tensor([NUMBERS, [float("nan")] * len(NUMBERS)], dtype=torch.float64)
    sweep = Sweep(
        "id", 0.1, (3, 5), ((("tensor", (2,), "ab"),), ()), (rows, rows[:, :0]), frozenset({5})
    )

    steps = RememberedSteps(exercise)
    program = steps.of_mutant(mutant)
    program.replies, program.in_single = (reply, raised, reply), frozenset({1})
    program.row, program.violations = "012", frozenset({("values", (0, 2)), ("kind", (1,))})
    program.fixed = {(2, True): False, (1, False): True}
    steps.of_pair(mutant, mutant, 7, lambda: (2**32, NUMBERS, 0.1))
    steps.of_pair(mutant, mutant, 8, lambda: None)
    parametric = steps.sweeps.get("digest", lambda: sweep)
    write_steps(path, steps)

    again = read_steps(path, exercise)
    assert repr(again.of_mutant(mutant)) == repr(program)
    assert again.of_pair(mutant, mutant, 7, pytest.fail) == (2**32, NUMBERS, 0.1)
    assert again.of_pair(mutant, mutant, 8, pytest.fail) is None
    assert repr(again.sweeps.get("digest", pytest.fail)) == repr(parametric)
    assert [*map(torch.Tensor.tolist, again.sweeps.used["digest"].answers)][1] == [[], []]


MADE = """
from manyheads.checks import Mutant

def factor():
    return 2

def make(power, how=None):
    return {"running_mean": lambda x: x * factor() ** power}

MUTANTS = (Mutant("squared", variant={"power": 2}), Mutant("cubed", variant={"power": 3}))
"""


def digests(folder: Path) -> list[str]:
    """The digests of the mutants of a bank."""
    forget_process()
    steps = RememberedSteps(exercise_in(folder))
    for mutant in bank_in(folder).mutants:
        steps.of_mutant(mutant)
    return [*steps.programs.used]


@cases(
    "old, new, same",
    {
        "nothing": ("", "", [True, True]),
        "an argument": ('"power": 3', '"power": 4', [True, False]),
        "a function that make calls": ("return 2", "return 3", [False, False]),
        "an argument that is no literal": ('"power": 3', '"power": 3, "how": make', [True, False]),
        "a table that make reads": ("factor() ** power", "len(MUTANTS) ** power", [False, False]),
    },
)
def test_what_a_made_mutant_depends_on(tiny_copy, old, new, same):
    (tiny_copy / BANK).write_text(MADE, encoding="utf-8")
    old_digests = digests(tiny_copy)
    (tiny_copy / BANK).write_text(MADE.replace(old, new), encoding="utf-8")
    new_digests = digests(tiny_copy)
    assert [a == b for a, b in zip(old_digests, new_digests, strict=True)] == same


def test_what_a_function_among_the_arguments_does_is_not_known(tiny_copy: Path) -> None:
    (tiny_copy / BANK).write_text(MADE.replace("3}", '3, "how": make}'), encoding="utf-8")
    digests_a, digests_b = digests(tiny_copy), digests(tiny_copy)
    assert digests_a[0] == digests_b[0]
    assert digests_a[1] != digests_b[1]
